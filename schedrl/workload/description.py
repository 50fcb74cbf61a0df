"""What a workload is like, in figures: `describe` gives what `job_distribution.py inspect` shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Workload

PERCENTILES = (50, 90, 99)
SHOWN = 5
"""Jobs that are named."""


def describe(workload: Workload, rejected: Rejected | None = None, capacity: Any = None) -> dict[str, Any]:
    """Return figures of a workload in JSON's types; what is not defined is None.

    Args:
        workload: the jobs.
        rejected: what the reader left out, if it was read.
        capacity: of the cluster [R], where the workload doesn't know it.

    Returns:
        jobs, rejected (by reason), lost_work (of them, by resource), rejected_of_unknown_work,
        adjusted, remarks, time_unit, span (first to last arrival), users,
        with_estimate, gangs, exceed_capacity (jobs that ask for more than all there is) and
        first_to_exceed (their ids); `load` (of the others), `capacity` and `work_per_time` by
        resource; `statistics`: duration, estimate_over_duration, inter_arrival, instances and the
        demands, each with count, mean, cv (standard deviation over mean), min, p50, p90, p99, max.
    """
    gaps = np.diff(workload.arrival)
    estimate, duration = np.asarray(workload.estimate), np.asarray(workload.duration)
    ratio = np.divide(estimate, duration, out=np.full(len(workload), np.nan), where=duration > 0)
    columns = {
        "duration": duration,
        "estimate_over_duration": ratio,
        "inter_arrival": gaps,
        "instances": np.asarray(workload.instances, float),
    } | {f"demand.{r.name}": workload.demand[:, n] for n, r in enumerate(workload.resources)}
    users = set(np.asarray(workload.user).tolist()) - {""}
    room = np.broadcast_to(
        np.asarray(workload.capacity if capacity is None else capacity, float), len(workload.resources)
    )
    names = [resource.name for resource in workload.resources]
    held = np.asarray(workload.instances)[:, None] * workload.demand
    over = (held > np.nan_to_num(room, nan=np.inf)).any(1)
    return {
        "jobs": len(workload),
        "rejected": {} if rejected is None else rejected.counts,
        "lost_work": {} if rejected is None else dict(rejected.lost),
        "rejected_of_unknown_work": 0 if rejected is None else rejected.unmeasured,
        "adjusted": {} if rejected is None else dict(rejected.adjusted),
        "remarks": [] if rejected is None else list(rejected.remarks),
        "time_unit": workload.time_unit,
        "span": float(workload.arrival[-1] - workload.arrival[0]),
        "users": len(users) or None,
        "with_estimate": int((~np.isnan(estimate)).sum()),
        "gangs": int((np.asarray(workload.instances) > 1).sum()),
        "resources": {r.name: r.unit for r in workload.resources},
        "capacity": dict(zip(names, map(_number, room), strict=True)),
        "exceed_capacity": int(over.sum()),
        "first_to_exceed": [str(name) for name in np.asarray(workload.id)[over][:SHOWN]],
        "load": dict(zip(names, _load(workload, room, ~over), strict=True)),
        "work_per_time": dict(
            zip(names, _load(workload, np.ones(len(names)), np.ones(len(workload), bool)), strict=True)
        ),
        "statistics": {name: _statistics(column) for name, column in columns.items()},
        "about": dict(workload.about),
    }


def _load(workload: Workload, capacity: np.ndarray, counts: np.ndarray) -> list[float | None]:
    """Return the load of the jobs that count [J], None where it is not defined."""
    if not counts.any():
        return [None] * len(workload.resources)
    chosen = workload if counts.all() else workload.take(counts)
    try:
        return [_number(value) for value in chosen.load(capacity)]
    except UserError:  # all jobs arrive at one moment
        return [None] * len(workload.resources)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _statistics(column: np.ndarray) -> dict[str, Any]:
    known = column[~np.isnan(column)]
    if not known.size:
        return {"count": 0, **dict.fromkeys(["mean", "cv", "min", *(f"p{p}" for p in PERCENTILES), "max"])}
    mean = float(known.mean())
    return {
        "count": int(known.size),
        "mean": _number(mean),
        "cv": _number(float(known.std()) / mean) if mean > 0 else None,
        "min": float(known.min()),
        **{
            f"p{p}": float(value)
            for p, value in zip(PERCENTILES, np.percentile(known, PERCENTILES), strict=True)
        },
        "max": float(known.max()),
    }
