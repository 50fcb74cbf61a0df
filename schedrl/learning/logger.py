"""The records of a training run: `metrics.csv`, TensorBoard events, histories, a progress callback.

A resumed run drops what was logged after its checkpoint, so that the files equal those of an uninterrupted
one (times apart).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning.checkpoint import atomic_write
from schedrl.learning.events import EventFile

Record = dict[str, float]
HISTORIES = {"r": "reward_history.npy", "slowdown": "slowdown_history.npy"}


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
        self._rows: Any = None
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
        """Return the lengths at a checkpoint."""
        return {f"length/{key}": len(self.history(key)) for key in HISTORIES}

    def load_state(self, state: Mapping[str, Any], decisions: int) -> None:
        """Cut the files back to a checkpoint made after `decisions`."""
        if self.folder is None:
            return
        for key, name in HISTORIES.items():
            if (self.folder / name).exists():
                kept = np.load(self.folder / name, allow_pickle=False)[: state[f"length/{key}"]]
                self._history[key] = [kept]
        path = self.folder / "metrics.csv"
        if path.exists():
            with open(path, newline="") as file:
                header, *rows = list(csv.reader(file))
            kept_rows = [row for row in rows if len(row) == len(header) and float(row[0]) <= decisions]
            with atomic_write(path) as file:
                file.write("\n".join(",".join(row) for row in [header, *kept_rows]).encode() + b"\n")

    def _write_row(self, record: Record) -> None:
        assert self.folder is not None
        if self._file is None:
            path = self.folder / "metrics.csv"
            continued = path.exists()
            # newline="\n": the same bytes on every system.
            self._file = open(path, "a", newline="\n", encoding="utf-8")  # noqa: SIM115 - open for the whole run
            self._rows = csv.DictWriter(self._file, list(record), lineterminator="\n")
            if not continued:
                self._rows.writeheader()
        self._rows.writerow({key: format(value, ".9g") for key, value in record.items()})

    def _write_events(self, record: Record) -> None:
        assert self.folder is not None
        if self._events is None:
            self._events = EventFile(self.folder / "tensorboard")
        shown = {key: value for key, value in record.items() if key != "decisions" and np.isfinite(value)}
        self._events.write(int(record["decisions"]), shown)
