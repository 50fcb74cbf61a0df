"""What the processes of the tests of shared memory do: a new process finds functions by module and name."""

import os
import time

import numpy as np

from schedrl.learning.shared_vectors import Ring
from schedrl.learning.worker_processes import WorkerProcesses


def add_and_tell(arrays, index: int, rounds: int) -> None:
    """Add 1 to the own element, write a row about it; wait where the reader is behind."""
    ring = Ring(arrays, "news", index)
    for i in range(rounds):
        while ring.room < 1:
            time.sleep(0.001)
        arrays["sums"][index] += 1
        ring.put(np.array([[index, i, arrays["sums"][index]]]))


def wait_forever(arrays, index: int) -> None:
    """Say that it runs, then do nothing."""
    arrays["pids"][index] = os.getpid()
    while True:
        time.sleep(0.05)


def fail(arrays, index: int) -> None:
    """End with an error code, without a traceback."""
    os._exit(3)


def parent_of_two(arrays) -> None:
    """Be a parent that never looks after its workers."""
    workers = WorkerProcesses(wait_forever, lambda index: (arrays, index), 2)
    workers.start(0)
    workers.start(1)
    time.sleep(600)
