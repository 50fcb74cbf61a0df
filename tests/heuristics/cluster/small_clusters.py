"""Small clusters and jobs by hand, for the tests of this folder."""

import numpy as np

from schedrl.workload.machines import Machines
from schedrl.workload.types import Resource, Workload


def machines(*capacities, resources=("cpu",)):
    """Make machines m0, m1, ... of these capacities (a number, or one per resource)."""
    capacity = np.array([np.atleast_1d(c) for c in capacities], float)
    names = np.array([f"m{i}" for i in range(len(capacity))], object)
    return Machines(names, capacity, [Resource(r) for r in resources], np.full(len(names), "", object))


def jobs(*rows, resources=("cpu",), **columns):
    """Make jobs (arrival, duration, demand); demand is a number, or one per resource."""
    arrival, duration, demand = zip(*rows, strict=True)
    return Workload(
        arrival=np.array(arrival, float),
        duration=np.array(duration, float),
        demand=np.array([np.atleast_1d(d) for d in demand], float),
        resources=resources,
        time_unit="s",
        **columns,
    )


def machines_of(schedule):
    """Return the machine of the first instance of each job."""
    return schedule.placed.machine[schedule.placed.offset[:-1]].tolist()
