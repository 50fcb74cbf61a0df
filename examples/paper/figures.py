"""The paper's four result figures, drawn from the rows: one PNG each, and a PDF of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.paper import plan
from examples.paper.measuring import LABELS, Curve, Row
from schedrl.evaluation.plots import COLOURS, DASHES

DPI = 110
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, BROWN = COLOURS
STYLES: dict[str, dict[str, Any]] = {
    "ppo": {"color": BLUE, "linestyle": "-", "linewidth": 2.4, "marker": "o"},
    "pg": {"color": RED, "linestyle": "-", "linewidth": 2.4, "marker": "s"},
    "pg_paper": {"color": PINK, "linestyle": "-", "linewidth": 2.4, "marker": "D"},
    "packer": {"color": BROWN, "linestyle": DASHES[2], "linewidth": 1.3},
    "sjf": {"color": GREEN, "linestyle": DASHES[1], "linewidth": 1.3},
    "tetris": {"color": BLACK, "linestyle": DASHES[3], "linewidth": 1.6},
    "sjf_hold": {"color": ORANGE, "linestyle": DASHES[1], "linewidth": 1.3},
    "tsl": {"color": SKY, "linestyle": DASHES[2], "linewidth": 1.6},
    "defer": {"color": SKY, "linestyle": DASHES[1], "linewidth": 1.6},
    "random_legal": {"color": "#999999", "linestyle": DASHES[2], "linewidth": 1.3},
}
NAMES = {"4": "load", "5": "objectives", "6": "learning", "7": "withholding"}


def draw_all(rows: Sequence[Row], curves: Sequence[Curve], folder: Path) -> list[Path]:
    """Draw every figure; return the files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.backends.backend_pdf import PdfPages

    by_figure = {number: [row for row in rows if row.figure == number] for number in NAMES}
    made = {
        "4": load_figure(by_figure["4"]),
        "5": objectives_figure(by_figure["5"]),
        "6": learning_figure(by_figure["6"], curves),
        "7": withholding_figure(by_figure["7"]),
    }
    paths = [folder / f"fig{number}_{NAMES[number]}.png" for number in made]
    for path, figure in zip(paths, made.values(), strict=True):
        figure.savefig(path, dpi=DPI)
    with PdfPages(folder / "figures.pdf") as pages:
        for figure in made.values():
            pages.savefig(figure)
            pyplot.close(figure)
    return [*paths, folder / "figures.pdf"]


def select(rows: Sequence[Row], **wanted: str) -> list[Row]:
    """Return the rows with these values; of the modes always greedy and rule only."""
    shown = [row for row in rows if row.mode != "sampled"]
    return [row for row in shown if all(getattr(row, name) == value for name, value in wanted.items())]


def series_of(rows: Sequence[Row]) -> list[str]:
    """Return who is in the rows: the learned first, then the rules in their fixed order."""
    present = {row.series for row in rows}
    return [name for name in (*plan.CONTENDERS, *plan.RULES, "random_legal") if name in present]


def load_figure(rows: Sequence[Row]) -> Any:
    """Fig. 4: slowdown against load, and the same against Tetris."""
    figure, (left, right) = subplots(2)
    for name in series_of(rows):
        for axis, measure in ((left, "slowdown"), (right, "relative_to_tetris")):
            own = sorted(select(rows, series=name, measure=measure), key=lambda row: row.load)
            scale = 100 if axis is right else 1
            x = [100 * row.load for row in own]
            y, low, high = (
                scale * np.array([getattr(row, k) for row in own]) for k in ("value", "low", "high")
            )
            axis.plot(x, y, label=LABELS[name], markersize=4.5, **STYLES[name])
            axis.fill_between(x, low, high, color=STYLES[name]["color"], alpha=0.15, linewidth=0)
    left.set_yscale("log")
    plain(left.yaxis, (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30))
    left.set_ylabel("mean slowdown (log scale)")
    left.set_title("Slowdown at each load (paper, Fig. 4)")
    right.set_ylabel("mean slowdown against Tetris [%]")
    right.set_title("The same against tuned Tetris; below 0 = faster")
    right.set_ylim(-60, 30)
    right.axhline(0, color=BLACK, linewidth=0.8)
    for axis in (left, right):
        axis.set_xlabel("cluster load [%]")
        axis.set_xticks(range(10, 191, 20))
    legend(figure, left)
    return figure


def objectives_figure(rows: Sequence[Row]) -> Any:
    """Fig. 5: slowdown and completion time, by what was aimed at."""
    figure, axes = subplots(2, sharey=True)
    bars = [(name, "") for name in plan.RULES]
    bars += [
        (name, goal)
        for name in series_of(rows)
        if name in plan.CONTENDERS
        for goal in ("slowdown", "completion_time")
    ]
    for axis, measure, unit in zip(axes, ("slowdown", "completion_time"), ("", " [steps]"), strict=True):
        for place, (name, goal) in enumerate(bars):
            # A rule is shown as tuned for the measure that the panel shows.
            row = next(
                r
                for r in select(rows, series=name, measure=measure)
                if r.trained_for in (goal or measure, "")
            )
            hatch = "////" if goal == "completion_time" else None
            axis.barh(
                place, row.value, color=STYLES[name]["color"], alpha=0.8, hatch=hatch, edgecolor="white"
            )
            axis.plot([row.low, row.high], [place, place], color="black", linewidth=1.5)
            text = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axis.annotate(f"{row.value:.2f}", (row.high, place), **text)
        axis.set_xlabel(f"mean {measure.replace('_', ' ')}{unit}")
        axis.margins(x=0.12)
        axis.set_xlim(0, None)
        axis.grid(False, axis="y")
        best = min(select(rows, measure=measure), key=lambda row: row.value)
        axis.axvline(best.value, color="#777777", linewidth=0.8, linestyle=":")
    names = [LABELS[name] + (f",\nfor {goal.replace('_', ' ')}" if goal else "") for name, goal in bars]
    axes[0].set_yticks(range(len(bars)), names, fontsize=9)
    axes[0].invert_yaxis()
    axes[0].set_title(f"By objective at load {rows[0].load:.0%} (paper, Fig. 5)")
    axes[1].set_title("rules tuned for the measure shown", fontsize=10)
    figure.tight_layout()
    return figure


