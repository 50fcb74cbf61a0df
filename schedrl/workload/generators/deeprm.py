"""`deeprm` and `uniform`: the jobs of the DeepRM paper as a `Workload`; times in steps."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from schedrl.workload.deeprm import DeepRMJobs
from schedrl.workload.streams import SequenceStream
from schedrl.workload.types import Resource, Workload


@dataclass(frozen=True)
class UniformSettings(DeepRMJobs):
    """DeepRM's jobs with everything uniform from 1."""

    distribution: Literal["bimodal", "uniform"] = "uniform"
    """Sizes of the jobs: "uniform" (the original's `normal_dist`) or "bimodal" (paper, section 4.1)."""


def draw(jobs: DeepRMJobs, num_jobs: int, seed: int, family: str, number: int) -> Workload:
    """Lay the sequences of a stream end to end and cut after `num_jobs`.

    Number 0 is the stream of `seed` itself; the others have seeds made of seed, family and number.
    """
    if number:
        words = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(4)
        seed = int.from_bytes(words.tobytes(), "little")
    arrival, duration, demand = SequenceStream(jobs, seed, family).first_jobs(num_jobs)
    resources = [Resource(f"resource {index}") for index in range(jobs.num_resources)]
    columns = np.ascontiguousarray(demand.T, float).T  # a column at a time is read much faster so
    return Workload(arrival, duration, columns, resources, capacity=jobs.capacities)
