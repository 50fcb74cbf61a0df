"""A2C's update: one gradient step on each rollout, the critic's own layers at a step size of their own."""

from __future__ import annotations

from a2c.config import A2CSettings
from schedrl.learning import losses
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.gradient_step import GradientStep
from schedrl.learning.networks import VALUE_LAYERS


def make_step(model: ActorCritic, settings: A2CSettings) -> GradientStep:
    """Return the compiled step; it takes batches with `advantage` and `target`."""

    def loss(weights, batch, entropy_coef, dropout_seed):
        return losses.actor_critic(model, weights, batch, (settings.value_coef, entropy_coef), dropout_seed)

    return GradientStep(
        model,
        loss,
        losses.ACTOR_CRITIC_STATISTICS,
        ("advantage", "target"),
        optimiser=settings.optimiser,
        scale=model.scale_of(VALUE_LAYERS, settings.critic_scale),
    )
