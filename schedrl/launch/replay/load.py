"""The load of a replay: arrivals scaled to it, and whether it can make a queue.

`Workload.load` is all work over what the cluster can do from the first to the last arrival. Where a few jobs
run for months, most of that work is done after the last arrival, and a load of 100 % leaves the cluster
nearly idle. So the most that would ever be in use if nobody waited is looked at too: below 100 % there is
hardly a queue, and what to give instead is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from schedrl.settings import UserError
from schedrl.workload import transform
from schedrl.workload.types import Workload
from schedrl.workload.units import LOADS

OnFewer = Callable[[int], tuple[Workload | None, np.ndarray]]
"""Number of machines -> the jobs that can run on so many, if any, and what these have of each resource."""
CROWDED = 1.5
"""What a remedy aims at: the most of the busiest resource that would be in use at once if nobody waited."""


def at_load(workload: Workload, fitting: Workload, load: float, capacity: np.ndarray) -> Workload:
    """Scale the arrivals of all jobs so that those that can run make the load.

    Args:
        workload: all jobs.
        fitting: those that can run.
        load: of the busiest resource, 1 = 100 %.
        capacity: of the cluster [R], unknown where it has nothing.

    Raises:
        UserError: they arrive all at once, or take no time.
    """
    if fitting.arrival[-1] == fitting.arrival[0]:
        raise UserError(
            "all jobs that can run arrive at one moment, so there is no load to scale; leave --load out"
        )
    return transform.stretched(workload, float(np.nanmax(fitting.load(capacity))) / load)


def peak(workload: Workload, capacity: np.ndarray, stretch: float = 1.0) -> np.ndarray:
    """Return the largest share of each resource that would be in use at once if nobody waited, [R].

    `stretch` makes all gaps between arrivals that many times as long.
    """
    arrival = workload.arrival * stretch
    lasting = workload.duration > 0
    demand = (np.asarray(workload.instances)[:, None] * workload.demand)[lasting]
    time = np.concatenate([(arrival + workload.duration)[lasting], arrival[lasting]])
    order = np.argsort(time, kind="stable")  # finishes stand before arrivals
    used = np.cumsum(np.concatenate([-demand, demand])[order], axis=0)
    return used.max(0, initial=0) / capacity


def load_lines(
    fitting: Workload, capacity: np.ndarray, asked: float | None, num_machines: int, on_fewer: OnFewer
) -> Iterator[str]:
    """Yield what is said of the load of the jobs that can run, arrivals as they will be replayed."""
    try:
        loads = fitting.load(capacity)
    except UserError:  # all arrive at once
        yield "load: not defined, all jobs arrive at once"
        return
    names = [resource.name for resource in fitting.resources]
    parts = [f"{name} {load:.1%}" for name, load in zip(names, loads, strict=True) if not np.isnan(load)]
    scaled = "" if asked is None else "; arrivals are scaled to it, sizes are as recorded"
    yield f"load: {', '.join(parts)}{scaled}"
    most = peak(fitting, capacity)
    if np.nanmax(most) < 1:
        yield (
            f"if nobody waited, at most {np.nanmax(most):.1%} of the {names[int(np.nanargmax(most))]} would "
            f"be in use at once: hardly a queue. {remedy(fitting, capacity, num_machines, on_fewer)}"
        )


def remedy(fitting: Workload, capacity: np.ndarray, num_machines: int, on_fewer: OnFewer) -> str:
    """Say which flags would make a queue; none that the next call would refuse."""
    most = float(np.nanmax(peak(fitting, capacity, 0.0)))  # all at once
    if most >= CROWDED:
        return f"For a queue: --load {_load_for(fitting, capacity)}"
    few = max(1, int(num_machines * most / (2 * CROWDED)))
    if few == num_machines:
        return "The trace is too short to fill this cluster"
    there, capacity = on_fewer(few)
    short = (
        f"Even all jobs at once would take {most:.0%}: the trace is too short to fill this cluster at any "
        "load"
    )
    if there is None or float(np.nanmax(peak(there, capacity, 0.0))) < 1:
        return short
    spread = there.arrival[-1] > there.arrival[0]
    load = f" --load {_load_for(there, capacity)}" if spread else ""
    return f"{short}, but it fills a part of it: --num_machines {few}{load}"


def _load_for(fitting: Workload, capacity: np.ndarray) -> str:
    """Return, as --load takes it, where CROWDED of the busiest resource would be in use at once."""
    low, high = -25.0, 25.0  # logarithms of the stretch; the longer, the less is in use
    for _ in range(30):
        middle = (low + high) / 2
        if np.nanmax(peak(fitting, capacity, float(np.exp(middle)))) > CROWDED:
            low = middle
        else:
            high = middle
    return f"{np.clip(np.nanmax(fitting.load(capacity)) / np.exp(high), *LOADS):.2g}"
