"""The rows of the report as tables of text; PDF and HTML show the same ones.

Nothing is computed here: cells are formatted numbers of `rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schedrl.evaluation.comparison import number
from schedrl.evaluation.comparison_report.curves import EPISODES, SHARE
from schedrl.evaluation.comparison_report.result import Result
from schedrl.evaluation.comparison_report.rows import LEVEL, Row, chosen


@dataclass(frozen=True)
class Table:
    """A table of text with what a reader must know about it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def result_table(result: Result, rows: list[Row]) -> Table:
    """Return the main table: every algorithm over its seeds and every heuristic, best mean first."""
    found = chosen(rows, kind="algorithm") + chosen(rows, kind="heuristic")
    header = (
        "policy", "seeds", "idle", "mean", "95 % interval", "seeds from .. to", "P50", "P95", "P99",
        "completion", "unfinished", "dropped",
    )  # fmt: skip
    cells = [
        (
            _label(row),
            str(row["num_seeds"] or ""),
            row["idle_limit"],
            number(row["mean"]),
            _span(row, "mean_low", "mean_high"),
            _span(row, "lowest_seed", "highest_seed"),
            number(row["p50"]),
            number(row["p95"]),
            number(row["p99"]),
            number(row["completion_time"]),
            f"{row['unfinished']:,}",
            f"{row['dropped'] + row['rejected']:,}",
        )
        for row in sorted(found, key=lambda row: row["mean"])
    ]
    note = (
        "Slowdown = (finish - arrival) / duration of a job, 1 = never waited; every arrived job counts. "
        "Algorithms: mean over seeds, interval over seeds and test sequences; P50 to P99 and completion time "
        "(steps) are means over seeds, unfinished and dropped jobs sums over them. Heuristics: interval over "
        "test sequences. idle: steps in a row that the machine may stand idle beside a job that could start."
    )
    return Table("Slowdown on test sequences", header, tuple(cells), note)


def training_table(result: Result, rows: list[Row]) -> Table:
    """Return what training each seed took, and when it passed the level of SJF."""
    header = (
        "algorithm", "seed", "decisions", "decisions/s", "seconds",
        "decisions to beat SJF", "seconds to beat SJF", "run", "run id",
    )  # fmt: skip
    cells = [
        (
            row["policy"],
            str(row["seed"]),
            f"{row['decisions']:,}",
            f"{row['decisions_per_second']:,.0f}",
            f"{row['seconds']:,.0f}",
            _passed(row, "decisions"),
            _passed(row, "seconds"),
            "used again" if row["reused"] else "trained now",
            row["run_id"],
        )
        for row in chosen(rows, kind="seed", mode="greedy")
    ]
    level = f" ({number(result.levels[LEVEL][0])})" if LEVEL in result.levels else ""
    note = (
        "Seconds are wall time of training, tracing included, start-up and evaluation not; runs that trained "
        "side by side slowed one another. To beat SJF: the point from which on the mean over the last "
        f"{EPISODES} training episodes (sampled actions) stays below SJF's mean on validation "
        f"sequences{level} to the end of training. 'never': the curve ends above; '-': fewer than "
        f"{SHARE * EPISODES:,} episodes were played, too few to say, or SJF isn't among the baselines."
    )
    return Table("Training", header, tuple(cells), note)


def difference_table(rows: list[Row], kind: str, title: str, note: str, mode: str = "greedy") -> Table:
    """Return paired differences of one kind of row."""
    found = chosen(rows, kind=kind, mode=mode)
    single, pairs = kind.startswith("seed"), kind == "algorithm against algorithm"
    header = ["policy", *(["seed"] if single else []), "against", "difference", "95 % interval"]
    header += ["relative", "95 % interval", "P(better)"]
    header += [] if single or pairs else ["seeds better / worse"]
    cells = []
    for row in found:
        line = [row["policy"], *([str(row["seed"])] if single else []), row["against"]]
        line += [f"{row['difference']:+.3f}", _signed_span(row, "difference", "{:+.3f}")]
        line += [f"{row['relative']:+.1%}", _signed_span(row, "relative", "{:+.1%}")]
        line += [f"{row['prob_better']:.1%}"]
        if not single and not pairs:
            line.append(f"{row['seeds_better']} / {row['seeds_worse']} of {row['num_seeds']}")
        cells.append((*line, row["verdict"]))
    return Table(title, (*header, "verdict"), tuple(cells), note)


