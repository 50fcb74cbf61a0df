"""Tasks from the events of Google's cluster traces: what the formats of 2011 and 2019 have in common.

Time is in microseconds; 0 means "before the record began", 2^63-1 "after it ended": neither is a time. Whole
microseconds below 2^53 (285 years) are exact in float64, so they are subtracted first and divided once, last.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import Columns
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource

BEFORE, AFTER = 0.0, float(2**63 - 1)
MICROSECONDS = 1e6
FRACTION = "fraction of the largest machine"
KINDS = ("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE")
"""Events; a kind is a place in this list, -1 one that is not known."""
SUBMIT, SCHEDULE = KINDS.index("SUBMIT"), KINDS.index("SCHEDULE")
ENDS = [KINDS.index(name) for name in ("EVICT", "FAIL", "FINISH", "KILL", "LOST")]
NO_END = [KINDS.index(name) for name in ("EVICT", "LOST")]
"""Ends after which a task that is not scheduled again has not run its time."""


def tasks(events: Mapping[str, np.ndarray], rejected: Rejected, rebase: bool = True) -> Columns:
    """Put events together to tasks.

    A task arrives with its first SUBMIT and runs from its last SCHEDULE (its last SUBMIT, if the file has no
    SCHEDULE at all) to the first FINISH, FAIL or KILL after it. It asks for what its first SUBMIT states, or
    for what is stated first after it. Rejected are tasks with an event before the record (`pre_trace`),
    without SUBMIT (`arrival_unknown`), without SCHEDULE (`runtime_unknown`), and those that ran on when the
    record ended, were evicted and not started again, or were lost (`unfinished`).

    Args:
        events: [n] each: line, id (text), time (microseconds), kind (place in `KINDS`), cpu, memory,
            priority, user; further columns become extra ones.
        rejected: collects the tasks that are no jobs.
        rebase: let the first SUBMIT in the record be time 0; else times are seconds of the trace.

    Raises:
        UserError: no event states a resource.
    """
    import pandas as pd

    usable = (events["time"] >= 0) & (events["kind"] >= 0)
    rejected.adjust("an event without a time or a known type was not used", events["line"][~usable])
    task, names = pd.factorize(events["id"])
    inside = np.flatnonzero(usable & (events["time"] > BEFORE) & (events["time"] < AFTER))
    order = inside[np.lexsort((inside, events["time"][inside], task[inside]))]
    life = _lives(task[order], events["kind"][order], len(names))
    time = np.append(events["time"][order], np.nan)
    row = np.where(
        life["submit"] < 0, np.unique(task, return_index=True)[1], np.append(order, 0)[life["submit"]]
    )
    offset = np.nanmin(np.append(time[life["submit"]], np.inf)) if rebase else 0.0
    offset = offset if np.isfinite(offset) else 0.0
    stated = [name for name in ("cpu", "memory") if not np.isnan(events[name]).all()]
    if not len(names):
        raise rejected.nothing_left(rejected.source)
    if not stated:
        raise UserError(
            f"{rejected.source}: no event states cpu or memory, so these are no jobs that can be placed; "
            "take the events of tasks or instances, which state both"
        )
    kind = np.append(events["kind"][order], -1)
    other = set(events) - {"line", "id", "time", "kind", "cpu", "memory", "priority", "user"}
    columns = Columns(
        line=events["line"][row],
        id=np.asarray(names, object),
        arrival=(time[life["submit"]] - offset) / MICROSECONDS,
        duration=(time[life["end"]] - time[life["start"]]) / MICROSECONDS,
        demand=np.column_stack([_first_stated(events[name][order], task[order], life) for name in stated]),
        resources=[Resource(name, FRACTION) for name in stated],
        priority=np.nan_to_num(events["priority"][row], nan=0.0),
        user=events["user"][row],
        recorded_start=(time[life["start"]] - offset) / MICROSECONDS if life["scheduled"].any() else None,
        recorded_finish=(time[life["end"]] - offset) / MICROSECONDS,
        about={"offset_s": _text(offset), "last_event_s": _text(np.nanmax(np.append(time, 0.0)))},
        extra={name: events[name][row] for name in sorted(other)}
        | {"end": np.array([*KINDS, ""], object)[kind[life["end"]]]},
    )
    early = np.bincount(task[usable & (events["time"] == BEFORE)], minlength=len(names)) > 0
    _reject(columns, early, life, kind, time, rejected)
    return columns


def _lives(task: np.ndarray, kind: np.ndarray, count: int) -> dict[str, Any]:
    """Return [count] places of the deciding events of every task, -1 where it has none.

    Events are sorted by task and time.
    """

    def place(of_kind: int, last: bool) -> np.ndarray:
        at = np.flatnonzero(kind == of_kind)
        found = np.full(count, -1)
        owner = task[at]
        chosen = np.ones(len(at), bool)
        chosen[slice(None, -1) if last else slice(1, None)] = owner[1:] != owner[:-1]
        found[owner[chosen]] = at[chosen]
        return found

    submit, scheduled = place(SUBMIT, last=False), place(SCHEDULE, last=True)
    start = scheduled if (scheduled >= 0).any() else place(SUBMIT, last=True)
    start = np.where((submit >= 0) & (start >= submit), start, -1)
    ends = np.append(np.flatnonzero(np.isin(kind, ENDS)), len(kind))
    end = ends[np.searchsorted(ends, start)]
    own = (start >= 0) & (end < len(kind)) & (np.append(task, -1)[end] == np.arange(count))
    return {"submit": submit, "start": start, "end": np.where(own, end, -1), "scheduled": scheduled >= 0}


def _first_stated(values: np.ndarray, task: np.ndarray, life: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return, for every task, the first number that is stated from its first SUBMIT on; NaN if none is."""
    held = np.append(np.flatnonzero(~np.isnan(values)), len(values))
    at = held[np.searchsorted(held, life["submit"])]
    own = (life["submit"] >= 0) & (np.append(task, -1)[at] == np.arange(len(at)))
    return np.where(own, np.append(values, np.nan)[at], np.nan)


def _reject(
    columns: Columns,
    early: np.ndarray,
    life: Mapping[str, np.ndarray],
    kind: np.ndarray,
    time: np.ndarray,
    rejected: Rejected,
) -> None:
    """Reject each task that is no job, for the first reason that applies, and say when it came."""
    ended, submitted = kind[life["end"]], time[life["submit"]]
    reasons = np.select(
        [early, life["submit"] < 0, life["start"] < 0, life["end"] < 0, np.isin(ended, NO_END)],
        ["pre_trace", "arrival_unknown", "runtime_unknown", "unfinished", "unfinished"],
        "",
    )
    for reason in dict.fromkeys(reasons.tolist()):
        if reason:
            wrong = reasons == reason
            details = [
                ("" if np.isnan(at) else f"submitted at {_text(at)} s")
                + (f", {KINDS[how]}" if how >= 0 else "")
                for at, how in zip(submitted[wrong], ended[wrong], strict=True)
            ]
            rejected.add(reason, columns.line[wrong], columns.id[wrong], details)
    columns.keep(reasons == "")


def _text(microseconds: float) -> str:
    return repr(float(microseconds) / MICROSECONDS).removesuffix(".0")
