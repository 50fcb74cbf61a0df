"""The pictures of the report: learning curves, slowdown CDFs, utilisation heat maps.

Each function draws into a box of a given figure, so that the same code fills a page of the PDF and a picture
of the HTML. Algorithms have the solid colours of Okabe and Ito, heuristics are grey to black and dashed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.evaluation import metrics, plots
from schedrl.evaluation.comparison import PRODUCTION_P99, number
from schedrl.evaluation.comparison_report.curves import band, band_words, on_grid
from schedrl.evaluation.comparison_report.lettering import text_width
from schedrl.evaluation.comparison_report.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[float, float, float, float]
"""Left, bottom, right, top as shares of the figure."""

GREYS = ("#000000", "#555555", "#888888", "#000000", "#555555", "#888888", "#000000", "#555555")
DASHES: tuple[Any, ...] = (
    (0, (6, 2)),
    (0, (2, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (1, 1)),
    (0, (9, 3)),
    (0, (4, 1, 1, 1, 1, 1)),
)
MOST_POINTS = 1500
FONT = 8
COLUMNS = 4
"""Of a legend."""
ALONG = (("decisions", "training decisions"), ("seconds", "seconds of training"))
MEASURES = (("slowdown", "slowdown of an episode"), ("reward", "return of an episode"))


def draw_curves(figure: Figure, box: Box, result: Result) -> str:
    """Draw slowdown and return against decisions and seconds; return what the reader must know."""
    grid = _grid(figure, box, 2, 2, below=_legend_height(result), hspace=0.3, wspace=0.2)
    for row, (measure, measure_words) in enumerate(MEASURES):
        for column, (along, words) in enumerate(ALONG):
            axes = figure.add_subplot(grid[row, column])
            _draw_curves(axes, result, along, measure)
            axes.set_xlabel(words, fontsize=FONT)
            axes.xaxis.set_major_formatter(_short)
            axes.set_ylabel(measure_words if column == 0 else "", fontsize=FONT)
            _plain(axes)
    _legend(figure, figure.axes[-4], box)
    counts = sorted({len(runs) for runs in result.algorithms.values()})
    windows = sorted({run.curve.episodes for run in result.trained})
    window = f"{windows[0]}" if len(windows) == 1 else f"{windows[0]} to {windows[-1]}"
    return (
        f"Lines: mean over seeds of the mean over the last {window} finished training episodes, "
        "whose actions are sampled, interpolated linearly onto a common grid from the latest beginning to "
        f"the earliest end of the seeds; {'; '.join(band_words(n) for n in counts)}. Dashed: the heuristics' "
        "means over 500 validation episodes under the rules of training (values in the legend; some may lie "
        "outside the picture). Seconds are wall time, and runs side by side slow one another."
    )


def _draw_curves(axes: Axes, result: Result, along: str, measure: str) -> None:
    seen: list[np.ndarray] = []
    for index, (algorithm, runs) in enumerate(result.algorithms.items()):
        colour = _colour(index)
        x, values = on_grid([run.curve for run in runs], along, measure)
        if not len(x):  # the seeds have no common part (one was far slower): each by itself
            for curve in (run.curve for run in runs):
                axes.plot(getattr(curve, along), getattr(curve, measure), color=colour, linewidth=0.8)
                seen.append(getattr(curve, measure)[-1:])
            continue
        axes.plot(x, values.mean(axis=0), color=colour, linewidth=1.6, label=algorithm)
        edges = band(values)
        if edges is not None:
            axes.fill_between(x, *edges, color=colour, alpha=0.18, linewidth=0)
        seen.append(values.mean(axis=0))
    levels = {
        name: level[MEASURES.index(next(m for m in MEASURES if m[0] == measure))]
        for name, level in result.levels.items()
    }
    for index, (name, level) in enumerate(levels.items()):
        style = {"color": GREYS[index % len(GREYS)], "linestyle": DASHES[index % len(DASHES)]}
        axes.axhline(level, linewidth=1.0, label=f"{name} {number(level)}", **style)
    _limits(axes, seen, list(levels.values()), measure)


def _limits(axes: Axes, seen: Sequence[np.ndarray], levels: list[float], measure: str) -> None:
    """Show where curves end and good heuristics lie, not how bad the beginning was."""
    ends = [float(values[-1]) for values in seen if len(values)]
    if not ends:
        return
    middle = sorted(levels)[: max(1, len(levels) - 1)] if measure == "slowdown" else sorted(levels)[1:]
    shown = np.array([*ends, *(middle or levels)])
    low, high = float(shown.min()), float(shown.max())
    room = max(high - low, 0.1 * abs(high), 1e-6)
    if measure == "slowdown":
        axes.set_ylim(low - 0.1 * room, high + 0.8 * room)
    else:
        axes.set_ylim(low - 0.8 * room, high + 0.1 * room)


def draw_cdfs(figure: Figure, box: Box, result: Result) -> str:
    """Draw the slowdowns of all jobs, left as CDF and right the tail; return what the reader must know."""
    grid = _grid(figure, box, 1, 2, below=_legend_height(result), wspace=0.24)
    left, right = (figure.add_subplot(grid[0, i]) for i in range(2))
    largest, jobs = PRODUCTION_P99, 10
    for label, outcome, style in _distributions(result):
        values = metrics.slowdowns(outcome, result.evaluation.floor, result.evaluation.window)
        x, y = _thinned(*plots.cdf(values))
        if not len(x):
            continue
        largest, jobs = max(largest, float(x[-1])), max(jobs, int(np.isfinite(values).sum()))
        left.step([x[0], *x], [0, *y], where="post", label=label, **style)
        right.step([x[0], *x], [1, *(1 - y)], where="post", **style)
    _dress(left, right, largest, jobs)
    _legend(figure, left, box)
    return (
        "Greedy policies, one line for each seed; unfinished and dropped jobs count with their lower bounds. "
        f"Right: the share of jobs slower than a value; the dotted lines cross at the common production bar, "
        f"P99 = {PRODUCTION_P99:g}."
    )


def _distributions(result: Result):
    """Yield (label or None, outcome, style) for each line: heuristics below, policies on top."""
    evaluation = result.evaluation
    for index, name in enumerate(evaluation.baselines):
        style = {
            "color": GREYS[index % len(GREYS)],
            "linestyle": DASHES[index % len(DASHES)],
            "linewidth": 1.0,
        }
        yield f"{name}: mean {number(evaluation.summaries[name].mean)}", evaluation.run(name).outcome, style
    for index, (algorithm, runs) in enumerate(result.algorithms.items()):
        labels = [evaluation.run(run.name, "greedy").label for run in runs]
        mean = float(np.mean([evaluation.summaries[label].mean for label in labels]))
        for number_, run in enumerate(runs):
            label = f"{algorithm}: mean {number(mean)}" if number_ == 0 else None
            style = {"color": _colour(index), "linewidth": 1.5, "alpha": 0.85}
            yield label, evaluation.run(run.name, "greedy").outcome, style


def _dress(left: Axes, right: Axes, largest: float, jobs: int) -> None:
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlim(0.9, largest * 1.3)
        axes.set_xlabel("slowdown of a job", fontsize=FONT)
        axes.axvline(PRODUCTION_P99, color="#B00020", linewidth=0.9, linestyle=":")
        plots.plain_ticks(axes)
        _plain(axes)
    left.set_ylim(0, 1.01)
    left.set_ylabel("share of jobs at most this slow", fontsize=FONT)
    right.set_yscale("log")
    right.set_ylim(0.5 / jobs, 1.2)
    right.set_ylabel("share of jobs slower", fontsize=FONT)
    right.axhline(0.01, color="#B00020", linewidth=0.9, linestyle=":")


def draw_utilisation(figure: Figure, box: Box, result: Result) -> str:
    """Draw how full the machine is over time, policies as rows; return what the reader must know."""
    evaluation = result.evaluation
    firsts = [evaluation.run(runs[0].name, "greedy") for runs in result.algorithms.values()]
    rules = [evaluation.run(name) for name in evaluation.baselines]
    resources = rules[0].outcome.demand.shape[2] if rules else firsts[0].outcome.demand.shape[2]
    before = 0.15 + max(text_width(run.label, FONT) for run in (*firsts, *rules))
    grid = _grid(figure, box, resources, 1, below=0.4, before=before, after=0.6, above=0.28, hspace=0.28)
    axes = [figure.add_subplot(grid[i, 0]) for i in range(resources)]
    drawn = plots.draw_utilisation(axes, replace(evaluation, runs=(*firsts, *rules)))
    for axis in axes:
        axis.tick_params(labelsize=FONT)
        name = axis.get_title()
        axis.set_title("")
        axis.set_title(name, fontsize=FONT + 1, loc="left", pad=3)
        axis.set_xlabel("time [steps]" if axis is axes[-1] else "", fontsize=FONT)
    places = [axis.get_position() for axis in axes]
    edge = box[2] - 0.45 / figure.get_figwidth()
    bar = figure.add_axes((edge, places[-1].y0, 0.012, places[0].y1 - places[-1].y0))
    figure.colorbar(drawn, cax=bar)
    bar.tick_params(labelsize=FONT)
    count = len(evaluation.runs[0].outcome.end_time)
    ended = (
        "windows"
        if result.steady
        else ("test sequences; one that has ended uses nothing, so a long tail means slow draining")
    )
    return (
        f"Share of each resource in use, mean of {count:,} {ended}. Greedy policies of the first seed of "
        "each algorithm."
    )


def _grid(figure: Figure, box: Box, rows: int, columns: int, below: float, **space: float) -> Any:
    """Return places for axes in a box, with inches around them left free for text."""
    width, height = figure.get_size_inches()
    left, bottom, right, top = box
    before, after, above = space.pop("before", 0.68), space.pop("after", 0.05), space.pop("above", 0.08)
    return figure.add_gridspec(
        rows,
        columns,
        left=left + before / width,
        right=right - after / width,
        bottom=bottom + below / height,
        top=top - above / height,
        **space,
    )


def _legend(figure: Figure, axes: Axes, box: Box) -> None:
    handles = axes.get_legend_handles_labels()
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": ((box[0] + box[2]) / 2, box[1])}
    figure.legend(*handles, ncols=COLUMNS, fontsize=FONT, frameon=False, handlelength=3.2, **place)


def _legend_height(result: Result) -> float:
    """Return the inches that the legend and the label of the axis above it take."""
    entries = len(result.algorithms) + len(result.evaluation.baselines)
    return 0.55 + 0.165 * -(-entries // COLUMNS)


def _plain(axes: Axes) -> None:
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.tick_params(labelsize=FONT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _short(value: float, _: float) -> str:
    """Format a tick: 250k, 1.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep the last of equal values, and of those at most `MOST_POINTS`, the ends and the tail among them."""
    last = np.flatnonzero(np.append(np.diff(x) > 0, True)) if len(x) else np.zeros(0, int)
    if len(last) > MOST_POINTS:
        tail = last[-MOST_POINTS // 3 :]
        picks = np.unique(np.linspace(0, len(last) - 1, 2 * MOST_POINTS // 3).astype(int))
        last = np.unique(np.concatenate([last[picks], tail]))
    return x[last], y[last]


def _colour(index: int) -> str:
    return plots.COLOURS[index % len(plots.COLOURS)]
