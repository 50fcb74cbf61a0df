"""Does a policy buy its mean by refusing hard jobs? Two signs, each with its numbers.

1. Jobs that it never started: still waiting when their episode ended, or dropped by a full backlog.
2. A step in the slowdown curve: hardly any job in a wide range of slowdowns, then a group of jobs far above
   it.

Hard = among the quarter of arrived jobs with the most work (duration x largest demanded share of a resource).
A warning says how much of the group is hard, so that a reader can tell overload (a quarter) from refusal
(nearly all). DeepRM's own paper sees its agent withhold "almost always only large jobs" (section 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedrl.evaluation.metrics import arrived, never_started, slowdowns
from schedrl.sim.deeprm.outcome import JobStatus, Outcome

STEP_RATIO = 2.0
"""A gap in the curve counts as a step if its right end is this many times its left end..."""
STEP_MIN_SLOWDOWN = 4.0
"""...and the right end is at least this slowdown (below, slowdowns are few simple fractions)..."""
STEP_MIN_SHARE = 0.005
"""...and at least this share of the jobs, and 10 of them, lie above it."""
STEADY_SHARE = 0.001
"""Never-started jobs among those of a steady-state window from which they are worth a warning: a few always
wait when the simulation stops. Outside of windows one is enough."""
CONCENTRATED = 0.5
"""Share of hard jobs from which a group counts as made of hard jobs (chance: about 0.25)."""


@dataclass(frozen=True)
class Refusal:
    """What the two signs say about one policy."""

    waiting: int
    """Jobs still waiting when their episode ended."""
    dropped: int
    """Jobs dropped by a full backlog."""
    share: float
    """Never-started jobs among the arrived ones."""
    hard_share: float
    """Hard jobs among the never-started ones (NaN if there are none)."""
    enough: bool
    """Whether the never-started jobs are enough for a warning."""
    step: tuple[float, float] | None
    """Ends of the gap in the slowdown curve."""
    step_share: float
    """Jobs above the gap among the arrived ones."""
    step_hard_share: float
    """Hard jobs among those above the gap (NaN if there is no gap)."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each sign, none for a clean policy."""
        lines = []
        if self.enough:
            kind = "refuses hard jobs" if self.hard_share >= CONCENTRATED else "leaves jobs behind"
            lines.append(
                f"{kind}: {self.waiting} waiting and {self.dropped} dropped jobs were never started "
                f"({self.share:.2%} of arrivals; {self.hard_share:.0%} of them among the hardest quarter)"
            )
        if self.step is not None and self.step_hard_share >= CONCENTRATED:
            lines.append(
                f"holds hard jobs back: no slowdown between {self.step[0]:.3g} and {self.step[1]:.3g}, yet "
                f"{self.step_share:.2%} of jobs above ({self.step_hard_share:.0%} among the hardest quarter)"
            )
        return tuple(lines)


def work(outcome: Outcome) -> np.ndarray:
    """Return duration x largest demanded share of a resource, float [X, J]: steps of the whole machine."""
    return outcome.duration * (outcome.demand / outcome.capacity).max(axis=2)


def detect(outcome: Outcome, window: tuple[int, int] | None = None) -> Refusal:
    """Look for both signs in the jobs of `outcome` (those that arrived in `window`)."""
    counts = arrived(outcome, window)
    hard = _hard(work(outcome), counts)
    left = never_started(outcome) & counts
    step, above = _step(slowdowns(outcome, window=window))
    total = max(int(counts.sum()), 1)
    return Refusal(
        waiting=int((left & (outcome.status == JobStatus.WAITING)).sum()),
        dropped=int((left & (outcome.status == JobStatus.DROPPED)).sum()),
        share=float(left.sum() / total),
        hard_share=float(hard[left].mean()) if left.any() else float("nan"),
        enough=bool(left.sum() > (0 if window is None else STEADY_SHARE * total)),
        step=step,
        step_share=float(above.sum() / total),
        step_hard_share=float(hard[above].mean()) if above.any() else float("nan"),
    )


def _hard(amount: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mark jobs with more work than three quarters of those that count."""
    if not counts.any():
        return np.zeros_like(counts)
    limit = np.percentile(amount[counts], 75)
    hard = counts & (amount > limit)
    return hard if hard.any() else counts & (amount >= limit)


def _step(values: np.ndarray) -> tuple[tuple[float, float] | None, np.ndarray]:
    """Return the ends of the widest gap that counts as a step, and the jobs above it, bool [X, J]."""
    ordered = np.sort(values[np.isfinite(values)])
    low, high = ordered[:-1], ordered[1:]
    needed = max(10, int(np.ceil(STEP_MIN_SHARE * len(ordered))))
    above = len(ordered) - 1 - np.arange(len(low))
    ratio = np.where((high >= STEP_MIN_SLOWDOWN) & (above >= needed), high / np.maximum(low, 1.0), 0.0)
    if not len(ratio) or ratio.max() < STEP_RATIO:
        return None, np.zeros(values.shape, bool)
    widest = int(np.argmax(ratio))
    return (float(low[widest]), float(high[widest])), np.nan_to_num(values, nan=-1.0) >= high[widest]
