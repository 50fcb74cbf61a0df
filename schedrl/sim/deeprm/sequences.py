"""Job sequences as the simulator reads them: jobs in arrival order, padded to one length.

The original stores an array per time step with at most one arrival each; a list of jobs is shorter, allows
several arrivals in one step, and makes the job's index its identity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from schedrl.settings import UserError

if TYPE_CHECKING:
    from schedrl.workload.types import Workload

NEVER = np.iinfo(np.int32).max


class Sequences(NamedTuple):
    """X job sequences of at most J jobs over R resources."""

    arrival: np.ndarray  # [X, J] int32 step, ascending; NEVER where there is no job
    duration: np.ndarray  # [X, J] int32 steps
    demand: np.ndarray  # [X, J, R] int32 units
    steps: int  # arrivals are over from this step on
    numbers: np.ndarray | None = None  # [X] by which sampled play names them; None: 0, 1, 2, ...

    @property
    def count(self) -> int:  # type: ignore[override]  # hides the tuple's own, which nobody wants here
        """Number of sequences X."""
        return self.arrival.shape[0]

    @property
    def names(self) -> np.ndarray:
        """Return [X] the numbers of the sequences, which they keep in `rows`."""
        return np.arange(self.count) if self.numbers is None else self.numbers

    def rows(self, index: np.ndarray | slice) -> Sequences:
        """Take some of the sequences."""
        columns = self.arrival[index], self.duration[index], self.demand[index]
        return Sequences(*columns, self.steps, self.names[index])


def from_steps(durations: np.ndarray, demands: np.ndarray) -> Sequences:
    """Build sequences from arrays over time steps, the original's format.

    Args:
        durations: [X, T] or [T] whole steps, 0 = no arrival in that step.
        demands: [X, T, R] or [T, R] whole units.

    Raises:
        UserError: shapes that do not belong together, fractions or negative numbers.
    """
    durations, demands = _whole("durations", durations), _whole("demands", demands)
    if durations.ndim == 1:
        durations, demands = durations[None], demands[None]
    if durations.ndim != 2 or demands.shape[:-1] != durations.shape or not durations.shape[1]:
        raise UserError(
            f"durations must be [sequences, T] and demands [sequences, T, resources], "
            f"got {list(durations.shape)} and {list(demands.shape)}"
        )
    present = durations > 0
    counts = present.sum(axis=1)
    num_jobs = max(1, int(counts.max(initial=0)))
    # Jobs move to the left in order of arrival: both masks list them alike, sequence by sequence.
    filled = np.arange(num_jobs) < counts[:, None]
    source = np.zeros(filled.shape, np.int64)
    source[filled] = np.flatnonzero(present)
    rows = demands.reshape(-1, demands.shape[2])
    return Sequences(
        arrival=np.where(filled, source % durations.shape[1], NEVER).astype(np.int32),
        duration=np.where(filled, durations.ravel().take(source), 0).astype(np.int32),
        demand=np.where(filled[:, :, None], rows.take(source, axis=0), 0).astype(np.int32),
        steps=durations.shape[1],
    )


def from_workload(workload: Workload) -> Sequences:
    """Build one sequence from a workload whose times and demands are whole steps and units.

    Raises:
        UserError: a fraction, a duration of 0, or a gang (`instances` above 1): DeepRM has no such jobs.
    """
    arrival = _whole("arrival", workload.arrival)
    duration = _whole("duration", workload.duration)
    demand = _whole("demand", workload.demand)
    if (duration < 1).any():
        job = int(np.argmax(duration < 1))
        raise UserError(
            f"job {np.asarray(workload.id)[job]} has duration 0; DeepRM needs at least 1 step, round it up"
        )
    if (np.asarray(workload.instances) != 1).any():
        raise UserError("DeepRM has no gangs: every job must have instances = 1; split or merge them first")
    return Sequences(
        arrival[None].astype(np.int32),
        duration[None].astype(np.int32),
        demand[None].astype(np.int32),
        steps=int(arrival.max(initial=0)) + 1,
    )


def with_gaps(durations: np.ndarray, demands: np.ndarray) -> Sequences:
    """Build the jobs of `from_steps` with a column per step, arrival NEVER where none comes; takes no time.

    Such sequences can be loaded into clusters (`batch.load` closes the gaps), no more.

    Args:
        durations: [X, T] int32 steps, 0 = no arrival.
        demands: [X, T, R] int32 units.
    """
    steps = durations.shape[1]
    arrival = np.where(durations > 0, np.arange(steps, dtype=np.int32), np.int32(NEVER))
    return Sequences(arrival, durations, demands, steps)


def padded(sequences: Sequences, num_jobs: int) -> Sequences:
    """Widen sequences to `num_jobs` columns by jobs that never come, so that they can be put together."""
    extra = num_jobs - sequences.arrival.shape[1]
    if extra <= 0:
        return sequences
    return Sequences(
        np.pad(sequences.arrival, ((0, 0), (0, extra)), constant_values=NEVER),
        np.pad(sequences.duration, ((0, 0), (0, extra))),
        np.pad(sequences.demand, ((0, 0), (0, extra), (0, 0))),
        sequences.steps,
        sequences.numbers,
    )


def narrowed(sequences: Sequences) -> Sequences:
    """Take off the columns at the end in which no job ever comes."""
    used = max(1, int((sequences.arrival != NEVER).sum(axis=1).max(initial=0)))
    arrival, duration, demand = (np.ascontiguousarray(column[:, :used]) for column in sequences[:3])
    return Sequences(arrival, duration, demand, sequences.steps, sequences.numbers)


def _whole(name: str, values: np.ndarray) -> np.ndarray:
    try:
        values = np.asarray(values)
    except ValueError:  # lists of several lengths
        values = np.zeros(0, object)
    if values.dtype.kind not in "iuf":
        raise UserError(f"{name} must be an array of numbers, every row of one length; got {values.dtype}")
    if values.dtype.kind == "f":
        rounded = np.rint(values)
        if not np.array_equal(rounded, values):
            raise UserError(
                f"{name} must be whole numbers for DeepRM, got {values[rounded != values][0]}; round first"
            )
        values = rounded
    if values.size and values.min() < 0:
        raise UserError(f"{name} must not be negative, got {values.min():g}")
    return values
