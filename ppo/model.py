"""PPO's loss and its update: every epoch and minibatch inside one compiled function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppo.config import PPOSettings
from schedrl.learning import gaussian, losses, optimisers
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.learning.rollout import numerics_named

STATISTICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "grad_norm")


class PPOLearner:
    """Adam's moments and the compiled update of an `ActorCritic`.

    One update takes arrays `[n]` of the decisions to learn from and `permutations` int32 `[steps,
    minibatch]`: the rows of each gradient step, drawn outside with NumPy. Sizes are left open in the
    signature: nothing retraces.
    """

    def __init__(self, model: ActorCritic, settings: PPOSettings):
        self.tf = tf = model.tf
        self.model, self.settings = model, settings
        self.moments = optimisers.Moments(tf, model.weights)
        rows = tf.TensorSpec([None, None], tf.int32)
        column = tf.TensorSpec([None], tf.float32)
        batch = dict.fromkeys(("log_prob", "value", "advantage", "target"), column)
        batch |= {"action": model.action_spec(), "obs": model.observation_spec()}
        scalar = tf.TensorSpec([], tf.float32)
        self._update = model.compile(self._update_graph, [batch, rows, scalar, scalar])

    def loss(
        self, weights: Any, batch: Mapping[str, Any], entropy_coef: Any, dropout_seed: Any = None
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the loss of a minibatch and its statistics (all of STATISTICS but the last).

        Source: PPO paper, equations 7 and 9; the KL estimate is k3 of http://joschu.net/blog/kl-approx.html.
        """
        tf, s = self.tf, self.settings
        outputs, predicted = self.model.outputs(weights, batch["obs"], dropout_seed)
        log_prob, entropies = gaussian.evaluate(self.model.actions, outputs, batch["obs"], batch["action"])
        log_ratio = log_prob - batch["log_prob"]
        ratio = tf.exp(log_ratio)
        clipped = tf.clip_by_value(ratio, 1.0 - s.clip_epsilon, 1.0 + s.clip_epsilon)
        policy_loss = -tf.reduce_mean(tf.minimum(ratio * batch["advantage"], clipped * batch["advantage"]))
        if s.value_clip is None:
            value_loss = losses.value_loss(predicted, batch["target"])
        else:
            value_loss = self._clipped_value_loss(predicted, batch)
        entropy = tf.reduce_mean(entropies)
        kl = tf.reduce_mean(ratio - 1.0 - log_ratio)
        outside = tf.reduce_mean(tf.cast(tf.abs(ratio - 1.0) > s.clip_epsilon, tf.float32))
        total = policy_loss + s.value_coef * value_loss - entropy_coef * entropy
        return total, (policy_loss, value_loss, entropy, kl, outside)

    def _clipped_value_loss(self, predicted: Any, batch: Mapping[str, Any]) -> Any:
        """Return half the larger square of two errors: as predicted, and within value_clip of before."""
        tf, limit = self.tf, self.settings.value_clip
        value, old = predicted[:, 0], batch["value"]
        near = old + tf.clip_by_value(value - old, -limit, limit)
        errors = tf.maximum(tf.square(value - batch["target"]), tf.square(near - batch["target"]))
        return 0.5 * tf.reduce_mean(errors)

    def _update_graph(
        self, batch: Mapping[str, Any], rows: Any, learning_rate: Any, entropy_coef: Any
    ) -> Any:
        tf, s = self.tf, self.settings
        batch = {**batch, "obs": self.model.normalise(batch["obs"])}
        steps = tf.shape(rows)[0]
        limit = 1.0 if s.target_kl is None else s.target_kl

        def going_on(i: Any, kl: Any, *_: Any) -> Any:
            return i < steps if s.target_kl is None else tf.logical_and(i < steps, kl <= limit)

        def step(i: Any, _: Any, sums: Any, weights: Any, m: Any, v: Any, count: Any) -> tuple[Any, ...]:
            minibatch = tf.nest.map_structure(lambda x: tf.gather(x, rows[i]), batch)
            with tf.GradientTape() as tape:
                tape.watch(weights)
                seed = tf.stack([self.model.seed, tf.cast(count, tf.int32)])
                loss, statistics = self.loss(weights, minibatch, entropy_coef, seed)
            gradients = [tape.gradient(loss, weights), *statistics]
            # The KL among the statistics is the mean of all replicas: they stop together.
            gradient, *statistics = self.model.replicas.mean(tf.shape(rows)[1], gradients)
            gradient, norm = optimisers.clip_norm(self.model.ops, gradient, s.max_grad_norm)
            if s.check_numerics:
                for name, tensor in (*zip(STATISTICS, statistics, strict=False), ("gradient", gradient)):
                    tf.debugging.check_numerics(tensor, name)
            count += 1.0
            weights, m, v = optimisers.adam(weights, gradient, m, v, count, learning_rate)
            return i + 1, statistics[3], sums + tf.stack([*statistics, norm]), weights, m, v, count

        start = (0, 0.0, tf.zeros(len(STATISTICS)), self.model.weights.read_value(), *self.moments.read())
        done, _, sums, weights, m, v, count = tf.while_loop(going_on, step, start, parallel_iterations=1)
        self.model.weights.assign(weights)
        self.moments.assign(m, v, count)
        return sums / tf.cast(done, tf.float32), done

    def update(
        self, batch: Mapping[str, Any], permutations: np.ndarray, learning_rate: float, entropy_coef: float
    ) -> dict[str, float]:
        """Learn from one rollout; return the mean statistics and the gradient steps taken.

        Raises:
            NumericsError: with `check_numerics`, at the first NaN or infinity; it names the tensor.
        """
        with numerics_named(self.tf):
            rates = np.float32(learning_rate), np.float32(entropy_coef)
            statistics, done = self._update(dict(batch), permutations, *rates)
        names = dict(zip(STATISTICS, statistics.numpy().tolist(), strict=True))
        return names | {"gradient_steps": float(done)}

    def state(self) -> dict[str, Any]:
        """Return Adam's moments and step count."""
        return self.moments.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        self.moments.load_state(state)


def permutations(
    generator: np.random.Generator, size: int, settings: PPOSettings, replicas: Replicas = ALONE
) -> np.ndarray:
    """Return int32 `[steps, about batch_size]`: the rows of each gradient step, shuffled anew per epoch.

    An epoch is cut into equal minibatches; the few rows left over wait for the next epoch. All replicas take
    the same number of steps, that of the average one.
    """
    count = max(1, round(replicas.mean_of(size) / settings.batch_size))
    used = size - size % count
    epochs = [generator.permutation(size)[:used] for _ in range(settings.num_epochs)]
    return np.concatenate(epochs).reshape(settings.num_epochs * count, used // count).astype(np.int32)
