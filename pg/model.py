"""PG's update: one gradient step on the decisions of whole episodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pg.config import PGSettings
from schedrl.learning import gaussian, returns
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.batches import scaled_advantages
from schedrl.learning.episodes import Episodes
from schedrl.learning.gradient_step import GradientStep
from schedrl.learning.replicas import ALONE, Replicas

STATISTICS = ("policy_loss", "entropy", "grad_norm")


def make_step(model: ActorCritic, settings: PGSettings) -> GradientStep:
    """Return the compiled step; it takes batches with `advantage`."""
    tf = model.tf

    def loss(weights, batch, entropy_coef, _):
        outputs, _ = model.forward(weights, batch["obs"])
        log_prob, entropies = gaussian.evaluate(model.actions, outputs, batch["obs"], batch["action"])
        policy_loss = -tf.reduce_mean(log_prob * batch["advantage"])
        entropy = tf.reduce_mean(entropies)
        return policy_loss - entropy_coef * entropy, (policy_loss, entropy)

    return GradientStep(model, loss, STATISTICS[:-1], ("advantage",), optimiser=settings.optimiser)


def make_batch(
    played: Episodes, groups: np.ndarray, settings: PGSettings, replicas: Replicas = ALONE
) -> dict[str, Any]:
    """Return `obs`, `action` and `advantage` (return to go minus baseline) of all decisions with a choice.

    Args:
        played: whole episodes.
        groups: `[B]`, which of them played the same sequence.
        settings: discount, baseline, scaling.
        replicas: over which advantages are normalised.
    """
    sums = returns.returns_to_go(played.rewards * settings.reward_scale, settings.gamma)
    index = np.arange(len(sums))[:, None]
    times = played.times if settings.baseline == "time" else np.where(played.times >= 0, index, -1)
    advantages = sums - returns.group_baseline(sums, times, groups)
    chosen = advantages[played.steps, played.envs].astype(np.float32)
    return {
        "obs": played.obs,
        "action": played.actions,
        "advantage": scaled_advantages(chosen, settings, replicas),
    }
