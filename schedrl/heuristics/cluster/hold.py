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

LONG_FROM = (30.0, 60.0, 120.0, 300.0)
KEEP = (0.0, 0.05, 0.1, 0.2, 0.3)
SLOPE = (0.05, 0.1, 0.15, 0.2, 0.3)
"""The values that are tried, every one with every other."""
MIN_WORKLOADS = 10
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
    long_from: Sequence[float] = LONG_FROM,
    score: Callable[[Schedule], float] | None = None,
) -> Hold:
    """Return the numbers with the lowest mean score over the workloads; ties go to those tried first.

    Args:
        workloads: validation workloads, at least MIN_WORKLOADS.
        machines: the cluster.
        long_from: values to try, in the workloads' unit of time.
        score: what to minimise; default the mean bounded slowdown (tau 10) of the finished jobs.

    Raises:
        UserError: too few workloads.
    """
    from schedrl.sim.cluster.rule import Hold
    from schedrl.sim.cluster.run import simulate

    if len(workloads) < MIN_WORKLOADS:
        raise UserError(f"tuning needs at least {MIN_WORKLOADS} validation workloads, got {len(workloads)}")
    score = score or mean_bounded_slowdown
    best, lowest = Hold(), float(np.inf)
    for numbers in map(Hold._make, product(long_from, KEEP, SLOPE)):
        found = [score(simulate(workload, machines, "hold", hold=numbers)) for workload in workloads]
        value = float(np.mean(found))
        if value < lowest - 1e-12:
            best, lowest = numbers, value
    return best


def mean_bounded_slowdown(schedule: Schedule) -> float:
    """Return the mean of max(1, (wait + duration) / max(duration, tau)) over the finished jobs."""
    done = ~np.isnan(schedule.finish)
    duration = np.asarray(schedule.workload.duration)[done]
    served = schedule.finish[done] - np.asarray(schedule.workload.arrival)[done]
    return float(np.maximum(1, served / np.maximum(duration, TAU)).mean())
