"""Seven tiny batched environments, each of which fails an agent with one particular fault.

After Andy Jones, "Debugging RL, without the agonizing pain" (https://andyljones.com/posts/rl-debugging.html),
with two added for what this project depends on: masks, and truncation told apart from termination. All follow
the contract of the real environments (Dict observations with `action_mask`, SAME_STEP autoreset, final
observations, exact resume), and each knows its optimal actions and values.

| name                      | what it takes to solve it                                                    |
|---------------------------|------------------------------------------------------------------------------|
| `constant_reward`         | the critic learns a constant                                                 |
| `reward_from_observation` | the critic reads the observation                                             |
| `delayed_reward`          | discounting and bootstrapping over a step                                    |
| `two_actions`             | the policy's gradient has the right sign                                     |
| `action_by_observation`   | the policy reads the observation                                             |
| `masked_best_action`      | masks: the best action is often illegal, and choosing it then is an error    |
| `truncated_or_terminated` | a cut-off bootstraps from its final observation, an end from nothing         |
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

MASK = "action_mask"
Transition = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Probe(VectorEnv, ABC):
    """Base: keeps `x [N, features]`, the whole state; subclasses say how it starts and moves."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    representation = "probe"
    features, num_actions = 1, 2

    def __init__(self, num_envs: int = 64, seed: int = 0):
        self.num_envs = num_envs
        leaves: dict[str, spaces.Space] = {"x": spaces.Box(-10.0, 10.0, (self.features,), np.float32)}
        if self.num_actions:
            leaves[MASK] = spaces.Box(0, 1, (self.num_actions,), np.bool_)
        self.single_observation_space = spaces.Dict(leaves)
        self.single_action_space = self.action_space()
        self.rng = np.random.default_rng(seed)
        self.reset()

    def action_space(self) -> spaces.Space:
        """Return the action space of one environment."""
        return spaces.Discrete(self.num_actions)

    def start(self, count: int) -> np.ndarray:
        """Return fresh states `[count, features]`."""
        return np.zeros((count, self.features), np.float32)

    @abstractmethod
    def transition(self, x: np.ndarray, actions: Any) -> Transition:
        """Return rewards, terminated, truncated and the next states."""

    def mask(self, x: np.ndarray) -> np.ndarray:
        """Return the legal actions `[N, A]`."""
        return np.ones((len(x), self.num_actions), bool)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray | None:
        """Return the best actions `[N]`, None if any is as good."""
        return None

    @abstractmethod
    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:
        """Return the value of states under the best actions `[N]`."""

    # -- the vector environment ------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Start all environments."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.x = self.start(self.num_envs)
        self.returns = np.zeros(self.num_envs, np.float32)
        self.lengths = np.zeros(self.num_envs, np.int64)
        return self._observation(self.x), {}

    def step(self, actions: Any) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Step all environments; those whose episode ends start again at once."""
        actions = self.checked(actions)
        rewards, terminated, truncated, x = self.transition(self.x, actions)
        self.returns += rewards
        self.lengths += 1
        ended = terminated | truncated
        infos: dict[str, Any] = {}
        if ended.any():
            final = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended):
                final[i] = {name: leaf[0] for name, leaf in self._observation(x[i : i + 1]).items()}
            episode = {"r": self.returns.copy(), "l": self.lengths.copy()}
            infos = {"final_obs": final, "_final_obs": ended, "episode": episode, "_episode": ended}
            self.returns[ended], self.lengths[ended] = 0, 0
            x[ended] = self.start(int(ended.sum()))
        self.x = x
        return self._observation(x), rewards.astype(np.float32), terminated, truncated, infos

    def checked(self, actions: Any) -> Any:
        """Return the actions as arrays.

        Raises:
            ValueError: one of them is illegal.
        """
        actions = np.asarray(actions)
        legal = self.mask(self.x)[np.arange(self.num_envs), actions]
        if not legal.all():
            raise ValueError(
                f"environment {np.argmin(legal)} was given the illegal action {actions[np.argmin(legal)]}"
            )
        return actions

    def _observation(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": x.copy(), MASK: self.mask(x)} if self.num_actions else {"x": x.copy()}

    def get_state(self) -> dict[str, np.ndarray]:
        """Return everything that decides the future."""
        generator = np.asarray(json.dumps(self.rng.bit_generator.state))
        return {
            "x": self.x.copy(),
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "rng": generator,
        }

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Continue where `get_state` was called."""
        self.x, self.returns, self.lengths = (np.array(state[name]) for name in ("x", "returns", "lengths"))
        self.rng.bit_generator.state = json.loads(str(state["rng"]))

    def factory(self) -> Callable[..., Probe]:
        """Return what makes such an environment in another process: `factory()(num_envs, seed=...)`."""
        return type(self)

    def _one_step(self, rewards: np.ndarray, x: np.ndarray) -> Transition:
        ended = np.ones(len(x), bool)
        return rewards.astype(np.float32), ended, ~ended, x.copy()

    def _signs(self, count: int) -> np.ndarray:
        return self.rng.choice(np.array([-1.0, 1.0], np.float32), (count, self.features))


