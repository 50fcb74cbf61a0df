"""Says what a long command does: plain lines with the seconds since its start."""

import contextlib
import threading
import time
from collections.abc import Iterator

REMIND_EVERY = 10.0  # seconds


class Speaker:
    """Says what happens next, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, text: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self._started:6.1f} s] {text}", flush=True)

    @contextlib.contextmanager
    def if_it_lasts(self, text: str, after: float) -> Iterator[None]:
        """Print a line if what is inside takes more than so many seconds."""
        timer = threading.Timer(after, self, (text,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def while_doing(self, text: str, reminder: str, every: float = REMIND_EVERY) -> Iterator[None]:
        """Print a line, and then the reminder every so many seconds until what is inside is done."""
        done = threading.Event()

        def remind() -> None:
            while not done.wait(every):
                self(reminder)

        thread = threading.Thread(target=remind, daemon=True)
        self(text)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
