"""Sequences of a generator (`schedrl.workload.generators`) in DeepRM's steps and units.

A block of sequences is one run of the generator, cut into windows that follow one another; a daily cycle
begins at a random time of the day. The step, the rate that gives the wanted load after rounding, and the room
for jobs are worked out once from samples that no sequence uses.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from schedrl.settings import UserError
from schedrl.sim.deeprm.sequences import Sequences
from schedrl.workload.generators import generate
from schedrl.workload.generators.clocks import DAY, DailyClock
from schedrl.workload.slots import Grid, Rounding, SlotJobs, amounts_of, make_grid
from schedrl.workload.types import Resource, Workload

from .job_settings import ClusterJobs
from .placed import PlacedJobs, block_size, load_text, stream, units_line, windows

SAMPLE = 50_000
"""Jobs by which the step and the rate are chosen."""
APART = 2**31
"""Number of the first workload for samples; sequences stay far below."""
SAMPLED_BLOCKS = 2


class Measures(NamedTuple):
    """What is worked out once for a generator."""

    grid: Grid
    work: np.ndarray
    """[R] seconds that a job keeps the whole of each resource busy, on average, after rounding."""
    resources: tuple[Resource, ...]
    time_unit: str

    def rate(self, own: Any, load: float | None) -> Any:
        """Return the generator's settings with the rate that gives `load` after rounding, or as they are."""
        if load is None:
            return own
        wanted = load / float(self.work.max())  # jobs per second
        return own.replace(load=wanted / own.replace(load=1.0).rate())


@cache
def measured(jobs: ClusterJobs) -> Measures:
    """Choose the grid of a generator and learn its load."""
    own: Any = jobs.workload_settings
    sample = generate(own, SAMPLE, number=APART)
    grid = make_grid(
        sample,
        amounts_of(sample),
        jobs.capacities,
        jobs.max_job_duration,
        jobs.time_step,
        jobs.long_jobs == "reject",
    )
    placed, rounding = grid.place(sample)
    if not rounding.kept:
        reasons = ", ".join(f"{count} {reason}" for reason, count in rounding.rejected.items())
        raise UserError(f"none of the jobs of workload {jobs.workload} can run here, of {SAMPLE}: {reasons}")
    work = grid.work(placed) / SAMPLE * grid.time_step
    return Measures(grid, work, tuple(sample.resources), sample.time_unit)


class GeneratedJobs(PlacedJobs):
    """The sequences of a generator."""

    def __init__(self, jobs: ClusterJobs, seed: int, family: str) -> None:
        super().__init__(jobs, seed, family, room(jobs))

    def part(self, number: int, load: float | None, count: int) -> Sequences:
        """Draw `count` sequences of one load: one run, cut into windows."""
        placed, _ = run(self.jobs, load, count, self.seed, self.family, number)
        return windows(placed, np.arange(count) * self.steps, self.steps, self.max_jobs)


def run(
    jobs: ClusterJobs, load: float | None, count: int, seed: int, family: str, number: int
) -> tuple[SlotJobs, Rounding]:
    """Return the jobs that arrive in the steps of `count` sequences, and what was rounded."""
    grid, own = measured(jobs).grid, measured(jobs).rate(jobs.workload_settings, load)
    seconds, start = count * jobs.sequence_length * grid.time_step, 0.0
    if daily(own):
        start = stream(seed, family, number, 1).uniform(0, DAY)
    drawn = until(own, start + seconds, seed, family, number)
    inside = slice(*np.searchsorted(drawn.arrival, [start, start + seconds]))
    if inside.start == inside.stop:  # a rate so low that nothing came
        empty = np.zeros((0, len(grid.capacity)), np.int32)
        return SlotJobs(np.zeros(0, np.int64), np.zeros(0, np.int32), empty), Rounding()
    return grid.place(drawn.take(inside), start)


def daily(own: Any) -> bool:
    """Tell whether a generator has a daily cycle: it begins at midnight, sequences must not."""
    clock = getattr(own, "clock", None)  # Lublin's jobs have a cycle for each class of them
    return clock is None or isinstance(clock(np.random.default_rng(0)), DailyClock)


def until(own: Any, seconds: float, seed: int, family: str, number: int) -> Workload:
    """Return a workload of a generator that lasts at least so long."""
    expected = own.rate() * seconds
    count = int(expected + 4 * np.sqrt(expected)) + 16
    while (drawn := generate(own, count, seed, family, number)).arrival[-1] < seconds:
        count *= 2
    return drawn


@cache
def samples(jobs: ClusterJobs) -> tuple[int, Rounding]:
    """Return the most jobs of a sequence and what was rounded, in sample blocks at the highest load."""
    loads = [load for load in (jobs.load, *jobs.train_loads) if load is not None]
    most, rounding = 0, Rounding()
    for number in range(APART, APART + SAMPLED_BLOCKS):
        placed, rounded = run(jobs, max(loads, default=None), block_size(jobs), 0, "train", number)
        most = max(most, int(np.bincount(placed.arrival // jobs.sequence_length, minlength=1).max()))
        rounding += rounded
    return most, rounding


def room(jobs: ClusterJobs) -> int:
    """Return how many jobs a sequence may hold: twice the most of any sample; further ones are left out."""
    return 2 * samples(jobs)[0] + 16


def described(jobs: ClusterJobs) -> list[str]:
    """Say in a few lines what was rounded and how much comes."""
    measures = measured(jobs)
    rate = measures.rate(jobs.workload_settings, jobs.load).rate()
    return [
        f"{jobs.workload}: " + units_line(measures.grid, measures.resources, measures.time_unit),
        *samples(jobs)[1].lines(),
        f"load {load_text(measures.work * rate, measures.grid, measures.resources)} after rounding: "
        f"{rate * measures.grid.time_step:.3g} jobs per step",
    ]
