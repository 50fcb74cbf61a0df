"""One flat vector for libraries that want a `Box`: stable-baselines3's MlpPolicy, MaskablePPO, and others."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from schedrl.policy import PRIVILEGED
from schedrl.settings import UserError

MASK = "action_mask"


class FlattenObservations(gymnasium.ObservationWrapper, gymnasium.utils.RecordConstructorArgs):
    """Lay all leaves of a Dict observation but the mask end to end, as float32 [D].

    The mask remains where libraries look for it: `action_masks()`, which sb3-contrib calls.

    Leaves come in alphabetical order, as in the observation space. Bytes (the picture) become 0 to 1.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        """Wrap an environment with Dict observations."""
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.ObservationWrapper.__init__(self, env)
        private = [name for name in env.observation_space.spaces if name.startswith(PRIVILEGED)]
        if private:
            raise UserError(
                f"a flat vector would show the policy {', '.join(private)}, which only the critic of "
                "pair_scorer may read; set privileged off"
            )
        leaves = {name: leaf for name, leaf in env.observation_space.items() if name != MASK}
        low, high = (
            np.concatenate([_bound(leaf, which) * _scale(leaf.dtype) for leaf in leaves.values()])
            for which in ("low", "high")
        )
        self.observation_space = spaces.Box(low, high, dtype=np.float32)

    def observation(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """Return the flat vector."""
        return laid_out(observation)

    def action_masks(self) -> np.ndarray:
        """Return the legal actions [A]."""
        return self.env.get_wrapper_attr("action_masks")()


def laid_out(observation: Mapping[str, np.ndarray], batch: bool = False) -> np.ndarray:
    """Return all leaves but the mask end to end, float32 [D], of a batch [B, D], as `FlattenObservations`."""
    leaves = [np.asarray(observation[name]) for name in sorted(observation) if name != MASK]
    kept = (len(leaves[0]),) if batch else ()
    parts = [np.reshape(leaf, (*kept, -1)) * _scale(leaf.dtype) for leaf in leaves]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _scale(dtype: Any) -> np.float32:
    return np.float32(1 / 255 if dtype == np.uint8 else 1)


def _bound(leaf: Any, which: str) -> np.ndarray:
    if isinstance(leaf, spaces.MultiBinary):
        return np.full(int(np.prod(leaf.shape)), which == "high", np.float32)
    return np.ravel(getattr(leaf, which)).astype(np.float32)
