"""Random numbers of sampled play, each named by what it is for: not by what was drawn before.

The number of (purpose, seed, sequence, decision, place) is the same whether a sequence is played alone or
beside others, in another order or in another process; a stream that a whole batch draws from changes with the
batch.
The numbers are SplitMix64's finaliser over those names (Steele, Lea and Flood, OOPSLA 2014).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

GUMBEL, NORMAL, UNIFORM = range(3)
"""What numbers are for; each has numbers of its own."""
STEP = np.uint64(0x9E3779B97F4A7C15)


class Draws:
    """The random numbers of one decision in each of B sequences; has the methods of a `Generator` used here.

    Args:
        seed: 0 or more.
        sequences: [B] numbers of the sequences, 0 or more.
        decision: number of the decision in its episode, the same for all.
    """

    def __init__(self, seed: int, sequences: np.ndarray, decision: int) -> None:
        key = _mixed(np.asarray([seed], np.uint64))
        key = _mixed(key ^ _mixed(np.asarray(sequences).astype(np.uint64) + STEP))
        self._key = _mixed(key ^ _mixed(np.asarray([decision], np.uint64) + STEP + STEP))

    def random(self, size: Any, purpose: int = UNIFORM) -> np.ndarray:
        """Return numbers between 0 and 1, never either, `[B, ...]`."""
        shape = (size,) if np.ndim(size) == 0 else tuple(size)
        places = np.arange(1, 1 + int(np.prod(shape[1:])), dtype=np.uint64) * STEP
        key = _mixed(self._key + np.uint64(purpose))
        bits = _mixed(key[:, None] + places) >> np.uint64(11)
        return ((bits + 0.5) * 2.0**-53).reshape(shape)

    def gumbel(self, size: Any) -> np.ndarray:
        """Return standard Gumbel numbers `[B, ...]`."""
        return -np.log(-np.log(self.random(size, GUMBEL)))

    def standard_normal(self, size: Any) -> np.ndarray:
        """Return standard normal numbers `[B, ...]`."""
        from scipy.special import ndtri  # late: only continuous actions need it

        return ndtri(self.random(size, NORMAL))


def _mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


Ask = Callable[[Any, np.ndarray, int], Any]
"""From observations of B sequences, their numbers and the number of the decision to the actions."""


def asking(policy: Any, deterministic: bool, seed: int) -> Ask:
    """Return what asks a policy; one that takes `draws` gets them, another one draws as it does.

    Args:
        policy: see `schedrl.policy`; one with `reseed` starts from the seed.
        deterministic: False samples from a policy that can.
        seed: of the sampling.
    """
    if hasattr(policy, "reseed"):
        policy.reseed(seed)
    if "draws" not in inspect.signature(policy.predict).parameters:
        return lambda obs, numbers, decision: policy.predict(obs, deterministic=deterministic)
    return lambda obs, numbers, decision: policy.predict(
        obs, deterministic=deterministic, draws=Draws(seed, numbers, decision)
    )