def difference_tables(rows: list[Row]) -> list[Table]:
    """Return the differences over seeds, from heuristics and between algorithms."""
    tables = [
        difference_table(
            rows,
            "algorithm against heuristic",
            "Algorithms against heuristics, over seeds and test sequences",
            "Difference of the mean slowdowns on the same sequences, below 0 = better; greedy policies "
            "(sampled ones are in the CSV). The interval draws seeds and sequences anew. P(better): share of "
            "the sequences with the lower mean, ties half, mean over seeds. Seeds better / worse: how many "
            "have an interval of their own below / above zero. 'other idle limit': the heuristic may idle "
            "longer, so a loss to it proves nothing and no interval is given. '(bound)': the lower mean is a "
            "lower bound, as that side left jobs undone.",
        ),
        difference_table(
            rows,
            "algorithm against algorithm",
            "Algorithms against each other, over seeds and test sequences",
            "As above; P(better) is the mean over all pairs of seeds.",
        ),
    ]
    return [table for table in tables if table.rows]


def seed_difference_tables(rows: list[Row]) -> list[Table]:
    """Return the differences seed by seed."""
    table = difference_table(
        rows,
        "seed against heuristic",
        "Each seed against the heuristics, over test sequences",
        "Paired bootstrap over the test sequences; greedy policies (sampled ones are in the CSV).",
    )
    return [table] if table.rows else []


def seed_table(rows: list[Row]) -> Table:
    """Return the measures of each seed in each mode by itself."""
    header = (
        "policy", "seed", "mode", "mean", "95 % interval", "P50", "P95", "P99", "completion",
        "unfinished", "dropped", "cut off", "use",
    )  # fmt: skip
    cells = [
        (
            row["policy"],
            str(row["seed"]),
            row["mode"],
            number(row["mean"]),
            _span(row, "mean_low", "mean_high"),
            number(row["p50"]),
            number(row["p95"]),
            number(row["p99"]),
            number(row["completion_time"]),
            f"{row['unfinished']:,}",
            f"{row['dropped'] + row['rejected']:,}",
            f"{row['cut_off']:,}",
            f"{row['utilisation']:.0%}",
        )
        for row in chosen(rows, kind="seed")
    ]
    note = "Intervals over test sequences alone. cut off: episodes stopped by the limit on their length "
    note += "(every window of a steady state). use: share of the resources in use, mean over resources."
    return Table("On test sequences", header, tuple(cells), note)


def settings_tables(result: Result) -> list[Table]:
    """Return the resolved settings of the environment and of the algorithms."""
    origin = result.origin
    defaults = origin.environment_defaults
    environment = [
        (name, _value(value), "" if value == defaults.get(name) else f"default {_value(defaults.get(name))}")
        for name, value in origin.environment.items()
    ]
    names = list(origin.algorithms)
    fields = dict.fromkeys(name for settings in origin.algorithms.values() for name in settings)
    own = [(field, *(_value(origin.algorithms[a].get(field, "-")) for a in names)) for field in fields]
    return [
        Table(f"Environment {origin.environment_name}", ("setting", "value", ""), tuple(environment)),
        Table("Algorithms", ("setting", *names), tuple(own), "- = it has no such setting."),
    ]


def _label(row: Row) -> str:
    return f"{row['policy']} ({row['mode']})" if row["kind"] == "algorithm" else row["policy"]


def _passed(row: Row, unit: str) -> str:
    value = row[f"{unit}_to_beat_{LEVEL}"]
    if value is not None:
        return f"{value:,.0f}"
    return "never" if row["enough_episodes"] else "-"


def _span(row: Row, low: str, high: str) -> str:
    if row[low] is None:
        return ""
    return f"{number(row[low])} .. {number(row[high])}"


def _signed_span(row: Row, name: str, form: str) -> str:
    if row[f"{name}_low"] is None:
        return "no claim"
    return f"{form.format(row[f'{name}_low'])} .. {form.format(row[f'{name}_high'])}"


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(name for name, on in value.items() if on) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_value, value)) or "()"
    return f"{value:g}" if isinstance(value, float) else str(value)
