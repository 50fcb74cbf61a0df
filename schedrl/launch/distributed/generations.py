"""Who is there: the supervisors of a run meet in its folder, under a number that each restart raises.

cluster/
    generation_000002/
        worker_0.json    the address at which this worker will be, by whom and for which settings
        worker_1.json
        ended.json       the first reason for which this generation came to an end

A worker of an old generation can't join a new one: it was told other entries (see `worker`). An entry of an
earlier life of the same worker tells that its generation is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any, NamedTuple

FAILED, STOPPED, FINAL, UNFIT = "failed", "stopped", "final", "unfit"
"""Why a generation ended: try another; asked to save and go; no use trying again; nor was it, ever."""
FOLDER = "cluster"


class End(NamedTuple):
    """How a generation ended."""

    kind: str
    reason: str


class Generation:
    """One number, and what lies in its folder."""

    def __init__(self, root: Path, number: int):
        self.number = number
        self.folder = root / FOLDER / f"generation_{number:06d}"

    def enter(self, index: int, address: str, settings: str) -> int:
        """Leave an entry; return the number drawn to tell it from earlier ones."""
        self.folder.mkdir(parents=True, exist_ok=True)
        drawn = secrets.randbits(40)
        entry = {"address": address, "drawn": drawn, "settings": settings}
        temporary = self.folder / f".worker_{index}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps(entry))
        os.replace(temporary, self._entry(index))
        return drawn

    def entry(self, index: int) -> dict[str, Any] | None:
        """Return a worker's entry, None where there is none."""
        return _read(self._entry(index))

    def end(self, kind: str, reason: str) -> None:
        """Note how it ended, unless that is noted; a disk that is full keeps nothing, and others see it."""
        path = self.folder / "ended.json"
        with contextlib.suppress(OSError), open(path, "x") as file:  # of several hosts one can create it
            try:
                file.write(json.dumps({"kind": kind, "reason": reason}))
                file.flush()
            except OSError:
                path.unlink()

    def ended(self) -> End | None:
        """Return how it ended, None while it goes on."""
        found = _read(self.folder / "ended.json")
        return None if found is None else End(found["kind"], found["reason"])

    def _entry(self, index: int) -> Path:
        return self.folder / f"worker_{index}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):  # it is being written: look again
        return None


def next_generation(root: Path, own: tuple[int, ...]) -> Generation:
    """Return the generation that the workers `own` may enter; one they had entered before is over."""
    numbers = [int(path.name.rpartition("_")[2]) for path in (root / FOLDER).glob("generation_*")]
    if not numbers:
        return Generation(root, 1)
    newest = Generation(root, max(numbers))
    if newest.ended() is None:
        if all(newest.entry(index) is None for index in own):
            return newest
        newest.end(FAILED, f"worker {own[0]} was started anew")
    return Generation(root, newest.number + 1)


def forget(root: Path) -> None:
    """Remove all traces: the run is done."""
    shutil.rmtree(root / FOLDER, ignore_errors=True)
