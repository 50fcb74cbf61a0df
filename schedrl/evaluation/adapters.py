"""Let models of other libraries be evaluated as policies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from schedrl.envs.flatten import MASK, laid_out
from schedrl.settings import UserError

USUAL = "slots"
"""What our environments show unless told otherwise."""


class SB3Policy:
    """A policy around a stable-baselines3 style model, whose `predict` returns (actions, state).

    The model gets what its `observation_space` says: a Dict the leaves that it names, the mask among them or
    not; a Box the only leaf there is, or all leaves end to end as `FlattenObservations` lays them. The mask
    goes to the model as `action_masks=` too, if it takes one (MaskablePPO). A model that does not say what it
    reads gets the leaves without the mask, a single one bare.

    Sampled play of a model with a distribution over choices (PPO, A2C, MaskablePPO) draws by the numbers of
    the sequence and of the decision, see `schedrl.envs.draws`; others draw as they do.
    """

    def __init__(
        self,
        model: Any,
        representation: str | None = None,
        masked: bool | None = None,
        flatten: Callable[[Mapping[str, np.ndarray]], Any] | None = None,
    ) -> None:
        """Wrap `model`.

        Args:
            model: has `predict(obs, action_masks=..., deterministic=...)`, or without masks.
            representation: what the environment should show it; None: what it was trained on, as far as
                the model tells (the names of its leaves, its environment), else `slots`.
            masked: whether `predict` takes `action_masks`; None: by its signature.
            flatten: function from our observation dictionary to the model's observation, where it reads
                something else.
        """
        self.model, self.flatten = model, flatten
        self.space = getattr(model, "observation_space", None)
        self.representation = representation or _representation_of(model, self.space)
        takes = "action_masks" in inspect.signature(model.predict).parameters
        self.masked = takes if masked is None else masked

    def predict(
        self, obs: Mapping[str, np.ndarray], deterministic: bool = True, draws: Any = None
    ) -> np.ndarray:
        """Return the model's actions for one observation or a batch.

        Raises:
            UserError: the model reads something else than is shown; both are named.
        """
        mask = np.asarray(obs[MASK])
        seen = self._seen(obs, batch=mask.ndim == 2)
        extra = {"action_masks": mask} if self.masked else {}
        if not deterministic and draws is not None and _has_choices(self.model):
            logits = _logits(self.model, seen, extra)
            drawn = logits + draws.gumbel(logits.shape)
            actions = (np.where(mask, drawn, -np.inf) if self.masked else drawn).argmax(axis=-1)
            return actions if mask.ndim == 2 else actions[0]
        answer = self.model.predict(seen, deterministic=deterministic, **extra)
        return np.asarray(answer[0] if isinstance(answer, tuple) else answer)

    def _seen(self, obs: Mapping[str, np.ndarray], batch: bool) -> Any:
        """Return the observation as the model reads it."""
        if self.flatten is not None:
            return self.flatten(obs)
        leaves = {name: leaf for name, leaf in obs.items() if name != MASK}
        if isinstance(self.space, spaces.Dict):
            wanted = {name: obs[name] for name in self.space.spaces if name in obs}
            shapes = {name: np.shape(leaf)[batch:] for name, leaf in wanted.items()}
            if shapes == {name: leaf.shape for name, leaf in self.space.spaces.items()}:
                return wanted
            raise self._other(obs, batch)
        if isinstance(self.space, spaces.Box):
            only = next(iter(leaves.values()))
            if len(leaves) == 1 and np.shape(only)[batch:] == self.space.shape:
                return only
            flat = laid_out(leaves, batch)
            if flat.shape[batch:] == self.space.shape:
                return flat
            raise self._other(obs, batch)
        return leaves if len(leaves) > 1 else next(iter(leaves.values()))

    def _other(self, obs: Mapping[str, np.ndarray], batch: bool) -> UserError:
        shown = ", ".join(f"{name} {list(np.shape(leaf)[batch:])}" for name, leaf in obs.items())
        return UserError(
            f"the model reads {_said(self.space)}, representation {self.representation} shows {shown}; give "
            "SB3Policy the representation it was trained on and the settings of its environment, or flatten="
        )


def _representation_of(model: Any, space: Any) -> str:
    """Return what a model was trained on, as far as it tells."""
    if isinstance(space, spaces.Dict):
        names = set(space.spaces)
        alone = [name for name in ("compact", "image") if name in names]
        return alone[0] if alone else "slots" if "queue" in names else "state"
    env = model.get_env() if hasattr(model, "get_env") else None
    try:
        return str(env.get_attr("representation")[0]) if env is not None else _unsaid(space)
    except AttributeError:  # an environment of another kind
        return USUAL


def _unsaid(space: Any) -> str:
    """Return the representation of a model without an environment: a loaded one, or a stranger's."""
    return "compact" if space is None else USUAL


def _said(space: Any) -> str:
    if isinstance(space, spaces.Dict):
        return ", ".join(f"{name} {list(leaf.shape or ())}" for name, leaf in space.spaces.items())
    return f"a vector {list(space.shape)}"


def _has_choices(model: Any) -> bool:
    discrete = isinstance(getattr(model, "action_space", None), spaces.Discrete)
    return discrete and hasattr(getattr(model, "policy", None), "get_distribution")


def _logits(model: Any, seen: Any, extra: Mapping[str, Any]) -> np.ndarray:
    """Return the logits [B, A] of a model of stable-baselines3, in float64."""
    model.policy.set_training_mode(False)
    tensors, _ = model.policy.obs_to_tensor(seen)
    logits = model.policy.get_distribution(tensors, **extra).distribution.logits
    return logits.detach().cpu().numpy().astype(np.float64)
