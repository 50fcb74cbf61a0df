"""Numbered job sequences out of rounded workloads: what generators and traces share.

Sequence number i is a pure function of the jobs' settings, the seed, the family and i, as in
`schedrl.workload.streams`; here several jobs may arrive in one step.
"""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from schedrl.envs.in_turn import InTurn
from schedrl.settings import UserError, one_of
from schedrl.sim.deeprm.sequences import NEVER, Sequences
from schedrl.workload.slots import Grid, SlotJobs
from schedrl.workload.streams import FAMILIES
from schedrl.workload.types import Resource

from .job_settings import ClusterJobs

BLOCK, STEPS = 256, 25_600
"""Sequences drawn together, fewer where they are long: about so many steps."""
CACHED_BLOCKS = 4


def jobs_only(settings: ClusterJobs) -> ClusterJobs:
    """Return what of an environment's settings concerns the jobs: the key of what is worked out once."""
    return ClusterJobs(**{name: getattr(settings, name) for name in ClusterJobs.kinds()})


class PlacedJobs(InTurn):
    """The sequences 0, 1, 2, ... of one family of a seed; subclasses draw them by blocks.

    Args:
        jobs: from `jobs_only`.
        seed: 0 or more.
        family: one of `FAMILIES`; `num_sequences` limits the training family only.
        max_jobs: most jobs of a sequence.
    """

    def __init__(self, jobs: ClusterJobs, seed: int, family: str, max_jobs: int) -> None:
        if seed < 0:
            raise UserError(f"seed is {seed}; it must be 0 or more")
        self.jobs, self.seed, self.family = jobs, seed, one_of("family", family, FAMILIES)
        self.steps, self.max_jobs = jobs.sequence_length, max_jobs
        training = family == "train"
        self.block = block_size(jobs)
        self.loads = (jobs.train_loads if training else ()) or (jobs.load,)
        """Loads that sequences have in turn, from the first of a block on; None: the workload's own."""
        self._cycle = jobs.num_sequences if training else 0
        self._blocks: dict[int, Sequences] = {}

    def at(self, numbers: np.ndarray) -> Sequences:
        """Return the sequences of these numbers.

        Raises:
            UserError: a number below 0.
        """
        if numbers.size and numbers.min() < 0:
            raise UserError(f"sequence {numbers.min()} does not exist; they are numbered from 0")
        blocks, rows = np.divmod(numbers % self._cycle if self._cycle else numbers, self.block)
        found = np.unique(blocks).tolist()
        if len(found) == 1:
            return self._drawn(found[0]).rows(rows)._replace(numbers=numbers)
        shape = (len(rows), self.max_jobs)
        arrival, duration = np.empty(shape, np.int32), np.empty(shape, np.int32)
        demand = np.empty((*shape, self.jobs.num_resources), np.int32)
        for block in found:
            here = blocks == block
            some = self._drawn(block).rows(rows[here])
            arrival[here], duration[here], demand[here] = some[:3]
        return Sequences(arrival, duration, demand, self.steps, numbers)

    @abstractmethod
    def part(self, number: int, load: float | None, count: int) -> Sequences:
        """Draw `count` sequences of one load, of `max_jobs` columns, from the random streams of `number`."""

    def _drawn(self, number: int) -> Sequences:
        if number not in self._blocks:
            if len(self._blocks) >= CACHED_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            turns = len(self.loads)
            parts = [
                self.part(number * turns + turn, load, len(range(turn, self.block, turns)))
                for turn, load in enumerate(self.loads)
            ]
            self._blocks[number] = parts[0] if turns == 1 else _in_turn(parts, self.block)
        return self._blocks[number]


def block_size(jobs: ClusterJobs) -> int:
    """Return how many sequences are drawn together."""
    return max(16, min(BLOCK, STEPS // jobs.sequence_length))


def stream(seed: int, family: str, number: int, purpose: int) -> np.random.Generator:
    """Return random numbers for one purpose in one block; no generator of jobs shares their stream."""
    key = (FAMILIES.index(one_of("family", family, FAMILIES)), number)
    return np.random.default_rng(np.random.SeedSequence([seed, 1 + purpose], spawn_key=key))


def _in_turn(parts: list[Sequences], count: int) -> Sequences:
    """Lay sequences together: the first of each part, the second of each, and so on."""
    columns = []
    for given in zip(*(part[:3] for part in parts), strict=True):
        whole = np.empty((count, *given[0].shape[1:]), np.int32)
        for turn, rows in enumerate(given):
            whole[turn :: len(given)] = rows
        columns.append(whole)
    arrival, duration, demand = columns
    return Sequences(arrival, duration, demand, parts[0].steps)


def windows(jobs: SlotJobs, starts: np.ndarray, steps: int, max_jobs: int) -> Sequences:
    """Cut sequences out of a list of jobs.

    Args:
        jobs: sorted by arrival.
        starts: [X] step 0 of each sequence.
        steps: length of a sequence.
        max_jobs: columns; further jobs of a sequence are left out.
    """
    if not len(jobs.arrival):
        shape = (len(starts), max_jobs)
        demand = np.zeros((*shape, jobs.demand.shape[1]), np.int32)
        return Sequences(np.full(shape, NEVER, np.int32), np.zeros(shape, np.int32), demand, steps)
    first, end = np.searchsorted(jobs.arrival, [starts, starts + steps])
    index = first[:, None] + np.arange(max_jobs)
    there = index < end[:, None]
    index[~there] = 0
    return Sequences(
        np.where(there, jobs.arrival[index] - starts[:, None], NEVER).astype(np.int32),
        np.where(there, jobs.duration[index], 0),
        np.where(there[:, :, None], jobs.demand[index], 0),
        steps,
    )


def units_line(grid: Grid, resources: Sequence[Resource], time_unit: str) -> str:
    """Say what a step and the capacity stand for."""
    stand = [
        f"{grid.capacity[i]} units stand for {amount:g} {resources[column].unit} of {resources[column].name}"
        for i, (column, amount) in enumerate(zip(grid.columns, grid.amounts, strict=True))
    ]
    idle = len(grid.capacity) - len(grid.columns)
    if idle:
        stand.append(f"nothing demands the other {idle} of num_resources {len(grid.capacity)}")
    return f"a step is {grid.time_step:g} {time_unit}; " + ", ".join(stand)


def load_text(load: np.ndarray, grid: Grid, resources: Sequence[Resource]) -> str:
    """Say the load [R] of each resource."""
    return ", ".join(f"{resources[column].name} {load[i]:.1%}" for i, column in enumerate(grid.columns))
