"""A TensorFlow profiler trace of a few updates, for `--profile`."""

from __future__ import annotations

from pathlib import Path

from schedrl.learning.tf_setup import muted_stderr, tensorflow

FIRST, LAST = 2, 5
"""Updates between which the trace is taken: after compilation, few enough for a small file."""


class Profiler:
    """Told of each finished update, it records those after FIRST up to LAST into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._updates, self._running = 0, False

    def update_done(self) -> None:
        """Count an update; start or stop recording where it is time."""
        self._updates += 1
        if self._updates == FIRST:
            with muted_stderr():
                tensorflow().profiler.experimental.start(str(self.folder))
            self._running = True
        elif self._updates == LAST:
            self.close()

    def close(self) -> str:
        """Stop if still recording; return a line that says where the trace is and how to see it."""
        if self._running:
            self._running = False
            with muted_stderr():
                tensorflow().profiler.experimental.stop()
        if self._updates < FIRST:
            return f"no profile: it starts after update {FIRST}, and this run ended before; raise the budget"
        return (
            f"profile in {self.folder}; to see it: pip install xprof (a plugin of TensorBoard), "
            f"then tensorboard --logdir {self.folder}"
        )
