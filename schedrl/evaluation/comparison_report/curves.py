"""Learning curves from a run's `metrics.csv`: smoothed, on a common grid, when they pass a level.

A point of a curve is the mean over the last `EPISODES` finished training episodes, sampled actions and all.
The first points are left out, where fewer have finished: episodes that end early are short and good, so the
first handful flatters.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EPISODES = 500
"""Episodes behind a point; a third of the run's where that is fewer (then no level counts as passed)."""
SHARE = 3
POINTS = 200
MANY_SEEDS = 5
"""From so many seeds on, the band is a 95 % t interval of the mean; below, it spans the seeds."""


@dataclass(frozen=True)
class Curve:
    """One run's learning curve: four arrays of one length, and what is behind a point."""

    decisions: np.ndarray
    seconds: np.ndarray
    slowdown: np.ndarray
    reward: np.ndarray
    """Undiscounted return of an episode, unscaled."""
    episodes: int
    """Finished episodes behind each point."""

    def passes(self, slowdown: float) -> tuple[float, float] | None:
        """Return (decisions, seconds) from which on the slowdown stays below a level to the end, or None.

        None too where fewer than `EPISODES` episodes are behind a point: chance would pass the level.
        """
        below = self.slowdown < slowdown
        if self.episodes < EPISODES or not len(below) or not below[-1]:
            return None
        first = int(np.flatnonzero(~below).max(initial=-1)) + 1
        return float(self.decisions[first]), float(self.seconds[first])


def read_curve(path: str | Path) -> Curve:
    """Read the curve in a `metrics.csv`."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("decisions", "seconds", "episodes", "slowdown", "episode_return")
    columns = {name: np.array([float(row[name]) for row in rows]) for name in names}
    total = columns["episodes"][-1] if rows else 0.0
    window = int(max(1, min(EPISODES, total // SHARE)))
    ended = np.diff(columns["episodes"], prepend=0.0)
    slowdown, valid = trailing_mean(columns["slowdown"], ended, window)
    reward, _ = trailing_mean(columns["episode_return"], ended, window)
    kept = (columns["decisions"][valid], columns["seconds"][valid])
    return Curve(*kept, slowdown[valid], reward[valid], window)


def trailing_mean(values: np.ndarray, counts: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the newest updates that hold `window` episodes, and where there are that many.

    Args:
        values: [U] mean of the episodes that ended in each update (NaN where none did).
        counts: [U] how many did.
        window: episodes wanted; whole updates are taken, so a few more may be behind a mean.
    """
    reached = np.concatenate([[0.0], np.cumsum(counts)])
    sums = np.concatenate([[0.0], np.cumsum(np.where(counts > 0, np.nan_to_num(values) * counts, 0.0))])
    valid = reached[1:] >= window
    start = np.searchsorted(reached, reached[1:] - window, side="right") - 1
    start = np.maximum(start, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (sums[1:] - sums[start]) / (reached[1:] - reached[start])
    return means, valid


def on_grid(curves: Sequence[Curve], along: str, measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate curves linearly onto a common grid, from the latest beginning to the earliest end.

    Args:
        curves: of the seeds of one algorithm.
        along: "decisions" or "seconds".
        measure: "slowdown" or "reward".

    Returns:
        the grid [POINTS] and the values [seeds, POINTS]; nothing where the curves have no common part.
    """
    curves = [curve for curve in curves if len(curve.decisions)]
    if not curves:
        return np.zeros(0), np.zeros((0, 0))
    places = [getattr(curve, along) for curve in curves]
    low, high = max(x[0] for x in places), min(x[-1] for x in places)
    if high < low:
        return np.zeros(0), np.zeros((len(curves), 0))
    grid = np.linspace(low, high, POINTS)
    values = [np.interp(grid, x, getattr(c, measure)) for x, c in zip(places, curves, strict=True)]
    return grid, np.array(values)


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lower and upper edge of the band around the mean over seeds [seeds, G]; None for one seed.

    From `MANY_SEEDS` seeds on a 95 % t interval of the mean, below that the lowest and the highest seed: an
    interval from two or three numbers would be wider than the picture, or wrong.
    """
    count = len(values)
    if count < 2:
        return None
    if count < MANY_SEEDS:
        return values.min(axis=0), values.max(axis=0)
    from scipy import stats

    half = stats.t.ppf(0.975, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return values.mean(axis=0) - half, values.mean(axis=0) + half


def band_words(num_seeds: int) -> str:
    """Say what the band is."""
    if num_seeds < 2:
        return "one seed, so no band"
    if num_seeds < MANY_SEEDS:
        return f"band: from the lowest to the highest of {num_seeds} seeds (too few for an interval)"
    return f"band: 95 % t interval of the mean over {num_seeds} seeds"
