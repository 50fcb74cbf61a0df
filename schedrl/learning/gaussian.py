"""Stochastic policies over choices and numbers: masked categoricals, and Gaussians of softplus deviation.

The network puts out the logits of all discrete parts, then for each continuous number a mean and a raw
deviation. Numbers live in units of -1 .. 1 over their box; the deviation is softplus(raw) + MIN_STD. What is
drawn is stored as drawn, so that its density is exact; only what the environment gets is cut to the box.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.learning import distributions
from schedrl.learning.action_spec import MASK, ActionSpec
from schedrl.learning.mixed_policy import MixedPolicy

MIN_STD = 1e-2
"""Keeps densities bounded; a hundredth of half the box."""
SHIFT = math.log(math.expm1(0.5))
"""Added to raw deviations: the first policy's deviation is 0.5, a quarter of the box."""


def evaluate(spec: ActionSpec, outputs: Any, obs: Mapping[str, Any], actions: Any) -> tuple[Any, Any]:
    """Return log-probabilities (densities) of stored `actions`, and entropies, `[B]` each (TensorFlow).

    Args:
        spec: what an action consists of.
        outputs: of the network `[B, sum(sizes) + 2 k]`.
        obs: with `action_mask` where there are choices.
        actions: in storage form.
    """
    import tensorflow as tf

    if spec.plain:
        all_log_probs = distributions.log_probs(outputs, obs[MASK])
        return distributions.log_prob_of(all_log_probs, actions), distributions.entropy(all_log_probs)
    log_prob, entropy = 0.0, 0.0
    parts = spec.split(outputs[:, : spec.num_logits]) if spec.sizes else []
    masks = spec.split(obs[MASK]) if spec.sizes else []
    for i, (logits, mask) in enumerate(zip(parts, masks, strict=True)):
        of_part = distributions.log_probs(logits, mask)
        log_prob += distributions.log_prob_of(of_part, tf.cast(actions[:, i], tf.int32))
        entropy += distributions.entropy(of_part)
    if spec.low:
        mean, raw = tf.split(outputs[:, spec.num_logits :], 2, axis=-1)
        std = tf.nn.softplus(raw + SHIFT) + MIN_STD
        error = (spec.to_unit(actions[:, len(spec.sizes) :]) - mean) / std
        density = -0.5 * tf.square(error) - tf.math.log(std) - 0.5 * math.log(2.0 * math.pi)
        log_prob += tf.reduce_sum(density, axis=-1)
        entropy += tf.reduce_sum(tf.math.log(std) + 0.5 * math.log(2.0 * math.pi * math.e), axis=-1)
    return log_prob, entropy


class GaussianPolicy(MixedPolicy):
    """The same in NumPy: greedy play takes the likeliest choices and the means."""

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True) -> Any:
        """Return the action of one observation, or of a batch, as `step` takes it, within the box."""
        obs, single = self._batched(obs)
        outputs, _ = self.forward(obs)
        noise = None if deterministic else self._noise(len(outputs), self.rng)
        actions = self.actions.decode(self.actions.inside(self._drawn(outputs, noise)))
        if not single:
            return actions
        return tuple(part[0] for part in actions) if isinstance(actions, tuple) else actions[0]

    def sample(
        self, obs: Mapping[str, Any], seed: int, step: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample for a batch, statelessly; return stored actions (as drawn), log-densities and values."""
        outputs, values = self.forward(obs)
        generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, step]))
        stored = self._drawn(outputs, self._noise(len(outputs), generator))
        return stored, self._log_prob(outputs, stored), values

    def _noise(self, rows: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        choices = generator.gumbel(size=(rows, self.actions.num_logits))
        return choices, generator.standard_normal((rows, self.actions.num_continuous))

    def _numbers(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, raw = np.split(outputs[:, self.actions.num_logits :], 2, axis=1)
        return mean, np.logaddexp(0.0, raw + SHIFT) + MIN_STD

    def _drawn(self, outputs: np.ndarray, noise: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
        spec, logits = self.actions, outputs[:, : self.actions.num_logits]
        mean, std = self._numbers(outputs)
        if noise is not None:
            illegal = logits <= distributions.LARGE_NEGATIVE
            logits = np.where(illegal, -np.inf, logits / self.temperature + noise[0])
            mean = mean + std * self.temperature * noise[1]
        parts = [part.argmax(axis=1) for part in spec.split(logits)]
        low, high = np.asarray(spec.low, np.float32), np.asarray(spec.high, np.float32)
        return spec.store(parts, low + (mean + 1.0) * 0.5 * (high - low))

    def _log_prob(self, outputs: np.ndarray, stored: np.ndarray) -> np.ndarray:
        log_prob = np.zeros(len(outputs), np.float32)
        for i, logits in enumerate(self.actions.split(outputs[:, : self.actions.num_logits])):
            shifted = logits - logits.max(axis=1, keepdims=True)
            rows = np.arange(len(shifted)), stored[:, i].astype(np.int64)
            log_prob += shifted[rows] - np.log(np.exp(shifted).sum(axis=1))
        mean, std = self._numbers(outputs)
        error = (self.actions.to_unit(stored[:, len(self.actions.sizes) :]) - mean) / std
        density = -0.5 * np.square(error) - np.log(std) - 0.5 * math.log(2.0 * math.pi)
        return (log_prob + density.sum(axis=1)).astype(np.float32)
