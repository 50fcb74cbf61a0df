"""RLScheduler's rules of play, written anew from its sources, to explain its published table.

Zhang et al., "RLScheduler: an automated HPC batch job scheduler using reinforcement learning", SC 2020;
github.com/DIR-LAB/deep-batch-scheduler: HPCSimPickJobs.py, make_table_script.py. It differs from a usual
batch scheduler in three ways:

1. The first job of the queue is chosen once and then waits for its processors, whoever arrives meanwhile.
2. Backfilling tries the others by arrival, needs them to end before the head's reservation, has no rule of
   extra nodes, and keeps the reservation made when the head was chosen.
3. The wait that WFP3 and UNICEP read is -1 - arrival: the start time of a job that has not started is kept as
   -1. So the later a job comes the further it is behind, in a power of 3 for WFP3, and large jobs with it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

PUBLISHED = {
    "fcfs": (7273.77, 235.82),
    "wfp3": (19753.53, 133.87),
    "unicep": (22274.74, 307.23),
    "sjf": (277.35, 73.31),
    "f1": (258.37, 75.07),
}
"""Average bounded slowdown on Lublin-1, without and with backfilling (the repository's readme, the paper's
table V)."""

NUM_WINDOWS, LENGTH = 10, 1024
SEED = 1


class Job(NamedTuple):
    """A job of the trace: times in s."""

    arrival: float
    duration: float
    procs: int


Score = Callable[[Job, float], tuple[float, ...]]
"""From a job and its wait to what is sorted by, lowest first."""

SCORES: dict[str, Score] = {
    "fcfs": lambda job, wait: (job.arrival,),
    "wfp3": lambda job, wait: (-((wait / job.duration) ** 3) * job.procs,),
    "unicep": lambda job, wait: (-(wait + 1e-15) / (math.log2(job.procs + 1e-15) * job.duration),),
    "sjf": lambda job, wait: (job.duration, job.arrival),
    "f1": lambda job, wait: (math.log10(job.duration) * job.procs + 870 * math.log10(max(job.arrival, 0.1)),),
}


def starts(num_jobs: int) -> list[int]:
    """Return the first jobs of the windows of the published table, as old versions of Gym drew them."""
    digest = hashlib.sha512(str(SEED).encode()).digest()
    rng = np.random.RandomState(np.frombuffer(digest[:8], "<u4"))  # noqa: NPY002 - the stream of that table
    return [int(rng.randint(LENGTH, num_jobs - LENGTH - 1)) for _ in range(NUM_WINDOWS)]


class Pool:
    """One pool of processors under those rules."""

    def __init__(
        self, jobs: list[Job], procs: int, score: Score, *, backfilling: bool, true_wait: bool
    ) -> None:
        self.jobs, self.free, self.score = jobs, procs, score
        self.backfilling, self.true_wait = backfilling, true_wait
        self.now, self.arrived = jobs[0].arrival, 1
        self.queue = [0]
        self.running: list[tuple[float, int]] = []
        self.start = [math.nan] * len(jobs)

    def bounded_slowdown(self) -> float:
        """Run all jobs; return the average of max(1, (wait + duration) / max(duration, 10))."""
        while self.queue:
            head = min(self.queue, key=lambda j: self.score(self.jobs[j], self.wait(j)))
            reserved = self.reservation(head)
            while self.free < self.jobs[head].procs:
                if self.backfilling:
                    self.backfill(reserved)
                self.advance()
            self.begin(head)
            while not self.queue and self.arrived < len(self.jobs):
                self.advance()
        return self.average()

    def average(self) -> float:
        """Return the average bounded slowdown of all jobs, which have started."""
        pairs = zip(self.start, self.jobs, strict=True)
        return float(np.mean([max(1, (s - j.arrival + j.duration) / max(j.duration, 10)) for s, j in pairs]))

    def bounded_slowdown_asked_anew(self) -> float:
        """Do the same, but choose the head anew at every arrival and finish, as batch schedulers do."""
        while self.queue or self.arrived < len(self.jobs):
            while self.queue:
                head = min(self.queue, key=lambda j: self.score(self.jobs[j], self.wait(j)))
                if self.free < self.jobs[head].procs:
                    if self.backfilling:
                        self.backfill(self.reservation(head))
                    break
                self.begin(head)
            self.advance()
            while self.more_now():
                self.advance()
        return self.average()

    def more_now(self) -> bool:
        """Say whether something else happens at this moment."""
        arrives = self.arrived < len(self.jobs) and self.jobs[self.arrived].arrival <= self.now
        return arrives or any(finish <= self.now for finish, _ in self.running)

    def wait(self, job: int) -> float:
        """Return the job's wait, or what RLScheduler takes for it."""
        return (self.now if self.true_wait else -1) - self.jobs[job].arrival

    def reservation(self, head: int) -> float:
        """Return when enough processors will be free."""
        free, when = self.free, self.now
        for finish, procs in sorted(self.running, key=lambda run: run[0]):
            if free >= self.jobs[head].procs:
                break
            free, when = free + procs, finish
        return when

    def backfill(self, reserved: float) -> None:
        """Start what fits and ends before the reservation, by arrival."""
        for j in sorted(self.queue):
            if self.jobs[j].procs <= self.free and self.now + self.jobs[j].duration < reserved:
                self.begin(j)

    def begin(self, job: int) -> None:
        """Start a job."""
        self.queue.remove(job)
        self.start[job] = self.now
        self.free -= self.jobs[job].procs
        self.running.append((self.now + self.jobs[job].duration, self.jobs[job].procs))

    def advance(self) -> None:
        """Go on to the next arrival or finish; arrivals first."""
        first = min(self.running, default=(math.inf, 0), key=lambda run: run[0])
        if self.arrived < len(self.jobs) and self.jobs[self.arrived].arrival <= first[0]:
            self.now = max(self.now, self.jobs[self.arrived].arrival)
            self.queue.append(self.arrived)
            self.arrived += 1
        else:
            self.now = max(self.now, first[0])
            self.running.remove(first)
            self.free += first[1]
