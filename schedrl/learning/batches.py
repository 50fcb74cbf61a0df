"""From a rollout to the arrays `[n]` that an update learns from."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedrl.learning import returns
from schedrl.learning.logger import Record
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.learning.rollout import Rollout
from schedrl.learning.run_folder import Run
from schedrl.learning.settings import ActorCriticSettings, PolicyGradientSettings


def decisions_of(
    rollout: Rollout, settings: ActorCriticSettings, replicas: Replicas = ALONE
) -> dict[str, Any]:
    """Return `obs`, `action`, `log_prob`, `value`, `advantage` and `target` of the decisions to learn from.

    Advantages are generalised estimates, time passing over forced decisions with lambda 1; targets are the
    lambda-returns.
    """
    rewards = rollout.rewards * np.float32(settings.reward_scale)
    following = returns.next_values(
        rollout.values, rollout.last_values, rollout.terminated, rollout.truncated, rollout.final_values
    )
    ended = rollout.terminated | rollout.truncated
    trace = returns.following_lambda(settings.gae_lambda, rollout.learned)
    advantages = returns.gae(rewards, rollout.values, following, ended, settings.gamma, trace)
    rows = np.flatnonzero(rollout.learned)
    advantage = advantages.reshape(-1)[rows].astype(np.float32)
    value = rollout.flat("values")[rows]
    return {
        "obs": {name: rollout.flat(name)[rows] for name in rollout.obs},
        "action": rollout.flat("actions")[rows],
        "log_prob": rollout.flat("log_probs")[rows],
        "value": value,
        "advantage": scaled_advantages(advantage, settings, replicas),
        "target": advantage + value,
    }


def log_rollout(
    run: Run, rollout: Rollout, batch: Mapping[str, Any], started: float, **metrics: float
) -> Record:
    """Spend the budget on a rollout, write a record of it and return it.

    Args:
        run: to log to.
        rollout: what was collected.
        batch: what was learned from it (`decisions_of`).
        started: `time.perf_counter()` before collecting.
        metrics: of the update.
    """
    return run.log(
        decisions=rollout.rewards.size,
        seconds=time.perf_counter() - started,
        episodes=rollout.episodes,
        explained_variance=returns.explained_variance(batch["value"], batch["target"]),
        learned_share=float(rollout.learned.mean()),
        **metrics,
    )


def minibatches(
    batch: Mapping[str, Any],
    size: int | None,
    generator: np.random.Generator,
    replicas: Replicas = ALONE,
) -> Iterator[dict[str, Any]]:
    """Yield a batch shuffled and cut into equal parts of about `size` rows; None = whole; none if empty.

    All replicas get the same number of parts, that of the average one.
    """
    usual = replicas.mean_of(len(batch["action"]))
    if not usual:
        return
    if size is None or usual <= size:
        yield dict(batch)
        return
    for part in np.array_split(generator.permutation(len(batch["action"])), round(usual / size)):
        obs = {name: leaf[part] for name, leaf in batch["obs"].items()}
        yield {name: column[part] for name, column in batch.items() if name != "obs"} | {"obs": obs}


def scaled_advantages(
    advantage: np.ndarray, settings: PolicyGradientSettings, replicas: Replicas = ALONE
) -> np.ndarray:
    """Return advantages `[n]` normalised over all replicas and clipped as the settings say."""
    if settings.normalise_advantages and (advantage.size or replicas.count > 1):
        mean, deviation = replicas.moments(advantage)
        advantage = (advantage - mean) / (deviation + 1e-8)
    return np.clip(advantage, -settings.advantage_clip, settings.advantage_clip)
