"""What a scheduler is told of run times: how many jobs have no estimate, and models that stand for one.

No real scheduler knows how long a job will run. Where a trace has no estimate the true run time stands for
it (`Workload.estimate_or_duration`), which makes shortest-job-first, backfilling and trained policies look
better than anything that can be run. So that is said wherever a result stands, and `--estimates` plays
without it:

| model | the estimate of a job is |
|---|---|
| `class-median` | the median run time of the jobs of its class that have finished before (`class_medians`) |
| `limit:SECONDS` | SECONDS, as where a queue has one limit for all |
| `noise:SIGMA` | its true run time times lognormal(0, SIGMA) |
| `true` | its true run time, for every job, whatever the trace has |

A model stands for the estimate of every job, also where the trace has one: else those without would be
favoured or punished. What it replaces is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.types import Workload
from schedrl.workload.units import SECONDS

CLASS_MEDIAN, LIMIT, NOISE, TRUE = "class-median", "limit", "noise", "true"
WRITE = f"write {CLASS_MEDIAN}, {LIMIT}:SECONDS, {NOISE}:SIGMA or {TRUE}"
NOTHING_KNOWN = 3600.0
"""Seconds that `class-median` says while no job has finished: the same for all, so it tells no two apart."""
MOST_SIGMA = 10.0
UPPER_BOUND = "so results are an upper bound of what can be reached"


@dataclass(frozen=True)
class Model:
    """A model by name, with its number."""

    name: str
    number: float = 0.0

    def __str__(self) -> str:
        """Return what a command line would say."""
        return f"{self.name}:{self.number:g}" if self.name in (LIMIT, NOISE) else self.name


def read_model(text: str) -> Model:
    """Return the model that `--estimates` names.

    Raises:
        UserError: there is none of that name, or its number is missing or out of range.
    """
    name, colon, number = text.strip().partition(":")
    name = name.replace("_", "-")
    if name in (CLASS_MEDIAN, TRUE) and not colon:
        return Model(name)
    try:
        value = float(number)
    except ValueError:
        value = np.nan
    if name == LIMIT and 0 < value <= 1e12:
        return Model(name, value)
    if name == NOISE and 0 <= value <= MOST_SIGMA:
        return Model(name, value)
    wanted = {LIMIT: "SECONDS above 0, at most 1e12", NOISE: f"SIGMA of 0 to {MOST_SIGMA:g}"}.get(name)
    raise UserError(
        f"estimates is {text!r}; " + (f"{name} takes {wanted}, for example {name}:1" if wanted else WRITE)
    )


def with_model(workload: Workload, model: Model, seed: int = 0) -> Workload:
    """Return the same jobs with the estimates of a model.

    Those of `class-median` depend on what has finished: here they are `UNKNOWN`, see `class_medians`.

    Args:
        workload: the jobs.
        model: see the top of this file.
        seed: of `noise`.
    """
    if model.name == LIMIT:
        limit = model.number / SECONDS.get(workload.time_unit, 1.0)
        return workload.estimated(np.full(len(workload), limit))
    if model.name == NOISE:
        factors = np.exp(model.number * np.random.default_rng(seed).standard_normal(len(workload)))
        return workload.estimated(workload.duration * factors)
    return workload.estimated(workload.duration if model.name == TRUE else None)


# -- medians of classes --------------------------------------------------------------------------------------


def classes(workload: Workload) -> np.ndarray:
    """Return what class each job belongs to, [3, J] whole numbers, the widest classes first.

    All jobs; jobs of one size; jobs of one size and user. Of one size are jobs that ask in all (instances x
    demand) for the same of each resource, up to the next power of two.
    """
    total = np.asarray(workload.instances)[:, None] * workload.demand
    steps = np.ceil(np.log2(total, out=np.full(total.shape, -np.inf), where=total > 0))
    _, size = np.unique(steps, axis=0, return_inverse=True)
    _, user = np.unique(np.asarray(workload.user).astype(str), return_inverse=True)
    size = size.reshape(-1)
    return np.stack([np.zeros_like(size), size, size * (user.max(initial=0) + 1) + user.reshape(-1)])


def class_medians(workload: Workload, known: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Return the estimate of every job from the jobs that are known, [J] in the workload's unit of time.

    It is the median run time of the known jobs of its user and size, without itself; of its size where
    there is none; of all where there is none; an hour where nothing is known.

    Args:
        workload: the jobs.
        known: [J] bool, those that have finished before.
        groups: what `classes` returns of them, if that was worked out before.
    """
    estimate = np.full(len(workload), NOTHING_KNOWN / SECONDS.get(workload.time_unit, 1.0))
    for group in classes(workload) if groups is None else groups:
        found = _medians(group, np.asarray(workload.duration), known)
        estimate = np.where(np.isnan(found), estimate, found)
    return estimate


