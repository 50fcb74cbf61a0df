"""The three numbers of the hold rule, found on validation workloads, never on those of a claim.

Hold is SJF + best fit + EASY in which a job with an estimate above `long_from` starts only if afterwards a
fraction of at least keep + slope ln(estimate / long_from), at most 0.85, of every resource that it uses stays
free over the cluster, or if nothing runs; while the head is held, nothing behind it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.settings import UserError

if TYPE_CHECKING:
    from schedrl.sim.cluster import Schedule
    from schedrl.sim.cluster.rule import Hold
    from schedrl.workload.machines import Machines
    from schedrl.workload.types import Workload

LONG_FROM = (0.3, 0.5, 0.7, 0.9)
"""Quantiles of the estimates from which on a job is tried to count as long."""
KEEP = (0.0, 0.05, 0.1, 0.2, 0.3)
SLOPE = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
"""The values that are tried, every one with every other; keep 0 with slope 0 holds nothing: EASY."""
MIN_JOBS = 300
TAU = 10.0


def validation_workloads(
    settings: Any, num_jobs: int = 200, count: int = 20, seed: int = 0
) -> list[Workload]:
    """Draw workloads of the family that knobs are chosen on.

    Args:
        settings: of a generator, see `schedrl.workload.generators.settings_of`.
        num_jobs: of each workload.
        count: how many.
        seed: of their stream.
    """
    from schedrl.workload.generators import generate

    return [generate(settings, num_jobs, seed, "validation", number) for number in range(count)]


def tune_hold(
    workloads: Sequence[Workload],
    machines: Machines,
    rule: str = "hold",
    *,
    long_from: Sequence[float] | None = None,
    score: Callable[[Schedule], float] | None = None,
    cut: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Hold:
    """Return the numbers with the lowest mean score over the workloads; ties go to those tried first.

    Args:
        workloads: validation workloads, of at least MIN_JOBS jobs in all.
        machines: the cluster.
        rule: whose numbers; any order and placement with the discipline `hold`.
        long_from: values to try, in the workloads' unit of time; None: quantiles of the estimates.
        score: what to minimise; default `mean_bounded_slowdown`.
        cut: end each run with its last arrival.
        progress: called with how many of how many numbers were tried.
        **options: of `schedrl.sim.cluster.simulate`.

    Raises:
        UserError: too few jobs.
    """
    from schedrl.sim.cluster.rule import Hold
    from schedrl.sim.cluster.run import simulate

    total = sum(map(len, workloads))
    if total < MIN_JOBS:
        raise UserError(f"tuning hold needs at least {MIN_JOBS} jobs of validation, got {total}; give more")
    score = score or mean_bounded_slowdown

    def run(workload: Workload, numbers: Hold) -> Schedule:
        until = float(workload.arrival[-1]) if cut else None
        return simulate(workload, machines, rule, hold=numbers, until=until, **options)

    best, lowest = Hold(), float(np.inf)
    tried = list(map(Hold._make, product(long_from or _long(workloads), KEEP, SLOPE)))
    for count, numbers in enumerate(tried):
        if progress:
            progress(count, len(tried))
        scores = [score(run(w, numbers)) for w in workloads]
        known = [value for value in scores if np.isfinite(value)]  # an empty workload has none
        value = float(np.mean(known)) if known else np.inf
        if value < lowest - 1e-12:
            best, lowest = numbers, value
    if not np.isfinite(lowest):
        raise UserError("tuning hold: no job of the validation workloads can run here; give others")
    return best


def _long(workloads: Sequence[Workload]) -> list[float]:
    """Return the quantiles LONG_FROM of the estimates that are above 0, or 1 where none is."""
    estimates = np.concatenate([w.estimate_or_duration for w in workloads])
    estimates = estimates[estimates > 0]
    found = np.quantile(estimates, LONG_FROM) if estimates.size else np.ones(1)
    return list(dict.fromkeys(float(f"{value:.3g}") for value in found))


def mean_bounded_slowdown(schedule: Schedule) -> float:
    """Return the mean of max(1, (wait + duration) / max(duration, tau)) over the jobs that came and may run.

    A job that isn't done at the end counts as if it were: else holding it to the end would be the best.
    """
    from schedrl.sim.cluster.schedule import REJECTED

    arrival, duration = schedule.came, np.asarray(schedule.workload.duration)
    came = (schedule.status != REJECTED) & (arrival <= schedule.end_time)
    served = np.where(np.isnan(schedule.finish), schedule.end_time, schedule.finish) - arrival
    return float(np.maximum(1, served / np.maximum(duration, TAU))[came].mean()) if came.any() else np.nan
