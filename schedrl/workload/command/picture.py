"""The picture of a workload: arrivals over time, sizes, durations, hours of the day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import UserError, counted, save_picture
from schedrl.settings.claims import claim_file
from schedrl.workload.types import Workload
from schedrl.workload.units import SECONDS
from schedrl.workload.zones import clock_of

BINS = 60


def draw(workload: Workload, path: str, title: str) -> None:
    """Draw the four panels into a file whose suffix says the format.

    Raises:
        UserError: the file can't be written.
    """
    if Path(path).is_dir():
        raise UserError(f"can't draw {path}: it is a folder; name a .png, .svg or .pdf in it")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 2, figsize=(10, 6.5), layout="constrained")
    _arrivals(panels[0, 0], workload)
    _sizes(panels[0, 1], workload)
    _durations(panels[1, 0], workload)
    _hours(panels[1, 1], workload)
    figure.suptitle(f"{Path(title).name}: {counted(len(workload), 'job')}")
    try:
        with claim_file(path, "--plot"):
            save_picture(figure, path, dpi=110)
    except (OSError, ValueError) as error:
        raise UserError(
            f"can't draw {path}: {error}; name a .png, .svg or .pdf that can be written"
        ) from None
    finally:
        pyplot.close(figure)


def _arrivals(panel: Any, workload: Workload) -> None:
    length = SECONDS.get(workload.time_unit, 0.0)
    span = float(workload.arrival[-1]) * length
    unit, scale = next(
        ((u, SECONDS[u]) for u in ("d", "h", "min") if length and span >= 3 * SECONDS[u]),
        (workload.time_unit, length or 1.0),
    )
    panel.hist(workload.arrival * (length or 1.0) / scale, bins=BINS, color="tab:blue")
    panel.set(title="arrivals over time", xlabel=f"time [{unit}]", ylabel="jobs")


def _sizes(panel: Any, workload: Workload) -> None:
    """Draw, for each resource, the share of jobs that ask for at least so much of the largest demand."""
    instances, least = np.asarray(workload.instances), 0.5
    for n, (name, unit) in enumerate(workload.resources):
        demand = np.sort(workload.demand[:, n] * instances)
        least = min(least, demand[demand > 0].min(initial=np.inf) / max(demand[-1], 1e-12))
        panel.step(
            np.maximum(demand, 1e-12) / max(demand[-1], 1e-12),
            1 - np.arange(len(demand)) / len(demand),
            where="post",
            label=f"{name}, at most {demand[-1]:,.4g} {unit}",
        )
    panel.set(
        title="sizes", xlabel="demand over the largest demand", ylabel="share of jobs at least as large"
    )
    panel.set(xscale="log", yscale="log", xlim=(max(least, 1e-6) / 1.5, 1.2))
    panel.legend(fontsize=8, loc="lower left")


def _durations(panel: Any, workload: Workload) -> None:
    positive = workload.duration[workload.duration > 0]
    if positive.size:
        low, high = positive.min(), max(positive.max(), positive.min() * 1.01)
        panel.hist(positive, bins=np.geomspace(low, high, BINS), color="tab:green")
        panel.set(xscale="log")
    zeros = len(workload) - positive.size
    panel.set(
        title="durations" + (f" ({zeros:,} of 0 not drawn)" if zeros else ""),
        xlabel=f"duration [{workload.time_unit}]",
        ylabel="jobs",
    )


def _hours(panel: Any, workload: Workload) -> None:
    if workload.time_unit not in SECONDS:
        panel.set(title="hours of the day", xticks=[], yticks=[])
        panel.text(
            0.5, 0.5, f"time in {workload.time_unit}s has no hours", ha="center", transform=panel.transAxes
        )
        return
    clock = clock_of(workload.about)
    seconds = workload.arrival * SECONDS[workload.time_unit]
    hours = seconds / 3600 % 24 if clock is None else clock.hours(seconds)
    panel.hist(hours, bins=np.arange(25), color="tab:orange", rwidth=0.9)
    panel.set(
        title=f"hours of the day ({clock.name})" if clock else "hours since the start, modulo 24",
        xlabel="hour",
        ylabel="jobs",
    )
    panel.set_xticks(range(0, 25, 4))
