"""The job distributions of DeepRM (HotNets 2016, section 4.1) and their settings.

Bernoulli arrivals: in each step a job comes with probability `arrival_rate`. The paper's *bimodal* jobs are
80 % short, 20 % long, each with a dominant resource; the sizes follow the original program, whose demands
are twice the paper's text (dominant 0.5 to 1 of the capacity, not 0.25 to 0.5; the loads of the paper's
figures need the program's). *Uniform* jobs are the program's `normal_dist`: everything uniform from 1.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from schedrl.settings import Settings
from schedrl.workload.units import LOADS

SHORT_CHANCE = 0.8


class Bounds(NamedTuple):
    """Smallest and largest value of a uniform whole number, both included."""

    low: int
    high: int

    @property
    def mean(self) -> float:
        """Expected value."""
        return (self.low + self.high) / 2

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw [size] values."""
        return rng.integers(self.low, self.high, size, dtype=np.int32, endpoint=True)


class Bimodal(NamedTuple):
    """Ranges of the bimodal jobs, scaled from the longest and the largest job as the original does."""

    short: Bounds
    long: Bounds
    dominant: Bounds
    other: Bounds

    @classmethod
    def scaled(cls, max_duration: int, max_demand: int) -> "Bimodal":
        """Scale; below 5 the original's range 1 to size // 5 is empty, so it is 1 to 1 there."""
        return cls(
            short=Bounds(1, max(1, max_duration // 5)),
            long=Bounds(max(1, max_duration * 2 // 3), max_duration),
            dominant=Bounds(max(1, max_demand // 2), max_demand),
            other=Bounds(1, max(1, max_demand // 5)),
        )


@dataclass(frozen=True)
class DeepRMJobs(Settings):
    """Which jobs come to a DeepRM cluster. Times in steps, demands in units of the resource."""

    distribution: Literal["bimodal", "uniform"] = "bimodal"
    """Sizes of the jobs: "bimodal" (paper, section 4.1) or "uniform" (the original's `normal_dist`)."""

    arrival_rate: float = 0.7
    """Chance that a job arrives in a step, 0 to 1. The bimodal default of 0.7 is a load of 129 %."""

    load: float | None = None
    """Load of the busiest resource (1.3 = 130 %); above 0; replaces `arrival_rate`. None: not given."""

    train_loads: tuple[float, ...] = ()
    """Loads that training sequences have in turn, so that one policy learns them all; empty: `load` or
    `arrival_rate`, which validation and test sequences always have."""

    sequence_length: int = 50
    """Steps in which jobs may arrive, at least 1 (paper: 50)."""

    num_sequences: int = 0
    """Number of different training sequences, used in turn (paper: 100); 0: a fresh one every time.
    Validation and test sequences are always fresh."""

    num_resources: int = 2
    """Number of resources, at least 1."""

    capacity: int | tuple[int, ...] = 10
    """Units of each resource, at least 1; one number stands for all resources."""

    max_job_duration: int = 15
    """Longest job that is generated, in steps, at least 1."""

    max_job_demand: int = 10
    """Largest demand that is generated, in units, at least 1 and at most the smallest capacity."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        for name in ("sequence_length", "num_resources", "capacity", "max_job_duration", "max_job_demand"):
            self.in_range(name, 1)
        self.in_range("num_sequences", 0)
        self.in_range("arrival_rate", 0, 1)
        self.in_range("load", *LOADS)
        self.check(
            len(self.capacities) == self.num_resources,
            f"capacity has {len(self.capacities)} values for num_resources {self.num_resources}; "
            "give one per resource, or one number for all",
        )
        self._check_jobs()

    def _check_jobs(self) -> None:
        """Refuse jobs that can't run or can't come so often."""
        self.check(
            self.max_job_demand <= min(self.capacities),
            f"max_job_demand {self.max_job_demand} exceeds capacity {min(self.capacities)}, such a job could "
            "never run; lower it or raise capacity",
        )
        self.rate()
        for load in self.train_loads:
            self.check(load > 0, f"train_loads has {load:g}; every load must be above 0")
            self.rate(load)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Units of each of the R resources."""
        return self.capacity if isinstance(self.capacity, tuple) else (self.capacity,) * self.num_resources

    def rate(self, load: float | None = None) -> float:
        """Return the chance of an arrival per step: for `load`, else for the settings' own load or rate.

        Raises:
            UserError: the load would need more than one job per step.
        """
        load = self.load if load is None else load
        if load is None:
            return self.arrival_rate
        highest = float(self.expected_load(1.0).max())
        shown = np.floor(highest * 1000 + 1e-6) / 1000  # never more than what is accepted
        self.check(
            load <= highest + 1e-12,
            f"load {load:g} needs more than one arrival per step; at most {shown:g} with these jobs "
            "(lower capacity, or raise max_job_duration or max_job_demand, for more)",
        )
        return min(1.0, load / highest)

    def expected_load(self, arrival_rate: float | None = None) -> np.ndarray:
        """Return the load of each resource, [R], 1 = 100 %: arrivals x E[duration] x E[demand] / capacity."""
        duration, demand = Bounds(1, self.max_job_duration).mean, Bounds(1, self.max_job_demand).mean
        if self.distribution == "bimodal":
            sizes = Bimodal.scaled(self.max_job_duration, self.max_job_demand)
            duration = SHORT_CHANCE * sizes.short.mean + (1 - SHORT_CHANCE) * sizes.long.mean
            demand = (sizes.dominant.mean + (self.num_resources - 1) * sizes.other.mean) / self.num_resources
        rate = self.rate() if arrival_rate is None else arrival_rate
        return rate * duration * demand / np.array(self.capacities, float)

    def draw(
        self, rng: np.random.Generator, num_sequences: int, training: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw durations [num_sequences, T] and demands [num_sequences, T, R], int32; 0 = no arrival.

        `training` gives them the `train_loads` in turn, where there are any.
        """
        steps, resources = num_sequences * self.sequence_length, self.num_resources
        rates = [self.rate(load) for load in self.train_loads] if training else []
        of_sequence = np.resize(rates or [self.rate()], num_sequences)
        arrives = rng.random(steps) < np.repeat(of_sequence, self.sequence_length)
        if self.distribution == "bimodal":
            sizes = Bimodal.scaled(self.max_job_duration, self.max_job_demand)
            short = rng.random(steps) < SHORT_CHANCE
            durations, long = sizes.short.draw(rng, steps), sizes.long.draw(rng, steps)
            np.copyto(durations, long, where=~short)
            dominant = np.arange(0, steps * resources, resources) + rng.integers(resources, size=steps)
            large = sizes.dominant.draw(rng, steps * resources)
            demands = sizes.other.draw(rng, steps * resources)
            demands[dominant] = large[dominant]
        else:
            durations = Bounds(1, self.max_job_duration).draw(rng, steps)
            demands = Bounds(1, self.max_job_demand).draw(rng, steps * resources)
        durations *= arrives
        demands *= np.repeat(arrives, resources)
        shape = (num_sequences, self.sequence_length)
        return durations.reshape(shape), demands.reshape(*shape, resources)
