"""Sequences of a trace in DeepRM's steps and units: windows of the part of the trace that a family has.

The parts follow one another in time, so that nothing of what is tested was there to learn from: the first
60 % of the jobs are for training, 20 % for validation, 20 % for tests, unless `shares` says otherwise.
Sequence i is a window of `sequence_length` steps at a random place of the part; one that runs over its end
goes on at its beginning, so that each step is as likely as any other and the load of the sequences is that of
the part.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedrl.settings import UserError, counted
from schedrl.sim.deeprm.sequences import Sequences
from schedrl.workload.constraint_lines import pool_lines
from schedrl.workload.slots import Grid, Rounding, SlotJobs, amounts_of, make_grid
from schedrl.workload.streams import FAMILIES
from schedrl.workload.types import Workload

from .job_settings import ClusterJobs
from .placed import PlacedJobs, load_text, stream, units_line, windows

State = tuple[int, int]


class Trace(NamedTuple):
    """A trace in three parts, and how it is rounded."""

    parts: Mapping[str, Workload]
    """Family -> its jobs."""
    grid: Grid


@lru_cache(maxsize=8)
def opened(jobs: ClusterJobs, state: State) -> Trace:
    """Read the trace and choose its grid by the training part. Another `state` of the file is read anew.

    Raises:
        UserError: it can't be read, has no usable job, or can't be parted.
    """
    own: Any = jobs.workload_settings
    parts: dict[str, Workload] = {family: own.part(family) for family in FAMILIES}
    amounts = np.max([amounts_of(part) for part in parts.values()], axis=0)
    grid = make_grid(
        parts["train"],
        amounts,
        jobs.capacities,
        jobs.max_job_duration,
        jobs.time_step,
        jobs.long_jobs == "reject",
    )
    return Trace(parts, grid)


class Part(NamedTuple):
    """One part at one load."""

    jobs: SlotJobs
    steps: int
    """Its length."""
    rounding: Rounding


@lru_cache(maxsize=8)
def part_of(jobs: ClusterJobs, state: State, family: str, load: float | None) -> Part:
    """Return the jobs of a family, their arrivals stretched so that they have this load after rounding.

    Raises:
        UserError: none of them can run.
    """
    grid, workload = opened(jobs, state).grid, opened(jobs, state).parts[family]
    name, start = f"the {family} part of {jobs.workload_settings.trace_file}", workload.arrival[0]
    placed, rounding = grid.place(workload, start)
    if not rounding.kept:
        raise UserError(
            f"no job of {name} can run here: "
            + ", ".join(f"{count} {reason}" for reason, count in rounding.rejected.items())
        )
    if workload.arrival[-1] == start:
        raise UserError(f"all {counted(len(workload), 'job')} of {name} arrive at once; take a longer trace")
    # As long as its jobs' mean gaps together, as `Workload.load` counts it.
    span = (workload.arrival[-1] - start) * len(workload) / (len(workload) - 1) / grid.time_step
    steps = max(1, round(span if load is None else float(grid.work(placed).max()) / load))
    placed, rounding = grid.place(workload, start, steps / span)
    return Part(placed._replace(arrival=np.minimum(placed.arrival, steps - 1)), steps, rounding)


def state_of(jobs: ClusterJobs) -> State:
    """Return what tells the file as it is now from an older one: time and size; zeros if there is none."""
    path = Path(jobs.workload_settings.trace_file)
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)


def around(part: Part, steps: int) -> SlotJobs:
    """Return the part's jobs again and again, for windows of so many steps that begin anywhere in it."""
    turns = 1 + -(-steps // part.steps)
    arrival = (part.jobs.arrival + part.steps * np.arange(turns)[:, None]).ravel()
    return SlotJobs(arrival, np.tile(part.jobs.duration, turns), np.tile(part.jobs.demand, (turns, 1)))


class TracedJobs(PlacedJobs):
    """The sequences of a trace."""

    def __init__(self, jobs: ClusterJobs, seed: int, family: str) -> None:
        super().__init__(jobs, seed, family, 0)
        self._parts = {load: part_of(jobs, state_of(jobs), self.family, load) for load in self.loads}
        self._around = {load: around(part, self.steps) for load, part in self._parts.items()}
        for load, part in self._parts.items():
            arrival = self._around[load].arrival
            first = np.arange(len(part.jobs.arrival))  # a fullest window begins with one of these
            most = int((np.searchsorted(arrival, arrival[first] + self.steps) - first).max())
            self.max_jobs = max(self.max_jobs, most)

    def part(self, number: int, load: float | None, count: int) -> Sequences:
        """Draw `count` windows of one load at random places."""
        starts = stream(self.seed, self.family, number, 0).integers(self._parts[load].steps, size=count)
        return windows(self._around[load], starts, self.steps, self.max_jobs)


def described(jobs: ClusterJobs) -> list[str]:
    """Say in a few lines what was read and rounded and how much comes."""
    state = state_of(jobs)
    workloads, grid = opened(jobs, state)
    resources, unit = workloads["train"].resources, workloads["train"].time_unit
    parts = {family: part_of(jobs, state, family, jobs.load) for family in FAMILIES}
    count = sum(map(len, workloads.values()))
    lines = [
        f"{jobs.workload_settings.trace_file}: {counted(count, 'job')}; " + units_line(grid, resources, unit)
    ]
    lines.append(jobs.workload_settings.told().shown())
    lines += jobs.workload_settings.rejected().lines()
    lines += pool_lines(*workloads.values())
    lines += sum((part.rounding for part in parts.values()), Rounding()).lines()
    for family, part in parts.items():
        apart = part.steps / jobs.sequence_length
        lines.append(
            f"{family}: {counted(part.rounding.kept, 'job')} in {part.steps:,} steps, load after rounding "
            f"{load_text(grid.work(part.jobs) / part.steps, grid, resources)}; "
            + (f"{apart:.1f} sequences without overlap" if apart > 1 else "a sequence repeats it")
        )
    return lines
