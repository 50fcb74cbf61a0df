"""The life of worker processes: started afresh (never forked), watched, replaced, and never left behind.

Apart from what they do, because this has one right answer:

* *spawn*: a fork after TensorFlow has started would copy its threads' locks in whatever state they are;
* a worker ends at once when its parent is gone, even by SIGKILL: a thread waits for the pipe that the
  operating system closes then, and Linux is asked to kill it (a frozen one has no thread that runs);
* Ctrl-C in a terminal reaches every process of the group, as SIGTERM and a closed terminal may, but they are
  the parent's to handle: workers ignore them from their first instruction on;
* one thread of linear algebra each: more would take the cores from the other workers.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any, NamedTuple

from schedrl.settings.guard import THREADS

CONTEXT = multiprocessing.get_context("spawn")
PARENTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that are the parent's to handle."""
PR_SET_PDEATHSIG = 1  # prctl(2)
LAST_WORDS = 5.0
"""Seconds that a worker which has hung up is given to end by itself, for its exit code."""


class Death(NamedTuple):
    """A worker that ended by itself with an error, or was ended."""

    worker: int
    pid: int
    exit_code: int
    silent: float | None = None
    """Seconds without a sign of life after which it was ended; None: it ended by itself."""

    @property
    def reason(self) -> str:
        """Say how it ended: `killed by SIGKILL`, `exit code 1`, `no sign of life for 60 s`."""
        if self.silent is not None:
            return f"no sign of life for {self.silent:g} s"
        if self.exit_code < 0:
            return f"killed by {signal.Signals(-self.exit_code).name}"
        return f"exit code {self.exit_code}"


class WorkerProcesses:
    """`count` processes that run `target(*arguments(index))`; nothing is started yet.

    Args:
        target: a function of a module (it is found by name in the new process).
        arguments: index -> what to hand over; shared memory and plain, picklable values.
        count: of workers.
    """

    def __init__(self, target: Callable[..., None], arguments: Callable[[int], tuple], count: int):
        self._target, self._arguments = target, arguments
        self._processes: list[Any] = [None] * count
        # Before multiprocessing's own clearing up, which waits for those that it has only sent SIGTERM.
        self._ended = multiprocessing.util.Finalize(self, _kill, (self._processes,), exitpriority=10)

    def start(self, index: int) -> None:
        """Start a worker, or a new one in place of a dead one."""
        process = CONTEXT.Process(
            target=_enter,
            # Linux means the thread that starts it; only the main one lasts as long as the process.
            args=(
                self._target,
                self._arguments(index),
                threading.current_thread() is threading.main_thread(),
            ),
            name=f"worker-{index}",
            daemon=True,
        )
        with _single_threaded(), _interrupts_blocked():
            process.start()
        self._processes[index] = process

    def deaths(self) -> list[Death]:
        """Return the workers that ended with an error; `start` replaces them."""
        ended = [(i, p) for i, p in enumerate(self._processes) if p is not None and p.exitcode]
        return [Death(i, p.pid, p.exitcode) for i, p in ended]

    @property
    def all(self) -> list[Any]:
        """The processes by index; None where none was started."""
        return list(self._processes)

    def at_work(self, index: int) -> bool:
        """Tell whether a worker was started and has neither ended nor died."""
        process = self._processes[index]
        return process is not None and process.exitcode is None

    @property
    def running(self) -> bool:
        """Whether any worker is still at work."""
        return bool(self._sentinels())

    def wait(self, seconds: float) -> None:
        """Wait; return early as soon as a worker ends."""
        sentinels = self._sentinels()
        if sentinels:
            connection.wait(sentinels, seconds)

    def kill(self) -> None:
        """End all at once."""
        _kill(self._processes)

    def kill_one(self, index: int) -> None:
        """End one at once."""
        _kill([self._processes[index]])

    def death_of(self, index: int, silent: float | None = None) -> Death:
        """End one that has hung up, or was silent for so many seconds; tell how it ended."""
        process = self._processes[index]
        if silent is None:
            process.join(LAST_WORDS)
        _kill([process])
        return Death(index, process.pid, process.exitcode, silent)

    def _sentinels(self) -> list[int]:
        return [p.sentinel for p in self._processes if p is not None and p.exitcode is None]


def _kill(processes: list[Any]) -> None:
    started = [process for process in processes if process is not None]
    for process in started:
        process.kill()
    for process in started:
        process.join()


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the one that started it is gone, however that ends (Linux).

    A thread that waits for the parent's end would not do where compiled code or TensorFlow holds the
    interpreter.
    """
    _ask_to_die_too()
    if os.getppid() != parent:  # it was gone before that
        os._exit(1)


def _ask_to_die_too() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _enter(target: Callable[..., None], arguments: tuple, die_too: bool) -> None:
    for number in PARENTS:
        signal.signal(number, signal.SIG_IGN)
    if die_too:
        _ask_to_die_too()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # not sys.exit: that would end this thread only


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block the parent's signals: a new process inherits that, until it ignores them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PARENTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Set what a new process reads when it imports NumPy, where the user hasn't chosen."""
    unset = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]
