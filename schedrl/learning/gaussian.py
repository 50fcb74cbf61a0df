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

    def _mean_and_std(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, raw = np.split(outputs, 2, axis=1)
        return mean, np.logaddexp(0.0, raw + SHIFT) + MIN_STD

    def _numbers(self, outputs: np.ndarray, generator: Any) -> np.ndarray:
        """Return the numbers as drawn, which may lie outside the box; without a generator the means."""
        unit, std = self._mean_and_std(outputs)
        if generator is not None:
            unit = unit + std * self.temperature * generator.standard_normal(unit.shape)
        low, high = (np.array(end, np.float32) for end in (self.actions.low, self.actions.high))
        return low + (unit + 1.0) * 0.5 * (high - low)

    def _log_probs(self, outputs: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Return log-probabilities of the choices plus log-densities of the numbers `[B]`."""
        spec = self.actions
        mean, std = self._mean_and_std(outputs[:, spec.num_logits :])
        error = (spec.to_unit(stored[:, len(spec.sizes) :]) - mean) / std
        density = -0.5 * np.square(error) - np.log(std) - 0.5 * math.log(2.0 * math.pi)
        return super()._log_probs(outputs, stored) + density.sum(axis=1, dtype=np.float32)
