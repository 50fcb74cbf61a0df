"""Tiny environments with continuous and mixed actions, beside those of `probes.py` and of the same contract.

| name                   | action               | what it takes to solve it                             |
|------------------------|----------------------|-------------------------------------------------------|
| `continuous_target`    | Box [1]              | the critic's gradient points to the best number       |
| `continuous_two_steps` | Box [1]              | a number whose worth shows only in the next state     |
| `continuous_border`    | Box [1]              | the best number lies on the border of the box         |
| `server_from_real`     | Box [1]              | a machine's number read from a real: steps, no slope  |
| `mixed_choice`         | 3 choices, Box [1]   | a number that must fit the choice; best often illegal |
| `mixed_two_choices`    | 2, 3 choices, Box [2] | two choices that must fit each other                 |

Best actions are given as `ActionSpec` stores them: discrete parts, then numbers; float32 `[N, parts + k]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedrl.envs.probes import MaskedBestAction, Probe, Transition


class ActionProbe(Probe):
    """Base: `sizes` of the discrete parts, then a box of `low` to `high`."""

    sizes: tuple[int, ...] = ()
    low: tuple[float, ...] = (-1.0,)
    high: tuple[float, ...] = (1.0,)
    num_actions = 0

    def action_space(self) -> spaces.Space:
        """Return a Box, or a Tuple of Discretes and a Box."""
        box = spaces.Box(np.array(self.low, np.float32), np.array(self.high, np.float32))
        return spaces.Tuple((*map(spaces.Discrete, self.sizes), box)) if self.sizes else box

    def checked(self, actions: Any) -> list[np.ndarray]:
        """Return each part `[N]`, then the numbers `[N, k]`.

        Raises:
            ValueError: a choice is illegal, or a number outside its bounds or NaN.
        """
        *parts, numbers = actions if self.sizes else (actions,)
        parts = [np.asarray(part) for part in parts]
        first = 0
        for part, size in zip(parts, self.sizes, strict=True):
            legal = self.mask(self.x)[np.arange(self.num_envs), first + part]
            first += size
            if not legal.all():
                raise ValueError(f"environment {np.argmin(legal)} was given an illegal choice among {size}")
        numbers = np.asarray(numbers)
        low, high = np.array(self.low, np.float32), np.array(self.high, np.float32)
        inside = ((numbers >= low) & (numbers <= high)).all(axis=1)
        if not inside.all():
            raise ValueError(
                f"environment {np.argmin(inside)} was given {numbers[np.argmin(inside)]}, outside its box"
            )
        return [*parts, numbers]


class ContinuousTarget(ActionProbe):
    """One step; earns most for 0.8 x (the observation, -1 to 1), in a box of -2 to 2."""

    low, high = (-2.0,), (2.0,)

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return self.rng.integers(-1, 2, (count, 1)).astype(np.float32)

    def transition(self, x: np.ndarray, actions: Any) -> Transition:  # noqa: D102
        error = actions[0] - self.optimal_actions(x)
        return self._one_step(1.0 + 0.5 * x[:, 0] - np.square(error[:, 0]), x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.float32(0.8) * x

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return 1.0 + 0.5 * x[:, 0]


class ContinuousTwoSteps(ActionProbe):
    """The first number becomes the place (best 0.5), the second should be its negative; paid at the end."""

    features = 2

    def transition(self, x: np.ndarray, actions: Any) -> Transition:  # noqa: D102
        place, second = x[:, 0], x[:, 1] == 1
        number = actions[0][:, 0]
        pay = 1.0 - np.square(place - 0.5) - np.square(number + place)
        following = np.stack([number, np.ones_like(number)], axis=1).astype(np.float32)
        return np.where(second, pay, 0.0).astype(np.float32), second, np.zeros(len(x), bool), following

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.where(x[:, 1] == 1, -x[:, 0], 0.5)[:, None].astype(np.float32)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.where(x[:, 1] == 1, 1.0 - np.square(x[:, 0] - 0.5), gamma)


class ContinuousBorder(ActionProbe):
    """One step; the larger the number the better, up to the end of the box."""

    def transition(self, x: np.ndarray, actions: Any) -> Transition:  # noqa: D102
        return self._one_step(2.0 - np.square(actions[0][:, 0] - 2.0), x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        return np.ones((len(x), 1), np.float32)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.ones(len(x))


class ServerFromReal(ActionProbe):
    """One step; the number names one of five machines; each machine away from the right one costs 0.25."""

    servers = 5

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return self.rng.integers(-1, 2, (count, 1)).astype(np.float32)

    def transition(self, x: np.ndarray, actions: Any) -> Transition:  # noqa: D102
        away = np.abs(index_of(actions[0][:, 0], self.servers) - self.right(x))
        return self._one_step(1.0 - 0.25 * away, x)

    def right(self, x: np.ndarray) -> np.ndarray:
        """Return the right machine `[N]`: 1, 2 or 3."""
        return 2 + x[:, 0].astype(int)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:
        """Return the middle of the stretch of numbers that name the right machine."""
        return ((self.right(x) + 0.5) * 2.0 / self.servers - 1.0)[:, None].astype(np.float32)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.ones(len(x))


class MixedChoice(ActionProbe):
    """`MaskedBestAction` with a number that must be -0.5, 0 or 0.5 by the choice."""

    sizes = (3,)
    num_actions = 3
    NUMBERS = np.array([-0.5, 0.0, 0.5], np.float32)
    start = MaskedBestAction.start
    mask = MaskedBestAction.mask

    def transition(self, x: np.ndarray, actions: Any) -> Transition:  # noqa: D102
        choice, number = actions
        return self._one_step(0.5 * choice - np.square(number[:, 0] - self.NUMBERS[choice]), x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        best = MaskedBestAction.BEST[x[:, 0].astype(int) + 1]
        return np.stack([best, self.NUMBERS[best]], axis=1).astype(np.float32)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return 0.5 * self.optimal_actions(x)[:, 0]

    _row = staticmethod(MaskedBestAction._row)
    MASKS = MaskedBestAction.MASKS


class MixedTwoChoices(ActionProbe):
    """Two choices that pay only together, and two numbers that should equal the observation's half.

    At 1 the pair (1, 2) pays 1; at -1 it is illegal (choice 2 of the second part) and (0, 1) pays 0.5.
    """

    sizes = (2, 3)
    num_actions = 5
    low, high = (-1.0, 0.0), (1.0, 2.0)
    PAY = np.array([[0.0, 0.5, 0.2], [0.2, 0.0, 1.0]], np.float32)

    def start(self, count: int) -> np.ndarray:  # noqa: D102
        return self._signs(count)

    def mask(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        legal = np.ones((len(x), 5), bool)
        legal[:, 4] = x[:, 0] > 0
        return legal

    def transition(self, x: np.ndarray, actions: Any) -> Transition:  # noqa: D102
        first, second, numbers = actions
        error = numbers - self.optimal_actions(x)[:, 2:]
        return self._one_step(self.PAY[first, second] - np.square(error).sum(axis=1), x)

    def optimal_actions(self, x: np.ndarray) -> np.ndarray:  # noqa: D102
        high = x[:, 0] > 0
        half = 0.5 * x[:, 0]
        return np.stack([high, 1 + high, half, 1.0 + half], axis=1).astype(np.float32)

    def optimal_values(self, x: np.ndarray, gamma: float) -> np.ndarray:  # noqa: D102
        return np.where(x[:, 0] > 0, 1.0, 0.5)


def index_of(numbers: np.ndarray, count: int) -> np.ndarray:
    """Turn real numbers in -1 .. 1 into indices 0 .. count - 1 by equal parts; outside counts as the border.

    Raises:
        ValueError: a NaN, which belongs to no part.
    """
    numbers = np.asarray(numbers, np.float64)
    if np.isnan(numbers).any():
        raise ValueError(f"action {np.argwhere(np.isnan(numbers))[0].tolist()} is NaN; it names no index")
    return np.minimum(count - 1, np.floor((np.clip(numbers, -1.0, 1.0) + 1.0) / 2.0 * count)).astype(np.int64)


ACTION_PROBES: dict[str, type[ActionProbe]] = {
    "continuous_target": ContinuousTarget,
    "continuous_two_steps": ContinuousTwoSteps,
    "continuous_border": ContinuousBorder,
    "server_from_real": ServerFromReal,
    "mixed_choice": MixedChoice,
    "mixed_two_choices": MixedTwoChoices,
}
"""Name -> class; `ACTION_PROBES[name](num_envs=64, seed=0)`."""
