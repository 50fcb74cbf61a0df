"""A trained policy in NumPy whose actions have continuous numbers, or several discrete parts.

The network's outputs are the logits of all discrete parts, end to end, and one number for each continuous
one, which tanh takes to -1 .. 1 and `ActionSpec.from_unit` to the box.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from schedrl.learning.action_spec import MASK, ActionSpec
from schedrl.learning.distributions import LARGE_NEGATIVE, first_largest, require_legal
from schedrl.learning.numpy_policy import NumpyPolicy, check
from schedrl.learning.pair_scorer import PairScorer


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

    def _forward(self, obs: Mapping[str, Any], acting: bool = False) -> tuple[np.ndarray, Any]:
        """Return outputs `[B, sum(sizes) + k]`, illegal logits at LARGE_NEGATIVE, and quantiles."""
        outputs, found = self._outputs(obs, acting)
        actions = self._actions_on(obs)
        logits = outputs[:, : actions.num_logits]
        if actions.sizes:
            mask = np.asarray(obs[MASK], bool)
            for part in actions.split(mask):
                require_legal(part)
            logits = np.where(mask, logits, outputs.dtype.type(LARGE_NEGATIVE))
        numbers = outputs[:, actions.num_logits :]
        return np.concatenate([logits, numbers], axis=1), found

    def _actions_on(self, obs: Mapping[str, Any]) -> ActionSpec:
        """Return what an action consists of on the numbers of machines and job slots of a batch."""
        if not isinstance(self.network, PairScorer):
            return self.actions
        count = self.network.choices_on(*(np.shape(obs[name])[1] for name in ("queue", "cluster")))
        if count == self.actions.sizes[0]:
            return self.actions
        return replace(self.actions, sizes=(count, *self.actions.sizes[1:]))

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True, draws: Any = None) -> Any:
        """Return the action of one observation, or of a batch, as `step` takes it; see the base.

        Deterministic: the likeliest choice of each part. Else sampled by their probabilities; continuous
        numbers are the same either way.
        """
        obs, single = self._batched(obs)
        outputs, _ = self._forward(obs, acting=True)
        spec = self._actions_on(obs)
        stored = self._drawn(outputs, None if deterministic else draws or self.rng, spec)
        actions = spec.decode(spec.inside(stored))
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
        noise = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, step]))
        stored = self._drawn(outputs, noise, self.actions, lambda part: part.argmax(axis=1))
        return stored, self._log_probs(outputs, stored), values

    def scores(self, obs: Mapping[str, Any]) -> np.ndarray:
        """Return the logits of all discrete parts, `[A]` or `[B, A]`; -inf where illegal."""
        obs, single = self._batched(obs)
        logits = self._forward(obs, acting=True)[0][:, : self._actions_on(obs).num_logits]
        logits = np.where(logits <= LARGE_NEGATIVE, -np.inf, logits)
        return logits[0] if single else logits

    def _drawn(
        self,
        outputs: np.ndarray,
        generator: Any,
        spec: ActionSpec,
        choose: Callable[[np.ndarray], np.ndarray] = first_largest,
    ) -> np.ndarray:
        """Return actions in storage form: drawn, or without a generator the likeliest."""
        logits, numbers = np.split(outputs, [spec.num_logits], axis=1)
        if generator is not None:
            noise = generator.gumbel(size=logits.shape)
            logits = np.where(logits <= LARGE_NEGATIVE, -np.inf, logits / self.temperature + noise)
        parts = [choose(part) for part in spec.split(logits)]
        return spec.store(parts, self._numbers(numbers, generator))

    def _numbers(self, outputs: np.ndarray, generator: Any) -> np.ndarray:
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

    def _with_mask(
        self, wanted: dict[str, tuple[int, ...]], choices: int | None
    ) -> dict[str, tuple[int, ...]]:
        sizes = self.actions.sizes
        if not sizes:
            return wanted
        return wanted | {MASK: (sum((sizes[0] if choices is None else choices, *sizes[1:])),)}

    def _batched(self, obs: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], bool]:
        arrays = {name: np.asarray(obs[name]) for name in self.shapes_on({})}
        first = next(iter(self.acts_on))
        single = arrays[first].ndim == len(self.acts_on[first][0])
        if single:
            arrays = {name: leaf[None] for name, leaf in arrays.items()}
        check(arrays, self.shapes_on({name: leaf.shape[1:] for name, leaf in arrays.items()}))
        return arrays, single
