"""Ctrl-C, SIGTERM, and a terminal that is closed (SIGHUP): the first asks the run to save and end.

A second Ctrl-C or SIGTERM ends it at once. What `nohup` has made the process ignore stays ignored.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

from schedrl.settings.guard import INTERRUPTED
from schedrl.settings.output import outlive

PREEMPTED = 42
CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: PREEMPTED, signal.SIGHUP: PREEMPTED}


class Interrupts:
    """Catches the signals while it is entered.

    Attributes:
        exit_code: 0 until a signal came, then 130 (SIGINT) or 42 (SIGTERM, SIGHUP).
        on_stop: how to ask for an orderly end; None where there is nothing to save, then the first signal
            ends the program.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.exit_code = 0
        self.on_stop: Callable[[], None] | None = None
        self._say = say
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        """Install the handlers."""
        outlive()
        for number in CODES:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore what was installed before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, _: Any) -> None:
        # A closed terminal may tell twice: through the shell, and by itself.
        again = self.exit_code if number != signal.SIGHUP else 0
        self.exit_code = CODES[signal.Signals(number)]
        if self.on_stop is None or again:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            sys.exit(self.exit_code)
        self.on_stop()
        self._say("stopping: finishing this update, then saving (once more ends at once, without saving)")
