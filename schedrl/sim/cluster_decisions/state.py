"""The state of N clusters: the arrays of `schedrl.sim.cluster.state` with a leading axis, and a few more.

The functions of `schedrl.sim.cluster.kernel` take one `Row` as they take a run's `Cluster`. Under elastic
actions `demand` and the durations of a job become what it was granted when it starts; `asked` and `LENGTH`
keep what it asked for.
"""

from typing import NamedTuple

import numpy as np

from schedrl.sim.cluster.state import CLOCK, COUNTERS, DEVICE, LINK_COLUMNS
from schedrl.sim.deeprm.state import numbers_of
from schedrl.sim.jit import borrowed, leaf

from .spec import TERM_NAMES, Spec

# Places in `n` behind those of a run.
ENDED, ILLEGAL, SEQUENCE, NUM_JOBS, DONE, REFUSED, PRESENT = range(COUNTERS, COUNTERS + 7)
"""How the episode ended, illegal actions, number of the sequence, its jobs, finished and rejected jobs, and
the machines that this episode has: the others, which are the last, hold nothing and fit nothing."""
PLACING, PLACED, FURTHER = range(COUNTERS + 7, COUNTERS + 10)
"""Whether the first job of the queue is a gang of which `PLACED` instances have their machine; decisions that
placed a further instance of a gang, which the limit on decisions does not count."""
NUM_N = COUNTERS + 10
COLUMNS = 16
"""Of the arrays that a run has too: no fewer than `schedrl.sim.cluster.state` names in any of them."""
TERMINATED, TRUNCATED = 1, 2  # values of ENDED, 0 = the episode goes on
# Places in `x` behind those of a run, of which the clock is the last.
TERMS = CLOCK + 1
RETURN = TERMS + len(TERM_NAMES)
WAIT_WEIGHT, RUN_WEIGHT, RATE, LAST_ARRIVAL, LAST_BURST, GAP, BURST_TIME = range(RETURN + 1, RETURN + 8)
"""Sums over waiting and running jobs of what a unit of time costs them in slowdown; arrivals per unit of
time, smoothed; times of the last arrival and of the last burst (-1: none yet); the mean gap between arrivals
on the machines present, and the time over which the rate is smoothed."""
NUM_X = RETURN + 8
# Columns of `more` [J, ...]: run time at full shares, deadline, share granted, estimate as it is shown,
# arrival as it was given (that of `times` becomes the entry into the queue).
LENGTH, DEADLINE, SPEED, SHOWN, SUBMITTED = range(5)
NUM_MORE = 5
REJECTED_BY_POLICY = 99
"""Value of the column REJECT of a job that the policy turned away."""


class Row(NamedTuple):
    """One cluster. J jobs, I instances, M machines, D devices, R resources."""

    n: np.ndarray  # [NUM_N]
    x: np.ndarray  # [NUM_X]
    jobs: np.ndarray  # [J, COLUMNS]
    times: np.ndarray  # [J, COLUMNS]
    instances: np.ndarray  # [I, COLUMNS]
    machines: np.ndarray  # [M, COLUMNS]
    demand: np.ndarray  # [J, R] that is asked of a machine: at elastic's least shares, then as granted
    free: np.ndarray  # [R, M]
    capacity: np.ndarray  # [R, M]
    share: np.ndarray  # [M, D]
    used: np.ndarray  # [1, R] what all running jobs hold
    asked: np.ndarray  # [J, R]
    more: np.ndarray  # [J, NUM_MORE]
    queue: np.ndarray  # [J] waiting jobs in order
    history: np.ndarray  # [M] utilisation, smoothed
    largest: np.ndarray  # [R] capacity of any machine, 1 where none has any
    links: np.ndarray  # [J, LINK_COLUMNS]; [0, ...] where no sequence has constraints, as the next three
    pauses: np.ndarray  # [J, 2]
    after: np.ndarray  # [P] jobs that wait for others
    permitted: np.ndarray  # [K, M] whether a job of that set may run there; one for all clusters


@leaf
def row(s, k):
    """Return cluster k of the arrays of `State`, without reference counts: the caller holds them."""
    return Row(
        borrowed(s[0])[k], borrowed(s[1])[k], borrowed(s[2])[k], borrowed(s[3])[k], borrowed(s[4])[k],
        borrowed(s[5])[k], borrowed(s[6])[k], borrowed(s[7])[k], borrowed(s[8])[k], borrowed(s[9])[k],
        borrowed(s[10])[k], borrowed(s[11])[k], borrowed(s[12])[k], borrowed(s[13])[k],
        borrowed(s[14])[k], borrowed(s[15])[k], borrowed(s[16])[k], borrowed(s[17])[k], borrowed(s[18])[k],
        borrowed(s[19])[0],
    )  # fmt: skip


class Shape(NamedTuple):
    """Sizes of a batch."""

    num_envs: int
    jobs: int
    instances: int
    machines: int
    resources: int
    devices: int
    pairs: int = 0
    """Most pairs of a job and one that waits for it, of any sequence."""


FIXED = ("permitted",)
"""What is one for all clusters and never changes."""


class State:
    """The arrays of N clusters."""

    def __init__(
        self, spec: Spec, shape: Shape, capacity: np.ndarray, device: int, permitted: np.ndarray | None = None
    ) -> None:
        """Make N empty clusters.

        Args:
            spec: the rules.
            shape: the sizes.
            capacity: [R, M] micro-units.
            device: the resource that is made of devices, -1: none is.
            permitted: [K, M] whether a job of a set may run on a machine; None: all may run everywhere.
        """
        self.spec, self.shape, self.device, self.capacity = spec, shape, device, capacity
        self.rules = numbers_of(spec)
        size, jobs, instances, machines, resources, devices, pairs = shape
        sets = 0 if permitted is None else len(permitted)
        shapes = {
            "n": (NUM_N,),
            "x": (NUM_X,),
            "jobs": (jobs, COLUMNS),
            "times": (jobs, COLUMNS),
            "instances": (instances, COLUMNS),
            "machines": (machines, COLUMNS),
            "demand": (jobs, resources),
            "free": (resources, machines),
            "capacity": (resources, machines),
            "share": (machines, devices),
            "used": (1, resources),
            "asked": (jobs, resources),
            "more": (jobs, NUM_MORE),
            "queue": (jobs,),
            "history": (machines,),
            "largest": (resources,),
            "links": (jobs if pairs or sets else 0, LINK_COLUMNS),
            "pauses": (jobs if pairs else 0, 2),
            "after": (pairs,),
            "permitted": (sets, machines),
        }
        reals = ("x", "times", "more", "history", "pauses")
        made = {
            name: np.zeros((1 if name in FIXED else size, *dims), np.float64 if name in reals else np.int64)
            for name, dims in shapes.items()
        }
        made["capacity"][:] = capacity
        made["largest"][:] = np.maximum(capacity.max(axis=1), 1)
        made["n"][:, DEVICE] = device
        if permitted is not None:
            made["permitted"][0] = permitted
        self.arrays = Row(**made)

    @property
    def plain(self) -> tuple[np.ndarray, ...]:
        """The arrays as compiled functions take them."""
        return tuple(self.arrays)

    def copy(self) -> dict[str, np.ndarray]:
        """Return copies of all that changes, `[N, ...]` each."""
        return {name: array.copy() for name, array in self.arrays._asdict().items() if name not in FIXED}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Go back to a copy."""
        for name, array in self.arrays._asdict().items():
            if name not in FIXED:
                array[...] = saved[name]
