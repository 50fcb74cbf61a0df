"""What became of every job of many episodes: the one thing that evaluation reads."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from .sequences import NEVER
from .state import (
    DECISIONS,
    DROPPED,
    ENDED,
    IDLE_STEPS,
    NEXT_JOB,
    REJECTED,
    SKIPPED,
    TIME,
    TRUNCATED,
    State,
)


class JobStatus(IntEnum):
    """State of a job when its episode ended."""

    ABSENT = -1  # padding, no such job
    PENDING = 0  # not yet arrived
    FINISHED = 1
    RUNNING = 2
    RESERVED = 3  # booked, start lies ahead
    WAITING = 4
    DROPPED = 5  # the backlog was full
    REJECTED = 6  # can never run on this cluster


@dataclass(frozen=True)
class Outcome:
    """Jobs of X episodes, J jobs each in arrival order. Times in steps, -1 where not known."""

    arrival: np.ndarray  # [X, J] int32
    duration: np.ndarray  # [X, J] int32
    demand: np.ndarray  # [X, J, R] int32
    start: np.ndarray  # [X, J] int32
    finish: np.ndarray  # [X, J] int32
    status: np.ndarray  # [X, J] int8, JobStatus
    end_time: np.ndarray  # [X] int32
    cut_off: np.ndarray  # [X] bool: ended by the time limit
    decisions: np.ndarray  # [X] int32
    idle_steps: np.ndarray  # [X] int32: steps an idle machine let pass beside a startable job
    ret: np.ndarray  # [X] float64: undiscounted sum of rewards
    capacity: np.ndarray  # [R] int32

    @property
    def arrived(self) -> np.ndarray:
        """[X, J] bool: jobs that reached the cluster, dropped ones included."""
        return self.status >= JobStatus.FINISHED

    def jobs(self, episode: int = 0) -> dict[str, np.ndarray]:
        """List the jobs of one episode that have arrived, as columns.

        `job_id` counts arrivals; `legacy_id` is the original's number, which a dropped job gives back.
        """
        keep = self.arrived[episode]
        status = self.status[episode][keep]
        recorded = (status != JobStatus.DROPPED) & (status != JobStatus.REJECTED)
        legacy = np.where(recorded, np.cumsum(recorded) - 1, -1)
        return {
            "job_id": np.arange(keep.sum()),
            "legacy_id": legacy,
            "arrival_time": self.arrival[episode][keep],
            "start_time": self.start[episode][keep],
            "finish_time": self.finish[episode][keep],
            "duration": self.duration[episode][keep],
            "demand": self.demand[episode][keep],
            "status": np.array([JobStatus(s).name.lower() for s in status]),
        }


def outcome_of(state: State) -> Outcome:
    """Read what has become of every job of every cluster so far."""
    time = state.column(TIME)
    now = time[:, None]
    arrived = np.arange(state.layout.jobs) < state.column(NEXT_JOB)[:, None]
    start, finish = state.start, state.finish
    known = start >= 0
    cases = [
        ((state.arrival == NEVER) | (start == SKIPPED), JobStatus.ABSENT),
        (~arrived, JobStatus.PENDING),
        (start == REJECTED, JobStatus.REJECTED),
        (start == DROPPED, JobStatus.DROPPED),
        (known & (finish <= now), JobStatus.FINISHED),
        (known & (start <= now), JobStatus.RUNNING),
        (known, JobStatus.RESERVED),
    ]
    status = np.select([case for case, _ in cases], [value for _, value in cases], JobStatus.WAITING)
    return Outcome(
        arrival=state.arrival.copy(),
        duration=state.duration.copy(),
        demand=state.demand.copy(),
        start=np.where(known, start, -1),
        finish=np.where(known, finish, -1),
        status=status.astype(np.int8),
        end_time=time.copy(),
        cut_off=state.column(ENDED) == TRUNCATED,
        decisions=state.column(DECISIONS).copy(),
        idle_steps=state.column(IDLE_STEPS).copy(),
        ret=state.ret.copy(),
        capacity=state.capacity.copy(),
    )
