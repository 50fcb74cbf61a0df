"""Endless, numbered job sequences in three families that never meet: train, validation, test.

Sequence number i is a pure function of the settings, the seed, the family and i: whoever asks, in whatever
order and from whatever process, gets the same jobs, so that every policy is measured on the same ones.
"""

from typing import Literal, get_args

import numpy as np

from schedrl.settings import UserError, one_of

from .deeprm import DeepRMJobs

Family = Literal["train", "validation", "test"]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""Jobs to learn from; to choose checkpoints, knobs and thresholds by; to make claims on."""

BLOCK = 256
"""Sequences drawn together: NumPy is fast from about this size on. Part of the definition of a stream."""
CACHED_BLOCKS = 4

LEAST_RATE = 1e-6
"""Jobs per step below which drawing a few would take minutes."""


class SequenceStream:
    """The sequences of one family.

    Args:
        jobs: their distribution.
        seed: 0 or more; streams of different seeds are independent.
        family: one of `FAMILIES`. `jobs.num_sequences` limits the training family only.

    Raises:
        UserError: a negative seed or an unknown family.
    """

    def __init__(self, jobs: DeepRMJobs, seed: int, family: str = "train") -> None:
        if seed < 0:
            raise UserError(f"seed is {seed}; it must be 0 or more")
        self.jobs = jobs
        self.seed = seed
        self.family = one_of("family", family, FAMILIES)
        self._spawn_key = FAMILIES.index(self.family)
        self._cycle = jobs.num_sequences if family == "train" else 0
        self._blocks: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def take(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sequences first, first + 1, ..., first + count - 1.

        Returns:
            durations [count, T] int32 steps, 0 = no arrival; demands [count, T, R] int32 units. Fresh arrays.
        """
        numbers = np.arange(first, first + count)
        if self._cycle:
            numbers %= self._cycle
        durations = np.empty((count, self.jobs.sequence_length), np.int32)
        demands = np.empty((count, self.jobs.sequence_length, self.jobs.num_resources), np.int32)
        for block in np.unique(numbers // BLOCK).tolist():
            rows = numbers // BLOCK == block
            drawn_durations, drawn_demands = self._block(block)
            durations[rows] = drawn_durations[numbers[rows] % BLOCK]
            demands[rows] = drawn_demands[numbers[rows] % BLOCK]
        return durations, demands

    def first_jobs(self, num_jobs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lay the sequences end to end and return the first jobs.

        Returns:
            arrival [J] steps, duration [J], demand [J, R], J = `num_jobs`.

        Raises:
            UserError: no job ever arrives.
        """
        if self.jobs.rate() < LEAST_RATE:
            raise UserError(
                f"arrival_rate is {self.jobs.rate():g}, so no job ever arrives; make it at least "
                f"{LEAST_RATE:g}, or give load"
            )
        parts, found, taken = [], 0, 0
        while found < num_jobs:
            durations, demands = self.take(taken, BLOCK) if self._cycle else self._block(taken // BLOCK)
            steps = np.flatnonzero(durations)
            parts.append(
                (steps + taken * durations.shape[1], durations.ravel()[steps], _rows(demands)[steps])
            )
            found, taken = found + len(steps), taken + BLOCK
        arrival, duration, demand = (np.concatenate(part)[:num_jobs] for part in zip(*parts, strict=True))
        return arrival, duration, demand

    def _block(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        if number not in self._blocks:
            if len(self._blocks) >= CACHED_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            seeds = np.random.SeedSequence(self.seed, spawn_key=(self._spawn_key, number))
            self._blocks[number] = self.jobs.draw(
                np.random.default_rng(seeds), BLOCK, training=self.family == "train"
            )
        return self._blocks[number]


def _rows(demands: np.ndarray) -> np.ndarray:
    return demands.reshape(-1, demands.shape[-1])
