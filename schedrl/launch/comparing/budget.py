"""Episodes to decisions: one number for all algorithms, whatever the length of their own episodes."""

from __future__ import annotations

import math

from schedrl.launch.comparing.plan import ComparisonPlan
from schedrl.launch.yardsticks import SEED

SEQUENCES = 500


def converted(plan: ComparisonPlan) -> tuple[ComparisonPlan, str]:
    """Return the plan with its budget in decisions, and how that was come to.

    An episode counts as many decisions as SJF takes on average on validation sequences. Were each algorithm
    given that many episodes of its own, one that plays long episodes would get a larger budget.
    """
    from schedrl import heuristics
    from schedrl.evaluation.cluster.sequences import is_cluster
    from schedrl.evaluation.evaluate import sequences_of

    episodes = plan.settings.num_episodes
    assert episodes is not None
    if is_cluster(plan.environment):
        decisions = episodes * plan.environment.num_jobs
        rule = f"{episodes:,} episodes count as {decisions:,} decisions: one for each job of an episode"
        return plan.with_budget(decisions), rule
    sequences = sequences_of(plan.environment, SEQUENCES, SEED, "validation")
    outcome = heuristics.get("sjf").run(plan.environment, sequences, SEED)
    each = float(outcome.decisions.mean())
    decisions = math.ceil(episodes * each)
    rule = (
        f"{episodes:,} episodes count as {decisions:,} decisions: {each:.2f} each, the mean of SJF's on "
        f"{SEQUENCES} validation sequences"
    )
    return plan.with_budget(decisions), rule
