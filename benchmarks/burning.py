"""DeepRM with steps as costly as wanted: each decision also counts up a number, in Python, so many times.

Busy work, not sleep: two of them on one core take twice as long, as a slow simulator would.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from schedrl.envs.deeprm import DeepRMSettings, DeepRMVectorEnv

TURNS = "BURN_TURNS"
COSTLY = 0.95
"""Share of the time that costly steps take in one process."""


class BurningVectorEnv(DeepRMVectorEnv):
    """As `DeepRMVectorEnv`, but every decision of every environment counts to `turns` first."""

    def __init__(
        self, settings: DeepRMSettings | None = None, num_envs: int = 256, *, turns: int, **more: Any
    ):
        super().__init__(settings, num_envs, **more)
        self._turns = turns

    def step(self, actions: Any) -> tuple:
        """Burn, then step."""
        burn(self._turns * self.num_envs)
        return super().step(actions)

    def factory(self) -> Callable[..., BurningVectorEnv]:
        """Return what makes such an environment in another process."""
        return functools.partial(BurningVectorEnv, self.settings, turns=self._turns, copy=False)


class CostlyVectorEnv(BurningVectorEnv):
    """Counts to what the environment variable BURN_TURNS says."""

    def __init__(self, settings: DeepRMSettings | None = None, num_envs: int = 256, **more: Any):
        super().__init__(settings, num_envs, turns=int(os.environ[TURNS]), **more)


def burn(turns: int) -> int:
    """Count to `turns`."""
    count = 0
    for _ in range(turns):
        count += 1
    return count


def turns_per_second(trials: int = 5, turns: int = 200_000) -> float:
    """Return how fast a processor that is free counts: the best of a few trials, by processor time."""
    best = 0.0
    for _ in range(trials):
        started = time.process_time()
        burn(turns)
        best = max(best, turns / (time.process_time() - started))
    return best


class Strangers:
    """Two processes that count and share nothing: what two workers could do at most, here and now."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", f"from {__name__} import _count_on_request as main; main()"]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "text": True,
            "bufsize": 1,
        }
        self._processes = [subprocess.Popen(command, **pipes) for _ in range(2)]

    def gain(self, turns: int) -> float:
        """Return how much faster both count to `turns` each, by the clock, than one that does it twice."""
        first = self._processes[0]
        alone = _seconds([first], turns) + _seconds([first], turns)
        return alone / _seconds(self._processes, turns)

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.kill()
            process.communicate()


def _seconds(processes: list[Any], turns: int) -> float:
    started = time.perf_counter()
    for process in processes:
        process.stdin.write(f"{turns}\n")
    for process in processes:
        process.stdout.readline()
    return time.perf_counter() - started


def _count_on_request() -> None:
    for line in sys.stdin:
        print(burn(int(line)), flush=True)
