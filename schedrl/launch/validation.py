"""What a training run is looked at by while it goes on: its mean return on validation workloads.

The return and not a slowdown, so that it is what the run is for, whatever it is rewarded for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedrl.evaluation.cluster.sequences import is_cluster
from schedrl.launch.plan import Plan
from schedrl.learning.selection import GREEDY, SAMPLED, Selection
from schedrl.settings import UserError

LOOKS = 20
"""In a run, where nothing else was asked for."""
USUAL_BUDGET = 1_000_000
"""Decisions that a budget in episodes counts as here."""
SEED = 0
"""Of the sequences: the same for every run."""
Play = Callable[[Any, str], np.ndarray]
"""From a policy and how it is played to the return of each sequence."""


def selection_of(plan: Plan, say: Callable[[str], None]) -> Selection | None:
    """Return what chooses the weights of a run, None where the last ones are kept.

    Raises:
        UserError: there are no validation workloads, as of too short a trace.
    """
    algorithm, on_cluster = plan.algorithm, is_cluster(plan.environment)
    every = algorithm.validate_every
    if every is None:
        every = (algorithm.total_steps or USUAL_BUDGET) // LOOKS if on_cluster else 0
    if not every:
        return None
    play = (_on_cluster if on_cluster else _on_deeprm)(plan.environment, algorithm.validation_sequences)
    return Selection(every, partial(_measure, play), say)


def _measure(play: Play, policy: Any) -> dict[str, float]:
    means = {}
    for mode in (GREEDY, SAMPLED):
        means[mode] = -float(np.mean(play(policy, mode)))
    return means


def _on_cluster(settings: Any, count: int) -> Play:
    from schedrl.envs.simple_cluster.episodes import returns
    from schedrl.envs.simple_cluster.jobs import jobs_of

    source, numbers = jobs_of(settings, SEED, "validation"), np.arange(count)  # drawn once for all looks
    _require_jobs(bool((source.at(numbers).counts > 0).any()), count)
    return lambda policy, mode: returns(
        policy, settings, source, numbers, deterministic=mode == GREEDY, seed=SEED
    )


def _require_jobs(some: bool, count: int) -> None:
    if not some:
        raise UserError(
            f"no job comes in the {count} validation sequences, so weights can't be chosen on them; raise "
            "the load or validation_sequences, or give validate_every 0"
        )


def _on_deeprm(settings: Any, count: int) -> Play:
    from schedrl.evaluation import evaluate
    from schedrl.evaluation.evaluate import sequences_of

    sequences = sequences_of(settings, count, SEED, "validation")
    _require_jobs(bool((sequences.duration > 0).any()), count)
    options: dict[str, Any] = {"sequences": sequences, "seed": SEED}

    def play(policy: Any, mode: str) -> np.ndarray:
        played = evaluate({"policy": policy}, settings, modes=[mode], baselines=(), **options)
        return played.runs[0].outcome.ret

    return play
