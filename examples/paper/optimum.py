"""The schedule with the least sum of slowdowns for jobs known beforehand, by OR-tools' CP-SAT.

Apart from clairvoyant_optimum.py, which runs it on test sequences, because it knows nothing of policies.
OR-tools is optional and imported when it is needed.
"""

from __future__ import annotations

from math import lcm
from typing import Any, NamedTuple

import numpy as np

from schedrl.settings import UserError


class Solved(NamedTuple):
    """The best schedule of one sequence, as sums of slowdowns over its jobs."""

    jobs: int
    found: float
    """Of the best schedule found: the optimum is at most this."""
    bound: float
    """Proven: the optimum is at least this."""

    @property
    def optimal(self) -> bool:
        """Say whether the schedule found is proven to be the best."""
        return self.found - self.bound < 1e-6


def solver() -> Any:
    """Return OR-tools' CP-SAT module.

    Raises:
        UserError: it isn't installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise UserError(
            'the optimum needs OR-tools, which is not installed; pip install "ortools>=9.10,<10"'
        ) from None
    return cp_model


class Jobs(NamedTuple):
    """The jobs of one sequence, J of them, and the machine."""

    arrival: np.ndarray  # [J] steps
    duration: np.ndarray  # [J] steps
    demand: np.ndarray  # [J, R] units
    capacity: np.ndarray  # [R] units

    @property
    def unit(self) -> int:
        """What all durations divide: times this, slowdowns are whole numbers."""
        return lcm(*self.duration.tolist())

    @property
    def weights(self) -> np.ndarray:
        """[J] what a step of waiting costs, in units."""
        return self.unit // self.duration

    def cost(self, start: np.ndarray) -> int:
        """Return the cost of all waiting under the starts [J]."""
        return int((self.weights * (start - self.arrival)).sum())

    def latest(self, start: np.ndarray) -> np.ndarray:
        """Return the latest starts [J] of any schedule better than `start` that leaves no gap for a job."""
        alone = self.arrival + self.cost(start) // self.weights
        return np.minimum(alone, self.arrival.max() + self.duration.sum() - self.duration)

    def limits(self) -> list[tuple[np.ndarray, int]]:
        """Return (what each job takes [J], of how much): the resources and, implied by them, the large jobs.

        Of jobs of more than half a resource one runs at a time, of jobs of half of it two: said outright, the
        solver's bound becomes much better.
        """
        found = []
        for units, capacity in zip(self.demand.T, self.capacity.tolist(), strict=True):
            large = np.where(2 * units > capacity, 2, (2 * units == capacity).astype(int))
            found += [(units, capacity), (large, 2)]
        return found


def solve(jobs: Jobs, start: np.ndarray | None = None, *, seconds: float, workers: int = 1) -> Solved:
    """Find the schedule with the least sum of slowdowns.

    A third of the time goes to a model of intervals, which finds good schedules; the rest to one with a
    yes-or-no for each job and start, whose linear relaxation proves bounds.

    Args:
        jobs: to be scheduled.
        start: [J] steps, a known schedule to begin with; none = one job after another.
        seconds: limit of the search.
        workers: threads.
    """
    count = len(jobs.arrival)
    if not count:
        return Solved(0, 0.0, 0.0)
    if start is None:
        start = jobs.arrival.max() + np.cumsum(jobs.duration) - jobs.duration
    start, bound = with_intervals(jobs, start, seconds / 3, workers)
    if bound < jobs.cost(start):
        start, better = with_choices(jobs, start, seconds * 2 / 3, workers)
        bound = max(bound, better)
    return Solved(count, count + jobs.cost(start) / jobs.unit, count + bound / jobs.unit)


def with_intervals(jobs: Jobs, start: np.ndarray, seconds: float, workers: int) -> tuple[np.ndarray, int]:
    """Improve the schedule `start` [J]; return the best found and a proven lower bound of the cost."""
    model = solver().CpModel()
    ranges = zip(jobs.arrival.tolist(), jobs.latest(start).tolist(), strict=True)
    starts = [model.new_int_var(first, last, "") for first, last in ranges]
    lengths = jobs.duration.tolist()
    spans = [model.new_fixed_size_interval_var(s, d, "") for s, d in zip(starts, lengths, strict=True)]
    for units, capacity in jobs.limits():
        model.add_cumulative(spans, units.tolist(), capacity)
    waits = [s - a for s, a in zip(starts, jobs.arrival.tolist(), strict=True)]
    model.minimize(sum(w * wait for w, wait in zip(jobs.weights.tolist(), waits, strict=True)))
    for variable, value in zip(starts, start.tolist(), strict=True):
        model.add_hint(variable, value)
    search, bound = searched(model, seconds, workers)
    return (np.array([search.value(s) for s in starts]), bound) if search else (start, bound)


def with_choices(jobs: Jobs, start: np.ndarray, seconds: float, workers: int) -> tuple[np.ndarray, int]:
    """Do the same with a variable for each job and start."""
    model = solver().CpModel()
    latest = jobs.latest(start)
    choices = []
    for job, (first, last) in enumerate(zip(jobs.arrival.tolist(), latest.tolist(), strict=True)):
        choices.append([(time, model.new_bool_var("")) for time in range(first, last + 1)])
        model.add_exactly_one(variable for _, variable in choices[job])
        for time, variable in choices[job]:
            model.add_hint(variable, time == start[job])
    running: list[list[tuple[int, Any]]] = [[] for _ in range(int((latest + jobs.duration).max()))]
    for job, duration in enumerate(jobs.duration.tolist()):
        for time, variable in choices[job]:
            for step in range(time, time + duration):
                running[step].append((job, variable))
    for units, capacity in jobs.limits():
        for there in running:
            model.add(sum(int(units[job]) * variable for job, variable in there if units[job]) <= capacity)
    costs = zip(jobs.weights.tolist(), jobs.arrival.tolist(), choices, strict=True)
    model.minimize(sum(w * (t - a) * variable for w, a, own in costs for t, variable in own))
    search, bound = searched(model, seconds, workers)
    if search is None:
        return start, bound
    return np.array([next(t for t, variable in own if search.value(variable)) for own in choices]), bound


def searched(model: Any, seconds: float, workers: int) -> tuple[Any, int]:
    """Search; return the solver, or None where it found no schedule in time, and the proven bound."""
    cp_model = solver()
    search = cp_model.CpSolver()
    search.parameters.max_time_in_seconds, search.parameters.num_workers = seconds, workers
    search.parameters.linearization_level = 2
    found = search.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return search if found else None, max(0, int(np.ceil(search.best_objective_bound - 1e-6)))
