"""Collecting experience from a batched environment into preallocated arrays `[T, B, ...]`.

No Python per environment except where an episode was cut off by a time limit: there the final observation is
kept, so that its value (never that of the observation after the reset) can be bootstrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.distributions import require_legal
from schedrl.learning.settings import ActorCriticSettings

MASK = "action_mask"
Observation = Mapping[str, np.ndarray]
Act = Callable[[Observation, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Rollout:
    """Arrays of one rollout: `obs` leaves `[T, B, ...]`, the rest `[T, B]`; `last_values [B]`.

    `actions` are in storage form (`ActionSpec`): int32 `[T, B]` for one discrete choice.

    `final_values` holds V(final observation) where `truncated`, and nothing of meaning elsewhere.
    """

    def __init__(
        self, num_steps: int, num_envs: int, observation_space: Any, actions: ActionSpec | None = None
    ):
        shape, spec = (num_steps, num_envs), actions or ActionSpec((1,))
        self.obs = {
            name: np.zeros((*shape, *leaf.shape), leaf_dtype(leaf))
            for name, leaf in observation_space.items()
        }
        self.actions = np.zeros((*shape, *spec.shape), spec.dtype)
        self.log_probs, self.values, self.rewards, self.final_values = (
            np.zeros(shape, np.float32) for _ in range(4)
        )
        self.terminated, self.truncated = np.zeros(shape, bool), np.zeros(shape, bool)
        self.learned = np.ones(shape, bool)
        """Where there was something to learn: False at forced decisions, whose value is not known (0)."""
        self.last_values = np.zeros(num_envs, np.float32)
        self.episodes: dict[str, np.ndarray] = {}
        """Of the episodes that ended, in order: return `r`, decisions `l`, mean `slowdown` (where given)."""

    def flat(self, name: str) -> np.ndarray:
        """Return an array as `[T * B, ...]`, a view; `obs` leaves by their own names."""
        array = self.obs[name] if name in self.obs else getattr(self, name)
        return array.reshape(-1, *array.shape[2:])


class Collector:
    """Steps a vector environment; carries the present observation from one rollout to the next.

    Args:
        env: any `VectorEnv` with SAME_STEP autoreset and Dict observations with `action_mask`.
        num_steps: vector steps per rollout.
        seed: of the environment's own random stream.
        skip_forced: don't ask the policy where one action is legal; such decisions are not `learned` from.
            The first step of a rollout is the exception: the critic is asked there, at the end of the one
            before.
        check_numerics: stop where the environment returns a NaN or an infinity.
    """

    def __init__(
        self,
        env: VectorEnv,
        num_steps: int,
        seed: int,
        *,
        skip_forced: bool = False,
        check_numerics: bool = False,
    ):
        self.env, self.num_steps = env, num_steps
        self.skip_forced, self.check_numerics = skip_forced, check_numerics
        self.step = 0
        self.actions = ActionSpec.of(env.single_action_space)
        self.rollout = Rollout(num_steps, env.num_envs, env.single_observation_space, self.actions)
        self.obs = _copy(env.reset(seed=seed)[0])

    def collect(self, act: Act, values: Callable[[Observation], np.ndarray]) -> Rollout:
        """Fill the rollout (the same arrays each time) and return it.

        Args:
            act: `(obs, step) -> actions, log_probs, values`; `step` counts vector steps of the whole run.
            values: V(obs) `[B]` for the bootstrap; called with full batches only.
        """
        rollout, episodes, cut = self.rollout, [], []
        for t in range(self.num_steps):
            for part in self.actions.split(self.obs[MASK]) if self.actions.sizes else ():
                require_legal(part)
            for name, leaf in self.obs.items():
                rollout.obs[name][t] = leaf
            self._decide(t, act)
            outcome = self.env.step(self.actions.decode(self.actions.inside(rollout.actions[t])))
            self.obs, rollout.rewards[t], rollout.terminated[t], rollout.truncated[t], infos = outcome
            self.step += 1
            if "episode" in infos:
                episodes.append({k: np.asarray(v)[infos["_episode"]] for k, v in infos["episode"].items()})
            if rollout.truncated[t].any():
                cut += [(t, int(i), infos["final_obs"][i]) for i in np.flatnonzero(rollout.truncated[t])]
        self.obs = _copy(self.obs)
        rollout.last_values[:] = values(self.obs)
        self._value_finals(cut, values)
        rollout.episodes = (
            {k: np.concatenate([e[k] for e in episodes]) for k in episodes[0]} if episodes else {}
        )
        if self.check_numerics:
            for name in ("rewards", *rollout.obs):
                require_finite(f"the environment's {name}", rollout.flat(name))
        return rollout

    def _decide(self, t: int, act: Act) -> None:
        """Fill actions, log-probabilities and values of step `t`."""
        r = self.rollout
        if t == 0 or not self.skip_forced or self.actions.low:
            r.actions[t], r.log_probs[t], r.values[t] = act(self.obs, self.step)
            return
        r.learned[t] = self.actions.choices(self.obs)
        r.actions[t], r.log_probs[t], r.values[t] = self.actions.forced(self.obs), 0.0, 0.0
        rows = np.flatnonzero(r.learned[t])
        if rows.size:
            chosen = act({name: leaf[rows] for name, leaf in self.obs.items()}, self.step)
            r.actions[t, rows], r.log_probs[t, rows], r.values[t, rows] = chosen

    def _value_finals(self, cut: list[tuple[int, int, Observation]], values: Callable) -> None:
        """Value final observations in full batches (padded with the present ones: one shape, one graph)."""
        size = self.env.num_envs
        for first in range(0, len(cut), size):
            part = cut[first : first + size]
            batch = _copy(self.obs)
            for name, leaf in batch.items():
                leaf[: len(part)] = [final[name] for _, _, final in part]
            steps, envs = [t for t, _, _ in part], [i for _, i, _ in part]
            self.rollout.final_values[steps, envs] = values(batch)[: len(part)]

    def state(self) -> dict[str, Any]:
        """Return counters, the present observation and the environment's state."""
        state: dict[str, Any] = {"step": self.step}
        return state | {f"obs/{name}": leaf for name, leaf in self.obs.items()} | state_of(self.env)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where `state()` was taken."""
        self.step = int(state["step"])
        self.obs = {name: np.array(state[f"obs/{name}"]) for name in self.obs}
        restore(self.env, state)


def state_of(env: VectorEnv) -> dict[str, np.ndarray]:
    """Return what a checkpoint keeps of an environment, names beginning with `env/`."""
    return {f"env/{name}": np.asarray(value) for name, value in env.unwrapped.get_state().items()}


def restore(env: VectorEnv, state: Mapping[str, Any]) -> None:
    """Take an environment back to the `state_of` that `state` holds among other things."""
    env.unwrapped.set_state(under("env/", state))


def under(prefix: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def collector_for(env: VectorEnv, settings: ActorCriticSettings, seed: int) -> Collector:
    """Return a collector as the settings say."""
    options = {"skip_forced": settings.skip_forced, "check_numerics": settings.check_numerics}
    return Collector(env, settings.num_steps, seed, **options)


class NumericsError(ArithmeticError):
    """A NaN or an infinity; the message names the tensor."""


@contextmanager
def numerics_named(tf: Any) -> Iterator[None]:
    """Turn what `tf.debugging.check_numerics` raises into a `NumericsError` in plain words."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        text = next((line for line in str(error).splitlines() if "Tensor had" in line), str(error))
        raise NumericsError("in the update: " + re.sub(r"{{.*?}} | \[Op:.*", "", text)) from error


def require_finite(name: str, array: np.ndarray) -> None:
    """Raise `NumericsError` naming the array and the first place unless all of it is finite."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NumericsError(f"{name} holds {array[place]} at {list(place)} of shape {list(array.shape)}")


def leaf_dtype(space: Any) -> np.dtype:
    """Return the dtype a leaf is stored in; a mask declared as MultiBinary (int8) is kept as bool."""
    return np.dtype(bool) if space.dtype == np.int8 else space.dtype


def _copy(obs: Observation) -> dict[str, np.ndarray]:
    return {name: np.array(leaf) for name, leaf in obs.items()}
