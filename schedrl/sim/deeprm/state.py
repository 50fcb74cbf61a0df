"""The state of N clusters: three arrays with a row for each, and names for their columns.

A cluster is one row of integers, one of reals and one of machine words, so that a compiled function gets
three small arrays instead of thirty and a cluster's numbers lie together in memory. Kernels address columns
by the constants and the `Layout` below; everybody else reads `State`, whose properties are named views.

Times are steps of the episode; a job is known by its index in the environment's own sequence. Where jobs
overflow the slots they wait in arrival order, and a slot is refilled the moment it is freed, so the backlog
is always the run of jobs from BACKLOG_HEAD to NEXT_JOB (less the dropped ones): it needs no storage.

What is observed (booked jobs left, free units, jobs in the slots) is kept as it is shown, one block behind
another with row 0 = now: observing copies, and a time step moves a few dozen numbers down by a row.
"""

from typing import NamedTuple

import numpy as np

from .sequences import NEVER
from .spec import Spec

NOT_STARTED, DROPPED, REJECTED, SKIPPED = -1, -2, -3, -4  # values of `start` that are no time
NO_JOB = -1
TERM_NAMES = ("running", "slots", "backlog", "drop")

# Columns of the integers. IDLE_*: steps an empty machine let pass beside a startable job, in a row, in all.
TIME, NEXT_JOB, BACKLOG_HEAD, BACKLOG, OCCUPIED, RUNNING, BOOKED, SINCE_ARRIVAL = range(8)
IDLE_RUN, IDLE_STEPS, DECISIONS, ENDED, SEQUENCE, INT_HEADER = range(8, 14)
TERMINATED, TRUNCATED = 1, 2  # values of ENDED, 0 = the episode goes on
# Columns of the reals: weight of the jobs in each place, the reward's terms (TERM_NAMES), what the jobs of
# step 0 owe for that step (the last three terms), the return so far.
RUNNING_WEIGHT, SLOTS_WEIGHT, BACKLOG_WEIGHT, TERMS, OWED, RETURN, REAL_HEADER = 0, 1, 2, 3, 7, 10, 11


class Layout(NamedTuple):
    """Sizes, and where each block of columns begins. J jobs, R resources, S slots, H rows of the horizon."""

    jobs: int  # J
    capacity: int  # R integers
    slot: int  # S: job in each slot, NO_JOB = empty
    came: int  # S: step in which that job arrived, -1 = empty
    left: int  # H: booked jobs that finish later than now + h
    free: int  # R x H units
    queue: int  # S x (1 + R): duration and demands of the job in each slot, 0 = empty
    arrival: int  # J
    duration: int  # J
    demand: int  # J x R
    start: int  # J, or a value below 0 that says why there is none
    finish: int  # J
    booking: int  # J: order in which jobs were booked
    run_list: int  # J in booking order, only with the lingering quirk
    num_ints: int
    finishing_weight: int  # H + 1 reals: weight of the jobs booked, by finish time modulo H + 1
    weight: int  # J reals: 1 / duration, or 1
    num_reals: int
    num_words: int  # R x (largest capacity + 1): bit h of word v = row h has v units free


def layout_of(spec: Spec, max_jobs: int) -> Layout:
    """Place the blocks one behind another."""
    jobs, resources, horizon = max(1, max_jobs), spec.num_resources, spec.horizon
    blocks = {
        "capacity": resources,
        "slot": spec.num_slots,
        "came": spec.num_slots,
        "left": horizon,
        "free": resources * horizon,
        "queue": spec.num_slots * (1 + resources),
        "arrival": jobs,
        "duration": jobs,
        "demand": jobs * resources,
        "start": jobs,
        "finish": jobs,
        "booking": jobs,
        "run_list": jobs if spec.lingering else 0,
    }
    ends = (INT_HEADER + np.cumsum(list(blocks.values()))).tolist()
    starts = dict(zip(blocks, [INT_HEADER, *ends[:-1]], strict=True))
    return Layout(
        jobs=jobs,
        **starts,
        num_ints=INT_HEADER + sum(blocks.values()),
        finishing_weight=REAL_HEADER,
        weight=REAL_HEADER + horizon + 1,
        num_reals=REAL_HEADER + horizon + 1 + jobs,
        num_words=resources * (spec.max_capacity + 1) if spec.bitplanes else 0,
    )


