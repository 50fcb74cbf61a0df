"""One gradient, or one optimiser step, per batch, compiled: for algorithms that use each batch once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schedrl.learning import optimisers
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.replicas import Replicas
from schedrl.learning.rollout import numerics_named

Loss = Callable[[Any, Mapping[str, Any], Any, Any], tuple[Any, Sequence[Any]]]


class Gradient:
    """Differentiates `loss`, averages over replicas, then clips; compiled by itself, to be applied elsewhere.

    Args:
        model: for whose weights.
        loss: `(weights, batch, entropy_coef, dropout_seed) -> loss, statistics`, with `batch["obs"]`
            normalised.
        statistics: their names.
        columns: names of the batch's float32 columns `[n]`, beside `obs` and `action`.
        replicas: to average over; None = the model's.
    """

    def __init__(
        self,
        model: ActorCritic,
        loss: Loss,
        statistics: Sequence[str],
        columns: Sequence[str],
        replicas: Replicas | None = None,
    ):
        tf = model.tf
        self.replicas = replicas or model.replicas
        self.model, self.loss, self.statistics = model, loss, (*statistics, "grad_norm")
        self.batch: dict[str, Any] = dict.fromkeys(columns, tf.TensorSpec([None], tf.float32))
        self.batch |= {"obs": model.observation_spec(), "action": model.action_spec()}
        rest = [tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)]
        self._compiled = model.compile(self.graph, [self.batch, *rest])

    def graph(self, batch: Mapping[str, Any], entropy_coef: Any, step: Any) -> tuple[Any, list[Any]]:
        """Return the clipped gradient and the statistics (in a graph); `step` decides what dropout drops."""
        model, tf, settings = self.model, self.model.tf, self.model.settings
        batch = {**batch, "obs": model.normalise(batch["obs"])}
        weights = model.weights.read_value()
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss, statistics = self.loss(weights, batch, entropy_coef, tf.stack([model.seed, step]))
        rows = tf.shape(batch["action"])[0]
        gradient, *statistics = self.replicas.mean(rows, [tape.gradient(loss, weights), *statistics])
        gradient, norm = optimisers.clip_norm(model.ops, gradient, settings.max_grad_norm)
        if settings.check_numerics:
            for name, tensor in (*zip(self.statistics, statistics, strict=False), ("gradient", gradient)):
                tf.debugging.check_numerics(tensor, name)
        return gradient, [*statistics, norm]

    def needed(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the loss reads of a batch that may hold more."""
        return {name: batch[name] for name in self.batch}

    def __call__(
        self, batch: Mapping[str, Any], entropy_coef: float, step: int
    ) -> tuple[np.ndarray, dict[str, float]]:
        """Return the gradient `[weights]` at the model's present weights, and the statistics.

        Raises:
            NumericsError: with `check_numerics`, at the first NaN or infinity; it names the tensor.
        """
        with numerics_named(self.model.tf):
            gradient, found = self._compiled(self.needed(batch), np.float32(entropy_coef), np.int32(step))
        return gradient.numpy(), {n: float(value) for n, value in zip(self.statistics, found, strict=True)}


class GradientStep:
    """A step of an optimiser on the clipped gradient of `loss`, in one graph.

    Args:
        model: whose weights move.
        loss: see `Gradient`.
        statistics: see `Gradient`.
        columns: see `Gradient`.
        optimiser: of `optimisers.OPTIMISERS`.
        scale: `[weights]` factor of the learning rate for each parameter; None = 1.
        replicas: see `Gradient`.
    """

    def __init__(
        self,
        model: ActorCritic,
        loss: Loss,
        statistics: Sequence[str],
        columns: Sequence[str],
        *,
        optimiser: str = "adam",
        scale: np.ndarray | None = None,
        replicas: Replicas | None = None,
    ):
        tf = model.tf
        self.model, self.gradient = model, Gradient(model, loss, statistics, columns, replicas)
        self.moments = optimisers.Moments(tf, model.weights)
        self.optimise = optimisers.OPTIMISERS[optimiser]
        self.scale = None if scale is None else tf.constant(scale)
        scalar = tf.TensorSpec([], tf.float32)
        self._update = model.compile(self._update_graph, [self.gradient.batch, scalar, scalar])

    def _update_graph(self, batch: Mapping[str, Any], learning_rate: Any, entropy_coef: Any) -> list[Any]:
        m, v, steps = self.moments.read()
        step = self.model.tf.cast(steps, self.model.tf.int32)
        gradient, statistics = self.gradient.graph(batch, entropy_coef, step)
        rate = learning_rate if self.scale is None else learning_rate * self.scale
        weights = self.model.weights.read_value()
        weights, m, v = self.optimise(weights, gradient, m, v, steps + 1.0, rate)
        self.model.weights.assign(weights)
        self.moments.assign(m, v, steps + 1.0)
        return statistics

    def __call__(
        self, batch: Mapping[str, Any], learning_rate: float, entropy_coef: float = 0.0
    ) -> dict[str, float]:
        """Take the step; return the statistics.

        Raises:
            NumericsError: with `check_numerics`, at the first NaN or infinity; it names the tensor.
        """
        with numerics_named(self.model.tf):
            rates = np.float32(learning_rate), np.float32(entropy_coef)
            found = self._update(self.gradient.needed(batch), *rates)
        names = self.gradient.statistics
        return {name: float(value) for name, value in zip(names, found, strict=True)}

    def state(self) -> dict[str, Any]:
        """Return the optimiser's moments."""
        return self.moments.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        self.moments.load_state(state)
