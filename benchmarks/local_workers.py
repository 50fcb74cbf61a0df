"""Speed of PPO by the number of worker processes that step its environments: cheap ones and costly ones.

A costly step counts in Python for so long that with one process stepping takes COSTLY of the time. The work
is the same for any number of workers, bit for bit, so a ratio of rates is one of times.

Beside the clock stands what a machine with a core free for each process would do: the parent waits while
workers step, so a decision takes the parent's processor time and that of the busiest worker. A machine that
has other work gives two processes less than twice the time of one: two that share nothing are measured too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.burning import COSTLY, BurningVectorEnv, Strangers, turns_per_second
from benchmarks.paired import Ratio, per_second, ratio, verdict
from benchmarks.processor import seconds_of
from schedrl import registry
from schedrl.envs.deeprm import DeepRMSettings
from schedrl.evaluation.table import print_table
from schedrl.learning.budget import Budget
from schedrl.learning.run_folder import Run
from schedrl.learning.split_env import SplitVectorEnv

SETTINGS: dict[str, Any] = {"num_steps": 16}
"""PPO's own, but for shorter rollouts: an update with costly steps shall not take a minute."""
BOUND = 1.6
"""What 2 workers must reach with costly steps; 1 / (0.05 + 0.95 / 2) = 1.9 is possible."""
NEVER = 10**12
CALIBRATION = 3.0  # seconds


@dataclass
class Side:
    """A training run that is going on, stopped between two updates."""

    env: Any
    records: Iterator[Any]
    clock: list[float] = field(default_factory=list)
    """Decisions per second of each round."""
    free: list[float] = field(default_factory=list)
    """The same on free cores."""

    def measure(self, seconds: float) -> None:
        """Go on for about so many seconds."""
        first = last = next(self.records)
        started, before = time.perf_counter(), self._spent()
        while time.perf_counter() - started < seconds:
            last = next(self.records)
        decisions = last["decisions"] - first["decisions"]
        self.clock.append(decisions / (time.perf_counter() - started))
        own, *workers = (after - now for after, now in zip(self._spent(), before, strict=True))
        self.free.append(decisions / (own + max(workers, default=0.0)))

    def _spent(self) -> list[float]:
        pids = [process.pid for process in _processes(self.env)]
        return [seconds_of(os.getpid()), *map(seconds_of, pids)]


def measured(numbers: tuple[int, ...], rounds: int, seconds: float) -> int:
    """Measure and print; return 1 where 2 workers gain too little with costly steps, else 0."""
    cheap = {count: _start(count, 0) for count in dict.fromkeys((1, *numbers))}
    cheap[1].measure(CALIBRATION)
    per_decision = 1.0 / cheap[1].free.pop()
    cheap[1].clock.clear()
    speed = turns_per_second()
    turns = round(COSTLY / (1 - COSTLY) * per_decision * speed)
    sides = {f"cheap, {_named(count)}": side for count, side in cheap.items()}
    sides |= {f"costly, {_named(count)}": _start(count, turns) for count in cheap}
    strangers, gains = Strangers(), []
    try:
        for _ in range(rounds):
            for side in sides.values():
                side.measure(seconds)
            gains.append(strangers.gain(round(speed * seconds / 3)))
    finally:
        strangers.close()
        for side in sides.values():
            side.env.close()
    low, median, high = np.percentile(gains, [25, 50, 75])
    print(f"Two processes that share nothing: {Ratio(median, low, high)} by the clock, 2 on free cores")
    return _print(sides)


def _print(sides: dict[str, Side]) -> int:
    clock = {name: np.array(side.clock) for name, side in sides.items()}
    free = {name: np.array(side.free) for name, side in sides.items()}
    rows = []
    for name in sides:
        base = f"{name.split(',')[0]}, {_named(1)}"
        cells = [(per_second(float(np.median(r[name]))), str(ratio(r, name, base))) for r in (clock, free)]
        rows.append([name, *(text for cell in cells for text in cell)])
    title = f"Decisions per second of PPO, learning included, {os.cpu_count()} cores (quartiles)"
    print_table(title, ["steps", "by the clock", "ratio", "on free cores", "ratio"], rows)
    two, one = f"costly, {_named(2)}", f"costly, {_named(1)}"
    if two not in sides:
        return 0
    gained = [ratio(rates, two, one).median for rates in (clock, free)]
    print(f"  2 workers, costly steps: {verdict(gained[0], BOUND)} by the clock, "
          f"{verdict(gained[1], BOUND)} on free cores")  # fmt: skip
    return int(gained[0] < BOUND)


def _start(workers: int, turns: int) -> Side:
    """Return a run that has made its first update."""
    settings = registry.get("algorithm_settings", "ppo")(**SETTINGS)
    env: Any = BurningVectorEnv(DeepRMSettings(arrival_rate=0.7), settings.num_envs, turns=turns, copy=False)
    if workers > 1:
        env = SplitVectorEnv(env, workers, copy=False)
    records = registry.get("algorithm", "ppo")(env, settings, Run(Budget(settings.total_steps), 0))
    next(records)
    return Side(env, records)


def _processes(env: Any) -> list[Any]:
    return env.processes if isinstance(env, SplitVectorEnv) else []


def _named(workers: int) -> str:
    return "1 process" if workers == 1 else f"{workers} workers"
