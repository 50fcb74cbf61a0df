"""How often a policy lets time pass although a visible job would have fitted: withheld jobs, by duration.

The paper's "where the gains come from" (HotNets 2016, Fig. 7): DeepRM is not work-conserving. Here a job is
*withheld* in a step if, when the step passes, it lies in a job slot, would run from now to its end in what is
free, and has not been started. Everything is read from an `Outcome` after the fact, so compiled heuristics
and learned policies are measured alike and nothing need be recorded while they play.

Two facts make that possible. Slots are refilled from the head of the backlog, so the visible jobs are those
that have waited longest. And without reservations what is free now only grows, so what fits now fits to its
end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedrl.settings import UserError
from schedrl.sim.deeprm.outcome import JobStatus, Outcome

WAITED = (JobStatus.FINISHED, JobStatus.RUNNING, JobStatus.WAITING)


@dataclass(frozen=True)
class Withholding:
    """Counts over all episodes; D = the longest duration, index d stands for jobs of d steps."""

    steps: int
    """Time steps played, those without any job included."""
    withheld_steps: int
    """Of these, steps in which at least one job was withheld."""
    job_steps: np.ndarray
    """[D + 1] pairs of a job and a step in which it was withheld."""
    jobs: np.ndarray
    """[D + 1] jobs that were withheld in at least one step."""
    arrived: np.ndarray
    """[D + 1] jobs that arrived."""

    @property
    def share_of_steps(self) -> float:
        """Return the share of time steps in which a fitting job was withheld (the paper's 23.4 %)."""
        return self.withheld_steps / max(self.steps, 1)

    def share_of_jobs(self, shortest: int, longest: int) -> float:
        """Return which share of the jobs of these durations (both included) was ever withheld; NaN: none."""
        span = slice(shortest, longest + 1)
        arrived = self.arrived[span].sum()
        return float(self.jobs[span].sum() / arrived) if arrived else float("nan")

    def share_of_withheld(self, shortest: int, longest: int) -> float:
        """Return which share of all withheld job-steps were of jobs of these durations; NaN: none at all."""
        total = self.job_steps.sum()
        return float(self.job_steps[shortest : longest + 1].sum() / total) if total else float("nan")


def withholding(outcome: Outcome, num_job_slots: int, allow_reservation: bool = False) -> Withholding:
    """Count withheld jobs in the episodes of `outcome`.

    Args:
        outcome: played under physics without reservations.
        num_job_slots: jobs that the policy could see and start.
        allow_reservation: of the physics that `outcome` was played under.

    Raises:
        UserError: with reservations it can't be told from an outcome when a job was booked.
    """
    if allow_reservation:
        raise UserError(
            "withheld jobs can't be counted where allow_reservation is True: an outcome doesn't say when a "
            "job was booked; play without reservations"
        )
    took_part = np.isin(outcome.status, WAITED)
    demand = outcome.demand.astype(np.int64)
    started = outcome.start >= 0
    ever = np.zeros(took_part.shape, bool)
    times = np.zeros(took_part.shape, np.int64)
    withheld_steps = 0
    for time in range(int(outcome.end_time.max(initial=0))):
        going = took_part & (time < outcome.end_time)[:, None]
        running = going & started & (outcome.start <= time) & (time < outcome.finish)
        free = outcome.capacity - np.einsum("xj,xjr->xr", running, demand)
        waiting = going & (outcome.arrival <= time) & (~started | (outcome.start > time))
        visible = waiting & (np.cumsum(waiting, axis=1) <= num_job_slots)
        held = visible & (demand <= free[:, None, :]).all(axis=2)
        withheld_steps += int(held.any(axis=1).sum())
        times += held
        ever |= held
    size = int(outcome.duration[outcome.arrived].max(initial=0)) + 1

    def by_duration(counts: np.ndarray) -> np.ndarray:
        mask = outcome.arrived
        return np.bincount(outcome.duration[mask], counts[mask], size).astype(np.int64)

    return Withholding(
        steps=int(outcome.end_time.sum()),
        withheld_steps=withheld_steps,
        job_steps=by_duration(times),
        jobs=by_duration(ever.astype(float)),
        arrived=by_duration(np.ones(ever.shape)),
    )
