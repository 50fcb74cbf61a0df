"""The life of worker processes: started afresh (never forked), watched, replaced, and never left behind.

Apart from what they do, because this has one right answer:

* *spawn*: a fork after TensorFlow has started would copy its threads' locks in whatever state they are;
* a worker ends at once when its parent is gone, even by SIGKILL: a thread waits for the pipe that the
  operating system closes then;
* Ctrl-C in a terminal reaches every process of the group, but it is the parent's to handle: workers ignore
  it from their first instruction on;
* one thread of linear algebra each: more would take the cores from the other workers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any, NamedTuple

from schedrl.settings.guard import THREADS

CONTEXT = multiprocessing.get_context("spawn")


class Death(NamedTuple):
    """A worker that ended by itself with an error, or was ended."""

    worker: int
    pid: int
    exit_code: int

    @property
    def reason(self) -> str:
        """Say how it ended: `killed by SIGKILL` or `exit code 1`."""
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

    def start(self, index: int) -> None:
        """Start a worker, or a new one in place of a dead one."""
        process = CONTEXT.Process(
            target=_enter,
            args=(self._target, self._arguments(index)),
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
        started = [process for process in self._processes if process is not None]
        for process in started:
            process.kill()
        for process in started:
            process.join()

    def kill_one(self, index: int) -> None:
        """End one at once."""
        self._processes[index].kill()
        self._processes[index].join()

    def _sentinels(self) -> list[int]:
        return [p.sentinel for p in self._processes if p is not None and p.exitcode is None]


def _enter(target: Callable[..., None], arguments: tuple) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # not sys.exit: that would end this thread only


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT: a new process inherits that, so there is no instant at which Ctrl-C could end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
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
