"""`--estimates class-median`: what a job is expected to take, from those that have finished before it came.

When a job finishes depends on the policy, so each policy learns from its own past. Medians are taken anew
at moments: when the first FIRST jobs have come, and then whenever the jobs that have come are GROWTH times as
many. Up to each moment the run is played with what was known before, and the jobs that come from then on get
the medians of those that have finished by then. So no job's run time is used before the job has finished, and
all the playing together costs about 1 / (GROWTH - 1) + 1 runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from schedrl.workload.estimates import class_medians, classes
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

FIRST, GROWTH = 20, 1.25
Finishes = Callable[[Workload, float], np.ndarray]
"""From jobs and a moment to when each of them finished, NaN where that was not before the moment."""


def moments(num_jobs: int) -> list[int]:
    """Return after how many jobs the medians are taken."""
    found, count = [], FIRST
    while count < num_jobs:
        found.append(count)
        count = max(count + 1, math.ceil(count * GROWTH))
    return found


def estimated(workload: Workload, machines: Machines, rule: str, **options: Any) -> Workload:
    """Return the jobs with the estimates that a rule has for them; `options` are those of `simulate`."""
    from schedrl.sim.cluster.run import simulate  # late: it needs Numba

    def finishes(jobs: Workload, now: float) -> np.ndarray:
        come = int(np.searchsorted(jobs.arrival, now))
        finish = np.full(len(jobs), np.nan)
        finish[:come] = simulate(jobs.take(slice(0, come)), machines, rule, until=now, **options).finish
        return finish

    return with_own_medians(workload, finishes)


def with_own_medians(workload: Workload, finishes: Finishes) -> Workload:
    """Return the jobs with the estimates that a policy has for them.

    Args:
        workload: the jobs; what they have as estimates is not looked at.
        finishes: plays the policy up to a moment. Jobs that come at that moment or later have estimates that
            mean nothing yet.
    """
    groups = classes(workload)
    nothing = np.zeros(len(workload), bool)
    estimate = class_medians(workload, nothing, groups)
    for count in moments(len(workload)):
        now = float(workload.arrival[count])
        finish = finishes(workload.estimated(estimate), now)
        found = class_medians(workload, finish < now, groups)
        estimate[count:] = found[count:]
    return workload.estimated(estimate)
