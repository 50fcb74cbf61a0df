"""One flat vector for libraries that want a `Box`: stable-baselines3's MlpPolicy, MaskablePPO, and others."""

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
        self._scales = {
            name: np.float32(1 / 255 if leaf.dtype == np.uint8 else 1) for name, leaf in leaves.items()
        }
        low, high = (
            np.concatenate([_bound(leaf, which) * self._scales[name] for name, leaf in leaves.items()])
            for which in ("low", "high")
        )
        self.observation_space = spaces.Box(low, high, dtype=np.float32)

    def observation(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """Return the flat vector."""
        parts = [np.ravel(observation[name]) * scale for name, scale in self._scales.items()]
        return np.concatenate(parts).astype(np.float32)

    def action_masks(self) -> np.ndarray:
        """Return the legal actions [A]."""
        return self.env.get_wrapper_attr("action_masks")()


def _bound(leaf: Any, which: str) -> np.ndarray:
    if isinstance(leaf, spaces.MultiBinary):
        return np.full(int(np.prod(leaf.shape)), which == "high", np.float32)
    return np.ravel(getattr(leaf, which)).astype(np.float32)
