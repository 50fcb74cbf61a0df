"""What a training run says while it runs: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, TextIO

from schedrl.learning.budget import Budget
from schedrl.settings import commanding

Record = Mapping[str, float]
RECENT_EPISODES = 500
LINE_EVERY = 5.0  # seconds
LIVE_ROWS = (
    ("decisions", "speed", "time", "eta"),
    ("episode", "reward", "entropy", "approx_kl"),
    ("slowdown",),
)


class Recent:
    """Means over the last few hundred episodes: one update's handful is too noisy to read."""

    def __init__(self) -> None:
        self._parts: deque[tuple[float, Record]] = deque()
        self._episodes = 0.0

    def add(self, record: Record) -> None:
        """Take in a record of an update, in which `episodes` counts all of the run."""
        ended = record["episodes"] - self._episodes if self._parts or self._episodes else record["episodes"]
        self._episodes = record["episodes"]
        if ended > 0 and math.isfinite(record["episode_return"]):
            self._parts.append((ended, record))
        while len(self._parts) > 1 and sum(n for n, _ in self._parts) - self._parts[0][0] >= RECENT_EPISODES:
            self._parts.popleft()

    def mean(self, key: str) -> float:
        """Return the mean over the episodes; NaN before the first has ended."""
        total = sum(n for n, _ in self._parts)
        return sum(n * record[key] for n, record in self._parts) / total if total else math.nan


class Progress:
    """Plain lines, each flushed, a few seconds apart.

    Args:
        budget: of the run, for shares and the time that is left.
        file: where the lines go; None = standard output.
    """

    def __init__(self, budget: Budget, file: TextIO | None = None) -> None:
        self.budget, self.file = budget, file or sys.stdout
        self.recent = Recent()
        self.started = time.monotonic()
        self._first: tuple[float, float] | None = None
        self.updates = 0
        self._last_line = -math.inf

    def say(self, text: str) -> None:
        """Say what happens next, with the seconds since the start."""
        print(f"[{time.monotonic() - self.started:5.1f} s] {text}", file=self.file, flush=True)

    def update(self, record: Record, yardsticks: Mapping[str, float]) -> None:
        """Take in the record of an update; show it when a line is due."""
        self.updates += 1
        self.recent.add(record)
        now = time.monotonic()
        self._first = self._first or (now, self.budget.progress)
        if now - self._last_line >= LINE_EVERY or self.budget.done:
            self._last_line = now
            self.show(record, yardsticks)

    def show(self, record: Record, yardsticks: Mapping[str, float]) -> None:
        """Print one line."""
        print(" | ".join(self.cells(record, yardsticks).values()), file=self.file, flush=True)

    def close(self) -> None:
        """End the display."""

    def left(self) -> float:
        """Return the seconds that the rest of the budget will take; NaN while unknown."""
        if self._first is None or self.budget.progress <= self._first[1]:
            return math.nan
        (start, before), now = self._first, self.budget.progress
        return (time.monotonic() - start) * (1 - now) / (now - before)

    def cells(self, record: Record, yardsticks: Mapping[str, float]) -> dict[str, str]:
        """Return what is shown, by topic."""
        episodes, decisions = _of(self.budget.episodes, self.budget.num_episodes), self.budget.decisions
        against = ", ".join(f"{name} {mean:.2f}" for name, mean in yardsticks.items())
        cells = {
            "episode": f"Episode {episodes}",
            "reward": f"Avg Reward {_number(self.recent.mean('episode_return'), '.1f')}",
            "slowdown": f"Avg Slowdown {_number(self.recent.mean('slowdown'), '.2f')}"
            + (f" ({against})" if against else ""),
            "decisions": f"Decisions {_of(decisions, self.budget.total_steps)}",
            "speed": f"{record['decisions_per_second']:,.0f}/s",
        }
        for key, title in (("entropy", "Entropy"), ("approx_kl", "KL")):
            if key in record:
                cells[key] = f"{title} {record[key]:.3g}"
        elapsed = clock(time.monotonic() - self.started)
        return cells | {"time": f"Time {elapsed}", "eta": f"ETA {clock(self.left())}"}


class LiveProgress(Progress):
    """The same on a terminal: a bar and a small table that stay in place below the lines said."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=commanding(sys.stdout))
        self._live: Any = Live(console=self._console, auto_refresh=False, transient=False)
        self._shown = False

    def say(self, text: str) -> None:
        """Say what happens next, above the display."""
        stamp = f"[{time.monotonic() - self.started:5.1f} s]"
        self._console.print(f"{stamp} {text}", markup=False, highlight=False)

    def update(self, record: Record, yardsticks: Mapping[str, float]) -> None:
        """Take in the record of an update and redraw."""
        self.updates += 1
        self.recent.add(record)
        self._first = self._first or (time.monotonic(), self.budget.progress)
        self.show(record, yardsticks)

    def show(self, record: Record, yardsticks: Mapping[str, float]) -> None:
        """Redraw the bar and the table."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        if not self._shown:
            self._shown = True
            self._live.start()
        cells, table = self.cells(record, yardsticks), Table.grid()
        table.add_row(ProgressBar(total=1.0, completed=self.budget.progress))
        for keys in LIVE_ROWS:
            table.add_row(" | ".join(cells[key] for key in keys if key in cells))
        self._live.update(table, refresh=True)

    def close(self) -> None:
        """Leave the last state on the screen and give the cursor back."""
        if self._shown:
            self._shown = False
            self._live.stop()


def make_progress(budget: Budget) -> Progress:
    """Return the display that suits standard output."""
    return LiveProgress(budget) if sys.stdout.isatty() else Progress(budget)


def clock(seconds: float) -> str:
    """Return seconds as 0:07, 1:23 or 1:02:03; a dash when unknown."""
    if not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _of(done: int, limit: int | None) -> str:
    return f"{done}/{limit}" if limit is not None else str(done)


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"
