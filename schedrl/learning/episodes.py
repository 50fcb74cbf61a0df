"""Collecting whole episodes, several of each job sequence: what Monte Carlo policy gradients learn from.

Each environment plays one episode; those that end early wait for the last one. (They autoreset and are
stepped on, but nothing of that is kept, counted or learned from.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.distributions import require_legal
from schedrl.learning.rollout import require_finite, restore, state_of

MASK = "action_mask"
Choose = Callable[[Mapping[str, np.ndarray], np.ndarray], np.ndarray]


@dataclass
class Episodes:
    """One episode of each of B environments, the longest of T decisions, n decisions with a choice in all."""

    rewards: np.ndarray
    """[T, B], 0 after the end."""
    times: np.ndarray
    """[T, B] simulated time of each decision, -1 after the end; the decision's index where there is none."""
    obs: dict[str, np.ndarray]
    """Leaves [n, ...] of the decisions with more than one legal action, in the order of steps."""
    actions: np.ndarray
    """[n, ...] in storage form."""
    steps: np.ndarray
    """[n] index on the first axis of `rewards`."""
    envs: np.ndarray
    """[n] index on the second axis."""
    ended: dict[str, np.ndarray] = field(default_factory=dict)
    """Of the episodes, [B] each: return `r`, decisions `l`, mean `slowdown` (where given)."""

    @property
    def decisions(self) -> int:
        """All decisions played, forced ones included."""
        return int((self.times >= 0).sum())


class EpisodeCollector:
    """Plays groups of episodes: environments `k g ... k g + k - 1` play sequence `first + g`.

    Args:
        env: any `VectorEnv` with SAME_STEP autoreset. One whose job sequences are numbered
            (`numbered_sequences`) is told which to play; another starts where it pleases.
        episodes_per_sequence: k; divides the number of environments.
        seed: of the environment's own random stream.
        check_numerics: stop where the environment returns a NaN or an infinity.
    """

    def __init__(
        self, env: VectorEnv, episodes_per_sequence: int, seed: int, *, check_numerics: bool = False
    ):
        self.env, self.check_numerics = env, check_numerics
        self.actions = ActionSpec.of(env.single_action_space)
        self.groups = np.arange(env.num_envs) // episodes_per_sequence
        """[B] group of each environment."""
        self.numbered = getattr(env.unwrapped, "numbered_sequences", False)
        self.step = self.next_sequence = 0
        env.reset(seed=seed)

    def _start(self) -> Mapping[str, np.ndarray]:
        if not self.numbered:
            return self.env.reset()[0]
        numbers = self.next_sequence + self.groups
        self.next_sequence = int(numbers[-1]) + 1
        return self.env.reset(options={"sequences": numbers})[0]

    def collect(self, choose: Choose) -> Episodes:
        """Play an episode in each environment.

        Args:
            choose: `(obs, rows) -> actions`; called with the observations of the environments `rows` only,
                those with a choice. `self.step` counts vector steps of the whole run.
        """
        obs, size = self._start(), self.env.num_envs
        going = np.ones(size, bool)
        ended: dict[str, np.ndarray] = {}
        rewards: list[np.ndarray] = []
        times: list[np.ndarray] = []
        kept: list[tuple] = []
        while going.any():
            for part in self.actions.split(obs[MASK]):
                require_legal(part)
            rows = np.flatnonzero(going & self.actions.choices(obs))
            actions = self.actions.forced(obs)
            if rows.size:
                seen = {name: np.array(leaf[rows]) for name, leaf in obs.items()}
                actions[rows] = choose(seen, rows)
                kept.append((seen, actions[rows], np.full(rows.size, len(times)), rows))
            times.append(np.where(going, self._now(len(times)), -1))
            obs, reward, terminated, truncated, infos = self.env.step(
                self.actions.decode(self.actions.inside(actions))
            )
            self.step += 1
            rewards.append(np.where(going, reward, 0.0))
            over = going & (terminated | truncated)
            for name, values in infos.get("episode", {}).items():
                ended.setdefault(name, np.zeros(size))[over] = np.asarray(values)[over]
            going &= ~over
        return self._packed(rewards, times, kept, ended)

    def _now(self, index: int) -> np.ndarray | int:
        return self.env.unwrapped.times() if self.numbered else index

    def _packed(self, rewards: list, times: list, kept: list, ended: dict[str, np.ndarray]) -> Episodes:
        space: Any = self.env.single_observation_space
        names = list(space.keys())
        if kept:
            seen, *rest = zip(*kept, strict=True)
            obs = {name: np.concatenate([leaves[name] for leaves in seen]) for name in names}
            actions, steps, envs = (np.concatenate(part) for part in rest)
        else:  # nothing but forced decisions
            obs = {name: np.zeros((0, *space[name].shape), space[name].dtype) for name in names}
            actions = np.zeros((0, *self.actions.shape), self.actions.dtype)
            steps = envs = np.zeros(0, np.int32)
        played = Episodes(np.array(rewards), np.array(times), obs, actions, steps, envs, ended)
        if self.check_numerics:
            for name, array in {"rewards": played.rewards, **obs}.items():
                require_finite(f"the environment's {name}", array)
        return played

    def state(self) -> dict[str, Any]:
        """Return counters and the environment's state."""
        return {"step": self.step, "next_sequence": self.next_sequence} | state_of(self.env)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where `state()` was taken."""
        self.step, self.next_sequence = int(state["step"]), int(state["next_sequence"])
        restore(self.env, state)
