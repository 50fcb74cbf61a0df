"""Alibaba cluster trace v2018: `batch_task.csv`, one task of a batch job per row, no header row.

Columns: task_name, instance_num, job_name, task_type, status, start_time, end_time [s], plan_cpu (100 = one
core), plan_mem (per cent of the largest machine's memory). Plans are of one instance. A job here is a task;
its id is `job_name/task_name`. There is no time of submission, so the start stands for the arrival.

Missing: a time of 0 lies outside the 8 days. An end of 0 is `unfinished`, a start of 0 `pre_trace`, or
`arrival_unknown` where the end is 0 too. plan_cpu
empty, and plans that can't be (below 0, plan_mem above 100: 101 marks an invalid value): `demand_unknown`.
plan_mem empty: no memory. Tasks of every status are kept, failed ones held machines too.

`M5_3_4` is task 5 of its job and can't start before tasks 3 and 4 are finished: it waits for them, and has
extra columns `number` ("5") and `depends_on` ("3 4"), both empty for independent tasks (`task_...`). What
`Stg3` in `M7_Stg3` says is not documented, so it is no dependency; such rows are counted. A task that no row
has, or a rejected one, is waited for all the same: those that wait for it can't run.

Format: https://github.com/alibaba/clusterdata/blob/master/cluster-trace-v2018/trace_2018.md; cite that
repository. Built from the published schema; tried on hand-made rows only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.headed import fixed_layout, has_row, joined_ids, set_aside
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import joined, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Alibaba 2018 batch tasks"
SOURCE = "https://github.com/alibaba/clusterdata/blob/master/cluster-trace-v2018/trace_2018.md"
OPTIONS = ()

COLUMNS = (
    *("task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem"),
)
TEXT = ("task_name", "job_name", "task_type", "status")
STATES = ("Terminated", "Failed", "Running", "Waiting", "Ready", "Cancelled", "Interrupted")
NAMED = r"^[A-Za-z]+(\d+)((?:_[A-Za-z]*\d+)*)$"
"""Name of a task in a graph: its number, then those of the tasks it waits for, and words like `Stg3`."""
WORD = r"_[A-Za-z]+\d+"
EXTRA = ("job", "task", "task_type", "status", "number", "depends_on")


def recognises(head: Head) -> bool:
    """Whether a file has these columns, by name or by kind."""
    if head.has_columns("task_name", "instance_num", "job_name"):
        return True
    return has_row(head, width=9, numbers=(1, 5, 6, 7, 8), state=4, states=STATES)


def read(source: Source, rejected: Rejected, *, lenient: bool = False) -> Workload:
    """Read the tasks; resources are `cpu` [cores] and `memory` [fraction of the largest machine].

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.

    Raises:
        UserError: no usable job.
    """
    layout = fixed_layout(source, COLUMNS, TEXT, needed=7)
    columns = joined(
        (_columns(table, rejected) for table in read_table(source, layout, rejected)), rejected, source
    )
    extra = {name: columns.pop(name) for name in EXTRA}
    resources = [Resource("cpu", "cores"), Resource("memory", "fraction of the largest machine")]
    waits_for = _waits_for(extra["job"], extra["number"], extra["depends_on"], columns["id"])
    return build(Columns(**columns, resources=resources, waits_for=waits_for, extra=extra), rejected, lenient)


def _columns(table: pd.DataFrame, rejected: Rejected) -> dict[str, np.ndarray]:
    table["id"] = joined_ids(table["job_name"], table["task_name"])
    no_start, no_end = table["start_time"] == 0, table["end_time"] == 0
    table = set_aside(table, (no_start & no_end).to_numpy(), "arrival_unknown", rejected)
    table = set_aside(table, (table["start_time"] == 0).to_numpy(), "pre_trace", rejected)
    table = set_aside(table, (table["end_time"] == 0).to_numpy(), "unfinished", rejected)
    invalid = (table["plan_cpu"] < 0) | (table["plan_mem"] < 0) | (table["plan_mem"] > 100)
    table = set_aside(table, invalid.to_numpy(), "demand_unknown", rejected)
    cpu, memory = table["plan_cpu"], table["plan_mem"]
    start, end = table["start_time"].to_numpy(), table["end_time"].to_numpy()
    number, depends_on, said = _graph(table["task_name"])
    rejected.adjust("what Stg says in a task's name is not known, so it is no dependency", table.index[said])
    with np.errstate(invalid="ignore", over="ignore"):
        duration = end - start
    return {
        "line": table.index.to_numpy(),
        "id": table["id"].to_numpy(),
        "arrival": start,
        "duration": duration,
        "demand": np.column_stack([cpu / 100, memory / 100]),
        "instances": table["instance_num"].to_numpy(),
        "recorded_start": start,
        "recorded_finish": end,
        "job": table["job_name"].to_numpy(),
        "task": table["task_name"].to_numpy(),
        "task_type": table["task_type"].to_numpy(),
        "status": table["status"].to_numpy(),
        "number": number,
        "depends_on": depends_on,
    }


def _graph(names: pd.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of each task, those of the tasks it waits for, and whether its name has a word too.

    Most names are there many times.
    """
    codes, distinct = names.factorize()
    parts = distinct.to_series().str.extract(NAMED).fillna("")
    word = parts[1].str.contains(WORD)
    waits_for = parts[1].str.replace(WORD, "", regex=True).str.replace("_", " ").str.strip()
    number, wanted = parts[0].to_numpy(object), waits_for.to_numpy(object)
    return number[codes], wanted[codes], word.to_numpy(bool)[codes]


def _waits_for(job: np.ndarray, number: np.ndarray, depends_on: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the ids of the tasks that each waits for; where tasks share job and number, of all of them."""
    named: dict[tuple[str, str], list[str]] = {}
    for key in zip(job.tolist(), number.tolist(), ids.tolist(), strict=True):
        named.setdefault(key[:2], []).append(key[2])
    found = []
    for own, text in zip(job.tolist(), depends_on.tolist(), strict=True):
        wanted = [(own, task) for task in text.split()]
        found.append(tuple(name for key in wanted for name in named.get(key, ["/".join(key)])))
    return np.fromiter(found, object, len(found))
