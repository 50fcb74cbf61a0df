"""The terms of policy-gradient losses, as functions of a minibatch; every algorithm composes its own.

Source: Williams, "Simple statistical gradient-following algorithms", 1992 (policy gradient); Mnih et al.,
"Asynchronous methods for deep reinforcement learning", 2016 (advantages, entropy bonus); Dabney et al.,
"Distributional reinforcement learning with quantile regression", 2018, equation 10 (quantile critic).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedrl.learning import distributions, gaussian
from schedrl.learning.actor_critic import ActorCritic

HUBER = 1.0
"""Where the quantile loss turns from square to straight, in scaled rewards."""
ACTOR_CRITIC_STATISTICS = ("policy_loss", "value_loss", "entropy")


def policy_gradient(all_log_probs: Any, actions: Any, advantages: Any) -> Any:
    """Return -mean(log pi(a|s) A): its gradient is the policy gradient with the sign of a loss."""
    import tensorflow as tf

    return -tf.reduce_mean(distributions.log_prob_of(all_log_probs, actions) * advantages)


def value_loss(predicted: Any, targets: Any) -> Any:
    """Return the mean loss of value predictions `[B, V]` against sampled returns `[B]`.

    With V = 1 half the squared error; else the quantile Huber loss of the V quantiles.
    """
    import tensorflow as tf

    if predicted.shape[-1] == 1:
        return 0.5 * tf.reduce_mean(tf.square(predicted[:, 0] - targets))
    return quantile_huber(predicted, targets)


def quantile_huber(predicted: Any, targets: Any) -> Any:
    """Return the mean over rows of the sum over quantiles of |tau - 1[target < q]| huber(target - q)."""
    import tensorflow as tf

    count = predicted.shape[-1]
    shares = (tf.range(count, dtype=tf.float32) + 0.5) / float(count)
    error = targets[:, None] - predicted
    size = tf.abs(error)
    huber = tf.where(size <= HUBER, 0.5 * tf.square(error), HUBER * (size - 0.5 * HUBER))
    weight = tf.abs(shares - tf.cast(error < 0.0, tf.float32))
    return tf.reduce_mean(tf.reduce_sum(weight * huber, axis=-1)) / HUBER


def actor_critic(
    model: ActorCritic,
    weights: Any,
    batch: Mapping[str, Any],
    coefficients: tuple[Any, Any],
    dropout_seed: Any = None,
) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return policy gradient + value loss - entropy bonus of a batch, and the terms.

    Args:
        model: gives logits and values.
        weights: to differentiate for.
        batch: `obs` (normalised), `action`, `advantage` and `target`, `[B]` each.
        coefficients: of the value loss and of the entropy.
        dropout_seed: see `ActorCritic.outputs`.
    """
    import tensorflow as tf

    outputs, predicted = model.outputs(weights, batch["obs"], dropout_seed)
    log_prob, entropies = gaussian.evaluate(model.actions, outputs, batch["obs"], batch["action"])
    policy = -tf.reduce_mean(log_prob * batch["advantage"])
    value = value_loss(predicted, batch["target"])
    entropy = tf.reduce_mean(entropies)
    return policy + coefficients[0] * value - coefficients[1] * entropy, (policy, value, entropy)
