"""A trained policy in NumPy whose actions have continuous numbers, or several discrete parts.

The network's outputs are the logits of all discrete parts, end to end, and one number for each continuous
one, which tanh takes to -1 .. 1 and `ActionSpec.from_unit` to the box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from schedrl.learning.action_spec import MASK, ActionSpec
from schedrl.learning.checkpoint import check_shapes
from schedrl.learning.distributions import LARGE_NEGATIVE, require_legal
from schedrl.learning.numpy_policy import NumpyPolicy


class MixedPolicy(NumpyPolicy):
    """Actions are what the environment's `step` takes: floats `[B, k]`, or a tuple of arrays."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        weights: np.ndarray,
        statistics: Mapping[str, np.ndarray],
        seed: int = 0,
    ):
        super().__init__(spec, weights, statistics, seed)
        self.actions = ActionSpec.from_dict(spec["actions"])

    def _forward(self, obs: Mapping[str, Any], values: bool = True) -> tuple[np.ndarray, Any]:
        """Return outputs `[B, sum(sizes) + k]`, illegal logits at LARGE_NEGATIVE, and quantiles."""
        outputs, found = self._outputs(obs, values)
        logits = outputs[:, : self.actions.num_logits]
        if self.actions.sizes:
            mask = np.asarray(obs[MASK], bool)
            for part in self.actions.split(mask):
                require_legal(part)
            logits = np.where(mask, logits, np.float32(LARGE_NEGATIVE))
        numbers = outputs[:, self.actions.num_logits :]
        return np.concatenate([logits, numbers], axis=1), found

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True) -> Any:
        """Return the action of one observation, or of a batch, as `step` takes it.

        Deterministic: the likeliest choice of each part. Else sampled by their probabilities; continuous
        numbers are the same either way.
        """
        obs, single = self._batched(obs)
        outputs, _ = self._forward(obs, values=False)
        stored = self._drawn(outputs, None if deterministic else self.rng)
        actions = self.actions.decode(self.actions.inside(stored))
        if not single:
            return actions
        return tuple(part[0] for part in actions) if isinstance(actions, tuple) else actions[0]

    def sample(
        self, obs: Mapping[str, Any], seed: int, step: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample for a batch, statelessly; return stored actions, log-probabilities of choices, and values.

        As `NumpyPolicy.sample`: the noise is a function of `(seed, step)` alone.
        """
        outputs, values = self.forward(obs)
        stored = self._drawn(
            outputs, np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, step]))
        )
        return stored, self._log_probs(outputs, stored), values

    def scores(self, obs: Mapping[str, Any]) -> np.ndarray:
        """Return the logits of all discrete parts, `[A]` or `[B, A]`; -inf where illegal."""
        obs, single = self._batched(obs)
        logits = self._forward(obs, values=False)[0][:, : self.actions.num_logits]
        logits = np.where(logits <= LARGE_NEGATIVE, -np.inf, logits)
        return logits[0] if single else logits

    def _drawn(self, outputs: np.ndarray, generator: np.random.Generator | None) -> np.ndarray:
        """Return actions in storage form: drawn, or without a generator the likeliest."""
        logits, numbers = np.split(outputs, [self.actions.num_logits], axis=1)
        if generator is not None:
            noise = generator.gumbel(size=logits.shape)
            logits = np.where(logits <= LARGE_NEGATIVE, -np.inf, logits / self.temperature + noise)
        parts = [part.argmax(axis=1) for part in self.actions.split(logits)]
        return self.actions.store(parts, self._numbers(numbers, generator))

    def _numbers(self, outputs: np.ndarray, generator: np.random.Generator | None) -> np.ndarray:
        """Return the continuous numbers `[B, k]` in the environment's units."""
        del generator  # a deterministic policy; who explores adds noise to it
        return self.actions.from_unit(np.tanh(outputs))

    def _log_probs(self, outputs: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Return the log-probabilities `[B]` of the choices in `stored`."""
        log_probs = np.zeros(len(outputs), np.float32)
        for i, logits in enumerate(self.actions.split(outputs[:, : self.actions.num_logits])):
            shifted = logits - logits.max(axis=1, keepdims=True)
            rows = np.arange(len(shifted)), stored[:, i].astype(np.int64)
            log_probs += shifted[rows] - np.log(np.exp(shifted).sum(axis=1))
        return log_probs

    def _set_choices(self, count: int) -> None:
        self.actions = replace(self.actions, sizes=(count, *self.actions.sizes[1:]))

    def _batched(self, obs: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], bool]:
        if self.network.extra:
            some = np.ndim(obs["queue"]) - 2
            self.fit({name: np.shape(obs[name])[some:] for name in self.acts_on})
        shapes = {name: shape for name, (shape, _) in self.acts_on.items()}
        if self.actions.sizes:
            shapes[MASK] = (self.actions.num_logits,)
        arrays = {name: np.asarray(obs[name]) for name in shapes}
        first = next(iter(shapes))
        single = arrays[first].ndim == len(shapes[first])
        if single:
            arrays = {name: leaf[None] for name, leaf in arrays.items()}
        check_shapes(
            {name: list(leaf.shape[1:]) for name, leaf in arrays.items()},
            {name: list(shape) for name, shape in shapes.items()},
            "the observation",
        )
        return arrays, single