class ConstantReward(Probe):
    """One step, reward 1."""

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        return self._one_step(np.ones(len(x)), x)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.ones(len(x))


class RewardFromObservation(Probe):
    """One step, the reward is the observation, -1 or 1."""

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return self._signs(count)

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        return self._one_step(x[:, 0], x)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return x[:, 0]


class DelayedReward(Probe):
    """Two steps, the observation tells which; the reward 1 comes at the end."""

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        second = x[:, 0] == 1
        return second.astype(np.float32), second, np.zeros(len(x), bool), np.ones_like(x)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.where(x[:, 0] == 1, 1.0, gamma)


class TwoActions(Probe):
    """One step; action 1 earns 1, action 0 nothing."""

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        return self._one_step(actions == 1, x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.ones(len(x), int)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.ones(len(x))


class ActionByObservation(TwoActions):
    """One step; earns 1 for action 1 where the observation is 1, and for action 0 where it is -1."""

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return self._signs(count)

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        return self._one_step(actions == self.optimal_actions(x), x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return (x[:, 0] > 0).astype(int)


class MaskedBestAction(Probe):
    """One step; the actions earn 0, 0.5 and 1; the observation -1, 0 or 1 says which are legal.

    At -1 actions 0 and 1 are legal, at 0 only action 0 (a forced decision), at 1 actions 1 and 2.
    """

    num_actions = 3
    MASKS = np.array([[True, True, False], [True, False, False], [False, True, True]])
    BEST = np.array([1, 0, 2])

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return self.rng.integers(-1, 2, (count, 1)).astype(np.float32)

    def mask(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.MASKS[self._row(x)]

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        return self._one_step(0.5 * actions, x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.BEST[self._row(x)]

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return 0.5 * self.optimal_actions(x)

    @staticmethod
    def _row(x: np.ndarray) -> np.ndarray:
        return x[:, 0].astype(int) + 1


class TruncatedOrTerminated(Probe):
    """Action 0 earns 1 and terminates; action 1 earns less and is cut off by a time limit.

    Needs gamma = 0.9. The observation (one-hot) names one of three states. In `patient`, action 1 earns 0.5,
    worth 0.5 / (1 - 0.9) = 5 if the cut-off bootstraps and 0.5 if it counts as the end. In `poor` it earns
    0.05, worth 0.5; it looks better than 1 to an agent that bootstraps from the observation after the reset,
    because of the third state, `rich`, which earns 10 whatever is done.
    """

    features = 3

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return np.eye(3, dtype=np.float32)[self.rng.integers(0, 3, count)]

    def transition(self, x: np.ndarray, actions: np.ndarray) -> Transition:  # noqa: D102
        rich = x[:, 2] == 1
        rewards = np.where(actions == 0, 1.0, x @ np.array([0.5, 0.05, 0.0]))
        terminated = rich | (actions == 0)
        return np.where(rich, 10.0, rewards).astype(np.float32), terminated, ~terminated, x.copy()

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:
        """Return 1 in `patient`, 0 in `poor`, -1 (either) in `rich`."""
        return x.astype(int) @ np.array([1, 0, -1])

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return x @ np.array([0.5 / (1.0 - gamma), 1.0, 10.0])


PROBES: dict[str, type[Probe]] = {
    "constant_reward": ConstantReward,
    "reward_from_observation": RewardFromObservation,
    "delayed_reward": DelayedReward,
    "two_actions": TwoActions,
    "action_by_observation": ActionByObservation,
    "masked_best_action": MaskedBestAction,
    "truncated_or_terminated": TruncatedOrTerminated,
}
"""Name -> class; `PROBES[name](num_envs=64, seed=0)`."""
