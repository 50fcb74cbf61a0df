"""Speed by the number of workers: of A3C, whose workers learn, and of PPO, whose workers step environments.

A3C stands against A2C: the same network, environment and size of gradients. PPO is in `local_workers`.

Workers are processes, so seconds are those of the clock; beside them stands the processor time of all
processes, which tells what a machine with a core for each would do. Starting (importing TensorFlow, tracing)
is left out: the clock starts once every worker has made updates.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import local_workers
from benchmarks.paired import interleaved, per_second, ratio
from benchmarks.processor import seconds_of
from schedrl import registry
from schedrl.envs.deeprm import DeepRMSettings, DeepRMVectorEnv
from schedrl.evaluation.table import print_table
from schedrl.learning.budget import Budget
from schedrl.learning.run_folder import Run
from schedrl.settings import Settings, UserError, one_of

RATE = 0.7
NEVER = 10**12


@dataclass(frozen=True)
class WorkersBenchmark(Settings):
    """What to measure, and how long."""

    compare: tuple[str, ...] = ("a3c", "ppo")
    """Which of the two: a3c, ppo."""
    num_workers: tuple[int, ...] = (1, 2)
    """Numbers of workers of A3C."""
    local_workers: tuple[int, ...] = (1, 2, 4)
    """Numbers of processes that step PPO's environments; 1 is the process that learns."""
    rounds: int = 3
    """Times that every side is started and measured; the median of the rounds' ratios counts."""
    seconds: float = 10.0
    """Seconds of each measurement, by the clock."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in self.compare:
            one_of("compare", name, ("a3c", "ppo"))
        self.in_range("num_workers", 1)
        self.in_range("local_workers", 1)
        self.in_range("rounds", 1)
        self.in_range("seconds", 0, open_low=True)


def run(settings: WorkersBenchmark) -> int:
    """Measure all sides in turn and print rates and ratios; return 1 where a bound is missed.

    Raises:
        UserError: this system doesn't tell the processor time of other processes.
    """
    if not Path("/proc/self/stat").exists():
        raise UserError("this benchmark reads processor times from /proc, which this system doesn't have")
    if "a3c" in settings.compare:
        _a3c(settings)
    if "ppo" in settings.compare:
        return local_workers.measured(settings.local_workers, settings.rounds, settings.seconds)
    return 0


def _a3c(settings: WorkersBenchmark) -> None:
    names = {"a2c": ("a2c", {})} | {
        f"a3c, {count} workers": ("a3c", {"num_workers": count}) for count in settings.num_workers
    }
    processor: dict[str, list[float]] = {name: [] for name in names}

    def side(name: str) -> Any:
        def measure(seconds: float) -> tuple[int, float]:
            decisions, clock, spent = measured(*names[name], seconds)
            processor[name].append(decisions / spent)
            return decisions, clock

        return measure

    rates = interleaved({name: side(name) for name in names}, settings.rounds, settings.seconds)
    by_processor = {name: np.array(values) for name, values in processor.items()}
    rows = [
        [
            name,
            per_second(float(np.median(rates[name]))),
            str(ratio(rates, name, "a2c")),
            per_second(float(np.median(by_processor[name]))),
            str(ratio(by_processor, name, "a2c")),
        ]
        for name in names
    ]
    title = f"Decisions per second, learning included, load 130 %, {os.cpu_count()} cores (quartiles)"
    print_table(title, ["side", "by the clock", "ratio", "by processor time", "ratio"], rows)


def measured(algorithm: str, changes: dict[str, Any], seconds: float) -> tuple[int, float, float]:
    """Train for so many seconds; return decisions, seconds by the clock and of all processors."""
    settings = registry.get("algorithm_settings", algorithm)(total_steps=NEVER, **changes)
    env = DeepRMVectorEnv(DeepRMSettings(arrival_rate=RATE), settings.num_envs, copy=False)
    records = registry.get("algorithm", algorithm)(env, settings, Run(Budget(NEVER), 0))
    try:
        return _from_here(records, changes.get("num_workers"), seconds)
    finally:
        records.close()


def _from_here(records: Iterator[Any], workers: int | None, seconds: float) -> tuple[int, float, float]:
    first = next(records)
    while first.get("workers") != workers:
        first = next(records)
    clock, spent = time.perf_counter(), _processor_seconds()
    while time.perf_counter() - clock < seconds:
        last = next(records)
    decisions = int(last["decisions"] - first["decisions"])
    return decisions, time.perf_counter() - clock, _processor_seconds() - spent


def _processor_seconds() -> float:
    """Return the processor time of this process and of those it has started and that still run."""
    own, total = os.getpid(), 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        pid = int(stat.parent.name)
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
        if own in (pid, parent):
            total += seconds_of(pid)
    return total
