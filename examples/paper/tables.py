"""The numbers as text: one table for each figure, and what it took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from examples.paper import plan
from examples.paper.figures import select, series_of
from examples.paper.measuring import LABELS, Curve, Row
from examples.paper.training import Trained
from schedrl.evaluation.table import plain_table

TEAR = ("sjf", "tetris", "sjf_hold", "defer")
"""Rules whose passing is looked for on the learning curves."""
PAPER_ITERATION = "An iteration of the paper is 100 job sequences x 20 episodes = 2,000 episodes."


def all_tables(rows: Sequence[Row], curves: Sequence[Curve], runs: Sequence[Trained], seconds: float) -> str:
    """Return all tables."""
    by_figure = {number: [row for row in rows if row.figure == number] for number in "4567"}
    parts = [
        load_table(by_figure["4"]),
        objectives_table(by_figure["5"]),
        learning_table(by_figure["6"], curves),
        withholding_table(by_figure["7"]),
        time_table(runs, seconds),
    ]
    return "\n\n".join(parts) + "\n"


def load_table(rows: Sequence[Row]) -> str:
    """Fig. 4: a line for each load; behind the learned means half the width of their 95 % interval."""
    names = series_of(rows)
    means = {(row.load, row.series): row for row in select(rows, measure="slowdown")}
    relative = {(row.load, row.series): row for row in select(rows, measure="relative_to_tetris")}
    learned = [name for name in names if name in plan.CONTENDERS]
    lines = []
    for load in sorted({row.load for row in rows}):
        cells = [mean_cell(means.get((load, name))) for name in names]
        cells += [share_cell(relative.get((load, name))) for name in learned]
        lines.append([f"{load:.0%}", *cells])
    header = ["load", *(LABELS[name] for name in names)]
    header += [f"{LABELS[name]} against Tetris" for name in learned]
    count = f"{rows[0].sequences:,} test sequences of each load"
    title = f"Fig. 4: mean slowdown on {count}, every job counted; greedy"
    return plain_table(title, header, lines) + "\n" + left_behind(rows)


def left_behind(rows: Sequence[Row]) -> str:
    """Say where means are lower bounds."""
    behind = {(row.series, row.load, row.mode): row for row in rows if row.unfinished or row.cut_off}
    if not behind:
        return "No job was left unfinished or dropped, no episode cut off."
    lines = [
        f"{series} ({mode}) at {load:.0%}: {row.unfinished} of {row.jobs} jobs unfinished or dropped, "
        f"{row.cut_off} of {row.sequences} episodes cut off"
        for (series, load, mode), row in behind.items()
    ]
    return "Lower bounds: " + "; ".join(lines)


def objectives_table(rows: Sequence[Row]) -> str:
    """Fig. 5: both measures of everyone."""
    lines = []
    slowdowns = select(rows, measure="slowdown")
    times = {(row.series, row.trained_for): row for row in select(rows, measure="completion_time")}
    for row in slowdowns:
        time = times[row.series, row.trained_for]
        goal = row.trained_for.replace("_", " ") or "-"
        cells = [f"{one.value:.2f} [{one.low:.2f} .. {one.high:.2f}]" for one in (row, time)]
        lines.append([LABELS[row.series], goal, *cells])
    title = f"Fig. 5: by objective at load {rows[0].load:.0%}"
    return plain_table(title, ["", "trained or tuned for", "slowdown", "completion time"], lines)


def learning_table(rows: Sequence[Row], curves: Sequence[Curve]) -> str:
    """Fig. 6: when a curve first lies below a rule."""
    rules = {row.series: row.value for row in select(rows, measure="slowdown")}
    lines = []
    for curve in curves:
        slowdown = curve.columns["slowdown"]
        cells = [f"{slowdown[0]:.2f}", f"{slowdown[-1]:.2f}"]
        cells += [first_below(curve, rules[name]) for name in TEAR]
        lines.append([LABELS[curve.training.contender], str(curve.training.seed), *cells])
    title = (
        f"Fig. 6: learning at load {rows[0].load:.0%}, sampled; "
        "first point below a rule: decisions; episodes; seconds"
    )
    known = ", ".join(f"{LABELS[name]} {value:.2f}" for name, value in rules.items())
    header = ["", "seed", "first point", "last point", *(f"below {LABELS[name]}" for name in TEAR)]
    return plain_table(title, header, lines) + f"\nRules on the same sequences: {known}. {PAPER_ITERATION}"


def first_below(curve: Curve, slowdown: float) -> str:
    """Say when a curve was first measured below a slowdown."""
    below = np.flatnonzero(curve.columns["slowdown"] < slowdown)
    if not len(below):
        return "never"
    decisions, episodes, seconds = (curve.columns[k][below[0]] for k in ("decisions", "episodes", "seconds"))
    return f"{decisions / 1e3:,.0f}k; {episodes:,.0f}; {seconds:.0f}"


def withholding_table(rows: Sequence[Row]) -> str:
    """Fig. 7: withheld jobs, and the slowdown of small and large ones."""
    lines = []
    for name in series_of(rows):

        def cell(measure: str, group: str = "", name: str = name) -> Row:
            return select(rows, series=name, measure=measure, group=group)[0]

        cells = [f"{cell('share_of_steps').value:.1%}"]
        for measure in ("share_of_withheld", "share_of_jobs_withheld"):
            cells.append(" / ".join(percent(cell(measure, group).value) for group in ("small", "large")))
        for group in ("small", "large"):
            row = cell("slowdown", group)
            cells.append(f"{row.value:.2f} [{row.low:.2f} .. {row.high:.2f}]")
        lines.append([LABELS[name], *cells])
    header = ["", "steps with a withheld job", "of withheld: small / large", "of jobs: small / large"]
    header += ["slowdown, small", "slowdown, large"]
    return plain_table(f"Fig. 7: withheld jobs at load {rows[0].load:.0%}; greedy", header, lines)


def time_table(runs: Sequence[Trained], seconds: float) -> str:
    """Say what the training took, beside the paper."""
    lines = []
    for name in dict.fromkeys(run.training.contender for run in runs):
        own = [run for run in runs if run.training.contender == name]
        total, each = sum(run.seconds for run in own), [run.seconds for run in own]
        decisions = sum(run.decisions for run in own)
        spread = f"{np.mean(each):.0f} ({min(each):.0f} .. {max(each):.0f})"
        lines.append([LABELS[name], str(len(own)), f"{decisions:,}", spread, f"{total / 60:.1f}"])
    header = ["", "policies", "decisions", "seconds for one", "minutes in all"]
    table = plain_table("Training time, one process each", header, lines)
    return (
        f"{table}\nThis call took {seconds / 60:.1f} minutes. The paper: {plan.PAPER_TIME}, for one policy."
    )


def mean_cell(row: Row | None) -> str:
    """Show a mean and half the width of its interval; a dash for who didn't play."""
    return f"{row.value:.2f} ±{(row.high - row.low) / 2:.2f}" if row else "-"


def share_cell(row: Row | None) -> str:
    """Show a share with its interval."""
    return f"{row.value:+.1%} [{row.low:+.1%} .. {row.high:+.1%}]" if row else "-"


def percent(share: float) -> str:
    """Show a share, or a dash where there is none."""
    return "-" if np.isnan(share) else f"{share:.0%}"
