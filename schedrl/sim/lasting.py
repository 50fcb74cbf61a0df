"""Compiled loops that last: they run in a thread of their own, so that Ctrl-C is answered at once.

A signal is handled in Python's main thread, between two steps of the interpreter: a compiled call would keep
it waiting for as long as it lasts. So the loop gives up the interpreter's lock, and the main thread waits.
That costs a tenth of a millisecond and more: loops that are known to be over soon are better called.
"""

import _thread
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

LOOK = 0.2  # seconds between looks at what came meanwhile, where waiting for a thread can't be interrupted
ENDING = 1.0  # seconds that a loop gets to stop


def wait_for(loop: Callable, *arguments: Any, stop: np.ndarray | None = None, **options: Any) -> Any:
    """Call a loop compiled with `nogil` and wait for it, ready for signals.

    Args:
        loop: what to call.
        *arguments: of the loop.
        stop: [1], set to 1 to ask the loop to return where a signal ends the wait; without it the loop goes
            on behind the scenes, and what it writes must be nobody's any more.
        **options: of the loop.

    Returns:
        What the loop returns.
    """
    if threading.current_thread() is not threading.main_thread():  # signals go elsewhere
        return loop(*arguments, **options)
    returned: list[Any] = []
    raised: list[BaseException] = []
    done = _thread.allocate_lock()  # threading.Thread takes twice as long, and a signal ends its `join`
    done.acquire()

    def run() -> None:
        try:
            returned.append(loop(*arguments, **options))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            raised.append(error)
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    try:
        while not done.acquire(timeout=LOOK):
            pass
    except BaseException:
        if stop is not None:
            stop[:] = 1
            done.acquire(timeout=ENDING)
        raise
    if raised:
        raise raised[0]
    return returned[0]
