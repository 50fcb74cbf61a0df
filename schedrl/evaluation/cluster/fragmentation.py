"""How fragmented a cluster's devices are over time, as FGD defines it.

Fragmentation of a machine is what a typical job of this workload can't use of its free devices, on average;
of a cluster the sum (Weng et al., "Beware of Fragmentation", USENIX ATC 2023). The formula is the placement
rule's own, `schedrl.sim.cluster.placements.fragmentation`; here it is followed through a schedule.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedrl.evaluation.cluster import timeline
from schedrl.evaluation.cluster.timeline import Steps
from schedrl.evaluation.definitions import over_time
from schedrl.sim.cluster import placements
from schedrl.sim.cluster.devices import ONE, change
from schedrl.sim.cluster.problem import prepare
from schedrl.sim.cluster.schedule import Schedule
from schedrl.sim.jit import njit

_of_machine, _change = placements.fragmentation, change


@njit
def _follow(rows, demand, free, share, typical, g, out):
    """Write the cluster's fragmentation and its free devices before and after each event. [E + 1, 2] devices.

    `rows` [E, 4] has machine, devices, job and +1 for a stop, -1 for a start.
    """
    each = np.zeros(free.shape[1])
    total, left = 0.0, 0
    for m in range(free.shape[1]):
        each[m] = _of_machine(m, free, share, typical, g)
        total += each[m]
        left += free[g, m]
    out[0, 0], out[0, 1] = total, left / ONE
    for e in range(rows.shape[0]):
        m, devices, job, sign = rows[e]
        for r in range(free.shape[0]):
            free[r, m] += sign * demand[job, r]
        _change(share, m, devices, sign * demand[job, g])
        left += sign * demand[job, g]
        now = _of_machine(m, free, share, typical, g)
        total += now - each[m]
        each[m] = now
        out[e + 1, 0], out[e + 1, 1] = total, left / ONE


def fragmentation(schedule: Schedule) -> dict[str, float | None]:
    """Return mean, P50, P95, max over time of the fragmentation, as a share of all devices.

    `of_free` is its mean over the mean of the free devices; `while_arriving` the mean while jobs arrive. All
    None in a cluster without devices.
    """
    found = follow(schedule)
    if found is None:
        return over_time(np.zeros(1), np.zeros(1)) | {"of_free": None, "while_arriving": None}
    free = float(found.value[:, 1] @ found.lasted)
    of_free = float(found.value[:, 0] @ found.lasted) / free if free > 0 else None
    early = timeline.cut(found, float(schedule.workload.arrival[-1]))
    arriving = over_time(early.value[:, 0], early.lasted)["mean"]
    return over_time(found.value[:, 0], found.lasted) | {"of_free": of_free, "while_arriving": arriving}


def follow(schedule: Schedule) -> Steps | None:
    """Return fragmentation and free devices over time, shares of all, [T, 2]; None without devices."""
    problem = prepare(schedule.workload, schedule.machines, "fgd")
    if problem.g < 0:
        return None
    held = timeline.held(schedule)
    time = np.concatenate([held.stop, held.start])  # stops stand before starts at one moment
    order = np.argsort(time, kind="stable")
    sign = np.repeat([1, -1], len(held.job))
    twice = [np.concatenate([column, column]) for column in (held.machine, held.devices, held.job)]
    rows = np.column_stack([*twice, sign])[order]
    out = np.empty((len(rows) + 1, 2))
    share = (np.arange(max(int(problem.devices.max()), 1)) < problem.devices[:, None]) * ONE
    taken = replace(schedule.workload, demand=schedule.demand)
    demand = problem.demand if schedule.granted is None else prepare(taken, schedule.machines).demand
    _follow(rows, demand, problem.capacity.copy(), share, problem.typical, problem.g, out)
    first, last = timeline.span(schedule)
    changes = np.diff(out / problem.devices.sum(), axis=0, prepend=0.0)
    return timeline.steps(np.concatenate([[first], time[order]]), changes, first, last)
