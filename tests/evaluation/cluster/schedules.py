"""Schedules written by hand, for the tests."""

import numpy as np

from schedrl.sim.cluster.schedule import FINISHED, UNFINISHED, Placed, Schedule
from schedrl.workload import Resource, Workload
from schedrl.workload.machines import Machines

RESOURCES = (Resource("cpu", "cores"), Resource("memory", "GB"), Resource("gpu", "gpus"))


def machines(capacity):
    """Make machines called m0, m1 and so on of the rows of capacity."""
    capacity = np.array(capacity, float)
    names = np.array([f"m{m}" for m in range(len(capacity))], object)
    return Machines(names, capacity, RESOURCES[: capacity.shape[1]], np.full(len(capacity), "", object))


def schedule(arrival, duration, demand, start, capacity, *, end=None, machine=None, status=None, **columns):
    """Make a schedule of jobs of one instance; NaN = never started, all on machine 0 unless said."""
    start, duration = np.array(start, float), np.array(duration, float)
    columns = {"resources": RESOURCES[: len(demand[0])], "time_unit": "s"} | columns
    workload = Workload(np.array(arrival, float), duration, np.array(demand, float), **columns)
    finish = start + duration
    end = float(np.nanmax(finish)) if end is None else end
    state = np.where(finish <= end, FINISHED, UNFINISHED) if status is None else np.array(status)
    count = len(start)
    where = np.zeros(count, np.int64) if machine is None else np.array(machine)
    return Schedule(
        start,
        np.where(state == FINISHED, finish, np.nan),
        state.astype(np.int8),
        Placed(np.arange(count + 1), np.where(np.isnan(start), -1, where), np.zeros(count, np.int64)),
        np.zeros(count, np.int64),
        np.zeros(count, np.int8),
        end,
        count,
        workload,
        machines(capacity),
        "by hand",
    )
