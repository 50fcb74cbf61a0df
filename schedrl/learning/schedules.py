"""How a setting moves while the budget is spent: pure functions of the progress in [0, 1]."""

from __future__ import annotations

import math

SCHEDULES = ("constant", "linear", "cosine")


def scheduled(kind: str, start: float, end: float, progress: float) -> float:
    """Return the value at `progress`: `start` for ever, or a line or half a cosine down to `end`."""
    progress = min(max(progress, 0.0), 1.0)
    if kind == "constant":
        return start
    if kind == "linear":
        return start + (end - start) * progress
    if kind == "cosine":
        return end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * progress))
    raise ValueError(f"unknown schedule {kind!r}; choose one of {', '.join(SCHEDULES)}")
