"""Pods as kubectl prints them; amounts as Kubernetes writes them (case 20)."""

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload.constraint_lines import honoured_lines
from schedrl.workload.quantities import SUFFIXES, quantity
from schedrl.workload.readers import read_trace
from schedrl.workload.readers.formats.kubernetes import requests_of

START = 1_700_000_000


def moment(seconds):
    return datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def container(requests=None, limits=None, **more):
    return {"name": "c", "resources": {"requests": requests, "limits": limits}, **more}


def ended(start, end):
    return {"state": {"terminated": {"startedAt": moment(start), "finishedAt": moment(end), "exitCode": 0}}}


def pod(name="a", created=0, placed=5, runs=((10, 70),), phase="Succeeded", spec=None, **status):
    held = {
        "phase": phase,
        "startTime": moment(placed),
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": moment(99)},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment(placed)},
        ],
        "containerStatuses": [ended(*run) for run in runs],
    }
    usual = {"containers": [container({"cpu": "500m", "memory": "1Gi"})], "nodeName": "n1", "priority": 3}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "creationTimestamp": moment(created),
            "ownerReferences": [{"kind": "Job", "name": "j"}],
        },
        "spec": usual | (spec or {}),
        "status": held | status,
    }


def listed(*pods):
    return json.dumps({"apiVersion": "v1", "items": list(pods), "kind": "List", "metadata": {}}, indent=4)


def test_a_pod_that_has_ended_is_a_job(read_text, tmp_path):
    second = pod("b", 30, 40, ((41, 60), (45, 100)), "Failed", {"activeDeadlineSeconds": 600})
    second["spec"]["containers"] = [container({"cpu": "2"}, {"nvidia.com/gpu": 1}), container({"cpu": 1})]
    jobs, rejected = read_text(listed(pod(), second))
    assert jobs.id.tolist() == ["team/a", "team/b"]
    assert [resource.name for resource in jobs.resources] == ["cpu", "memory", "gpu"]
    assert jobs.demand.tolist() == [[0.5, 1.0, 0.0], [3.0, 0.0, 1.0]]
    assert jobs.arrival.tolist() == [0, 30]
    assert jobs.duration.tolist() == [65, 60]
    assert jobs.recorded_start.tolist() == [5, 40]
    assert np.isnan(jobs.estimate[0])
    assert jobs.estimate[1] == 600
    assert jobs.priority.tolist() == [3, 3]
    assert jobs.user.tolist() == ["team"] * 2
    assert jobs.extra["node"].tolist() == ["n1"] * 2
    assert jobs.extra["owner"].tolist() == ["Job"] * 2
    assert not len(rejected)
    assert sum(rejected.adjusted.values()) == 2  # memory of one, GPUs of the other are not stated
    path = tmp_path / "pods.json.gz"
    path.write_bytes(gzip.compress(listed(pod(), second).encode()))
    assert read_trace(path)[0].same_as(jobs)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (pod("w", phase="Running", runs=()), "unfinished"),
        (pod("w", phase="Pending", runs=(), spec={"nodeName": None}), "never_ran"),
        (pod("w", phase="Unknown"), "unfinished"),
        (pod("w", phase="Failed", runs=(), reason="Evicted"), "never_ran"),
        (pod("w", containerStatuses=[{"state": {"running": {"startedAt": moment(1)}}}]), "runtime_unknown"),
        (pod("w", spec={"containers": [container({"cpu": "5 Gi"})]}), "not_numeric"),
        (pod("w", spec={"containers": [container({"memory": "1Gi"})]}), "demand_unknown"),
        (pod("w", spec={"containers": [container({"cpu": "-1"})]}), "negative_demand"),
        (pod("w", spec={"containers": [container()]}), "demand_unknown"),
        (pod("w", spec={"containers": "none"}), "no_object"),
        (pod("w", placed=80), "negative_runtime"),
        (pod("w") | {"metadata": {"name": "w", "creationTimestamp": "soon"}}, "not_numeric"),
        (pod("w") | {"metadata": {"name": "w"}}, "arrival_unknown"),
        ({"kind": "Node", "metadata": {"name": "w"}}, "no_object"),
        (7, "no_object"),
        (pod("w") | {"status": []}, "no_object"),
    ],
)
def test_what_is_no_job_is_rejected_with_its_reason(read_text, wrong, reason):
    jobs, rejected = read_text(listed(pod(), wrong))
    assert jobs.id.tolist() == ["team/a"]
    assert [(row.line, row.reason) for row in rejected] == [(2, reason)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container({"cpu": "1"}), container({"cpu": "250m"})]}, "1.25"),
        ({"containers": [container(None, {"cpu": "2"})]}, "2"),  # the limit stands for a request
        ({"containers": [container({"cpu": "1"}, {"cpu": "2"})]}, "1"),
        ({"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"})]}, "3"),
        ({"containers": [container({"cpu": "4"})], "initContainers": [container({"cpu": "3"})]}, "4"),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [
                    container({"cpu": "1"}, restartPolicy="Always"),  # runs on
                    container({"cpu": "2"}),
                    container({"cpu": "0.5"}, restartPolicy="Always"),
                ],
            },
            "3",
        ),
        ({"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}}, "1.25"),
        ({"containers": [container({"cpu": "1"})], "resources": {"requests": {"cpu": "5"}}}, "5"),
    ],
)
def test_what_a_pod_holds_on_its_node(spec, expected):
    assert requests_of(spec)["cpu"] == Decimal(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"apiVersion": "v1", "kind": "PodList", "items": 3}', "without a list of pods"),
        (listed()[:-20], "is no JSON"),
        (listed(), "no jobs; 0 rows rejected"),
        (listed(pod(phase="Running", runs=())), "Only pods that have ended are jobs"),
    ],
)
def test_what_has_no_pods_is_an_error(read_text, text, message):
    with pytest.raises(UserError, match=message):
        read_text(text, "kubernetes")