def numbers_of(*records: NamedTuple) -> np.ndarray:
    """Lay the numbers of NamedTuples one behind another as int64, a real by its bits, for `jit.named`."""
    numbers = [number for record in records for number in record]
    return np.array([np.float64(x).view(np.int64) if isinstance(x, float) else int(x) for x in numbers])


class State:
    """The arrays of N clusters. Each property is a view [N, ...] that reads and writes them."""

    def __init__(self, spec: Spec, capacity: tuple[int, ...], num_envs: int, max_jobs: int) -> None:
        self.spec = spec
        self.layout = layout_of(spec, max_jobs)
        self.rules = numbers_of(spec, self.layout)
        self.ints = np.zeros((num_envs, self.layout.num_ints), np.int32)
        self.reals = np.zeros((num_envs, self.layout.num_reals))
        self.words = np.zeros((num_envs, self.layout.num_words), np.uint64)
        self.ints[:, self.layout.capacity : self.layout.capacity + spec.num_resources] = capacity
        self.arrival[:] = NEVER

    @property
    def arrays(self) -> tuple:
        """What loops over clusters take first: spec and layout as one array, integers, reals, words."""
        return self.rules, self.ints, self.reals, self.words

    @property
    def num_envs(self) -> int:
        """Number of clusters N."""
        return self.ints.shape[0]

    def _block(self, start: int, *shape: int) -> np.ndarray:
        return self.ints[:, start : start + int(np.prod(shape))].reshape(-1, *shape)

    @property
    def capacity(self) -> np.ndarray:
        """[R] units of each resource."""
        return self._block(self.layout.capacity, self.spec.num_resources)[0]

    @property
    def arrival(self) -> np.ndarray:
        """[N, J] step, NEVER where there is no job."""
        return self._block(self.layout.arrival, self.layout.jobs)

    @property
    def duration(self) -> np.ndarray:
        """[N, J] steps."""
        return self._block(self.layout.duration, self.layout.jobs)

    @property
    def demand(self) -> np.ndarray:
        """[N, J, R] units."""
        return self._block(self.layout.demand, self.layout.jobs, self.spec.num_resources)

    @property
    def start(self) -> np.ndarray:
        """[N, J] step, or NOT_STARTED, DROPPED, REJECTED, SKIPPED."""
        return self._block(self.layout.start, self.layout.jobs)

    @property
    def finish(self) -> np.ndarray:
        """[N, J] step, -1 where not booked."""
        return self._block(self.layout.finish, self.layout.jobs)

    @property
    def booking(self) -> np.ndarray:
        """[N, J] order of booking, -1 where not booked."""
        return self._block(self.layout.booking, self.layout.jobs)

    @property
    def slot_job(self) -> np.ndarray:
        """[N, S] job in each slot, NO_JOB where empty."""
        return self._block(self.layout.slot, self.spec.num_slots)

    @property
    def free(self) -> np.ndarray:
        """[N, R, H] free units now and in the rows ahead."""
        return self._block(self.layout.free, self.spec.num_resources, self.spec.horizon)

    @property
    def terms(self) -> np.ndarray:
        """[N, 4] reward of the last step by TERM_NAMES."""
        return self.reals[:, TERMS : TERMS + len(TERM_NAMES)]

    @property
    def ret(self) -> np.ndarray:
        """[N] undiscounted return so far."""
        return self.reals[:, RETURN]

    def column(self, name: int) -> np.ndarray:
        """[N] one of the integer columns (TIME, BACKLOG, ...)."""
        return self.ints[:, name]