def learning_figure(rows: Sequence[Row], curves: Sequence[Curve]) -> Any:
    """Fig. 6: return (mean and best of ten) and slowdown while learning, rules as lines."""
    figure, (left, right) = subplots(2)
    for name in plan.CONTENDERS:
        own = [curve.columns for curve in curves if curve.training.contender == name]
        if not own:
            continue
        x = own[0]["decisions"]
        for axis, column, style in (
            (
                left,
                "best_return",
                {"linestyle": ":", "linewidth": 1.4, "label": f"{LABELS[name]}: best of 10"},
            ),
            (left, "mean_return", {"linewidth": 2.2, "label": f"{LABELS[name]}: mean"}),
            (right, "slowdown", {"linewidth": 2.2}),
        ):
            values = np.array([columns[column] for columns in own])
            axis.plot(x, values.mean(0), color=STYLES[name]["color"], **style)
            axis.fill_between(
                x, values.min(0), values.max(0), color=STYLES[name]["color"], alpha=0.18, linewidth=0
            )
    for axis, measure in ((left, "mean_return"), (right, "slowdown")):
        for name in series_of(rows):
            value = select(rows, series=name, measure=measure)[0].value
            label = LABELS[name] if axis is left else None
            axis.axhline(value, label=label, **{k: v for k, v in STYLES[name].items() if k != "marker"})
        axis.set_xscale("log")
        axis.set_xlabel("decisions learned from (log scale)")
        powers = 10.0 ** np.arange(4, 10)
        plain(axis.xaxis, np.outer(powers, (1, 2, 5)).ravel(), lambda x, _: amount(x))
    right.set_yscale("log")
    plain(right.yaxis, (1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20))
    left.set_ylabel("return of an episode")
    right.set_ylabel("mean slowdown (log scale)")
    seeds = len({curve.training.seed for curve in curves})
    left.set_title(f"Learning at load {rows[0].load:.0%} (paper, Fig. 6), sampled actions")
    right.set_title(
        f"mean of {seeds} training seed{'s' * (seeds > 1)}, shaded: smallest to largest", fontsize=10
    )
    legend(figure, left, columns=4)
    return figure


def withholding_figure(rows: Sequence[Row]) -> Any:
    """Fig. 7: which jobs are withheld, and the slowdown by duration."""
    figure, (left, right) = subplots(2)
    durations = sorted({int(row.group) for row in rows if row.group.isdigit()})
    places = np.arange(len(durations))
    learned = [name for name in series_of(rows) if name in plan.CONTENDERS]
    shown = {left: ("share_of_withheld", learned), right: ("slowdown", [*learned, "tetris", "sjf"])}
    for axis, (measure, names) in shown.items():
        width = 0.8 / max(len(names), 1)
        for i, name in enumerate(names):
            found = {row.group: row for row in select(rows, series=name, measure=measure)}
            own = [found[str(duration)] for duration in durations]
            at = places + (i - (len(names) - 1) / 2) * width
            values = np.array([row.value for row in own])
            whole = select(rows, series=name, measure="share_of_steps")[0].value
            label = LABELS[name] + (f": a job withheld in {whole:.1%} of steps" if axis is left else "")
            scale = 100 if axis is left else 1
            axis.bar(at, scale * values, width, color=STYLES[name]["color"], alpha=0.85, label=label)
            if axis is right:
                axis.vlines(
                    at, [row.low for row in own], [row.high for row in own], color="#333333", linewidth=1
                )
        axis.set_xticks(places, durations)
        axis.set_xlabel("duration of the job [steps]")
        axis.grid(False, axis="x")
        axis.legend(fontsize=9, frameon=False, loc="upper left" if axis is left else "upper right")
    left.set_ylabel("share of all withheld job-steps [%]")
    left.set_title(f"Which jobs are withheld at load {rows[0].load:.0%} (paper, Fig. 7)")
    right.set_ylabel("mean slowdown")
    right.set_title("Who pays: slowdown by duration")
    for axis in (left, right):
        axis.margins(y=0.25)
    figure.tight_layout()
    return figure


def subplots(columns: int, **options: Any) -> tuple[Any, Any]:
    """Make a wide figure with light grids."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, figsize=(12.5, 5.2), **options)
    for axis in np.atleast_1d(axes):
        axis.grid(True, color="#dddddd", linewidth=0.7)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def plain(axis: Any, ticks: Sequence[float], text: Any = "{x:g}") -> None:
    """Put plain numbers at those of `ticks` that are in sight of a logarithmic axis."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter(text)
    axis.set_minor_locator(NullLocator())


def amount(number: float) -> str:
    """Show a count as 20k or 1.5M."""
    return f"{number / 1e6:g}M" if number >= 1e6 else f"{number / 1e3:g}k"


def legend(figure: Any, axis: Any, columns: int = 5) -> None:
    """Put the legend of `axis` below the figure."""
    handles, labels = axis.get_legend_handles_labels()
    lines = -(-len(labels) // columns)
    bottom = 0.02 + 0.05 * lines
    figure.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, bottom),
        ncols=columns,
        frameon=False,
        fontsize=9,
    )
    figure.tight_layout(rect=(0, bottom, 1, 1))
