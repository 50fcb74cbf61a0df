"""Workloads made from workloads: a window of time, a sample, another load, other units, two parts.

Every function returns a new `Workload`; ids stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from schedrl.settings import UserError, one_of
from schedrl.workload.constraints import REJECTED, Predecessors
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import LATEST, UNKNOWN, Resource, Workload
from schedrl.workload.units import LOADS, SECONDS
from schedrl.workload.zones import shifted, without_clock

MOMENTS = ("arrival", "deadline", "recorded_start", "recorded_finish")
SPANS = ("duration", "estimate")


def window(workload: Workload, start: float, end: float, *, rebase: bool = True) -> Workload:
    """Return the jobs that arrive in [start, end), in `time_unit`; time 0 is `start` unless `rebase` is off.

    Raises:
        UserError: no job arrives then.
    """
    inside = (workload.arrival >= start) & (workload.arrival < end)
    if not inside.any():
        first, last = workload.arrival[0], workload.arrival[-1]
        raise UserError(f"no jobs arrive from {start:g} to {end:g}; they do from {first:g} to {last:g}")
    kept = workload.take(inside)
    return _moved(kept, -start) if rebase else kept


def _moved(workload: Workload, by: float) -> Workload:
    """Move all times; what would come before time 0 is unknown."""
    moved = {name: getattr(workload, name) + by for name in MOMENTS}
    moved["arrival"] = np.maximum(moved["arrival"], 0.0)
    about = shifted(workload.about, -by * SECONDS.get(workload.time_unit, 1.0))
    return _replaced(workload, about=about, **{name: _positive(column) for name, column in moved.items()})


def _positive(column: np.ndarray) -> np.ndarray:
    return np.where(column < 0, UNKNOWN, column)


def _replaced(workload: Workload, **changes: Any) -> Workload:
    return Workload(**{f.name: vars(workload)[f.name] for f in fields(workload)} | changes)


def sample(workload: Workload, num_jobs: int, seed: int = 0) -> Workload:
    """Return `num_jobs` of the jobs, chosen at random without repetition; the load falls in proportion.

    Raises:
        UserError: there are fewer.
    """
    if not 1 <= num_jobs <= len(workload):
        raise UserError(f"num_jobs is {num_jobs}; it must be from 1 to {len(workload)}, the jobs there are")
    chosen = np.random.default_rng(seed).choice(len(workload), num_jobs, replace=False)
    return workload.take(np.sort(chosen))


def scaled_to_load(
    workload: Workload, load: float, capacity: Sequence[float] | float | None = None
) -> Workload:
    """Scale the gaps between arrivals until the busiest resource has `load` (1 = 100 %), exactly.

    Sizes stay. Deadlines keep their distance from the arrival; recorded starts and finishes become unknown,
    as they belong to other arrivals.

    Args:
        workload: the jobs.
        load: what `Workload.load` shall return for the busiest resource whose capacity is known.
        capacity: see `Workload.load`.

    Raises:
        UserError: a load outside `LOADS`, no capacity known, all jobs arrive at once, or none lasts.
    """
    if not LOADS[0] <= load <= LOADS[1]:
        low, high = LOADS
        raise UserError(f"load is {load:g}; it must be from {low:g} to {high:g} (1 = all that there is)")
    if workload.arrival[-1] == workload.arrival[0]:
        raise UserError(
            f"{len(workload)} jobs arrive at one moment, so there is no load to scale; leave load out"
        )
    loads = workload.load(capacity)
    if np.isnan(loads).all():
        names = ", ".join(resource.name for resource in workload.resources)
        raise UserError(f"the load is not defined, as no capacity is known; give that of {names}")
    return stretched(workload, float(np.nanmax(loads)) / load)


def stretched(workload: Workload, factor: float) -> Workload:
    """Make every gap between arrivals `factor` times as long, as `scaled_to_load` does.

    Raises:
        UserError: a factor of 0, as of jobs that take no time, or times that are no numbers any more.
    """
    arrival = workload.arrival[0] + (workload.arrival - workload.arrival[0]) * factor
    if not factor > 0:
        raise UserError("the jobs are no load, as none of them takes time; leave load out")
    if not arrival[-1] <= LATEST:
        raise UserError(f"gaps {factor:g} times as long end after {LATEST:g}; choose a higher load")
    unknown = np.full(len(workload), UNKNOWN)
    slack = np.asarray(workload.deadline) - workload.arrival
    return _replaced(
        workload,
        arrival=arrival,
        deadline=arrival + slack,
        recorded_start=unknown,
        recorded_finish=unknown,
        about=workload.about if factor == 1 else without_clock(workload.about),
    )


def in_units(
    workload: Workload,
    *,
    time: tuple[float, str] | None = None,
    resources: Mapping[str, tuple[float, str]] | None = None,
) -> Workload:
    """Return the same jobs in other units.

    Args:
        workload: the jobs.
        time: (new units in an old one, name): `(1 / 60, "min")` from seconds.
        resources: the same by resource: `{"memory": (1024, "MiB")}` from GiB.

    Raises:
        UserError: a resource that the workload does not have, or a factor of 0 or less.
    """
    factor, unit = time or (1.0, workload.time_unit)
    names = [resource.name for resource in workload.resources]
    changed = {name: (1.0, unit) for name, unit in workload.resources}
    for name, pair in (resources or {}).items():
        changed[one_of("resource", name, names)] = pair
    factors = np.array([pair[0] for pair in changed.values()])
    if not (factor > 0 and (factors > 0).all()):
        raise UserError(f"factors of units must be above 0, got {factor:g} and {factors.tolist()}")
    return _replaced(
        workload,
        time_unit=unit,
        **{name: getattr(workload, name) * factor for name in (*MOMENTS, *SPANS)},
        predecessors=workload.predecessors and workload.predecessors.times(factor),
        demand=workload.demand * factors,
        capacity=np.asarray(workload.capacity) * factors,
        resources=[Resource(name, pair[1]) for name, pair in changed.items()],
    )


def split(workload: Workload, share: float = 0.8) -> tuple[Workload, Workload]:
    """Return (training, evaluation): what arrives before a moment, and from it on. No job is in both.

    The moment is chosen so that about `share` of the jobs come before it; jobs that arrive together stay
    together. The evaluation's time 0 is that moment.

    Raises:
        UserError: share not between 0 and 1, or one part would be empty.
    """
    if not 0 < share < 1:
        raise UserError(f"share is {share:g}; it must be above 0 and below 1")
    arrival = workload.arrival
    moment = arrival[min(len(arrival) - 1, max(1, round(share * len(arrival))))]
    before = arrival < moment
    if before.all() or not before.any():
        raise UserError(f"{len(arrival)} jobs can't be split by time at {share:g}: too many arrive together")
    return workload.take(before), _moved(workload.take(~before), -float(moment))


def fitted(
    workload: Workload,
    capacity: Sequence[float] | float,
    too_large: Literal["reject", "clip"] = "reject",
) -> tuple[Workload, Rejected]:
    """Return the jobs that a pool of `capacity` [R] can ever run, and those that it can't.

    Args:
        workload: the jobs.
        capacity: of each resource, or one for all.
        too_large: "reject" lists a job that asks for more; "clip" gives it all there is, and counts it.

    Returns:
        the jobs, and the rejected ones, with those that wait for one; their `line` is the job's number in
            `workload`, from 1.

    Raises:
        UserError: no job fits, or a gang that can't be clipped (its instances are what they are).
    """
    room = np.broadcast_to(np.asarray(capacity, float), len(workload.resources))
    instances = np.asarray(workload.instances)[:, None]
    over = workload.demand * instances > room
    large = over.any(1)
    rejected = Rejected("the workload", place="number")
    if too_large == "clip":
        rejected.adjust("demand clipped to the cluster's capacity", np.flatnonzero(large) + 1)
        demand = np.minimum(workload.demand, room / instances)
        large = ~(demand > 0).any(1)
        workload = _replaced(workload, demand=np.where(large[:, None], workload.demand, demand))
    if large.any():
        names = [resource.name for resource in workload.resources]
        details = [
            f"{names[int(np.argmax(row))]} {need[int(np.argmax(row))]:g} of {room[int(np.argmax(row))]:g}"
            for row, need in zip(over[large], (workload.demand * instances)[large], strict=True)
        ]
        ids = np.asarray(workload.id)[large]
        rejected.add("too_large", np.flatnonzero(large) + 1, ids, details)
        if workload.predecessors is not None:
            large = _with_successors(workload, workload.predecessors, large, rejected)
    if large.all():
        raise UserError(f"no jobs fit a cluster of {room.tolist()}: {rejected.summary()}; enlarge it")
    return workload.take(~large) if large.any() else workload, rejected


def _with_successors(
    workload: Workload, predecessors: Predecessors, large: np.ndarray, rejected: Rejected
) -> np.ndarray:
    """Reject what waits for a job that is `large` [J] too; return all that are rejected [J]."""
    waits = ~large & (predecessors.faults(large) == REJECTED)
    rejected.add("waits_for_rejected", np.flatnonzero(waits) + 1, np.asarray(workload.id)[waits])
    return large | waits
