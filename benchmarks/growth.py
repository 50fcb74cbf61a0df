"""Does a long run grow? Memory of a training process against its decisions, with everything that it writes.

Each algorithm trains with its default settings into a folder, as `launcher.py` does: metrics, TensorBoard,
histories, checkpoints. The slope is that of least squares through decisions and resident memory once the
first part of the time is over: compiling, tracing, some hundred updates in which the allocator finds its
size, and DDPG's replay until it is full are no growth.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedrl import registry
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings, UserError

MOST = 2.0
"""MB of growth per million decisions that are allowed."""
OWN: dict[str, dict[str, Any]] = {"ddpg": {"replay_size": 20_000}}
"""A replay that is full early."""


@dataclass(frozen=True)
class GrowthBenchmark(Settings):
    """What trains, and how long."""

    algorithms: tuple[str, ...] = ("a2c", "ddpg")
    """Algorithms that are measured, one after another."""
    seconds: float = 600.0
    """Processor seconds that each trains."""
    warm_up: float = 0.25
    """Share of them that is not looked at."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("seconds", 0, open_low=True)
        self.in_range("warm_up", 0, 0.9)


def run(settings: GrowthBenchmark) -> int:
    """Train each, print its growth, and return 1 where one grows more than it may."""
    rows, failed = [], False
    for name in settings.algorithms:
        algorithm = registry.find("algorithm", name)
        found = measured(algorithm, settings.seconds)
        late = found[found[:, 0] >= settings.warm_up * settings.seconds]
        if len(late) < 3:
            raise UserError(f"--seconds {settings.seconds:g} are too few for {algorithm}; give more")
        growth = slope(late[:, 1], late[:, 2])
        failed |= growth > MOST
        rows.append(
            (
                algorithm,
                f"{found[-1, 1]:,.0f}",
                f"{late[0, 2]:,.1f}",
                f"{late[-1, 2]:,.1f}",
                f"{growth:.2f}",
                f"{'MISSED' if growth > MOST else 'met'} (at most {MOST:g})",
            )
        )
    print_table(
        "Memory of a run",
        ("algorithm", "decisions", "MB after warming up", "MB at the end", "MB per million", "bound"),
        rows,
    )
    return int(failed)


def measured(algorithm: str, seconds: float) -> np.ndarray:
    """Train for some time; return seconds, decisions and resident memory [MB] at each record, `[n, 3]`."""
    from schedrl.learning.budget import Budget
    from schedrl.learning.run_folder import Run

    settings = registry.get("algorithm_settings", algorithm).from_dict(
        OWN.get(algorithm, {}) | {"total_steps": 10**12}
    )
    environment = registry.get("environment_settings", "deeprm")()
    env = registry.get("vector_environment", "deeprm")(environment, settings.num_envs, seed=0, copy=False)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Budget(settings.total_steps), 0, folder)
        started = time.process_time()
        for record in registry.get("algorithm", algorithm)(env, settings, run):
            passed = time.process_time() - started
            found.append((passed, record["decisions"], resident()))
            if passed >= seconds:
                run.request_stop()
    return np.array(found)


def slope(decisions: np.ndarray, memory: np.ndarray) -> float:
    """Return MB per million decisions."""
    return float(np.polyfit(decisions / 1e6, memory, 1)[0])


def resident() -> float:
    """Return this process's resident memory [MB]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