def test_case_20_quantities(case):
    expected = case("20").expected
    for kind in ("cpu", "memory"):
        for text, value in expected[kind].items():
            assert float(quantity(text)) == value
    for text in [*expected["invalid"], "1KiB", "1e", "NaN", "inf", "٣", "1i", " 1", "1" * 200, "1e9999"]:
        with pytest.raises(ValueError, match="is no quantity"):
            quantity(text)


@settings(max_examples=80, deadline=None)
@given(st.decimals(0, 10**6, places=3), st.sampled_from(sorted(SUFFIXES)))
def test_a_quantity_is_digits_times_its_suffix_exactly(digits, suffix):
    assert quantity(f"{digits}{suffix}") == digits * SUFFIXES[suffix]


@pytest.mark.parametrize("form", ["list", "one", "lines", "array", "lists"])
def test_however_pods_are_printed(read_text, form):
    pods = [pod("a"), pod("b", created=9)]
    text = {
        "list": listed(*pods),
        "one": json.dumps(pods[0], indent=2),
        "lines": "\n".join(map(json.dumps, pods)),
        "array": json.dumps(pods),
        "lists": listed(pods[0]) + "\n" + listed(pods[1]),
    }[form]
    jobs, rejected = read_text(text, name="pods.json")
    names = ["team/a"] if form == "one" else ["team/a", "team/b"]
    assert jobs.id.tolist() == names
    assert not len(rejected)


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"gpu": "a100"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"x": 1}]}
                }
            }
        },
    ],
)
def test_nodes_that_a_pod_requires_are_counted(read_text, spec):
    jobs, _ = read_text(listed(pod("a", spec=spec), pod("b"), pod("c", spec={"affinity": {}})))
    said = "1 of 3 jobs names labels of nodes (1 different): left out, no rule looks at it"
    assert list(honoured_lines(jobs)) == [said]


def test_entries_are_called_entries(read_text):
    _, rejected = read_text(listed(pod("a"), pod("b", phase="Running")))
    assert rejected.place == "entry"
