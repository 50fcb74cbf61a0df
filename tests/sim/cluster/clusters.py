"""Small clusters and workloads for the tests."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from schedrl.sim.cluster import MachineEvents
from schedrl.workload import Resource, Workload
from schedrl.workload.constraints import Allowed, Predecessors
from schedrl.workload.machines import Machines

RESOURCES = (Resource("cpu", "cores"), Resource("memory", "GB"), Resource("gpu", "gpus"))


def machines(capacity, resources=RESOURCES, model=""):
    """Make machines called m0, m1 and so on of the rows of capacity; `model` of all or of each."""
    capacity = np.array(capacity, float)
    names = np.array([f"m{m}" for m in range(len(capacity))], object)
    models = np.full(len(capacity), model, object)
    return Machines(names, capacity, resources[: capacity.shape[1]], models)


def jobs(arrival, duration, demand, resources=RESOURCES, **columns):
    """Make a workload."""
    return Workload(
        arrival, duration, demand, resources=resources[: len(demand[0])], time_unit="s", **columns
    )


@st.composite
def cases(draw):
    """Draw a workload, machines, events: equal times, no time, gangs, parts of GPUs, failures."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    count, size = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    capacity = np.column_stack(
        [rng.integers(1, 9, size), rng.integers(1, 33, size), rng.integers(0, 4, size)]
    ).astype(float)
    cluster = machines(capacity if draw(st.booleans()) else np.tile(capacity[0], (size, 1)))
    gpu = rng.choice([0, 0, 0, 0.3, 0.5, 1, 2, 1.5], count)
    demand = np.column_stack([rng.integers(1, 6, count), rng.choice([0, 0.5, 1, 7.25], count), gpu])
    duration = rng.choice([0, 1, 2, 3, 5.5], count)
    workload = jobs(
        np.sort(rng.integers(0, draw(st.integers(1, 30)), count)).astype(float),
        duration,
        demand,
        estimate=np.where(rng.random(count) < 0.2, np.nan, duration * rng.choice([0.5, 1, 1, 2, 4], count)),
        instances=rng.choice([1, 1, 1, 2, 3, 7], count),
        priority=rng.integers(0, 4, count).astype(float),
        user=[f"u{k}" for k in rng.integers(0, 3, count)],
    )
    happen = draw(st.integers(0, 8))
    events = MachineEvents(
        rng.integers(0, 30, happen).astype(float), rng.integers(0, size, happen), rng.random(happen) < 0.5
    )
    return workload, cluster, events


@st.composite
def constrained(draw):
    """Draw a case in which jobs wait for others, rest, and may not run everywhere."""
    workload, cluster, events = draw(cases())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, size = len(workload), len(cluster)
    models = rng.choice(["", "a", "b"], size)
    cluster = machines(cluster.capacity, model=models)
    return replace(workload, **constraints(rng, count, draw(st.sampled_from([0.0, 0.02])))), cluster, events


def constraints(rng, count, wild):
    """Make predecessors, mostly earlier in the file, and allowed machines for so many jobs."""
    lists = [
        rng.integers(0, count if rng.random() < wild else max(job, 1), rng.choice([0, 0, 1, 1, 2, 3]))
        for job in range(count)
    ]
    lists[0] = lists[0][lists[0] != 0]
    missing = ("gone",) if rng.random() < wild else ()
    for job in np.flatnonzero(rng.random(count) < 0.05 * len(missing)):
        lists[job] = np.append(lists[job], -1)
    numbers = rng.permutation(count) if wild else np.arange(count)  # else whoever waits comes later
    lists = [numbers[x] if not missing else x for x in lists]
    offset = np.cumsum([0, *map(len, lists)])
    sets = [("a",), ("b", "a"), ("m0",), ("m1", "b"), ()][: 4 + bool(wild)]
    return {
        "predecessors": Predecessors(
            offset, np.concatenate(lists).astype(int), rng.choice([0, 0, 0.5, 3], count), missing
        ),
        "allowed": Allowed(rng.choice([-1, -1, *range(len(sets))], count), tuple(sets)),
    }
