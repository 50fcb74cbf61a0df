"""Which weights of a run are kept: those that did best on validation workloads, and how they are best played.

The last weights need not be the best. Where an agent may wait, arg-max can repeat the same wait at every
event while sampling does well, so both ways of playing are looked at.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from schedrl.learning.checkpoint import atomic_write

GREEDY, SAMPLED = "greedy", "sampled"
Measure = Callable[[Any], Mapping[str, float]]
"""Plays a policy on validation workloads: greedy and sampled -> a mean cost; the smallest wins, NaN never."""
FILE = "validation.csv"


class Selection:
    """Looks at the model every so often and remembers the best of what it saw.

    Attributes:
        rows: decisions and the means of each look.

    Args:
        every: decisions between two looks.
        measure: what is looked at.
        say: called with a line for each best so far.
    """

    def __init__(self, every: int, measure: Measure, say: Callable[[str], None]) -> None:
        self.every, self._measure, self._say = every, measure, say
        self.rows: list[dict[str, float]] = []
        self._best: dict[str, Any] = {}
        self._play, self._lowest = GREEDY, float("inf")

    @property
    def play(self) -> str:
        """How the weights that are kept are to be played, greedy or sampled."""
        return self._play

    def due(self, decisions: int) -> bool:
        """Say whether it is time for a look."""
        return decisions - (self.rows[-1]["decisions"] if self.rows else 0) >= self.every

    def look(self, model: Any, decisions: int) -> None:
        """Measure the model; remember it where it is the best so far."""
        means = self._measure(model.policy())
        self.rows.append({"decisions": decisions, **means})
        play = min(means, key=lambda name: (not means[name] < float("inf"), means[name]))
        if means[play] < self._lowest:
            self._lowest, self._play, self._best = means[play], play, model.state()
            text = ", ".join(f"{name} {-value:.5g}" for name, value in means.items())
            self._say(f"validation after {decisions:,} decisions: mean return {text}; the best so far")

    def conclude(self, model: Any, decisions: int, *, look: bool = True) -> None:
        """Look a last time, unless told not to, and put the weights of the best look into the model."""
        if look and (not self.rows or self.rows[-1]["decisions"] < decisions):
            self.look(model, decisions)
        if not self._best:
            self._say("validation: no look has given a number; the last weights are kept")
            return
        model.load_state(self._best)
        chosen = next(row for row in self.rows if row[self._play] == self._lowest)
        self._say(
            f"kept the weights after {chosen['decisions']:,.0f} decisions, to be played {self._play}: the "
            f"best of {len(self.rows)} looks at validation workloads"
        )

    def write(self, folder: Path) -> None:
        """Write all looks to the run's folder."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]) if self.rows else ["decisions"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        with atomic_write(folder / FILE) as file:
            file.write(text.getvalue().encode())

    def state(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        kept = {f"best/{name}": value for name, value in self._best.items()}
        return {"rows": self.rows, "play": self._play, "lowest": self._lowest, **kept}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where `state()` was taken."""
        self.rows, self._play, self._lowest = list(state["rows"]), state["play"], state["lowest"]
        best = {name.removeprefix("best/"): v for name, v in state.items() if name.startswith("best/")}
        self._best = best
