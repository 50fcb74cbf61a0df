"""Does an environment show what has not happened yet? Worlds that differ only in the future must look alike.

A row is a relation in an environment and a representation: pairs of worlds that are equal up to a moment,
played by a random legal player whose draws depend on the decision's number alone (see
`schedrl.evaluation.checks`). Pairs count only where something differs behind the moment. A difference before
it is declared by the environment (`declares`), or it is a leak. Then the same for environments with a planted
leak, which must be found.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.planted_leaks import PLANTED
from schedrl.evaluation.checks.leaks import Row, check
from schedrl.evaluation.checks.samples import KINDS
from schedrl.evaluation.checks.worlds import RELATIONS
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings

HEADER = ("environment", "relation", "worlds", "decisions", "undeclared", "declared", "where", "verdict")
SHOWN = 3


@dataclass(frozen=True)
class LeaksBenchmark(Settings):
    """How much is played."""

    worlds: int = 100
    """Pairs of worlds of each relation, environment and representation, at least 1."""
    planted_worlds: int = 20
    """Pairs of worlds within which a planted leak must be found."""
    seed: int = 0
    """Of worlds and players."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.in_range("worlds", 1)
        self.in_range("planted_worlds", 1)
        self.in_range("seed", 0)


def rows_of(worlds: int, seed: int) -> list[tuple[str, Row]]:
    """Check every relation in every kind of environment."""
    return [(kind.name, check(relation, kind.draw, worlds, seed)) for kind in KINDS for relation in RELATIONS]


def found_by(leak: str, worlds: int, seed: int) -> list[Row]:
    """Return the relations that find a planted leak."""
    rows = [check(relation, PLANTED[leak], worlds, seed) for relation in RELATIONS]
    return [row for row in rows if row.leaking]


def run(settings: LeaksBenchmark) -> int:
    """Print both tables; 1 if there is a leak, a relation that showed nothing, or a plant not found."""
    rows = rows_of(settings.worlds, settings.seed)
    print_table("Worlds that differ only in the future", HEADER, [_cells(name, row) for name, row in rows])
    print()
    found = {leak: found_by(leak, settings.planted_worlds, settings.seed) for leak in PLANTED}
    told = {leak: ", ".join(map(_found, by)) or "nothing: MISSED" for leak, by in found.items()}
    print_table("Planted leaks", ("leak", "found by"), list(told.items()))
    bad = [row for _, row in rows if row.verdict != "ok"]
    missed = [leak for leak, by in found.items() if not by]
    decisions = sum(row.decisions for _, row in rows)
    print(
        f"\n{len(rows) - len(bad)} of {len(rows)} rows pass ({decisions:,} decisions compared); "
        f"{len(found) - len(missed)} of {len(found)} planted leaks found"
    )
    return int(bool(bad or missed))


def _found(row: Row) -> str:
    return f"{row.relation} ({row.leaking} of {row.worlds})"


def _cells(name: str, row: Row) -> tuple[str, ...]:
    places = row.places or row.known
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    where = ", ".join(places[:SHOWN]) + more
    counts = (f"{row.worlds:,}", f"{row.decisions:,}", f"{row.leaking:,}", f"{row.declaring:,}")
    return (name, row.relation, *counts, where or "-", row.verdict)
