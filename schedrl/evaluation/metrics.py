"""What an outcome is worth: slowdown, completion time, counts and utilisation of simulated episodes.

Every job that arrived counts. A job that isn't finished when its episode ends at time E (waiting, booked,
running, dropped or rejected) enters with the time it has spent so far, E - arrival: a lower bound of its
completion time, and divided by the duration a lower bound of its slowdown. Scoring finished jobs only, as the
original's report did, makes a policy that never starts long jobs look best. Three choices to know:

- The bound is not raised to 1, nor is the known finish of a running job used, so that with discount 1 minus
  the return equals the sum of the slowdowns of undropped jobs under every ending (on an arrival late in a
  ``no_new_job`` episode it may be below 1, for every policy alike).
- Jobs that had not arrived at E (``PENDING``) and padding (``ABSENT``) never count.
- A job of duration 0 has no slowdown: it is left out of slowdowns and stays in counts and completion times.

Arrays are [X] sequences by [J] jobs; times are steps. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedrl.evaluation import definitions
from schedrl.sim.deeprm.outcome import JobStatus, Outcome

PERCENTILES = (50, 95, 99)


def arrived(outcome: Outcome, window: tuple[int, int] | None = None) -> np.ndarray:
    """Mark the jobs that count, bool [X, J]: arrived, in `window` (first <= arrival < last) if given."""
    counts = outcome.arrived
    if window is not None:
        counts = counts & (outcome.arrival >= window[0]) & (outcome.arrival < window[1])
    return counts


def finished(outcome: Outcome) -> np.ndarray:
    """Mark the jobs that finished no later than their episode ended, bool [X, J]."""
    return (outcome.status == JobStatus.FINISHED) & (outcome.finish <= outcome.end_time[:, None])


def never_started(outcome: Outcome) -> np.ndarray:
    """Mark the arrived jobs that the policy left waiting or let drop, bool [X, J]."""
    return (outcome.status == JobStatus.WAITING) | (outcome.status == JobStatus.DROPPED)


def completion_times(outcome: Outcome, window: tuple[int, int] | None = None) -> np.ndarray:
    """Return finish - arrival in steps, float [X, J]: E - arrival if unfinished, NaN where no job counts."""
    until = np.where(finished(outcome), outcome.finish, outcome.end_time[:, None])
    return np.where(arrived(outcome, window), until - outcome.arrival.astype(np.int64), np.nan)


def slowdowns(outcome: Outcome, floor: bool = False, window: tuple[int, int] | None = None) -> np.ndarray:
    """Return completion time / duration, float [X, J]; NaN where no job counts.

    `floor` rounds down each value, as the original's report does (Python 2 integer division).
    """
    time = completion_times(outcome, window)
    values = definitions.slowdown(time, outcome.duration)
    return np.floor(values) if floor else values


def waits(outcome: Outcome) -> np.ndarray:
    """Return start - arrival in steps, float [X, J]: E - arrival if it never started, NaN if not counted."""
    end = outcome.end_time[:, None]
    until = np.where(outcome.start >= 0, np.minimum(outcome.start, end), end)
    return np.where(arrived(outcome), until - outcome.arrival.astype(np.int64), np.nan)


def sums_and_counts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each sequence's sum and number of jobs, two float [X] (for resampling)."""
    valid = np.isfinite(values)
    return np.where(valid, values, 0.0).sum(axis=1), valid.sum(axis=1).astype(float)


def usage(outcome: Outcome) -> np.ndarray:
    """Return the units of each resource in use during each step, float [X, T, R], T = longest episode.

    A job occupies the steps start <= t < finish, as far as the episode went.
    """
    num_sequences, _, num_resources = outcome.demand.shape
    length = int(outcome.end_time.max(initial=0))
    begins, ends = _busy_interval(outcome)
    sequence, job = np.nonzero(ends > begins)
    row = sequence * (length + 1)
    result = np.empty((num_sequences, length, num_resources))
    for resource in range(num_resources):
        units = outcome.demand[sequence, job, resource].astype(float)
        size = num_sequences * (length + 1)
        change = np.bincount(row + begins[sequence, job], units, size)
        change -= np.bincount(row + ends[sequence, job], units, size)
        result[:, :, resource] = change.reshape(num_sequences, -1).cumsum(axis=1)[:, :length]
    return result


