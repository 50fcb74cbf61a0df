"""Any workload in the whole steps and units of a cluster such as DeepRM's, and what that rounding did.

Apart from the environment because it is arithmetic on jobs alone. The rules (docs/workloads.md has them too):

* a *step* is `time_step` of the workload's time; a *unit* is that share of a resource which 1 / capacity is;
* an arrival is rounded down, a duration and a demand up, so that nothing takes less than it did; a duration
  is at least a step, a demand of nothing stays nothing;
* a gang is one job with the demands of all its instances: a pool has no machines to part it over;
* a job that demands more than there is, or nothing of what the cluster has, is rejected; one that is too
  long is cut to the longest duration or rejected. All are counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .types import Workload

FITTING = 90
"""Percentage of the jobs whose durations fit the longest one allowed, where the step is not given."""
SLACK = 1e-9
"""Relative error of a float that must not become a further step or unit."""

TOO_LARGE = "demands more than the cluster has"
NO_DEMAND = "demands none of the cluster's resources"
TOO_LONG = "longer than max_job_duration"


class SlotJobs(NamedTuple):
    """J jobs in whole numbers, sorted by arrival."""

    arrival: np.ndarray  # [J] int64 step
    duration: np.ndarray  # [J] int32 steps, at least 1
    demand: np.ndarray  # [J, R] int32 units


@dataclass(frozen=True)
class Rounding:
    """What became of the jobs. Work is in shares of the whole cluster times steps, over all resources."""

    rejected: Mapping[str, int] = field(default_factory=dict)
    """Reason -> jobs."""
    kept: int = 0
    clipped: int = 0
    """Jobs cut to the longest duration."""
    sharing: int = 0
    """Jobs that arrive in the same step as one before them."""
    exact: float = 0.0
    """Work of the kept jobs as they were given."""
    whole_steps: float = 0.0
    """Work with durations rounded up."""
    whole_units: float = 0.0
    """Work with demands rounded up as well."""
    final: float = 0.0
    """Work after cutting."""

    @property
    def given(self) -> int:
        """Jobs before any was rejected."""
        return self.kept + sum(self.rejected.values())

    def __add__(self, other: "Rounding") -> "Rounding":
        """Return what became of both."""
        counts = Counter(self.rejected)
        counts.update(other.rejected)
        numbers = [name for name in self.__dataclass_fields__ if name != "rejected"]
        return Rounding(counts, **{name: getattr(self, name) + getattr(other, name) for name in numbers})

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        said = [f"{self.kept:,} of {self.given:,} jobs kept"]
        said += [f"{count:,} rejected ({reason})" for reason, count in sorted(self.rejected.items())]
        if not self.kept:
            return [", ".join(said)]
        cut = f"; cutting {self.clipped:,} long jobs takes {1 - self.final / self.whole_units:.1%} of it"
        cut += " (a longer time_step cuts less)"
        return [
            ", ".join(said),
            f"rounding adds {_more(self.whole_steps, self.exact)} of work in durations and "
            f"{_more(self.whole_units, self.whole_steps)} in demands (a larger capacity has finer units)"
            + (cut if self.clipped else ""),
            f"{self.sharing / self.kept:.0%} of the jobs arrive in the same step as the one before",
        ]


@dataclass(frozen=True)
class Grid:
    """Steps and units: how a workload's numbers become a cluster's."""

    time_step: float
    """Length of a step in the workload's unit of time."""
    columns: tuple[int, ...]
    """Which of the workload's resources the cluster has; it may have further ones that nothing demands."""
    amounts: tuple[float, ...]
    """What the full capacity of each of these stands for, in the workload's units."""
    capacity: tuple[int, ...]
    """[R] units of the cluster's resources."""
    max_duration: int
    """Longest duration in steps."""
    reject_long: bool = False
    """Reject longer jobs instead of cutting them."""

    def shares(self, workload: Workload) -> np.ndarray:
        """Return what share of each of `columns` every job takes, all its instances together. [J, C]."""
        together = workload.demand[:, self.columns] * np.asarray(workload.instances)[:, None]
        return together / np.array(self.amounts)

    def place(
        self, workload: Workload, start: float = 0.0, stretch: float = 1.0
    ) -> tuple[SlotJobs, Rounding]:
        """Return the jobs in steps and units, and what was rounded.

        Args:
            workload: the jobs; those that arrive before `start` are not to be among them.
            start: time of step 0, in the workload's unit.
            stretch: arrivals, counted from there, are multiplied by it before they are rounded.
        """
        shares, exact = self.shares(workload), workload.duration / self.time_step
        steps = np.maximum(_up(exact), 1)
        wrong = {
            NO_DEMAND: ~(shares > 0).any(axis=1),
            TOO_LARGE: (shares > 1 + SLACK).any(axis=1),
            TOO_LONG: (steps > self.max_duration) & self.reject_long,
        }
        kept, rejected = np.ones(len(workload), bool), {}
        for reason, rows in wrong.items():
            if count := int((rows & kept).sum()):
                rejected[reason] = count
            kept &= ~rows
        shares, exact, steps = shares[kept], exact[kept], steps[kept]
        full = np.array(self.capacity[: len(self.columns)])
        units = np.minimum(_up(shares * full), full)
        demand = np.zeros((len(steps), len(self.capacity)), np.int32)
        demand[:, : len(self.columns)] = units
        cut = np.minimum(steps, self.max_duration)
        arrival = np.floor((workload.arrival[kept] - start) * (stretch / self.time_step)).astype(np.int64)
        given, rounded = shares.sum(axis=1), (units / full).sum(axis=1)
        return SlotJobs(arrival, cut.astype(np.int32), demand), Rounding(
            rejected,
            kept=int(kept.sum()),
            clipped=int((steps > cut).sum()),
            sharing=int((np.diff(arrival) == 0).sum()),
            exact=float(exact @ given),
            whole_steps=float(steps @ given),
            whole_units=float(steps @ rounded),
            final=float(cut @ rounded),
        )

    def work(self, jobs: SlotJobs) -> np.ndarray:
        """Return steps for which the full capacity of each resource would be busy. [R]."""
        return jobs.duration @ jobs.demand / np.array(self.capacity)


