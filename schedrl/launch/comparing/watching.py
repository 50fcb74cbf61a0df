"""What a comparison says while its runs train: a line when one begins or ends, and one a minute between."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schedrl.launch.progress import clock

LOOK_EVERY = 0.5  # seconds
REMIND_EVERY = 60.0  # seconds without a line


class Watch:
    """Reads the files in which runs keep their progress, wherever they train.

    Args:
        say: called with each line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._ended = threading.Event()
        self._seen: dict[str, dict[str, Any]] = {}
        self._started = self._spoke = time.monotonic()

    @contextmanager
    def over(self, requests: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Report on these runs while entered."""
        self._requests = requests
        self._started = self._spoke = time.monotonic()
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self._look()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            self._look()
            if time.monotonic() - self._spoke > REMIND_EVERY:
                self._remind()

    def _look(self) -> None:
        for request in self._requests:
            name = f"{request['algo']} seed {request['seed']}"
            before = self._seen.get(name, {"state": "waiting", "progress": 0.0})
            try:
                now = json.loads(Path(request["progress"]).read_bytes())
            except (OSError, ValueError):
                continue
            self._seen[name] = now
            if before["state"] == "waiting":
                verb = "continues" if request["resume"] else "begins"
                self._line(f"{name}: {verb} (run {len(self._seen)} of {len(self._requests)})")
            if now["state"] in ENDINGS and before["state"] not in ENDINGS:
                left = "" if now["state"] == "stopped" else f"; {self._left()}"
                self._line(f"{name}: {ENDINGS[now['state']](now)}{left}")

    def _remind(self) -> None:
        going = [f"{name} {_how_far(seen)}" for name, seen in self._seen.items() if not _over(seen)]
        self._line(f"training {', '.join(going)}; {self._left()}")

    def _left(self) -> str:
        count, total = sum(map(_over, self._seen.values())), len(self._requests)
        done = sum(seen["progress"] for seen in self._seen.values()) / total
        elapsed = time.monotonic() - self._started
        seconds = elapsed * (1 - done) / done if done > 0 else math.nan
        return f"{count} of {total} runs over" + (f", ETA {clock(seconds)}" if count < total else "")

    def _line(self, text: str) -> None:
        self._spoke = time.monotonic()
        self._say(text)


def _how_far(seen: Mapping[str, Any]) -> str:
    if seen["state"] == "loading":
        return "is loading (the simulator compiles where that wasn't done before)"
    return f"{seen['progress']:.0%}"


def _over(seen: Mapping[str, Any]) -> bool:
    return seen["state"] in ENDINGS


def _finished(note: Mapping[str, Any]) -> str:
    decisions, seconds = note["decisions"], note["seconds"]
    return f"finished, {decisions:,} decisions in {clock(seconds)}, {decisions / seconds:,.0f}/s"


ENDINGS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "finished": _finished,
    "stopped": lambda note: "stopped and saved",
    "failed": lambda note: f"FAILED: {note['error']}",
}
