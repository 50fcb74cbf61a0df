"""Says what a long command does: plain lines with the seconds since its start."""

import time


class Speaker:
    """Says what happens next, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, text: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self._started:6.1f} s] {text}", flush=True)
