"""Playing a batched environment into a replay: transitions from one real choice to the next, over n of them.

Where one action is legal there is nothing to choose (more than half of the decisions on DeepRM). Such
decisions are taken, and time passes over them: a transition adds up rewards with gamma^k over all k decisions
up to the n-th choice ahead. Only the first vector step of each call is kept whole, so that critics learn what
such states are worth too: a time limit may cut an episode off in one.

Transitions end with the episode: after a termination nothing follows, after a time limit the *final*
observation does, never the one after the reset (Pardo et al., 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from schedrl.learning.action_spec import MASK, ActionSpec
from schedrl.learning.distributions import require_legal
from schedrl.learning.replay import Replay
from schedrl.learning.rollout import require_finite, restore, state_of, under

Observation = Mapping[str, np.ndarray]
Act = Callable[[Observation, int], np.ndarray]


class NStep:
    """The last n choices of each environment whose returns are not yet complete.

    `number [B, n]` are rows of the replay (-1: none), `reward` and `discount` what came since each choice.
    """

    def __init__(self, replay: Replay, num_envs: int, n_step: int, gamma: float):
        self.replay, self.gamma = replay, gamma
        shape = (num_envs, n_step)
        self.number = np.full(shape, -1, np.int64)
        self.reward, self.discount = np.zeros(shape), np.ones(shape)
        self.made = np.zeros(num_envs, np.int64)
        """Choices made by each environment; a choice's column is its count modulo n."""

    def choose(self, rows: np.ndarray, obs: Observation, actions: np.ndarray) -> np.ndarray:
        """Note a choice in the environments `rows [m]`; complete those made n choices before it."""
        numbers = self.replay.write(obs, actions)
        columns = self.made[rows] % self.number.shape[1]
        self._complete(rows, columns, numbers)
        self.number[rows, columns] = numbers
        self.reward[rows, columns], self.discount[rows, columns] = 0.0, 1.0
        self.made[rows] += 1
        return numbers

    def pass_time(self, rewards: np.ndarray) -> None:
        """Add the rewards `[B]` of one decision to all that is open."""
        self.reward += self.discount * rewards[:, None]
        self.discount *= self.gamma

    def end(self, terminated: np.ndarray, finals: Mapping[int, Observation]) -> None:
        """Complete all that is open where an episode ended.

        Args:
            terminated: `[B]` bool.
            finals: environment -> final observation, where a time limit cut the episode off.
        """
        rows, columns = np.nonzero((self.number >= 0) & terminated[:, None])
        self.discount[rows, columns] = 0.0
        self._complete(rows, columns, self.number[rows, columns])
        self.number[terminated] = -1
        for row, final in finals.items():
            follower = self.replay.write({name: np.asarray(leaf)[None] for name, leaf in final.items()})
            columns = np.flatnonzero(self.number[row] >= 0)
            self._complete(np.full(len(columns), row), columns, np.repeat(follower, len(columns)))
            self.number[row] = -1

    def _complete(self, rows: np.ndarray, columns: np.ndarray, following: np.ndarray) -> None:
        numbers = self.number[rows, columns]
        open_ = numbers >= 0
        rows, columns = rows[open_], columns[open_]
        self.replay.complete(
            numbers[open_], self.reward[rows, columns], self.discount[rows, columns], following[open_]
        )

    def state(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps."""
        return {name: getattr(self, name) for name in ("number", "reward", "discount", "made")}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        for name in ("number", "reward", "discount", "made"):
            setattr(self, name, np.array(state[name]))


class Played(NamedTuple):
    """What one call of `TransitionCollector.collect` did."""

    decisions: int
    numbers: np.ndarray
    """Of the replay's rows that were written for choices, in order."""
    episodes: dict[str, np.ndarray]
    """Of those that ended, in order: return `r`, decisions `l`, mean `slowdown` (where given)."""


class TransitionCollector:
    """Steps a vector environment and writes its transitions into a replay.

    Args:
        env: any `VectorEnv` with SAME_STEP autoreset and Dict observations.
        actions: of that environment.
        steps: keeps the open transitions and the replay.
        num_steps: vector steps per call.
        seed: of the environment's own random stream.
        reward_scale: rewards are multiplied by it.
        check_numerics: stop where the environment returns a NaN or an infinity.
    """

    def __init__(
        self,
        env: VectorEnv,
        actions: ActionSpec,
        steps: NStep,
        num_steps: int,
        seed: int,
        *,
        reward_scale: float = 1.0,
        check_numerics: bool = False,
    ):
        self.env, self.actions, self.steps, self.num_steps = env, actions, steps, num_steps
        self.reward_scale, self.check_numerics = reward_scale, check_numerics
        self.step = 0
        self.obs = _copy(env.reset(seed=seed)[0])

    def collect(self, act: Act, ended: Callable[[np.ndarray], None] | None = None) -> Played:
        """Play `num_steps` vector steps.

        Args:
            act: `(obs, step) -> actions` in storage form, asked where there is a choice;
                `step` counts vector steps of the whole run.
            ended: told after each step where episodes ended (`[B]` bool).
        """
        written, episodes = [], []
        for t in range(self.num_steps):
            actions, numbers = self._decide(act, everywhere=t == 0)
            written.append(numbers)
            self.obs, rewards, terminated, truncated, infos = self.env.step(self.actions.decode(actions))
            self.step += 1
            if self.check_numerics:
                for name, array in (("rewards", rewards), *self.obs.items()):
                    require_finite(f"the environment's {name}", np.asarray(array))
            self.steps.pass_time(np.asarray(rewards, float) * self.reward_scale)
            over = terminated | truncated
            if over.any():
                cut = np.flatnonzero(truncated & ~terminated)
                self.steps.end(terminated, {int(i): infos["final_obs"][i] for i in cut})
                if ended is not None:
                    ended(over)
            if "episode" in infos:
                episodes.append({k: np.asarray(v)[infos["_episode"]] for k, v in infos["episode"].items()})
        self.obs = _copy(self.obs)
        joined = {k: np.concatenate([e[k] for e in episodes]) for k in episodes[0]} if episodes else {}
        return Played(self.num_steps * self.env.num_envs, np.concatenate(written), joined)

    def _decide(self, act: Act, everywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the actions of all environments and the numbers of the rows written."""
        if MASK in self.obs:
            require_legal(self.obs[MASK])
        rows = np.flatnonzero(self.actions.choices(self.obs))
        if everywhere or len(rows) == self.env.num_envs:
            actions = act(self.obs, self.step)
            return actions, self.steps.choose(np.arange(self.env.num_envs), self.obs, actions)
        actions = self.actions.forced(self.obs)
        if not len(rows):
            return actions, rows
        obs = {name: leaf[rows] for name, leaf in self.obs.items()}
        actions[rows] = act(obs, self.step)
        return actions, self.steps.choose(rows, obs, actions[rows])

    def state(self) -> dict[str, Any]:
        """Return counters, the present observation, open transitions and the environment's state."""
        state: dict[str, Any] = {"step": self.step}
        state |= {f"obs/{name}": leaf for name, leaf in self.obs.items()}
        state |= {f"steps/{name}": array for name, array in self.steps.state().items()}
        return state | state_of(self.env)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where `state()` was taken."""
        self.step = int(state["step"])
        self.obs = {name: np.array(state[f"obs/{name}"]) for name in self.obs}
        self.steps.load_state(under("steps/", state))
        restore(self.env, state)


def _copy(obs: Observation) -> dict[str, np.ndarray]:
    return {name: np.array(leaf) for name, leaf in obs.items()}
