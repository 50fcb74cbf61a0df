"""What stands in the report, in order; PDF and HTML only lay it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedrl.evaluation.comparison_report import figures, tables
from schedrl.evaluation.comparison_report.conclusion import conclude
from schedrl.evaluation.comparison_report.result import Result
from schedrl.evaluation.comparison_report.rows import Row
from schedrl.evaluation.comparison_report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Heading:
    """A section's title."""

    text: str
    new_page: bool = False
    """Begin a page with it, where there are pages."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture with its caption."""

    title: str
    draw: Callable[[Figure, figures.Box], str]
    """Draws into a box of a figure and returns the caption."""
    height: float
    """Inches, at a width of `WIDTH`."""


Block = Heading | Text | Picture | Table
WIDTH = 7.3  # inches: A4 without its margins


def title(result: Result) -> str:
    """Return the report's title."""
    return f"Comparison of {', '.join(result.algorithms) or 'algorithms'} on {result.origin.environment_name}"


def contents(result: Result, rows: list[Row]) -> list[Block]:
    """Return the blocks of the report."""
    blocks: list[Block] = [Heading("Conclusion"), *map(Text, conclude(result, rows))]
    blocks.append(tables.result_table(result, rows))
    if result.trained:
        blocks += [*tables.difference_tables(rows), *_pictures(result)]
        blocks += [Heading("Each seed by itself", new_page=True), tables.training_table(result, rows)]
        blocks += [tables.seed_table(rows), *tables.seed_difference_tables(rows)]
    blocks += [Text(f"Warning: {text}") for text in _warnings(rows)]
    blocks.append(Heading("To make this page again", new_page=True))
    blocks += [Text(f"{name}: {text}") for name, text in _facts(result)]
    return [*blocks, *tables.settings_tables(result)]


def _pictures(result: Result) -> list[Block]:
    def drawing(draw: Callable[..., str]) -> Callable[[Figure, figures.Box], str]:
        return lambda figure, box: draw(figure, box, result)

    count = len(result.algorithms) + len(result.evaluation.baselines)
    resources = result.evaluation.runs[0].outcome.demand.shape[2]
    height = 0.7 + resources * (0.3 + 0.2 * count)
    return [
        Heading("Pictures", new_page=True),
        Picture("Learning curves", drawing(figures.draw_curves), 4.9),
        Picture("Distribution of slowdowns", drawing(figures.draw_cdfs), 3.2),
        Picture("Utilisation over time", drawing(figures.draw_utilisation), height),
    ]


def _warnings(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        if row["warnings"]:
            name = (
                row["policy"]
                if row["seed"] is None
                else f"{row['policy']} seed {row['seed']} ({row['mode']})"
            )
            found.append(f"{name}: {row['warnings']}")
    return found


def _facts(result: Result) -> list[tuple[str, Any]]:
    origin = result.origin
    facts = [
        ("Command", origin.command),
        ("Environment", f"{origin.environment_name}, {origin.environment_summary}"),
        ("Budget", f"{origin.budget:,} decisions per run"),
        *origin.facts.items(),
    ]
    if result.heuristics:
        tuned = ", ".join(result.heuristics.values())
        facts.append(("Heuristics, tuned on validation sequences", tuned))
    facts += [("Failed", f"{f.algorithm} seed {f.seed}: {f.error}") for f in result.failures]
    return facts
