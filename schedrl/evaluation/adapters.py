"""Let models of other libraries be evaluated as policies."""

from __future__ import annotations

from typing import Any

import numpy as np


class SB3Policy:
    """A policy around a stable-baselines3 style model, whose `predict` returns (actions, state).

    Observations lose their `action_mask`, which goes to the model as `action_masks=` if it takes one
    (MaskablePPO); a single remaining entry is passed bare, several as the dictionary the model was trained
    on, unless `flatten` turns the observation into what it reads.
    """

    def __init__(self, model, representation: str = "compact", masked: bool = True, flatten=None):
        """Wrap `model`.

        Args:
            model: has `predict(obs, action_masks=..., deterministic=...)`, or without masks if not `masked`.
            representation: what the environment should show it.
            masked: whether `predict` takes `action_masks`.
            flatten: optional function from our observation dictionary to the model's observation.
        """
        self.model, self.representation, self.masked, self.flatten = model, representation, masked, flatten

    def predict(self, obs: dict[str, np.ndarray], deterministic: bool = True) -> np.ndarray:
        """Return the model's actions for one observation or a batch."""
        mask = obs["action_mask"]
        seen: Any = {key: value for key, value in obs.items() if key != "action_mask"}
        if self.flatten is not None:
            seen = self.flatten(obs)
        elif len(seen) == 1:
            seen = next(iter(seen.values()))
        extra = {"action_masks": mask} if self.masked else {}
        answer = self.model.predict(seen, deterministic=deterministic, **extra)
        return np.asarray(answer[0] if isinstance(answer, tuple) else answer)