def amounts_of(workload: Workload) -> np.ndarray:
    """Return what the cluster has of each resource: as the workload says, else what its largest job demands.

    [R], in the workload's units.
    """
    largest = (workload.demand * np.asarray(workload.instances)[:, None]).max(axis=0)
    full = np.asarray(workload.capacity, float)
    full = np.where(np.isnan(full), largest, full)
    return np.where(full > 0, full, 1.0)  # 1: nothing ever demands it


def make_grid(
    workload: Workload,
    amounts: np.ndarray,
    capacity: Sequence[int],
    max_duration: int,
    time_step: float | None = None,
    reject_long: bool = False,
) -> Grid:
    """Choose steps and units for a workload.

    Args:
        workload: the jobs to choose by.
        amounts: what the real cluster has of each of the workload's resources, see `amounts_of`.
        capacity: [R] units of the cluster's resources.
        max_duration: longest duration in steps.
        time_step: length of a step; None: so that `FITTING` percent of the jobs fit `max_duration`, rounded
            up to two digits.
        reject_long: reject what is longer instead of cutting it.

    Returns:
        the grid. Where the workload has more resources than the cluster, it has those with the most work for
            their size, in the workload's order; resources that nothing demands are left out.
    """
    step = _fitting(workload.duration, max_duration) if time_step is None else time_step
    together = workload.demand * np.asarray(workload.instances)[:, None]
    busy = np.maximum(workload.duration, step) @ together / amounts
    chosen = np.sort(np.argsort(-busy, kind="stable")[: len(capacity)])
    chosen = chosen[busy[chosen] > 0]
    return Grid(
        float(step),
        tuple(chosen.tolist()),
        tuple(amounts[chosen].tolist()),
        tuple(capacity),
        max_duration,
        reject_long,
    )


def _fitting(duration: np.ndarray, max_duration: int) -> float:
    """Return the step with which `FITTING` percent of the durations fit, rounded up to two digits."""
    step = float(np.percentile(duration, FITTING)) / max_duration
    if not step > 0:  # most jobs take no time at all
        step = float(duration.max()) / max_duration or 1.0
    digit = 10.0 ** (np.floor(np.log10(step)) - 1)
    return float(f"{np.ceil(step / digit * (1 - SLACK)) * digit:.2g}")


def _more(after: float, before: float) -> str:
    return f"{after / before - 1:.1%}" if before else "all"


def _up(values: np.ndarray) -> np.ndarray:
    return np.ceil(values * (1 - SLACK))
