"""The records of a training run: `metrics.csv`, TensorBoard events, histories, a progress callback.

A resumed run drops what was logged after its checkpoint, so that the files equal those of an uninterrupted
one (times apart).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning.checkpoint import atomic_write
from schedrl.learning.events import EventFile, cut_events
from schedrl.learning.kept_logs import ASIDE, HISTORIES, METRICS, Kept, digest_of

Record = dict[str, float]


class Logger:
    """Writes one record per update into `folder`; a logger without a folder only calls `callback`.

    `reward_history.npy` and `slowdown_history.npy` hold one float32 per finished episode, in the order of
    finishing.
    """

    def __init__(
        self, folder: Path | None, callback: Callable[[Record], None] | None = None, tensorboard: bool = True
    ):
        self.folder, self.callback = folder, callback
        self._tensorboard = tensorboard and folder is not None
        self._history: dict[str, list[np.ndarray]] = {key: [] for key in HISTORIES}
        self._file: Any = None
        self._bytes, self._digest = 0, hashlib.sha256()
        self._events: Any = None

    def log(self, record: Record, episodes: Mapping[str, np.ndarray]) -> None:
        """Write one record and add the `episodes` that ended (return `r`, `slowdown`) to the histories."""
        for key, parts in self._history.items():
            if key in episodes:
                parts.append(np.asarray(episodes[key], np.float32))
        if self.folder is not None:
            self._write_row(record)
        if self._tensorboard:
            self._write_events(record)
        if self.callback is not None:
            self.callback(record)

    def flush(self) -> None:
        """Bring everything to the disk."""
        if self.folder is None:
            return
        for key, name in HISTORIES.items():
            with atomic_write(self.folder / name) as file:
                np.save(file, self.history(key), allow_pickle=False)
        for stream in (self._file, self._events):
            if stream is not None:
                stream.flush()

    def history(self, key: str) -> np.ndarray:
        """Return the finished episodes' returns (`r`) or mean slowdowns (`slowdown`) so far."""
        parts = self._history[key]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def close(self) -> None:
        """Flush and close the files."""
        self.flush()
        for stream in (self._file, self._events):
            if stream is not None:
                stream.close()
        self._file = self._events = None

    def state(self) -> dict[str, Any]:
        """Return lengths and hashes of what was logged up to a checkpoint."""
        state: dict[str, Any] = {"metrics/bytes": self._bytes, "metrics/digest": self._digest.hexdigest()}
        for key in HISTORIES:
            history = self.history(key)
            state |= {f"length/{key}": len(history), f"digest/{key}": digest_of(history)}
        return state

    def load_state(self, kept: Kept, decisions: int) -> None:
        """Cut the files back to a checkpoint made after `decisions`; set aside what is not as it was then.

        Raises:
            OSError: they can't be written.
        """
        if self.folder is None:
            return
        for name in kept.changed:
            if (path := self.folder / name).exists():
                names = (path.with_name(f"{name}{ASIDE}{number or ''}") for number in itertools.count())
                path.replace(next(free for free in names if not free.exists()))
        self._history = {key: [history] for key, history in kept.histories.items()}
        if kept.metrics:
            with atomic_write(self.folder / METRICS) as file:
                file.write(kept.metrics)
        self._count(kept.metrics)
        cut_events(self.folder / "tensorboard", decisions)

    def _count(self, content: bytes) -> None:
        self._bytes += len(content)
        self._digest.update(content)

    def _write_row(self, record: Record) -> None:
        assert self.folder is not None
        if self._file is None:
            self._file = open(self.folder / METRICS, "ab")  # noqa: SIM115 - open for the whole run
            if not self._bytes:
                self._write_line(record)
        self._write_line(format(value, ".9g") for value in record.values())

    def _write_line(self, cells: Iterable[str]) -> None:
        line = (",".join(cells) + "\n").encode()
        self._file.write(line)
        self._count(line)

    def _write_events(self, record: Record) -> None:
        assert self.folder is not None
        if self._events is None:
            self._events = EventFile(self.folder / "tensorboard")
        shown = {key: value for key, value in record.items() if key != "decisions" and np.isfinite(value)}
        self._events.write(int(record["decisions"]), shown)
