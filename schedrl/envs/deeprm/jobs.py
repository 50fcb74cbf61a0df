"""Where a batch of clusters gets its next job sequences from: streams without end, or given sequences."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.envs.in_turn import InTurn
from schedrl.settings import UserError, line_of
from schedrl.sim.deeprm.sequences import Sequences, from_steps, from_workload, narrowed, with_gaps
from schedrl.workload.deeprm import DeepRMJobs
from schedrl.workload.streams import BLOCK, SequenceStream
from schedrl.workload.types import Workload

from . import generated, traced
from .generated import GeneratedJobs
from .job_settings import TRACE, ClusterJobs
from .placed import PlacedJobs, jobs_only
from .traced import TracedJobs


class StreamedJobs(InTurn):
    """The sequences 0, 1, 2, ... of one family of a seed."""

    def __init__(self, jobs: DeepRMJobs, seed: int, family: str) -> None:
        self._stream = SequenceStream(jobs, seed, family)
        self._first = 0  # number of the first sequence in `_ready`
        self._ready: Sequences | None = None
        self.steps = self.max_jobs = jobs.sequence_length

    def at(self, numbers: np.ndarray) -> Sequences:
        """Return the sequences of these ascending, adjacent numbers.

        Raises:
            UserError: a number below 0.
        """
        first, end = int(numbers[0]), int(numbers[-1]) + 1
        if first < 0:
            raise UserError(f"sequence {first} does not exist; they are numbered from 0")
        if self._ready is None or first < self._first or end > self._first + self._ready.count:
            self._first = first // BLOCK * BLOCK
            count = -(-(end - self._first) // BLOCK) * BLOCK
            self._ready = with_gaps(*self._stream.take(self._first, count))
        found = self._ready.rows(slice(first - self._first, end - self._first))
        return found._replace(numbers=np.arange(first, end))


class GivenJobs(InTurn):
    """Sequences that the user gave, in turn."""

    def __init__(self, sequences: Sequences) -> None:
        self._sequences, self.total = sequences, sequences.count
        self.steps = sequences.steps
        self.max_jobs = sequences.arrival.shape[1]

    def at(self, numbers: np.ndarray) -> Sequences:
        """Return the sequences of these numbers.

        Raises:
            UserError: a number beyond the last sequence.
        """
        if (numbers < 0).any() or (numbers >= self._sequences.count).any():
            wrong = int(numbers[(numbers < 0) | (numbers >= self._sequences.count)][0])
            raise UserError(f"sequence {wrong} does not exist; there are 0..{self._sequences.count - 1}")
        return self._sequences.rows(numbers)


Source = StreamedJobs | GivenJobs | PlacedJobs


def jobs_of(settings: ClusterJobs, seed: int, family: str, workload: Any = None) -> Source:
    """Choose the source: `workload` is None, a `Workload`, `Sequences`, or `(durations, demands)` by step.

    Raises:
        UserError: the given jobs have other resources than the cluster; or the chosen workload has no usable
            job.
    """
    if workload is None:
        if not settings.placed:
            return StreamedJobs(settings, seed, family)
        kind = TracedJobs if settings.workload == TRACE else GeneratedJobs
        return kind(jobs_only(settings), seed, family)
    if isinstance(workload, Workload):
        sequences = from_workload(workload)
    elif isinstance(workload, Sequences):
        sequences = workload
    else:
        sequences = from_steps(*_arrays(workload))
    resources = sequences.demand.shape[2]
    if resources != settings.num_resources:
        raise UserError(
            f"the jobs have {resources} resources, the cluster has num_resources {settings.num_resources}; "
            "make them equal"
        )
    return GivenJobs(sequences)


def _arrays(workload: Any) -> tuple[Any, Any]:
    """Return durations and demands of jobs that are given as arrays, in a pair or by their names."""
    if isinstance(workload, Mapping) and set(workload) == {"durations", "demands"}:
        return workload["durations"], workload["demands"]
    if isinstance(workload, tuple | list) and len(workload) == 2:
        return workload[0], workload[1]
    has = f" with {', '.join(map(str, workload))}" if isinstance(workload, Mapping) and workload else ""
    raise UserError(
        f"workload is a {type(workload).__name__}{line_of(has)}; give the name of a workload, a Workload, or "
        "the arrays (durations [sequences, T], demands [sequences, T, resources]), as a pair or as "
        "{'durations': ..., 'demands': ...}"
    )


def sequences_of(settings: ClusterJobs, num_sequences: int, seed: int = 0, family: str = "test") -> Sequences:
    """Return the first `num_sequences` job sequences of a family."""
    if not settings.placed:
        return from_steps(*SequenceStream(settings, seed, family).take(0, num_sequences))
    found = jobs_of(settings, seed, family).at(np.arange(num_sequences))
    return narrowed(found._replace(numbers=None))  # drawn by blocks, each numbered from 0


def described(settings: ClusterJobs) -> list[str]:
    """Say in a few lines what was rounded and how much comes; nothing for DeepRM's own jobs.

    Raises:
        UserError: the workload has no usable job.
    """
    if not settings.placed:
        return []
    return (traced if settings.workload == TRACE else generated).described(jobs_only(settings))
