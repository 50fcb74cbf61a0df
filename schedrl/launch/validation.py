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

LOOKS = 20
"""In a run, where nothing else was asked for."""
USUAL_BUDGET = 1_000_000
"""Decisions that a budget in episodes counts as here."""
SEED = 0
"""Of the sequences: the same for every run."""


def selection_of(plan: Plan, say: Callable[[str], None]) -> Selection | None:
    """Return what chooses the weights of a run, None where the last ones are kept."""
    algorithm = plan.algorithm
    every = algorithm.validate_every
    if every is None:
        every = (algorithm.total_steps or USUAL_BUDGET) // LOOKS if is_cluster(plan.environment) else 0
    if not every:
        return None
    play = _cluster_returns if is_cluster(plan.environment) else _deeprm_returns
    return Selection(every, partial(_measure, play, plan.environment, algorithm.validation_sequences), say)


def _measure(play: Callable[..., np.ndarray], settings: Any, count: int, policy: Any) -> dict[str, float]:
    means = {}
    for mode in (GREEDY, SAMPLED):
        policy.reseed(SEED)
        means[mode] = -float(play(policy, settings, count, mode).mean())
    return means


def _cluster_returns(policy: Any, settings: Any, count: int, mode: str) -> np.ndarray:
    from schedrl.envs.simple_cluster.episodes import returns

    return returns(policy, settings, np.arange(count), seed=SEED, deterministic=mode == GREEDY)


def _deeprm_returns(policy: Any, settings: Any, count: int, mode: str) -> np.ndarray:
    from schedrl.evaluation import evaluate

    options: dict[str, Any] = {"family": "validation", "modes": [mode], "baselines": (), "seed": SEED}
    return evaluate({"policy": policy}, settings, num_sequences=count, **options).runs[0].outcome.ret
