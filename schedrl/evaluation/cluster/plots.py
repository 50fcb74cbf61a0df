"""The pictures of clusters: servers x time as a heat map, slowdowns as a CDF, small runs as a Gantt chart.

Each `draw_...` fills a figure that is given, so that a PNG and a page of HTML share it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.evaluation.cluster import timeline
from schedrl.evaluation.cluster.replay import CURVE, Entry
from schedrl.evaluation.plots import COLOURS, DASHES, DPI, plain_ticks
from schedrl.settings import UserError, line_of, save_picture
from schedrl.sim.cluster.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TALLEST = 9.0
"""Inches: what fits on a page of the PDF."""
ROWS = 250
"""Most rows of a heat map; where there are more machines, a row is the mean of neighbours."""
GANTT_JOBS, GANTT_MACHINES = 400, 40
TIMES = {"s": (("d", 86400.0), ("h", 3600.0), ("min", 60.0)), "min": (("d", 1440.0), ("h", 60.0))}
TIMES["h"] = (("d", 24.0),)


def in_readable_time(length: float, unit: str) -> tuple[float, str]:
    """Return how many units make one of a unit in which `length` is a number that people read."""
    for name, size in TIMES.get(unit, ()):
        if length >= 3 * size:
            return size, name
    return 1.0, unit


def downsampled(share: np.ndarray, rows: int = ROWS) -> np.ndarray:
    """Return at most so many rows, each the mean of as many neighbours (of the last, fewer)."""
    size = -(-len(share) // rows)
    starts = np.arange(0, len(share), size)
    counts = np.diff(np.append(starts, len(share)))
    return np.add.reduceat(share, starts, axis=0) / counts[:, None]


def heat_map_height(entries: Sequence[Entry], width: float) -> float:
    """Return the height [inches] that the heat maps take."""
    rows = -(-len(entries) // _columns(entries, width))
    return min(0.9 + rows * (2.5 if len(entries) > 1 else 4.5), TALLEST)


def draw_heat_map(figure: Figure, entries: Sequence[Entry], unit: str) -> str:
    """Draw how full each machine was over time, one panel for each policy; return the caption."""
    columns = _columns(entries, figure.get_figwidth())
    rows = -(-len(entries) // columns)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    first, last = entries[0].heat.edges[[0, -1]].tolist()  # the same for all
    size, name = in_readable_time(last - first, unit)
    drawn: Any = None
    for panel, found in zip(panels.flat, entries, strict=False):
        machines = len(found.heat.share)
        drawn = panel.imshow(
            downsampled(found.heat.share),
            aspect="auto",
            vmin=0,
            vmax=1,
            cmap="inferno",
            interpolation="nearest",
            extent=(0, (last - first) / size, machines - 0.5, -0.5),
        )
        panel.set_title(found.label, fontsize=9)
        panel.yaxis.get_major_locator().set_params(integer=True)
        panel.tick_params(labelsize=8)
    for panel in list(panels.flat)[len(entries) :]:
        panel.set_axis_off()
    for panel in [panels[min(len(entries) - 1 - c, len(entries) - 1) // columns, c] for c in range(columns)]:
        panel.set_xlabel(f"time [{name}]", fontsize=8)
        panel.tick_params(labelbottom=True)
    for panel in panels[:, 0]:
        panel.set_ylabel("machine", fontsize=8)
    figure.colorbar(drawn, ax=panels.ravel().tolist(), label="share in use", shrink=0.6, pad=0.015)
    merged = -(-len(entries[0].heat.share) // ROWS)
    means = f" A row is the mean of {merged} neighbours." if merged > 1 else ""
    return (
        "Each machine's busiest resource, averaged over spans of time; machines in the order of the file."
        f"{means} Drawn to a little after 99 % of the starts under {entries[0].label}."
    )


def _columns(entries: Sequence[Entry], width: float) -> int:
    return min(len(entries), 4 if width > 10 else 2)


def draw_cdf(figure: Figure, entries: Sequence[Entry], tau: str) -> str:
    """Draw the distribution of bounded slowdowns, left as CDF and right its tail; return the caption."""
    left, right = figure.subplots(1, 2)
    shown = [e for e in entries if e.curve.size]
    for i, found in enumerate(shown):
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "drawstyle": "steps-post"}
        style |= {"linestyle": DASHES[(i // len(COLOURS) + i) % len(DASHES)], "linewidth": 1.4}
        style |= {"linewidth": 2.4} if found.learned else {}
        left.plot(found.curve, CURVE, label=found.label, **style)
        right.plot(found.curve, 1 - CURVE, **style)
    largest = max((float(e.curve[-1]) for e in shown), default=2.0)
    smallest = 1 / max((int(e.counts.sum()) for e in shown), default=10)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlim(0.95, max(2.0, largest) * 1.2)
        axis.set_xlabel("bounded slowdown", fontsize=9)
        axis.grid(True, color="#dddddd", linewidth=0.7)
        plain_ticks(axis)
    left.set_ylim(0, 1.01)
    left.set_ylabel("share of jobs at most this slow", fontsize=9)
    right.set_yscale("log")
    right.set_ylim(min(0.5, smallest), 1.2)
    right.set_ylabel("share of jobs slower than this", fontsize=9)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False
    )
    nobody = "" if largest > 1 else " Under no policy was any job slower than 1: there is nothing to see."
    return f"Bounded slowdown, tau {tau}; an unfinished job counts with its lower bound.{nobody}"


def draw_gantt(figure: Figure, schedule: Schedule) -> str:
    """Draw which job ran where and when; height is its share of the machine; return the caption.

    Raises:
        UserError: more jobs or machines than can be told apart.
    """
    if not fits_gantt(schedule):
        raise UserError(
            f"{len(schedule.status)} jobs on {len(schedule.machines)} machines are too many for a Gantt "
            f"chart; it shows up to {GANTT_JOBS} on {GANTT_MACHINES}"
        )
    axis = figure.subplots()
    first, last = timeline.span(schedule)
    size, name = in_readable_time(last - first, schedule.workload.time_unit)
    for lane, machine, job, start, stop, height in _bars(schedule):
        colour = COLOURS[job % len(COLOURS)]
        left, length = (start - first) / size, (stop - start) / size
        axis.add_patch(_bar(left, machine - 0.46 + 0.92 * lane, length, 0.92 * height, colour))
    axis.set_xlim(0, max((last - first) / size, 1e-9))
    axis.set_ylim(len(schedule.machines) - 0.5, -0.5)
    axis.set_yticks(range(len(schedule.machines)), list(map(line_of, schedule.machines.name)), fontsize=8)
    axis.set_xlabel(f"time [{name}]")
    axis.set_title(schedule.rule, fontsize=10)
    for edge in range(1, len(schedule.machines)):
        axis.axhline(edge - 0.5, color="#999999", linewidth=0.6)
    return (
        "Every bar is one instance of a job; its height is the share that it takes of the machine's resource "
        "of which it takes most."
    )


def _bar(left: float, bottom: float, length: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((left, bottom), length, height, facecolor=colour, edgecolor="white", linewidth=0.5)


def fits_gantt(schedule: Schedule) -> bool:
    """Say whether a Gantt chart of it can be read."""
    return len(schedule.status) <= GANTT_JOBS and len(schedule.machines) <= GANTT_MACHINES


def _bars(schedule: Schedule) -> list[tuple[float, int, int, float, float, float]]:
    """Return (lane, machine, job, start, stop, height), lanes so that bars of a machine don't overlap.

    Heights may add up to more than 1 where jobs are large in different resources: then all are made lower.
    """
    rows, capacity = timeline.held(schedule), timeline.capacities(schedule)
    full = np.where(capacity > 0, capacity, np.inf)[rows.machine]
    share = (schedule.demand[rows.job] / full).max(1, initial=0)
    bars: list[tuple[float, int, int, float, float, float]] = []
    for machine in np.unique(rows.machine).tolist():
        here = np.flatnonzero(rows.machine == machine)
        here = here[np.argsort(rows.start[here], kind="stable")]
        placed: list[tuple[float, int]] = []
        for i in here:
            taken = sorted((lane, lane + share[k]) for lane, k in placed if rows.stop[k] > rows.start[i])
            placed.append((_gap(taken, float(share[i])), int(i)))
        tall = max((lane + share[k] for lane, k in placed), default=1.0)
        scale = 1 / max(tall, 1.0)
        bars += [
            (
                lane * scale,
                machine,
                int(rows.job[k]),
                float(rows.start[k]),
                float(rows.stop[k]),
                float(share[k]) * scale,
            )
            for lane, k in placed
        ]
    return bars


def _gap(taken: Sequence[tuple[float, float]], height: float) -> float:
    """Return the lowest place where a bar of that height doesn't overlap those that are taken."""
    at = 0.0
    for low, high in taken:
        if low - at >= height - 1e-9:
            break
        at = max(at, high)
    return at


def save(path: Path, width: float, height: float, draw: Any) -> Path:
    """Draw into a figure of that size [inches], write it as PNG with its caption, and return the path."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    caption = draw(figure)
    figure.suptitle(caption, fontsize=9, color="#444444")
    save_picture(figure, path, dpi=DPI)
    return path


def cdf_height(entries: Sequence[Entry]) -> float:
    """Return the height [inches] of the picture of slowdowns."""
    return 3.6 + 0.2 * math.ceil(len(entries) / 3)
