"""Returns and advantages of rollouts, as pure NumPy functions over arrays `[T, B]` (steps, environments).

Source: Schulman et al., "High-dimensional continuous control using generalized advantage estimation", 2016,
equations 11-16; for time limits Pardo et al., "Time limits in reinforcement learning", 2018.
"""

from __future__ import annotations

import numpy as np


def next_values(
    values: np.ndarray,
    last_values: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    final_values: np.ndarray | None = None,
) -> np.ndarray:
    """Return the value that follows each step `[T, B]`.

    It is 0 after a termination, the value of the *final* observation (before the reset) after a truncation,
    and the value of the next observation otherwise. The observation after a reset is never used.

    Args:
        values: V(s_t) `[T, B]`.
        last_values: V(s_T) `[B]`, the observation after the last step.
        terminated: `[T, B]` bool.
        truncated: `[T, B]` bool; an episode that ends both ways counts as terminated.
        final_values: `[T, B]`, read only where truncated; needed when anything is truncated.
    """
    following = np.concatenate([values[1:], last_values[None]])
    cut = truncated & ~terminated
    if cut.any():
        if final_values is None:
            raise ValueError(
                "a truncated episode needs the value of its final observation: pass final_values"
            )
        following = np.where(cut, final_values, following)
    return np.where(terminated, 0, following).astype(values.dtype)


def gae(
    rewards: np.ndarray,
    values: np.ndarray,
    following: np.ndarray,
    ended: np.ndarray,
    gamma: float,
    gae_lambda: float | np.ndarray,
) -> np.ndarray:
    """Return generalised advantage estimates `[T, B]`; nothing leaks across an `ended` step.

    Args:
        rewards: `[T, B]`.
        values: V(s_t) `[T, B]`; `gae + values` are the lambda-returns the critic learns.
        following: what `next_values` returns `[T, B]`.
        ended: `[T, B]` bool, terminated or truncated.
        gamma: discount in [0, 1].
        gae_lambda: in [0, 1]; 0 = one-step, 1 = Monte Carlo. As an array `[T, B]` it belongs to the state
        that
            *follows* each step; where it is 1 that state's value cancels out and need not be known.
    """
    deltas = rewards + gamma * following - values
    carry = gamma * gae_lambda * (1.0 - ended.astype(values.dtype))
    advantages = np.empty_like(deltas)
    running = np.zeros_like(deltas[0])
    for t in range(len(deltas) - 1, -1, -1):
        running = deltas[t] + carry[t] * running
        advantages[t] = running
    return advantages


def returns_to_go(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """Return the discounted sum `[T, B]` of the rewards `[T, B]` from each step to the end of its column."""
    sums = np.array(rewards)
    for t in range(len(sums) - 2, -1, -1):
        sums[t] += gamma * sums[t + 1]
    return sums


def group_baseline(sums: np.ndarray, times: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the time-dependent baseline `[T, B]`: the mean return to go of a group at the same time.

    An episode that is over by then counts with 0. After DeepRM (Mao et al., 2016, section 3.3).

    Args:
        sums: returns to go `[T, B]`.
        times: `[T, B]` time of each step, not decreasing along T, -1 after the episode's end. With the
            steps' own indices this is the original's baseline.
        groups: `[B]` whole numbers; columns of the same number are compared.
    """
    length = int(times.max()) + 1
    at_time = np.zeros((times.shape[1], length), sums.dtype)
    for column in range(times.shape[1]):
        own = times[:, column]
        own = own[own >= 0]
        upcoming = np.searchsorted(own, np.arange(length))  # the first step at that time or later
        there = upcoming < len(own)
        at_time[column, there] = sums[upcoming[there], column]
    members = groups[:, None] == np.unique(groups)
    means = (members.T @ at_time) / members.sum(axis=0)[:, None]
    row_of = np.searchsorted(np.unique(groups), groups)
    return means[row_of, np.maximum(times, 0)]


def following_lambda(gae_lambda: float, learned: np.ndarray) -> np.ndarray:
    """Return lambda `[T, B]` for `gae` when only some states have values.

    Args:
        gae_lambda: for states with a value.
        learned: `[T, B]` bool; elsewhere (decisions with one legal action) time just passes, so lambda is 1.
    """
    ahead = np.concatenate([learned[1:], np.ones_like(learned[:1])])
    return np.where(ahead, np.float32(gae_lambda), np.float32(1.0))


def explained_variance(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Return 1 - Var(targets - predictions) / Var(targets): 1 is perfect, 0 no better than a constant."""
    variance = float(np.var(targets))
    return float("nan") if variance == 0 else 1.0 - float(np.var(targets - predictions)) / variance
