"""The plan that is kept is the plan made anew in each pass; runs that last can be ended."""

import _thread
import os
import signal
import threading
import time

import numpy as np
import pytest
from clusters import RESOURCES, jobs, machines
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.sim.cluster import MachineEvents, reference, simulate
from schedrl.sim.lasting import wait_for

ESTIMATES = {
    "none": (None,),
    "exact": (1,),
    "at least": (1, 1, 2, 4),
    "too short": (0.25, 0.5, 1),
    "any": (0.25, 1, 1, 2, 4),
}


def crowded(seed, estimates, gangs, devices, count, size, span):
    """Draw more jobs than fit, at few different times."""
    rng = np.random.default_rng(seed)
    capacity = np.column_stack(
        [rng.integers(2, 9, size), rng.integers(1, 33, size), rng.integers(0, 4, size) * devices]
    )
    gpu = rng.choice([0, 0, 0.3, 0.5, 1, 2], count) * devices
    demand = np.column_stack([rng.integers(1, 6, count), rng.choice([0, 0.5, 1, 7.25], count), gpu])
    duration = rng.choice([0, 1, 2, 3, 5.5, 13], count)
    factors = ESTIMATES[estimates]
    estimate = np.full(count, np.nan) if factors == (None,) else duration * rng.choice(factors, count)
    workload = jobs(
        np.sort(rng.integers(0, span, count)).astype(float),
        duration,
        demand,
        estimate=estimate,
        instances=rng.choice([1, 1, 2, 3, 7], count) if gangs else None,
        user=[f"u{k}" for k in rng.integers(0, 3, count)],
    )
    happen = int(rng.choice([0, 0, 0, 6]))
    when, which = np.sort(rng.integers(0, 30, happen)).astype(float), rng.integers(0, size, happen)
    return workload, machines(capacity.astype(float)), MachineEvents(when, which, rng.random(happen) < 0.5)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    estimates=st.sampled_from(list(ESTIMATES)),
    gangs=st.booleans(),
    devices=st.booleans(),
    count=st.integers(5, 50),
    size=st.integers(1, 5),
    span=st.sampled_from([1, 5, 40]),
    order=st.sampled_from(["fifo", "fifo", "sjf", "ljf", "f1", "wfp3", "drf"]),
    placement=st.sampled_from(["first_fit", "best_fit", "worst_fit", "gpu_packing"]),
    window=st.sampled_from([None, None, 1, 2, 6]),
)
def test_the_plan_that_is_kept_is_the_plan_made_anew(order, placement, window, **drawn):
    workload, cluster, events = crowded(**drawn)
    rule = f"{order}+{placement}+conservative"
    found = simulate(workload, cluster, rule, window=window, events=events)
    expected = reference.simulate(workload, cluster, rule, window=window, events=events)
    np.testing.assert_array_equal(found.status, expected.status)
    np.testing.assert_array_equal(found.start, expected.start)
    np.testing.assert_array_equal(found.placed.machine, expected.placed.machine)
    np.testing.assert_array_equal(found.placed.devices, expected.placed.devices)


@pytest.mark.parametrize(
    ("rule", "count"), [("fifo+conservative", 60_000), ("drf+skip", 60_000), ("wfp3+best_fit+easy", 60_000)]
)
def test_a_run_that_lasts_ends_when_it_is_interrupted(rule, count):
    """All jobs wait at once, so that one pass alone takes minutes."""
    rng = np.random.default_rng(0)
    workload = jobs(np.zeros(count), rng.uniform(1, 99, count), rng.integers(1, 5, (count, 1)), RESOURCES)
    cluster = machines(np.full((40, 1), 8.0))
    simulate(workload.take(slice(0, 10)), cluster, rule)
    before = _thread._count()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # the background ignores it
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            simulate(workload, cluster, rule)
    finally:
        signal.signal(signal.SIGINT, handler)
    timer.join()
    hangs = time.monotonic() + 60
    while _thread._count() > before and time.monotonic() < hangs:
        time.sleep(0.01)
    assert _thread._count() == before, "the run has stopped, not only been left alone"


def test_what_a_loop_raises_and_returns_is_the_callers():
    assert wait_for(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        wait_for(divmod, 7, 0)
