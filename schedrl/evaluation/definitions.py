"""What the measures are, on plain arrays: the same for DeepRM's steps and for clusters in seconds.

Apart, so that a slowdown is the same thing everywhere. What is not defined is NaN in an array and None in a
figure, never 0. Bounded slowdown: Feitelson, "Metrics for parallel job scheduling and their convergence",
JSSPP 2001; fairness index: Jain, Chiu, Hawe, DEC-TR-301, 1984.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TAU = 10.0
"""Seconds: shorter jobs count as that long in a bounded slowdown."""


def slowdown(turnaround: np.ndarray, duration: np.ndarray) -> np.ndarray:
    """Return turnaround / duration; NaN for jobs of duration 0."""
    return np.divide(turnaround, duration, out=np.full(np.shape(turnaround), np.nan), where=duration > 0)


def bounded_slowdown(turnaround: np.ndarray, duration: np.ndarray, tau: float = TAU) -> np.ndarray:
    """Return max(1, turnaround / max(duration, tau)), defined for jobs of any duration; tau above 0."""
    return np.maximum(1.0, turnaround / np.maximum(duration, tau))


def jain(values: np.ndarray) -> float | None:
    """Return (sum x)^2 / (n sum x^2): 1 = all equal, 1 / n = one has everything; None without values."""
    values = np.asarray(values, float)
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else None


def mean(values: np.ndarray) -> float | None:
    """Return the mean of the values that are defined; None without any."""
    values = np.asarray(values, float)
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def spread(values: np.ndarray, percentiles: Sequence[int] = (50, 95, 99)) -> dict[str, float | int | None]:
    """Return n, mean, percentiles (linear between two values) and max of the values that are defined."""
    values = np.asarray(values, float)
    known = values[~np.isnan(values)]
    names = [f"p{p}" for p in percentiles]
    if not known.size:
        return {"n": 0, **dict.fromkeys(["mean", *names, "max"])}
    found = np.percentile(known, percentiles)
    shares = dict(zip(names, map(float, found), strict=True))
    return {"n": int(known.size), "mean": float(known.mean()), **shares, "max": float(known.max())}


def over_time(
    values: np.ndarray, lasted: np.ndarray, percentiles: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """Return mean, percentiles and max of what changes over time, each value weighted by how long it lasted.

    A percentile p is the lowest value that was not exceeded for at least p % of the time.
    """
    total = float(lasted.sum())
    if not total > 0:
        return dict.fromkeys(["mean", *(f"p{p}" for p in percentiles), "max"])
    order = np.argsort(values, kind="stable")
    until = np.cumsum(lasted[order])
    at = [
        min(int(np.searchsorted(until, p / 100 * total * (1 - 1e-12))), len(order) - 1) for p in percentiles
    ]
    shares = {f"p{p}": float(values[order[i]]) for p, i in zip(percentiles, at, strict=True)}
    return {"mean": float(values @ lasted) / total, **shares, "max": float(values[lasted > 0].max())}
