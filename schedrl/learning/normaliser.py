"""Running mean and variance of observations; part of the model: saved with it, frozen in evaluation.

Float leaves get statistics for each entry of the last axis; a leaf with two axes or more (`queue [slots,
features]`, `cluster [horizon, resources]`) shares them over all the other axes, so that every slot is scaled
alike. The action mask is never normalised, nor are 8-bit images (they are divided by 255).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from schedrl.learning.replicas import ALONE, Replicas

EPSILON = 1e-8
CLIP = 10.0


class Normaliser:
    """Keeps mean and population variance per leaf in float64, merged batch by batch (Chan et al., 1979).

    Before the first update it changes nothing (mean 0, variance 1). `count` counts observations.
    """

    def __init__(self, leaves: Mapping[str, tuple[int, ...]]):
        self.shapes = {name: tuple(shape) for name, shape in leaves.items()}
        self.count = 0
        self.mean = {name: np.zeros(shape[-1:]) for name, shape in self.shapes.items()}
        self.var = {name: np.ones(shape[-1:]) for name, shape in self.shapes.items()}

    def update(self, batch: Mapping[str, np.ndarray], replicas: Replicas = ALONE) -> None:
        """Merge a batch of observations, leaves `[..., *shape]`; leaves without statistics are ignored.

        Call it between updates only, so that acting and learning see the same numbers. What all `replicas`
        have seen is merged, so that all have the same statistics.
        """
        if self.shapes and replicas.count > 1:
            own = Normaliser(self.shapes)
            own.update(batch)
            self.load_merged(np.concatenate([self.vector()[None], replicas.gather(own.vector())]))
            return
        if not self.shapes or not all(batch[name].size for name in self.shapes):
            return
        added = {batch[name].size // prod(shape) for name, shape in self.shapes.items()}
        (size,) = added  # every leaf comes from the same observations
        old = self.count / (self.count + size)
        for name, shape in self.shapes.items():
            mean, var = _moments(batch[name].reshape(size, prod(shape)), shape)
            delta = mean - self.mean[name]
            self.mean[name] = self.mean[name] + delta * (1.0 - old)
            self.var[name] = old * self.var[name] + (1.0 - old) * (var + old * delta**2)
        self.count += size

    def scale(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return for each leaf the float32 mean and 1 / sqrt(variance + EPSILON) that `normalise` takes."""
        return {
            name: (
                self.mean[name].astype(np.float32),
                (1.0 / np.sqrt(self.var[name] + EPSILON)).astype(np.float32),
            )
            for name in self.shapes
        }

    def state(self) -> dict[str, np.ndarray]:
        """Return the statistics as arrays, for a checkpoint or a policy file."""
        state: dict[str, np.ndarray] = {"count": np.asarray(self.count, np.int64)}
        for name in self.shapes:
            state[f"mean/{name}"], state[f"var/{name}"] = self.mean[name], self.var[name]
        return state

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over the statistics of `state()`."""
        self.count = int(state["count"])
        for name in self.shapes:
            self.mean[name] = np.array(state[f"mean/{name}"])
            self.var[name] = np.array(state[f"var/{name}"])

    def vector(self) -> np.ndarray:
        """Return count, means and variances as one float64 vector, for memory that processes share."""
        parts = [np.array([self.count], np.float64)]
        for name in self.shapes:
            parts += [self.mean[name].ravel(), self.var[name].ravel()]
        return np.concatenate(parts)

    def load_merged(self, vectors: np.ndarray) -> None:
        """Take over what several normalisers have seen together, given their `vector()`s `[W, size]`.

        Those that have seen nothing don't matter; a single one is taken over exactly.
        """
        counts = vectors[:, 0]
        if not counts.any():
            return
        share = (counts / counts.sum())[:, None]
        self.count, first = int(counts.sum()), 1
        for name, shape in self.shapes.items():
            size = self.mean[name].size
            mean, var = vectors[:, first : first + size], vectors[:, first + size : first + 2 * size]
            pooled = (share * mean).sum(axis=0)
            spread = (share * (var + np.square(mean - pooled))).sum(axis=0)
            self.mean[name], self.var[name] = pooled.reshape(shape[-1:]), spread.reshape(shape[-1:])
            first += 2 * size


def normalise(x: np.ndarray, mean: np.ndarray, inverse_std: np.ndarray, clip: float = CLIP) -> np.ndarray:
    """Return `(x - mean) * inverse_std` within +-clip; all broadcast over the last axis."""
    scaled = x - mean
    scaled *= inverse_std  # in place: twice as fast as two arrays and a third one for the clip
    return np.clip(scaled, -clip, clip, out=scaled)


def _moments(rows: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance `[last axis]` of `rows [n, prod(shape)]`, pooled over leading axes."""
    mean = rows.mean(axis=0, dtype=np.float64)
    var = np.square(rows - mean.astype(np.float32)).mean(axis=0, dtype=np.float64)
    mean, var = mean.reshape(-1, *shape[-1:]), var.reshape(-1, *shape[-1:])
    pooled = mean.mean(axis=0)
    return pooled, var.mean(axis=0) + np.square(mean - pooled).mean(axis=0)
