"""The memory that a split environment shares with its workers: what lies in it, and who writes what.

| arrays | written by | meaning |
|---|---|---|
| `epoch`, `base`, `position`, `save` | parent | where every worker has to be, see `SplitMemory` |
| `seed`, `seeding`, `first`, `chosen`, `sequences` | parent | how the last reset was made |
| `action/i [LOG, B, ...]`, `cursor [LOG]` | parent | the log: each step's actions and next sequence |
| `ended [LOG, W]` | each worker its own | episodes that ended in that step, -1 while not known |
| `obs/*`, `final/*`, `rewards`, ... `[B, ...]` | each worker its own rows | what the last step gave |
| `state/0/*`, `state/1/*` `[B, ...]` | each worker its own rows | two saved states, in turn |
| `alive [W]`, `failure`, `message` | each worker its own | signs of life; why it gave up |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from schedrl.learning.shared_vectors import Layout, SharedArrays

LOG = 64
"""Steps after which workers save their state: at most so many are played again by a replacement."""
RESET = -1
"""Value of `base`: the last reset. 0 and 1 are the saved states."""
NOTHING = -1
"""Value of `save`: no state is asked for."""
CURSOR = "cursor"
"""The one entry of an environment's state that has no row for each environment."""


class SplitMemory:
    """Everything in shared memory. Hand it to a process: only its description travels.

    Where workers have to be is said once and for all, not sent: at `position` steps after the base of
    `epoch`. So a worker that is new reads the same as one that was there all the time, and gets there by
    the same steps.

    Args:
        env: the environment to be split, of which every array is a slice of rows here.
        num_workers: W.
        seed: of the job sequences, until a reset gives another.
    """

    def __init__(self, env: Any, num_workers: int, seed: int):
        size = env.num_envs
        edges = [round(size * i / num_workers) for i in range(num_workers + 1)]
        self.rows = [slice(low, high) for low, high in zip(edges, edges[1:], strict=False)]
        """Rows of each worker."""
        self.infos_told = {group: dict(names) for group, names in env.infos_told.items()}
        self.timed = hasattr(env, "times")
        self.in_tuple = isinstance(env.single_action_space, spaces.Tuple)
        self.arrays = SharedArrays(
            {
                **dict.fromkeys(("epoch", "position", "seeding", "first", "seed"), ((), np.int64)),
                **dict.fromkeys(("base", "save"), ((), np.int64)),
                "chosen": ((), np.bool_), "sequences": ((size,), np.int64),
                "cursor": ((LOG,), np.int64), "ended": ((LOG, num_workers), np.int64),
                "rewards": ((size,), np.float64),
                "times": ((size,), env.times().dtype if self.timed else np.int64),
                "terminated": ((size,), np.bool_), "truncated": ((size,), np.bool_),
                "alive": ((num_workers, 8), np.int64), "failure": ((num_workers, 32), np.uint8),
                "message": ((num_workers, 2000), np.uint8),
                **_actions_layout(env.action_space),
                **_observations_layout(env.observation_space),
                **{
                    f"info/{group}/{name}": ((size,), kind)
                    for group, names in self.infos_told.items()
                    for name, kind in names.items()
                },
                **_state_layout(env.get_state(), size),
            }
        )  # fmt: skip
        self["base"][...], self["save"][...], self["seed"][...] = RESET, NOTHING, seed

    def __getitem__(self, name: str) -> np.ndarray:
        """Return an array; writing into it is seen by all."""
        return self.arrays[name]

    def under(self, prefix: str) -> dict[str, np.ndarray]:
        """Return the arrays whose names begin with `prefix`, without it."""
        return {
            name.removeprefix(prefix): self.arrays[name] for name in self.arrays if name.startswith(prefix)
        }

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(array.nbytes for array in self.arrays.values())


def parts_of(actions: Any) -> tuple:
    """Return the arrays that a batch of actions is made of."""
    return actions if isinstance(actions, tuple) else (actions,)


def _actions_layout(space: spaces.Space) -> Layout:
    parts: Any = space.spaces if isinstance(space, spaces.Tuple) else (space,)
    return {
        f"action/{i}": ((LOG, *part.shape), np.float64 if part.dtype.kind == "f" else np.int64)
        for i, part in enumerate(parts)
    }


def _observations_layout(space: Any) -> Layout:
    return {
        f"{kind}/{name}": (leaf.shape, bool if leaf.dtype == np.int8 else leaf.dtype)
        for kind in ("obs", "final")
        for name, leaf in space.spaces.items()
    }


def _state_layout(state: Mapping[str, np.ndarray], size: int) -> Layout:
    layout: dict[str, Any] = {}
    for name, array in state.items():
        if name == CURSOR:
            continue
        if array.shape[:1] != (size,):
            raise TypeError(f"the state's {name} has shape {list(array.shape)}, not a row per environment")
        layout |= {f"state/{slot}/{name}": (array.shape, array.dtype) for slot in (0, 1)}
    return layout
