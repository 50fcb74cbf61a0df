"""Experience replay over preallocated arrays: uniform, or proportional to the size of the last error.

Each observation is kept once. A row is written when a choice is made and *completed* later, when its n-step
return is known: with the return, the discount and the row of the observation to bootstrap from. Rows are
reused in the order of writing, so that a row is gone before the one it bootstraps from.

Source: Schaul et al., "Prioritized experience replay", 2016 (section 3.3, the sum tree in appendix B.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.rollout import leaf_dtype

SMALLEST_PRIORITY = 1e-6


class SumTree:
    """Non-negative float64 numbers under a binary tree of their sums; all operations take whole arrays."""

    def __init__(self, size: int):
        depth = max(1, int(np.ceil(np.log2(size))))
        self.levels = [np.zeros(2**level) for level in range(depth + 1)]

    @property
    def total(self) -> float:
        """The sum of all numbers."""
        return float(self.levels[0][0])

    @property
    def leaves(self) -> np.ndarray:
        """The numbers (and zeros up to a power of two)."""
        return self.levels[-1]

    def set(self, places: np.ndarray, values: Any) -> None:
        """Set the numbers at `places [n]`; of a place given twice the last value stays."""
        self.leaves[places] = values
        for level in range(len(self.levels) - 1, 0, -1):
            places = np.unique(places >> 1)
            below = self.levels[level]
            self.levels[level - 1][places] = below[2 * places] + below[2 * places + 1]

    def find(self, marks: np.ndarray) -> np.ndarray:
        """Return for marks in [0, total) the place in whose stretch each lies; never one with number 0."""
        marks = np.array(marks)
        places = np.zeros(marks.shape, np.int64)
        for below in self.levels[1:]:
            left = below[2 * places]
            # A stretch of 0 on the right is never entered, whatever rounding says.
            right = (marks >= left) & (below[2 * places + 1] > 0)
            marks -= np.where(right, left, 0.0)
            places = 2 * places + right
        return places


class Replay:
    """Rows of `obs`, `action`, `reward` (n-step return), `discount` and `following` (a row).

    Args:
        capacity: rows.
        observation_space: of one environment.
        actions: how actions are stored.
        alpha: exponent of the priorities; 0 = uniform, then there is no tree.
    """

    def __init__(self, capacity: int, observation_space: Any, actions: ActionSpec, alpha: float = 0.0):
        self.capacity, self.alpha = capacity, alpha
        self.obs = {
            name: np.zeros((capacity, *leaf.shape), leaf_dtype(leaf))
            for name, leaf in observation_space.items()
        }
        self.action = np.zeros((capacity, *actions.shape), actions.dtype)
        self.reward, self.discount = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        self.following = np.zeros(capacity, np.int64)
        self.ready = np.zeros(capacity, bool)
        self.written = 0
        """Rows written so far: the next row has this number, and the place `number % capacity`."""
        self.tree = SumTree(capacity) if alpha > 0 else None
        self.largest = 1.0
        """The largest priority so far; new rows get it, so that each is learned from soon."""

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, obs: Mapping[str, np.ndarray], actions: np.ndarray | None = None) -> np.ndarray:
        """Write rows `[n]`; return their numbers int64 `[n]`. Without actions they are for bootstrapping."""
        count = len(next(iter(obs.values())))
        numbers = self.written + np.arange(count)
        places = numbers % self.capacity
        for name, rows in self.obs.items():
            rows[places] = obs[name]
        if actions is not None:
            self.action[places] = actions
        self.ready[places] = False
        if self.tree is not None:
            self.tree.set(places, 0.0)
        self.written += count
        return numbers

    def complete(
        self, numbers: np.ndarray, reward: np.ndarray, discount: np.ndarray, following: np.ndarray
    ) -> None:
        """Give the rows `numbers [n]` their n-step return, discount (0 = ended) and row to bootstrap from.

        Rows that were overwritten in the meantime are passed over.
        """
        there = numbers >= self.written - self.capacity
        places = numbers[there] % self.capacity
        self.reward[places], self.discount[places] = reward[there], discount[there]
        self.following[places] = following[there] % self.capacity
        self.ready[places] = True
        if self.tree is not None:
            self.tree.set(places, self.largest**self.alpha)

    # -- reading ---------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Rows that can be learned from."""
        return int(self.ready.sum())

    def sample(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Draw places int64 `[count]` with replacement, uniformly or by priority."""
        if self.tree is not None:
            return self.tree.find(generator.random(count) * self.tree.total)
        filled = min(self.written, self.capacity)
        places = generator.integers(0, filled, count)
        while not (ready := self.ready[places]).all():
            places[~ready] = generator.integers(0, filled, int((~ready).sum()))
        return places

    def importance(self, places: np.ndarray, beta: float) -> np.ndarray:
        """Return the weights float32 of sampled `places [..., n]` that undo the priorities (Schaul, 3.4).

        (size x probability) ^ -beta, divided by the largest along the last axis: they only scale down.
        """
        if self.tree is None:
            return np.ones(places.shape, np.float32)
        probability = self.tree.leaves[places] / self.tree.total
        weights = (self.size * probability) ** -beta
        return (weights / weights.max(axis=-1, keepdims=True)).astype(np.float32)

    def set_errors(self, places: np.ndarray, errors: np.ndarray) -> None:
        """Let the absolute `errors` just seen at `places` be their priorities (of `places`' size)."""
        if self.tree is None:
            return
        priority = np.abs(errors).astype(np.float64).ravel() + SMALLEST_PRIORITY
        self.largest = max(self.largest, float(priority.max()))
        self.tree.set(places, priority**self.alpha)

    def rows_of(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Return the observations of the rows `numbers [n]` that are still there."""
        places = numbers[numbers >= self.written - self.capacity] % self.capacity
        return {name: rows[places] for name, rows in self.obs.items()}

    def batch(self, places: np.ndarray) -> dict[str, Any]:
        """Return copies of the rows at `places [...]`: `obs`, `next_obs`, `action`, `reward`, `discount`."""
        after = self.following[places]
        return {
            "obs": {name: rows[places] for name, rows in self.obs.items()},
            "next_obs": {name: rows[after] for name, rows in self.obs.items()},
            "action": self.action[places],
            "reward": self.reward[places],
            "discount": self.discount[places],
        }

    # -- saving ----------------------------------------------------------------------------------------------

    def _columns(self) -> dict[str, np.ndarray]:
        columns = {"action": self.action, "reward": self.reward, "discount": self.discount}
        columns |= {"following": self.following, "ready": self.ready}
        if self.tree is not None:
            columns["priority"] = self.tree.leaves
        return columns | {f"obs/{name}": rows for name, rows in self.obs.items()}

    def state(self) -> dict[str, Any]:
        """Return everything written so far, for a checkpoint."""
        filled = min(self.written, self.capacity)
        arrays = {name: column[:filled] for name, column in self._columns().items()}
        return {"written": self.written, "largest": self.largest, **arrays}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`; sampling continues as if nothing had happened."""
        self.written, self.largest = int(state["written"]), float(state["largest"])
        filled = min(self.written, self.capacity)
        for name, column in self._columns().items():
            column[:filled] = state[name]
        if self.tree is not None:
            self.tree.set(np.arange(filled), self.tree.leaves[:filled].copy())
