"""Exploration noise that never leaves the legal set: over legal choices, and inside the box.

Draws are functions of seed and step alone where nothing must be remembered; only the Ornstein-Uhlenbeck
process has a state, which belongs into checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.learning.action_spec import MASK, ActionSpec
from schedrl.learning.rollout import NumericsError


def stream(seed: int, step: int) -> np.random.Generator:
    """Return the generator of one step: the same for the same seed and step, so that a resumed run repeats.

    Its counter differs from the one actions are sampled with (`NumpyPolicy.sample`).
    """
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 1, step]))


def epsilon_legal(
    choices: np.ndarray, mask: np.ndarray, epsilon: float, generator: np.random.Generator
) -> np.ndarray:
    """Replace each of `choices [B]` with probability `epsilon` by a uniform one, legal by `mask [B, A]`."""
    if epsilon <= 0:
        return choices
    draws = generator.random(mask.shape, dtype=np.float32)
    uniform = np.where(mask, draws, -1.0).argmax(axis=-1)
    replaced = generator.random(len(choices)) < epsilon
    return np.where(replaced, uniform, choices).astype(choices.dtype)


class BoxNoise:
    """Adds noise to actions in units of -1 .. 1 and cuts the result to that range.

    Args:
        num_envs: environments, each with a noise of its own.
        size: continuous numbers k.
        deviation: standard deviation (Gaussian), or that of the increments (Ornstein-Uhlenbeck).
        correlated: Ornstein-Uhlenbeck as in the DDPG paper (Lillicrap et al., 2016): each step keeps
            1 - THETA of the noise before. Else independent Gaussian noise, as in TD3 (Fujimoto et al., 2018).
    """

    THETA = 0.15

    def __init__(self, num_envs: int, size: int, deviation: float, correlated: bool = False):
        self.deviation, self.correlated = deviation, correlated
        self.noise = np.zeros((num_envs, size), np.float32)

    def __call__(self, actions: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return noisy actions `[num_envs, k]`, all within -1 .. 1."""
        draws = self.deviation * generator.standard_normal(self.noise.shape, dtype=np.float32)
        self.noise = (1.0 - self.THETA) * self.noise + draws if self.correlated else draws
        return np.clip(actions + self.noise, -1.0, 1.0).astype(np.float32)

    def restart(self, ended: np.ndarray) -> None:
        """Forget the noise of environments whose episode ended (`ended [num_envs]` bool)."""
        self.noise[ended] = 0.0

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"noise": self.noise}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        self.noise = np.array(state["noise"])


def require_actions(agent: str, step: int, numbers: np.ndarray) -> None:
    """Stop at an action that is no number: cutting to bounds would hide it.

    Raises:
        NumericsError: it names the agent and the step.
    """
    wrong = np.argwhere(np.isnan(numbers))
    if len(wrong):
        raise NumericsError(
            f"{agent} chose NaN as action {wrong[0].tolist()} at vector step {step}; a lower --learning_rate "
            "often helps, --check_numerics True names the first such tensor"
        )


class Explorer:
    """What a replay-based agent plays: sampled choices, some of them uniform, and noisy numbers.

    Args:
        agent: its name, for messages.
        actions: what an action consists of.
        noise: for the continuous numbers; its environments are all of the batch.
        seed: of everything drawn here.
    """

    def __init__(self, agent: str, actions: ActionSpec, noise: BoxNoise, seed: int):
        self.agent, self.actions, self.noise, self.seed = agent, actions, noise, seed

    def act(self, policy: Any, obs: Mapping[str, np.ndarray], step: int, epsilon: float) -> np.ndarray:
        """Return actions in storage form `[B, ...]`, always legal.

        Args:
            policy: its `sample(obs, seed, step)` draws choices by their probabilities.
            obs: a batch; of all environments where there are continuous numbers.
            step: vector steps so far.
            epsilon: share of choices that are drawn uniformly instead.

        Raises:
            NumericsError: the policy's number is NaN.
        """
        spec = self.actions
        generator = stream(self.seed, step)
        stored = policy.sample(obs, self.seed, step)[0]
        if spec.plain:
            return epsilon_legal(stored, obs[MASK], epsilon, generator)
        count = len(spec.sizes)
        require_actions(self.agent, step, stored)
        for i, mask in enumerate(spec.split(obs[MASK]) if count else ()):
            stored[:, i] = epsilon_legal(stored[:, i], mask, epsilon, generator)
        if spec.low:
            noisy = self.noise(spec.to_unit(stored[:, count:]), generator)
            stored[:, count:] = spec.from_unit(noisy)
        return stored
