"""When a worker counts as lost, and what that means: a replacement, or the end of the run.

Apart from the processes themselves (`worker_processes`), because whoever has workers judges alike, whatever
they do.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from schedrl.learning.rollout import NumericsError
from schedrl.learning.worker_processes import Death
from schedrl.settings import UserError

TIMEOUT, MAX_RESTARTS = 60.0, 10
START = 5
"""So many times as long may it take to start: libraries are loaded then, and code is compiled."""
AWAY = 5.0
"""Seconds between two looks after which nobody is called silent: it was the parent that stood still."""
ERRORS: dict[str, type[Exception]] = {
    "UserError": UserError,
    "NumericsError": NumericsError,
    "ValueError": ValueError,
}
"""Failures of workers that are raised again in the parent."""


class WorkersLost(RuntimeError):
    """The run can't go on without its workers; the message says why and what to do."""


class SignsOfLife:
    """Tells which workers have been silent for too long.

    Args:
        counters: `[W]`, each counted up by its worker once it has started; read only.
        timeout: seconds; START times as many while a counter is 0.
    """

    def __init__(self, counters: np.ndarray, timeout: float):
        self._counters, self._timeout = counters, timeout
        self._seen, self._since = counters.copy(), np.zeros(len(counters))
        self.heard()

    def heard(self) -> None:
        """Take all of them as heard of just now."""
        self._looked = time.monotonic()
        self._since[:] = self._looked

    def silent(self) -> dict[int, float]:
        """Return the workers that were silent for too long, and how long that is; looked at often."""
        now = time.monotonic()
        if now - self._looked > AWAY:
            self.heard()
        self._looked = now
        self._since[self._counters != self._seen] = now
        self._seen[:] = self._counters
        patience = np.where(self._counters == 0, START * self._timeout, self._timeout)
        return {int(i): float(patience[i]) for i in np.flatnonzero(now - self._since > patience)}


class Losses:
    """Decides what a lost worker means: a replacement, or the end of the run.

    Attributes:
        replaced: workers so far.
    """

    def __init__(self, max_restarts: int):
        self.max_restarts, self.replaced = max_restarts, 0

    def count(self, death: Death, *, started: bool, failure: tuple[str, str] = ("", "")) -> None:
        """Say that the worker was lost and that a new one takes its place.

        Args:
            death: which, and how it ended.
            started: whether it had begun to work.
            failure: class and message of the exception that it ended with, if any.

        Raises:
            UserError, NumericsError, ValueError: what it found wrong with settings, numbers or actions.
            WorkersLost: a new one would end in the same way, or too many were lost.
        """
        kind, message = failure
        if kind in ERRORS:
            raise ERRORS[kind](message)
        told = f"worker {death.worker} was lost: {death.reason}"
        if kind:
            raise WorkersLost(f"{told} ({kind}: {message})")
        if not started and death.exit_code > 0:
            raise WorkersLost(
                f"{told} before it began to work; what starts a run with num_workers above 1 in a script of "
                'yours must stand under if __name__ == "__main__":'
            )
        if not started and death.silent is not None:
            raise WorkersLost(
                f"{told} while it was to start; is the machine overloaded, or out of memory? worker_timeout "
                "gives it more time"
            )
        if self.replaced >= self.max_restarts:
            raise WorkersLost(
                f"{told}, and max_restarts {self.max_restarts} are used up; is there enough memory for so "
                "many workers?"
            )
        self.replaced += 1
        print(
            f"worker {death.worker} (process {death.pid}) was lost: {death.reason}; a new one takes its "
            f"place ({self.replaced} of at most {self.max_restarts})",
            file=sys.stderr,
            flush=True,
        )
