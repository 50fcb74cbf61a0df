"""The two pictures of a report: how slow jobs are, and how full the machine is.

Matplotlib is imported when a picture is drawn, with the Agg backend: no display is needed. Colours are those
of Okabe and Ito, which colour-blind readers can tell apart; line styles repeat the distinction in black and
white.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.evaluation import metrics
from schedrl.evaluation.comparison import PRODUCTION_P99, Evaluation
from schedrl.settings import line_of, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from schedrl.evaluation.evaluate import Run

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
DPI = 160
LEGEND_COLUMNS = 3


def cdf(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted finite values and the share of jobs at most as slow, y_i = (i + 1) / n: the last is 1."""
    x = np.sort(values[np.isfinite(values)])
    return x, np.arange(1, len(x) + 1) / max(len(x), 1)


def plot_slowdown_cdf(evaluation: Evaluation, path: str | Path | None = None) -> Figure:
    """Draw the distribution of slowdowns of all runs, left as CDF and right its tail, and save it to `path`.

    Unfinished and dropped jobs are in the curves with their lower bounds, so that every curve reaches 1.
    Marked: P99 of each run and the production bar. Warnings (refused jobs) stand below the axes.
    """
    warnings = [f"Warning: {label} {line}" for label, lines in evaluation.warnings.items() for line in lines]
    notes = [text for line in warnings for text in textwrap.wrap(line, 150)]
    below = 0.3 + 0.24 * -(-len(evaluation.runs) // LEGEND_COLUMNS) + 0.19 * len(notes)  # inches
    figure, (left, right) = _subplots(1, 2, (12.5, 4.8 + below))
    for i, run in enumerate(evaluation.runs):
        _draw_run(left, right, i, run, evaluation)
    _dress_cdf(left, right, evaluation)
    bottom = below / figure.get_figheight()
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="upper center",
        bbox_to_anchor=(0.5, bottom),
        ncols=LEGEND_COLUMNS,
        fontsize=9,
        frameon=False,
    )
    figure.text(0.02, 0.012, "\n".join(notes), fontsize=8.5, color="#8B0000", va="bottom")
    figure.tight_layout(rect=(0, bottom, 1, 1))
    return _save(figure, path)


def plot_utilisation(
    evaluation: Evaluation,
    path: str | Path | None = None,
    episode: int | None = None,
    names: Sequence[str] = (),
) -> Figure:
    """Draw the used share of each resource over time as a heat map, policies as rows, and save it to `path`.

    Averaged over all episodes, where an episode that has ended uses nothing (so a long tail = slow
    draining), or one `episode`. `names` are those of the resources.
    """
    runs = evaluation.runs
    num_resources = runs[0].outcome.demand.shape[2]
    size = (5.6 * num_resources + 1.6, 1.9 + 0.36 * len(runs))
    figure, axes = _subplots(1, num_resources, size, sharey=True)
    drawn = draw_utilisation(list(np.atleast_1d(axes)), evaluation, episode, names)
    what = (
        f"episode {episode}"
        if episode is not None
        else f"mean of {len(runs[0].outcome.end_time)} episodes; ended ones use nothing"
    )
    figure.suptitle(f"Resource utilisation over time ({what})", fontsize=11)
    figure.tight_layout(rect=(0, 0, 0.93, 1))
    box = np.atleast_1d(axes)[-1].get_position()
    figure.colorbar(drawn, cax=figure.add_axes((0.94, box.y0, 0.012, box.height)), label="share in use")
    return _save(figure, path)


def draw_utilisation(
    axes: Sequence[Axes], evaluation: Evaluation, episode: int | None = None, names: Sequence[str] = ()
) -> Any:
    """Draw the heat map of each resource into one of `axes`; return the last one, for a colour bar."""
    runs = evaluation.runs
    maps = [_shares(run.outcome, episode) for run in runs]
    length = _shown_length(maps)
    drawn = None
    for resource, axis in enumerate(axes):
        image = np.zeros((len(runs), length))
        for row, values in enumerate(maps):
            image[row, : len(values)] = values[:length, resource]
        drawn = axis.imshow(
            image,
            aspect="auto",
            vmin=0,
            vmax=1,
            cmap="cividis",
            interpolation="nearest",
            extent=(0, length, len(runs) - 0.5, -0.5),
        )
        axis.set_yticks(range(len(runs)), [line_of(run.label) for run in runs])
        axis.set_title(names[resource] if names else f"resource {resource}")
        axis.set_xlabel("time [steps]")
        for row in range(1, len(runs)):
            axis.axhline(row - 0.5, color="white", linewidth=1.5)
    return drawn


