"""The best of all composed rules for some jobs: every order x placement x discipline, on validation jobs.

Apart from `holding` because nothing is tuned here: it is a choice among names. `hold` is not among them, it
stands by itself in every comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from schedrl.evaluation.cluster import window
from schedrl.evaluation.cluster.metrics import bounded_slowdowns
from schedrl.settings import UserError

SCREENED, FINALISTS = 50, 20
"""Sequences on which all rules are tried, and how many of the best go on to the rest."""


class Composed(NamedTuple):
    """A rule and its mean bounded slowdown on the validation sequences."""

    rule: str
    mean: float


def composed_rules() -> list[str]:
    """Return the full names of all orders x placements x disciplines but hold."""
    from schedrl.sim.cluster.orders import ORDERS
    from schedrl.sim.cluster.placements import PLACEMENTS
    from schedrl.sim.cluster.rule import DISCIPLINES

    return ["+".join(parts) for parts in product(ORDERS, PLACEMENTS, DISCIPLINES) if parts[2] != "hold"]


def best_composed(
    settings: Any,
    *,
    num_sequences: int = 500,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> list[Composed]:
    """Return the rules that were best on validation sequences, the best first.

    Args:
        settings: of the cluster environment.
        num_sequences: for the finalists; all rules are tried on the first SCREENED.
        seed: of the sequences.
        progress: called with a line now and then.

    Raises:
        UserError: no job counts, so that no rule is better than another.
    """
    from schedrl.envs.simple_cluster.drawing import machines_of
    from schedrl.envs.simple_cluster.jobs import workloads_of
    from schedrl.sim.cluster.run import simulate

    machines = machines_of(settings)
    workloads = workloads_of(settings, num_sequences, seed, "validation")
    cut = settings.termination == "continuing"

    def mean(rule: str, count: int) -> float:
        found = []
        for jobs in workloads[:count]:
            until = float(jobs.arrival[-1]) if cut else None
            schedule = simulate(jobs, machines, rule, until=until, aging_time=settings.aging_time)
            values = bounded_slowdowns(schedule, settings.slowdown_floor, bounds=True)
            counted = values[window.counted(settings, len(values))]
            found += [np.nanmean(counted)] if not np.isnan(counted).all() else []
        if not found:
            raise UserError("no job of the validation sequences counts under any rule: none can be chosen")
        return float(np.mean(found))

    def ranked(rules: list[str], count: int) -> list[Composed]:
        if progress:
            progress(f"{len(rules)} rules on {count} validation sequences")
        return sorted((Composed(rule, mean(rule, count)) for rule in rules), key=lambda found: found.mean)

    screened = ranked(composed_rules(), min(SCREENED, num_sequences))
    return ranked([found.rule for found in screened[:FINALISTS]], num_sequences)
