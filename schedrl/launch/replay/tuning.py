"""`--tune_hold`: the hold rule's numbers from the first third of a trace, everything measured on the rest.

One trace has no validation sequences. Numbers that were tuned on the jobs they are measured on would flatter
the rule, so the trace is cut, once and for all policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from schedrl.evaluation.cluster import holding
from schedrl.evaluation.cluster.metrics import bounded_slowdowns, in_unit
from schedrl.heuristics.cluster import hold
from schedrl.launch.replay.data import Data
from schedrl.launch.replay.estimating import estimated
from schedrl.settings import UserError
from schedrl.sim.cluster.problem import prepare
from schedrl.sim.cluster.rule import Hold
from schedrl.sim.cluster.schedule import Schedule

MOST_JOBS = 10_000
"""The last ones of the first third are enough to tune on."""


def tune(
    data: Data, rules: Iterable[str], tau: float, say: Callable[[str], None], window: int | None = None
) -> tuple[Data, dict[str, Hold], str]:
    """Return what is left to be replayed, the numbers of the rules that hold, and what they were tuned on.

    Args:
        data: the whole trace.
        rules: full names, others are left alone.
        tau: of the bounded slowdown [s].
        say: called with what is done.
        window: jobs of the queue that a rule looks at.

    Raises:
        UserError: no rule that holds, or too few jobs.
    """
    names = [name for name in rules if holding.holds(name)]
    if not names:
        raise UserError("tune_hold has nothing to tune: name hold among the --policies, or leave it out")
    third = len(data.workload) // 3
    if third < hold.MIN_JOBS:
        raise UserError(
            f"tune_hold takes the first third of the trace, {third} jobs of the {hold.MIN_JOBS} needed; "
            "leave it out"
        )
    rest = data.workload.take(slice(third, None))
    if prepare(rest, data.machines).reject.all():
        raise UserError("tune_hold leaves no job that can run in the last two thirds; leave it out")
    early = data.workload.take(slice(max(0, third - MOST_JOBS), third))
    own = {name: estimated(early, data.machines, name, window=window) for name in names if data.own_medians}
    floor = in_unit(tau, early.time_unit)

    def score(schedule: Schedule) -> float:
        return float(np.nanmean(bounded_slowdowns(schedule, floor, bounds=True)))

    def tell(count: int, total: int) -> None:
        if count % 30 == 0:
            say(f"tuning hold: {count} of {total} numbers tried")

    found = {
        name: hold.tune_hold(
            [own.get(name, early)], data.machines, name, score=score, progress=tell, window=window
        )
        for name in names
    }
    where = f"the first {third:,} jobs" + (f" (the last {MOST_JOBS:,} of them)" if third > MOST_JOBS else "")
    fact = f"hold is tuned on {where}; all policies are compared on the {len(rest):,} jobs after them"
    lacking = int(np.isnan(np.asarray(rest.estimate)).sum())
    told = data.told if data.told.model else replace(data.told, jobs=len(rest), lacking=lacking)
    return data._replace(workload=rest, facts=(*data.facts, fact), told=told), found, where
