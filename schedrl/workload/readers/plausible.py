"""What a file states of itself against what its jobs say: nothing is changed, but it is said.

A capacity that the jobs contradict, or times of another size, would make every load wrong without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedrl.settings import counted
from schedrl.workload.readers.parsing.cells import EPOCH_WORDS, epoch_seconds

if TYPE_CHECKING:
    from schedrl.workload.readers.build import Columns
    from schedrl.workload.readers.rejected import Rejected


def question_size(columns: Columns, rejected: Rejected) -> None:
    """Say that arrivals have the size of other units: a format of seconds may have been filled in so."""
    told = columns.times_are_told or columns.time_unit != "s"
    unit = "" if told else epoch_seconds(columns.arrival)[1]
    if unit not in ("", "s"):
        rejected.remark(
            f"arrivals have the size of {EPOCH_WORDS[unit]} since 1970 and are taken for seconds, as the "
            f"format has them; write seconds, or a CSV that is read with a map: arrival=COLUMN[{unit}]"
        )


def question_capacity(columns: Columns, rejected: Rejected) -> None:
    """Say where jobs ask for, or by their own record had, more than the file says there is."""
    for number, (resource, most) in enumerate(zip(columns.resources, columns.capacity or (), strict=False)):
        if not np.isfinite(most):
            continue
        demand = columns.demand[:, number]
        if columns.instances is not None:
            demand = demand * columns.instances
        remedy = f"where that is wrong, --capacity {resource.name}=... wins"
        over = demand > most
        if over.any():
            rejected.remark(
                f"the file says that there are {most:,.6g} {resource.unit} of {resource.name}, but "
                f"{counted(int(over.sum()), 'job')} asked for up to {demand[over].max():,.6g}; {remedy}"
            )
        elif (used := _most_at_once(columns, demand)) > most:
            rejected.remark(
                f"the file says that there are {most:,.6g} {resource.unit} of {resource.name}, but by its "
                f"own starts up to {used:,.6g} were in use at once; {remedy}"
            )


def _most_at_once(columns: Columns, demand: np.ndarray) -> float:
    """Return the most that was in use at one moment by the recorded starts; 0 where these aren't known."""
    if columns.recorded_start is None:
        return 0.0
    start, lasting = columns.recorded_start, columns.duration > 0
    known = np.isfinite(start) & lasting
    if not known.any():
        return 0.0
    start, demand = start[known], demand[known]
    end = start + columns.duration[known]
    # Whole seconds round: one that ends in the second in which another starts is taken for gone.
    time, change = np.concatenate([end, start]), np.concatenate([-demand, demand])
    return float(np.cumsum(change[np.argsort(time, kind="stable")]).max(initial=0.0))
