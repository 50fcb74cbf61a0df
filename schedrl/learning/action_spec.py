"""What an action consists of, and the one array in which rollouts and replay keep it.

Environments take an int (`Discrete`), floats (`Box`) or a tuple of both (`Tuple`: a machine *and* a share of
it). Algorithms see discrete *parts*, each a choice among `sizes[i]`, and `k` continuous numbers within
`low` and `high`. The leaf `action_mask [sum(sizes)]` of the observation says which choices are legal, all
parts end to end; a purely continuous environment has no such leaf. No heavy imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces

from schedrl.settings import UserError

MASK = "action_mask"
KINDS = ("discrete", "continuous", "mixed")


@dataclass(frozen=True)
class ActionSpec:
    """Sizes of the discrete parts and bounds of the continuous numbers.

    Storage: int32 `[B]` for a single discrete part and nothing else, otherwise float32 `[B, parts + k]`,
    discrete parts first, continuous numbers in the environment's units.
    """

    sizes: tuple[int, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    in_tuple: bool = False
    """Whether `step` takes a tuple of arrays: each part, then the continuous numbers."""

    @classmethod
    def of(cls, space: spaces.Space) -> ActionSpec:
        """Return the spec of one environment's action space.

        Raises:
            UserError: another kind of space, an unbounded Box, or a Discrete that doesn't start at 0.
        """
        members = space.spaces if isinstance(space, spaces.Tuple) else (space,)
        discrete = [member for member in members if isinstance(member, spaces.Discrete)]
        boxes = [member for member in members if isinstance(member, spaces.Box)]
        in_order = list(members) == [*discrete, *boxes]
        if not in_order or len(boxes) > 1 or any(part.start != 0 for part in discrete):
            raise UserError(
                f"can't act in {space}; use Discrete(n) from 0, a Box, or a Tuple of Discretes, then one Box"
            )
        low, high = (
            tuple(float(x) for box in boxes for x in getattr(box, end).ravel()) for end in ("low", "high")
        )
        if any(len(box.shape) != 1 for box in boxes) or not np.isfinite((*low, *high)).all():
            raise UserError(f"can't act in {space}; give its Box one axis and finite bounds")
        sizes = tuple(int(part.n) for part in discrete)
        return cls(sizes, low, high, isinstance(space, spaces.Tuple))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ActionSpec:
        """Undo `to_dict`."""
        sizes, low, high = (tuple(values[name]) for name in ("sizes", "low", "high"))
        return cls(sizes, low, high, bool(values["in_tuple"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the spec in JSON's types, for `policy.npz`."""
        ends = {"low": list(self.low), "high": list(self.high)}
        return {"sizes": list(self.sizes), **ends, "in_tuple": self.in_tuple}

    # -- what it consists of ---------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """One of KINDS."""
        if not self.low:
            return "discrete"
        return "mixed" if self.sizes else "continuous"

    @property
    def num_logits(self) -> int:
        """Length of the mask: all choices of all parts."""
        return sum(self.sizes)

    @property
    def num_joint(self) -> int:
        """Combinations of the discrete parts; 1 where there are none."""
        return prod(self.sizes)

    @property
    def num_continuous(self) -> int:
        """Continuous numbers k."""
        return len(self.low)

    @property
    def num_outputs(self) -> int:
        """What a policy network puts out: all logits, then one number for each continuous one."""
        return self.num_logits + self.num_continuous

    @property
    def plain(self) -> bool:
        """Whether an action is a single int, stored as int32 `[B]`."""
        return len(self.sizes) == 1 and not self.low

    @property
    def dtype(self) -> np.dtype:
        """Of the storage array."""
        return np.dtype(np.int32 if self.plain else np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one action in the storage array."""
        return () if self.plain else (len(self.sizes) + self.num_continuous,)

    def split(self, per_choice: Any) -> list[Any]:
        """Cut `[..., sum(sizes)]` (mask, logits) into one array for each part."""
        ends = np.cumsum(self.sizes)
        return [per_choice[..., end - size : end] for size, end in zip(self.sizes, ends, strict=True)]

    def inside(self, stored: np.ndarray) -> np.ndarray:
        """Return a storage array with its continuous numbers cut to the box."""
        if not self.low:
            return stored
        count = len(self.sizes)
        numbers = np.clip(stored[:, count:], np.array(self.low, np.float32), np.array(self.high, np.float32))
        return np.concatenate([stored[:, :count], numbers], axis=1)

    # -- masks -----------------------------------------------------------------------------------------------

    def choices(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return where there is something to choose `[B]`: a part with two legal choices, or a number."""
        if self.low:
            return np.ones(len(next(iter(obs.values()))), bool)
        if self.plain:
            return obs[MASK].sum(axis=-1) > 1
        return np.any([part.sum(axis=-1) > 1 for part in self.split(obs[MASK])], axis=0)

    def forced(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the first legal choice of each part in storage form `[B, ...]`; no continuous numbers."""
        first = [part.argmax(axis=-1) for part in self.split(obs[MASK])]
        return self.store(first, np.zeros((len(first[0]), self.num_continuous)))

    # -- between step's form and storage ---------------------------------------------------------------------

    def store(self, parts: Any, continuous: np.ndarray | None = None) -> np.ndarray:
        """Return the storage array of `parts` (a list of int arrays `[B]`) and `continuous [B, k]`."""
        if self.plain:
            return np.asarray(parts[0], np.int32)
        columns = [np.asarray(part, np.float32)[:, None] for part in parts]
        if continuous is not None:
            columns.append(np.asarray(continuous, np.float32))
        return np.concatenate(columns, axis=1)

    def encode(self, actions: Any) -> np.ndarray:
        """Turn what `step` takes for a batch into the storage array."""
        if not self.in_tuple:
            return np.asarray(actions, self.dtype)
        count = len(self.sizes)
        return self.store(actions[:count], actions[count] if self.low else None)

    def decode(self, stored: np.ndarray) -> Any:
        """Turn the storage array into what `step` takes: ints `[B]`, floats `[B, k]`, or a tuple of them."""
        if not self.in_tuple:
            return stored
        if self.plain:
            return (stored.astype(np.int64),)
        count = len(self.sizes)
        parts = [stored[:, i].astype(np.int64) for i in range(count)]
        return (*parts, stored[:, count:]) if self.low else tuple(parts)

    def to_unit(self, numbers: Any) -> Any:
        """Map continuous numbers `[..., k]` from `low .. high` to -1 .. 1."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return (numbers - low) * (2.0 / (high - low)) - 1.0

    def from_unit(self, numbers: np.ndarray) -> np.ndarray:
        """Map `[..., k]` from -1 .. 1 to `low .. high`; whatever lies outside is cut to the bounds first."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        inside = low + (np.clip(numbers, -1.0, 1.0) + 1.0) * (0.5 * (high - low))
        return np.clip(inside, low, high).astype(np.float32)  # rounding, too, must not leave the box
