"""The hold rule in a comparison: its numbers are tuned on other jobs than those compared, or said not to be.

The rule has three numbers that depend on the workload (`schedrl.heuristics.cluster.hold`). Every report says
which it used and where they are from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schedrl.evaluation.cluster import window
from schedrl.evaluation.cluster.metrics import bounded_slowdowns
from schedrl.heuristics.cluster import hold
from schedrl.sim.cluster.rule import Hold, parse

SEQUENCES = 50
"""Validation sequences to tune on, or more where they are short."""


def holds(rule: str) -> bool:
    """Say whether a name is that of a rule with the discipline hold."""
    return parse(rule).discipline == "hold"


def label(rule: str, numbers: Hold | None) -> str:
    """Return what a rule is called in a report."""
    return f"{rule} (untuned)" if holds(rule) and numbers is None else rule


def note(rule: str, numbers: Hold | None, where: str) -> str:
    """Say which numbers a rule used; `where` they were tuned."""
    found = ", ".join(f"{name} {value:g}" for name, value in (numbers or Hold())._asdict().items())
    if numbers is None:
        return f"{label(rule, None)}: the default numbers ({found}), found on other workloads"
    return f"{rule}: tuned on {where} ({found})"


def tuned(rules: Sequence[str], settings: Any, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return rule -> its options: the numbers of those that hold are searched on validation sequences.

    Args:
        rules: full names.
        settings: of the cluster environment.
        seed: of the sequences.
    """
    return {rule: {"hold": _searched(rule, settings, seed)} if holds(rule) else {} for rule in rules}


def _searched(rule: str, settings: Any, seed: int) -> Hold:
    from schedrl.envs.simple_cluster.drawing import machines_of
    from schedrl.envs.simple_cluster.jobs import workloads_of

    def score(schedule: Any) -> float:
        values = bounded_slowdowns(schedule, settings.slowdown_floor, bounds=True)
        return float(np.nanmean(values[window.counted(settings, len(values))]))

    count = max(SEQUENCES, -(-hold.MIN_JOBS // settings.num_jobs))
    return hold.tune_hold(
        workloads_of(settings, count, seed, "validation"),
        machines_of(settings),
        rule,
        score=score,
        cut=settings.termination == "continuing",
        aging_time=settings.aging_time,
    )