def utilisation(outcome: Outcome) -> np.ndarray:
    """Return the used share of each resource, float [R], over all steps of all episodes."""
    begins, ends = _busy_interval(outcome)
    used = np.einsum("xj,xjr->r", (ends - begins).astype(float), outcome.demand.astype(float))
    return used / np.maximum(outcome.capacity * float(outcome.end_time.sum()), 1.0)


def _busy_interval(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and one past the last step in which each job ran, both 0 if it never did."""
    end = outcome.end_time[:, None].astype(np.int64)
    ran = arrived(outcome) & (outcome.start >= 0) & (outcome.start < end)
    begins = np.where(ran, outcome.start, 0)
    return begins, np.where(ran, np.minimum(begins + outcome.duration, end), 0)


@dataclass(frozen=True)
class Summary:
    """The measures of one policy on its test sequences; slowdowns pooled over jobs, times in steps."""

    arrived: int
    """Jobs that count."""
    finished: int
    """Of these, finished by the end of their episode."""
    unfinished: int
    """Waiting, booked or running at the end."""
    dropped: int
    """Turned away by a full backlog."""
    rejected: int
    """Refused because the machine could never run them."""
    episodes: int
    """Test sequences played."""
    cut_off: int
    """Episodes stopped by the limit on their length."""
    mean: float
    """Mean slowdown of all arrived jobs (lower bound if any is not finished)."""
    mean_finished: float
    """The same over finished jobs only: flatters a policy that leaves jobs behind."""
    p50: float
    p95: float
    p99: float
    max: float
    completion_time: float
    """Mean of finish - arrival over all arrived jobs."""
    iqm: float
    """Interquartile mean of the sequences' mean slowdowns."""
    utilisation: tuple[float, ...]
    """Used share of each resource."""
    idle_share: float
    """Share of steps with an idle machine while a visible job could start."""
    decisions: int
    mean_return: float
    """Mean undiscounted return of an episode."""

    @property
    def complete(self) -> bool:
        """Say whether every arrived job finished, so that the mean is exact and not a lower bound."""
        return self.finished == self.arrived


def summarise(outcome: Outcome, floor: bool = False, window: tuple[int, int] | None = None) -> Summary:
    """Measure `outcome`; `floor` and `window` as in `slowdowns`."""
    from schedrl.evaluation.statistics import iqm

    counts = arrived(outcome, window)
    values = slowdowns(outcome, floor, window)
    flat, done = values[np.isfinite(values)], finished(outcome) & counts
    sums, numbers = sums_and_counts(values)
    p50, p95, p99 = np.percentile(flat, PERCENTILES) if flat.size else (np.nan,) * 3
    turned_away = [
        int((counts & (outcome.status == code)).sum()) for code in (JobStatus.DROPPED, JobStatus.REJECTED)
    ]
    steps = max(int(outcome.end_time.sum()), 1)
    return Summary(
        arrived=int(counts.sum()),
        finished=int(done.sum()),
        unfinished=int(counts.sum() - done.sum()) - sum(turned_away),
        dropped=turned_away[0],
        rejected=turned_away[1],
        episodes=len(outcome.end_time),
        cut_off=int(outcome.cut_off.sum()),
        mean=_mean(flat),
        mean_finished=_mean(values[done & np.isfinite(values)]),
        p50=float(p50),
        p95=float(p95),
        p99=float(p99),
        max=float(flat.max()) if flat.size else np.nan,
        completion_time=_mean(completion_times(outcome, window)[counts]),
        iqm=iqm(sums[numbers > 0] / numbers[numbers > 0]),
        utilisation=tuple(float(share) for share in utilisation(outcome)),
        idle_share=float(outcome.idle_steps.sum()) / steps,
        decisions=int(outcome.decisions.sum()),
        mean_return=_mean(outcome.ret),
    )


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if np.size(values) else float("nan")
