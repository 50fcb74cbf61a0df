"""A schedule over time: how much was in use, how many waited, how full each machine was.

What is known of a job is its last run (`Schedule.placed`): runs that a machine's failure cut short are not in
these figures, and a job that was sent back counts as waiting from its entry into the queue to its last start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedrl.sim.cluster.schedule import FAILED, FINISHED, REJECTED, Schedule


class Held(NamedTuple):
    """What was held: one row for each instance that ran for some time, in the order of the jobs."""

    job: np.ndarray  # [I]
    machine: np.ndarray  # [I]
    devices: np.ndarray  # [I] of that machine, as a set of bits
    start: np.ndarray  # [I]
    stop: np.ndarray  # [I] the end of the run where the job was running then


class Steps(NamedTuple):
    """Values that change at moments: `value[k]` from `time[k]` on, for `lasted[k]`."""

    time: np.ndarray  # [T]
    lasted: np.ndarray  # [T]
    value: np.ndarray  # [T] or [T, R]


class Heat(NamedTuple):
    """How full machines were: averages over equal spans of time, of the busiest resource of each machine."""

    edges: np.ndarray  # [B + 1]
    share: np.ndarray  # [M, B] in 0..1


def span(schedule: Schedule) -> tuple[float, float]:
    """Return the time that is measured: first arrival to the end of the run."""
    return float(schedule.workload.arrival[0]), schedule.end_time


def held(schedule: Schedule) -> Held:
    """Return what jobs held in their last runs; jobs that failed are left out: when is not recorded."""
    status, offset = schedule.status, schedule.placed.offset
    stop = np.where(status == FINISHED, schedule.finish, schedule.end_time)
    ran = ~np.isnan(schedule.start) & (status != FAILED) & (stop > schedule.start)
    job = np.repeat(np.arange(len(status)), np.diff(offset))
    kept = ran[job]
    job = job[kept]
    placed = schedule.placed
    return Held(job, placed.machine[kept], placed.devices[kept], schedule.start[job], stop[job])


def cut(found: Steps, last: float) -> Steps:
    """Return the values up to a moment."""
    inside = found.time <= last
    lasted = np.minimum(found.time[inside] + found.lasted[inside], last) - found.time[inside]
    return Steps(found.time[inside], lasted, found.value[inside])


def steps(time: np.ndarray, change: np.ndarray, first: float, last: float) -> Steps:
    """Add up changes at moments into values from `first` to `last`; changes at one moment make one step."""
    order = np.argsort(time, kind="stable")
    moments, value = time[order], np.cumsum(change[order], axis=0)
    final = np.append(moments[1:] > moments[:-1], True) if len(moments) else np.zeros(0, bool)
    moments, value = moments[final], value[final]
    if not len(moments) or moments[0] > first:
        moments = np.concatenate([[first], moments])
        value = np.concatenate([np.zeros_like(change[:1], shape=(1, *change.shape[1:])), value])
    inside = moments <= last
    moments, value = moments[inside], value[inside]
    return Steps(moments, np.diff(np.append(moments, max(last, moments[-1]))), value)


def usage(schedule: Schedule) -> Steps:
    """Return the amount of each of the workload's resources in use, [T, R]."""
    rows = held(schedule)
    demand = schedule.demand[rows.job]
    return steps(np.concatenate([rows.start, rows.stop]), np.concatenate([demand, -demand]), *span(schedule))


def queue(schedule: Schedule) -> Steps:
    """Return the number of waiting jobs."""
    known = (schedule.status != REJECTED) & ~np.isnan(schedule.came)
    start = schedule.start[known & ~np.isnan(schedule.start)]
    came = schedule.came[known]
    change = np.concatenate([np.ones(len(came)), -np.ones(len(start))])
    return steps(np.concatenate([came, start]), change, *span(schedule))


def capacities(schedule: Schedule) -> np.ndarray:
    """Return what each machine has of the workload's resources, [M, R]; 0 of those it doesn't know."""
    names = [resource.name for resource in schedule.machines.resources]
    zero = np.zeros(len(schedule.machines))
    columns = [
        schedule.machines.capacity[:, names.index(resource.name)] if resource.name in names else zero
        for resource in schedule.workload.resources
    ]
    return np.column_stack(columns)


def heat(schedule: Schedule, columns: int = 400, until: float | None = None) -> Heat:
    """Return how full each machine was in each of so many spans of time, exact averages.

    Args:
        schedule: of any number of machines.
        columns: B.
        until: where the last span ends; None: at the end of the run.
    """
    first, last = span(schedule)
    last = max(last if until is None else until, first + 1e-9)
    rows, capacity = held(schedule), capacities(schedule)
    scale = columns / (last - first)
    time = np.clip(np.concatenate([rows.start, rows.stop]) - first, 0, last - first) * scale
    column = np.minimum(time.astype(np.int64), columns - 1)
    cell = np.concatenate([rows.machine, rows.machine]) * (columns + 1) + column
    demand, size = schedule.demand[rows.job], len(capacity) * (columns + 1)
    share = np.zeros((len(capacity), columns))
    for r in np.flatnonzero(capacity.any(0)):
        change = np.concatenate([demand[:, r], -demand[:, r]])
        here = change * (column + 1 - time)  # of the span in which it happens, the rest of it
        total = np.bincount(cell, here, size) + np.bincount(cell + 1, change - here, size)
        used = total.reshape(len(capacity), columns + 1).cumsum(1)[:, :columns]
        full = np.where(capacity[:, r] > 0, capacity[:, r], np.inf)
        np.maximum(share, used / full[:, None], out=share)
    return Heat(np.linspace(first, last, columns + 1), np.clip(share, 0, 1))


def last_start(schedule: Schedule) -> float:
    """Return the moment from which on the cluster only runs down: nothing arrives or starts any more."""
    last = float(schedule.workload.arrival[-1])
    return max(last, float(np.nanmax(schedule.start))) if (~np.isnan(schedule.start)).any() else last


def worth_seeing(schedule: Schedule) -> float:
    """Return where a picture may end: a little after 99 % of the starts and all arrivals, or with the run."""
    first, last = span(schedule)
    started = schedule.start[~np.isnan(schedule.start)]
    late = max(float(schedule.workload.arrival[-1]), float(np.quantile(started, 0.99)) if started.size else 0)
    until = first + 1.25 * (late - first)
    return min(until, last) if until > first else last
