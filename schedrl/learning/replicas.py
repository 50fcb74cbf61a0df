"""The copies of a model that learn together, each in a process of its own, and what they agree on.

An algorithm's update asks here for the mean over all replicas; `ALONE`, the only replica, is the mean of
itself, so the same code trains in one process and in many. Every replica must ask the same questions in the
same order: an answer needs all of them.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

EPISODE_KEYS = ("r", "l", "slowdown")
Columns = Mapping[str, np.ndarray]
Metrics = Mapping[str, float]


class Replicas:
    """One process alone."""

    count, index = 1, 0

    # -- in a graph ------------------------------------------------------------------------------------------

    def mean(self, rows: Any, tensors: Sequence[Any]) -> list[Any]:
        """Return the float32 tensors averaged over replicas, each weighted by the `rows` it is a mean of."""
        del rows
        return list(tensors)

    # -- on the host -----------------------------------------------------------------------------------------

    def gather(self, vector: np.ndarray) -> np.ndarray:
        """Return the float64 vectors `[n]` of all replicas, `[replicas, n]`; n is the same for all."""
        return np.asarray(vector, np.float64)[None]

    def any(self, flag: bool) -> bool:
        """Tell whether it holds for any replica."""
        return bool(self.gather(np.array([flag])).any())

    def all(self, flag: bool) -> bool:
        """Tell whether it holds for all replicas."""
        return bool(self.gather(np.array([flag])).all())

    def mean_of(self, value: float) -> float:
        """Return the mean of a number over replicas."""
        return float(self.gather(np.array([value])).mean())

    def moments(self, values: np.ndarray) -> tuple[np.floating, np.floating]:
        """Return mean and standard deviation of the values `[n]` of all replicas together; n may differ."""
        return values.mean(), values.std()

    def concatenated(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows `[n, k]` of all replicas after one another; n may differ."""
        return rows

    def joined(self, decisions: int, metrics: Metrics, episodes: Columns) -> tuple[int, Metrics, Columns]:
        """Return the decisions of all, the mean of each metric, and all episodes that ended."""
        return decisions, metrics, episodes

    def start_alike(self, model: Any) -> None:
        """Give all replicas the chief's `model` (an object with `state` and `load_state`)."""


ALONE = Replicas()


class MirroredReplicas(Replicas):
    """The workers of a `tf.distribute.MultiWorkerMirroredStrategy`, one replica each."""

    def __init__(self, strategy: Any):
        import tensorflow as tf

        self.tf, self.strategy = tf, strategy
        self.count = strategy.num_replicas_in_sync
        self.index = strategy.cluster_resolver.task_id or 0
        signature = [tf.TensorSpec([None], tf.float64)]
        self._reduce = tf.function(self.sum, input_signature=signature)

    def sum(self, vector: Any) -> Any:
        """Return a tensor summed over replicas (in a graph, loops included)."""
        tf = self.tf

        def within(mine: Any) -> Any:
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(mine))

        # Only this line runs "in" the strategy: its collectives can't be called from a loop inside `run`.
        return self.strategy.run(within, (vector,))

    def mean(self, rows: Any, tensors: Sequence[Any]) -> list[Any]:
        """Return the float32 tensors averaged over replicas, each weighted by the `rows` it is a mean of."""
        tf = self.tf
        weight = tf.cast(rows, tf.float32)
        flat = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)
        # The mean of no rows is NaN; it must not count, and NaN times 0 would.
        flat = tf.where(weight > 0.0, flat * weight, 0.0)
        summed = self.sum(tf.concat([flat, [weight]], axis=0))
        means, parts, first = summed[:-1] / summed[-1], [], 0
        for tensor in tensors:
            size = tensor.shape.num_elements()
            parts.append(tf.reshape(means[first : first + size], tensor.shape))
            first += size
        return parts

    def gather(self, vector: np.ndarray) -> np.ndarray:
        """Return the float64 vectors `[n]` of all replicas, `[replicas, n]`; n is the same for all."""
        table = np.zeros((self.count, len(vector)))
        if not table.size:  # TensorFlow 2.21 ends in a segmentation fault where nothing is to be summed
            return table
        table[self.index] = vector
        return self._reduce(table.ravel()).numpy().reshape(table.shape)

    def moments(self, values: np.ndarray) -> tuple[np.floating, np.floating]:
        """Return mean and standard deviation of the values `[n]` of all replicas together; n may differ."""
        wide = np.asarray(values, np.float64)
        size, total, squares = self.gather(np.array([len(wide), wide.sum(), wide @ wide])).sum(axis=0)
        if not size:
            return np.float32(0.0), np.float32(1.0)
        mean = total / size
        return np.float32(mean), np.float32(np.sqrt(max(0.0, squares / size - mean**2)))

    def concatenated(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows `[n, k]` of all replicas after one another; n may differ."""
        sizes = self.gather(np.array([len(rows)]))[:, 0].astype(int)
        padded = np.zeros((sizes.max(), rows.shape[1]))
        padded[: len(rows)] = rows
        tables = self.gather(padded.ravel()).reshape(self.count, *padded.shape)
        return np.concatenate([table[:size] for table, size in zip(tables, sizes, strict=True)])

    def joined(self, decisions: int, metrics: Metrics, episodes: Columns) -> tuple[int, Metrics, Columns]:
        """Return the decisions of all, the mean of each metric, and all episodes that ended."""
        there = [key in episodes for key in EPISODE_KEYS]
        table = self.gather(np.array([decisions, *there, *metrics.values()], np.float64))
        known = table[:, 1 : 1 + len(there)].sum(axis=0) > 0
        means = dict(zip(metrics, table[:, 1 + len(there) :].mean(axis=0).tolist(), strict=True))
        size = len(episodes["r"]) if "r" in episodes else 0
        columns = [episodes.get(key, np.full(size, np.nan)) for key in EPISODE_KEYS]
        rows = self.concatenated(np.stack(columns, axis=1))
        ended = {key: rows[:, i] for i, key in enumerate(EPISODE_KEYS) if known[i]}
        return int(table[:, 0].sum()), means, ended

    def start_alike(self, model: Any) -> None:
        """Give all replicas the chief's `model` (an object with `state` and `load_state`)."""
        state, file = model.state(), io.BytesIO()
        arrays: dict[str, Any] = {k: value for k, value in state.items() if isinstance(value, np.ndarray)}
        np.savez(file, **arrays)
        own = np.frombuffer(file.getvalue() if self.index == 0 else b"", np.uint8)
        content = self.concatenated(own.astype(np.float64)[:, None]).astype(np.uint8)
        with np.load(io.BytesIO(content.tobytes()), allow_pickle=False) as chief:
            model.load_state({**state, **{name: chief[name] for name in chief.files}})