def _medians(group: np.ndarray, duration: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the median of the known durations of each job's group without its own, NaN where it has none."""
    _, group = np.unique(group, return_inverse=True)
    some = np.flatnonzero(known)
    order = some[np.lexsort((duration[some], group[some]))]
    ordered, count = duration[order], np.bincount(group[some], minlength=int(group.max(initial=0)) + 1)
    first = np.cumsum(count) - count
    rank = np.full(len(group), np.iinfo(np.int64).max)  # of a job that isn't known: behind all
    rank[order] = np.arange(len(order)) - first[group[order]]
    left = count[group] - known
    there = left > 0
    middles = []
    for place in ((left - 1) // 2, left // 2):
        place = place + (place >= rank)  # over its own
        middles.append(ordered[np.where(there, first[group] + place, 0)] if len(ordered) else place * np.nan)
    return np.where(there, (middles[0] + middles[1]) / 2, np.nan)


# -- what is said --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """What the jobs of a result tell a scheduler of run times."""

    jobs: int
    lacking: int
    """Jobs without an estimate, before any model."""
    true: bool = False
    """Whether every estimate that there is equals the run time."""
    model: str = ""
    """That stands for the estimates; empty: none."""
    longer: int = 0
    """Jobs that run longer than the limit of the model `limit`."""

    def lines(self) -> Iterator[str]:
        """Yield what a reader of the result must know first; nothing where every job has an estimate."""
        if self.model:
            yield self._of_model()
        elif self.lacking:
            favoured = (
                "" if self.lacking == self.jobs else f", and {_these(self.lacking)} favoured over the others"
            )
            its = "its" if self.lacking == 1 else "their"
            yield (
                f"{self._without()}: {its} true run time is used, "
                f"which no scheduler knows, {UPPER_BOUND}{favoured}; "
                f"--estimates {CLASS_MEDIAN} plays without it"
            )
        elif self.true and self.jobs:
            yield (
                f"0 of {_jobs(self.jobs)} have no estimate, but all estimates equal the true run times, "
                f"which no scheduler knows, {UPPER_BOUND}"
            )

    def _without(self) -> str:
        return f"{self.lacking:,} of {_jobs(self.jobs)} {'has' if self.lacking == 1 else 'have'} no estimate"

    def _of_model(self) -> str:
        kept = self.jobs - self.lacking
        replaced = f"it replaces the estimates that {_jobs(kept)} had" if kept else "no job had an estimate"
        name = self.model.partition(":")[0]
        said = {
            CLASS_MEDIAN: "what a job is expected to take is the median of the jobs of its user and size "
            "that have finished before",
            LIMIT: f"every job is expected to take as long; {self.longer:,} take longer",
            NOISE: "what a job is expected to take is drawn around its true run time, which no scheduler "
            "knows",
            TRUE: f"the true run time is used for all, which no scheduler knows, {UPPER_BOUND}",
        }[name]
        return (
            f"--estimates {self.model}: {said}; {replaced} ({self.lacking:,} of {_jobs(self.jobs)} had none)"
        )

    def shown(self) -> str:
        """Say it where every run time is shown, whatever the jobs have."""
        unused = "" if self.lacking == self.jobs else "; the estimates of the others are not used"
        return (
            f"{self._without()}{unused}: DeepRM shows the true run "
            f"time of every job, which no scheduler knows, {UPPER_BOUND}"
        )

    def figures(self) -> dict[str, int | str]:
        """Return columns for a table: how many jobs have none, and what is used instead."""
        used = "true run times" if self.lacking or self.true else "as recorded"
        if 0 < self.lacking < self.jobs:
            used = "as recorded, true run times where there are none"
        if self.model:
            used = f"model {self.model}"
        return {"jobs_without_estimate": self.lacking, "estimates": used}


def told(workload: Workload, model: Model | None = None) -> Told:
    """Return what jobs as they were read tell, and the model that will stand for their estimates."""
    estimate = np.asarray(workload.estimate)
    lacking = int(np.isnan(estimate).sum())
    same = bool((np.isnan(estimate) | (estimate == workload.duration)).all())
    longer = 0
    if model is not None and model.name == LIMIT:
        longer = int((workload.duration > model.number / SECONDS.get(workload.time_unit, 1.0)).sum())
    return Told(len(workload), lacking, same, "" if model is None else str(model), longer)


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"


def _these(count: int) -> str:
    return "this job is" if count == 1 else "these jobs are"
