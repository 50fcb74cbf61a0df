"""Speed of the workloads: how long generating a million jobs takes, against drawing plain numbers.

Both sides run in turn on one core. Generating means all of it: random numbers, laws, sorting, and the checks
of `Workload`; what the checks alone take of it is shown beside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.paired import Side, interleaved, ratio, repeat
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings, one_of
from schedrl.workload import Workload
from schedrl.workload.generators import GENERATORS, generate, settings_of

DOUBLES_PER_JOB = 6
MOST = 8.0
"""Generating may take so many times as long as drawing `DOUBLES_PER_JOB` uniform doubles for each job."""

FROM_FILES = ("real_trace",)
"""Generators that read their jobs."""


@dataclass(frozen=True)
class WorkloadsBenchmark(Settings):
    """What to measure, and how often."""

    num_jobs: int = 1_000_000
    """Jobs that are generated at a time; at least 1."""
    rounds: int = 7
    """Times that every side is run; the median of the rounds' ratios counts."""
    generators: tuple[str, ...] = ()
    """Generators to measure; empty: all that draw."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_jobs", 1)
        self.in_range("rounds", 1)
        for name in self.generators:
            one_of("generator", name, drawing())


def drawing() -> list[str]:
    """List the generators that draw their jobs."""
    return [name for name in GENERATORS if name not in FROM_FILES]


def run(settings: WorkloadsBenchmark) -> None:
    """Measure and print."""
    _generate(settings, settings.generators or drawing())


def _once(work: Callable[[], object]) -> Side:
    return lambda seconds: repeat(lambda: work() is not None, seconds)


def _generate(settings: WorkloadsBenchmark, names: tuple[str, ...] | list[str]) -> None:
    rng = np.random.default_rng(0)
    sides = {"doubles": _once(lambda: rng.random(DOUBLES_PER_JOB * settings.num_jobs))}
    for name in names:
        jobs = settings_of(name)()
        drawn = generate(jobs, settings.num_jobs)
        sides[name] = _once(lambda jobs=jobs: generate(jobs, settings.num_jobs))  # type: ignore[misc]
        sides[f"{name}, checks"] = _once(lambda drawn=drawn: _again(drawn))  # type: ignore[misc]
    rates = interleaved(sides, settings.rounds, 0.0)
    rows = []
    for name in names:
        # A rate is in runs per second, so the inverse of the ratio of rates is that of the times.
        taken, checks = ratio(rates, "doubles", name), ratio(rates, "doubles", f"{name}, checks")
        met = f"met (at most {MOST:g}x)" if taken.median <= MOST else f"MISSED (at most {MOST:g}x)"
        milliseconds = 1000 / float(np.median(rates[name]))
        rows.append((name, f"{milliseconds:.0f} ms", str(taken), f"{checks.median:.1f}x", met))
    print_table(
        f"Generating {settings.num_jobs:,} jobs against drawing {DOUBLES_PER_JOB * settings.num_jobs:,} "
        f"doubles (median of {settings.rounds} ratios of time, quartiles)",
        ("generator", "time", "ratio", "checks alone", "bound"),
        rows,
    )


def _again(jobs: Workload) -> Workload:
    """Make a workload of arrays that are there already."""
    return Workload(
        jobs.arrival, jobs.duration, jobs.demand, jobs.resources, jobs.time_unit, jobs.estimate,
        capacity=jobs.capacity, extra=jobs.extra,
    )  # fmt: skip