def _draw_run(left: Axes, right: Axes, index: int, run: Run, evaluation: Evaluation) -> None:
    x, y = cdf(metrics.slowdowns(run.outcome, evaluation.floor, evaluation.window))
    if not len(x):
        return
    summary = evaluation.summaries[run.label]
    left_behind = summary.arrived - summary.finished
    label = f"{run.label}: mean {summary.mean:.2f}, P99 {summary.p99:.3g}"
    label += f" ({left_behind} unfinished)" if left_behind else ""
    style: dict[str, Any] = {"color": COLOURS[index % len(COLOURS)], "where": "post"}
    style |= (
        {"linestyle": "-", "linewidth": 2.2} if run.learned else {"linestyle": _dash(index), "linewidth": 1.3}
    )
    left.step([x[0], *x], [0, *y], label=label, **style)
    right.step([x[0], *x], [1, *(1 - y)], **style)
    right.plot(summary.p99, 0.01, "o", color=style["color"], markersize=6, markeredgecolor="white", zorder=5)


def _dress_cdf(left: Axes, right: Axes, evaluation: Evaluation) -> None:
    kind = "floored slowdown (legacy)" if evaluation.floor else "slowdown"
    largest = max((s.max for s in evaluation.summaries.values() if np.isfinite(s.max)), default=10.0)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlim(0.9, max(largest, PRODUCTION_P99 * 1.5) * 1.3)
        axis.set_xlabel(f"{kind} = (finish - arrival) / duration")
        axis.grid(True, which="major", color="#dddddd", linewidth=0.7)
        axis.axvline(PRODUCTION_P99, color="#777777", linewidth=1, linestyle=":")
        plain_ticks(axis)
    jobs = max((s.arrived for s in evaluation.summaries.values()), default=0)
    left.set_ylim(0, 1.01)
    left.set_ylabel("share of jobs at most this slow")
    left.set_title(f"Slowdown of all {jobs:,} arrived jobs")
    right.set_yscale("log")
    right.set_ylim(0.5 / max(jobs, 10), 1.2)
    right.set_ylabel("share of jobs slower than this")
    right.set_title("Its tail (dots mark P99)")
    right.axhline(0.01, color="#777777", linewidth=1, linestyle=":")
    right.fill_between(
        [0.9, PRODUCTION_P99], 0.01, right.get_ylim()[0], color="#009E73", alpha=0.13, linewidth=0
    )
    right.text(
        0.96, 0.0088, f"production\nbar: P99 ≤ {PRODUCTION_P99:g}", fontsize=8, va="top", color="#00604a"
    )


def _shares(outcome, episode: int | None) -> np.ndarray:
    """Return the used share of each resource over time, [T, R]."""
    used = metrics.usage(outcome) / outcome.capacity
    return used.mean(axis=0) if episode is None else used[episode, : int(outcome.end_time[episode])]


def _shown_length(maps: Sequence[np.ndarray]) -> int:
    """Return how many steps are worth showing: up to where the last policy's use falls under 1 %."""
    lengths = [int(np.flatnonzero(values.max(axis=1) >= 0.01).max(initial=0)) + 1 for values in maps]
    return max(*lengths, 2)


def plain_ticks(axis: Axes) -> None:
    """Label a logarithmic slowdown axis 1, 2, 5, 10, ..., in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    few = np.log10(axis.get_xlim()[1] / axis.get_xlim()[0]) < 3
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _dash(index: int) -> Any:
    return DASHES[1 + index % (len(DASHES) - 1)]


def _subplots(rows: int, columns: int, size: tuple[float, float], **options: Any):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=size, **options)


def _save(figure: Figure, path: str | Path | None) -> Figure:
    from matplotlib import pyplot

    if path is not None:
        save_picture(figure, path, dpi=DPI)
    pyplot.close(figure)  # the figure itself stays usable; pyplot forgets it
    return figure
