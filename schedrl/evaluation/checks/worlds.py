"""Pairs of worlds that are one and the same up to a moment: what a relation changes lies behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.declared import CLOCK, NUMBER_OF_JOBS, RUN_TIMES
from schedrl.workload.types import Workload

STRETCH = 3.0
LEAST = 1e-6
"""Of the moment: a job whose rest is shorter keeps its run time, lest rounding end it before."""


class World(NamedTuple):
    """Jobs, and a moment in the course of them."""

    jobs: Workload
    moment: float
    start: np.ndarray | None = None
    """[J] starts in a run, NaN where there was none; what `run_times` needs."""
    finish: np.ndarray | None = None
    """[J] finishes in it, likewise."""

    @property
    def after(self) -> np.ndarray:
        """[J] the jobs that arrive after the moment."""
        return np.asarray(self.jobs.arrival) > self.moment


def later(world: World, rng: np.random.Generator) -> Workload:
    """Let other jobs come after the moment, as many: each is one of all jobs, and the gaps are shuffled."""
    jobs, after = world.jobs, np.flatnonzero(world.after)
    taken = np.arange(len(jobs))
    taken[after] = rng.integers(len(jobs), size=len(after))
    first = float(jobs.arrival[after[0]])
    gaps = rng.permutation(np.diff(jobs.arrival[after]))
    arrival = np.array(jobs.arrival)
    arrival[after] = first + np.concatenate([[0.0], np.cumsum(gaps)])
    left = (np.asarray(jobs.deadline) - jobs.arrival)[taken]
    columns: dict[str, Any] = {
        name: np.asarray(getattr(jobs, name))[taken]
        for name in ("duration", "demand", "estimate", "instances", "priority", "user")
    }
    columns["deadline"] = np.where(world.after, arrival + left, np.asarray(jobs.deadline))
    return replace(jobs, arrival=arrival, **columns)


def fewer(world: World, rng: np.random.Generator) -> Workload:
    """Let half of the jobs after the moment not come, the last among them."""
    after = np.flatnonzero(world.after)
    gone = np.append(rng.permutation(after[:-1])[: len(after) // 2], after[-1])
    return world.jobs.take(~np.isin(np.arange(len(world.jobs)), gone))


def none(world: World, rng: np.random.Generator) -> Workload:
    """Let nothing come after the moment."""
    return world.jobs.take(~world.after)


def stretched(world: World, rng: np.random.Generator) -> Workload:
    """Make the times from the moment to all later arrivals STRETCH times as long."""
    jobs = world.jobs
    put_off = np.where(world.after, (STRETCH - 1.0) * (jobs.arrival - world.moment), 0.0)
    return replace(jobs, arrival=jobs.arrival + put_off, deadline=np.asarray(jobs.deadline) + put_off)


def run_times(world: World, rng: np.random.Generator) -> Workload:
    """Let jobs that aren't done at the moment run for another time, which ends after it; estimates stay."""
    jobs, now = world.jobs, world.moment
    assert world.start is not None
    assert world.finish is not None
    begun = np.nan_to_num(world.start, nan=np.inf) <= now
    undone = ~(np.nan_to_num(world.finish, nan=np.inf) <= now)
    factor = rng.choice([0.25, 0.5, 2.0, 5.0], len(jobs))
    elapsed = np.where(begun, now - np.nan_to_num(world.start), 0.0)
    rest = np.maximum(jobs.duration - elapsed, 0.0) * factor
    duration = elapsed + rest
    if not (jobs.duration % 1).any():  # whole steps, up to the longest that there are
        duration = np.minimum(np.ceil(duration), jobs.duration.max())
    sure = undone & (rest > LEAST * max(now, 1.0))
    return replace(jobs, duration=np.where(sure, duration, jobs.duration))


class Relation(NamedTuple):
    """What is changed behind the moment."""

    change: Callable[[World, np.random.Generator], Workload]
    known: frozenset[str]
    """Kinds of declared knowledge that may show it."""


RELATIONS: dict[str, Relation] = {
    "later": Relation(later, frozenset()),
    "fewer": Relation(fewer, frozenset({NUMBER_OF_JOBS, CLOCK})),
    "none": Relation(none, frozenset({NUMBER_OF_JOBS, CLOCK})),
    "stretched": Relation(stretched, frozenset({CLOCK})),
    "run_times": Relation(run_times, frozenset({RUN_TIMES})),
}
"""What is tried."""
