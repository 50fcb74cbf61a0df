"""Fragmentation against OpenB's own value, and through a schedule by hand.

Of the four golden cases one names its pods. Two (887.2 and 554.4) do not, and depend on them: their pods are
those of a test in the published simulator and not in the golden file, so there is nothing here to compare.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from schedules import schedule

from schedrl.evaluation.cluster.fragmentation import fragmentation
from schedrl.sim.cluster import placements
from schedrl.sim.cluster.devices import ONE

GOLDEN = Path(__file__).parent / "golden" / "fgd.json"


@pytest.mark.parametrize("case", [c for c in json.loads(GOLDEN.read_text())["cases"] if "pods" in c])
def test_golden_fragmentation(case):
    node, pods = case["node"], case["pods"]
    free = np.array([[node["cpu_milli"] * ONE // 1000], [sum(node["gpu"]) * ONE // 1000]])
    share = np.array([node["gpu"]]) * ONE // 1000
    rows = [(pod["cpu"] * ONE // 1000, pod["gpu"] * pod["n"] * ONE // 1000, pod["p"]) for pod in pods]
    found = placements.fragmentation(0, free, share, np.array(rows, float), 1)
    assert 1000 * found == pytest.approx(case["frag"], abs=0.005)


@pytest.mark.parametrize("pod", [(1000, 500, 1), (2000, 0, 0), (64000, 1000, 8)])
def test_without_processors_nothing_is_of_use_to_any_pod(pod):
    """The golden case that names no pods but does not depend on them."""
    case = json.loads(GOLDEN.read_text())["cases"][3]
    assert case["node"]["cpu_milli"] == 0
    devices = np.array([case["node"]["gpu"]]) * ONE // 1000
    cpu, gpu, n = pod
    rows = np.array([(cpu * ONE // 1000, gpu * n * ONE // 1000, 1.0)])
    free = np.array([[0], [devices.sum()]])
    assert 1000 * placements.fragmentation(0, free, devices, rows, 1) == pytest.approx(case["frag"])


def test_it_is_followed_through_a_schedule():
    # Half of the jobs want a whole device, half 0.4 of one. While job 0 runs (0 to 10), its device has 0.6
    # left, of no use to a whole one: 0.5 x 0.6. From 10 on job 1 has a whole one and nothing is wasted.
    made = schedule(
        [0, 0], [10, 10], [[1, 1, 0.4], [1, 1, 1]], [0, 10], [[8, 8, 2]],
        machine=[0, 0],
    )  # fmt: skip
    devices = made.placed.devices
    devices[:] = [1, 1]
    found = fragmentation(made)
    assert found["mean"] == pytest.approx(0.5 * (0.5 * 0.6 / 2))
    assert found["max"] == pytest.approx(0.15)
    assert found["of_free"] == pytest.approx(0.15 / (0.8 + 0.5))
    assert found["while_arriving"] is None  # both come at once


def test_without_devices_it_is_not_defined():
    made = schedule([0], [10], [[1, 1]], [0], [[8, 8]])
    assert set(fragmentation(made).values()) == {None}
