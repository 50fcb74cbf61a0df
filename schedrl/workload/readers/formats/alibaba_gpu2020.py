"""Alibaba GPU trace v2020 (PAI): `pai_task_table`, one task of a machine learning job per row.

Columns, by name where a header row was put on (the files have none): job_name, task_name, inst_num, status,
start_time, end_time [s], plan_cpu (100 = one core), plan_mem [GB], plan_gpu (100 = one GPU), gpu_type. Plans
are of one instance. A job here is a task; its id is `job_name/task_name`. The submission is in another table,
so the start of the task stands for its arrival. Times have an unknown constant taken off and stay as they
are.

Missing: empty. A start that is empty or 0 is `arrival_unknown`, an end likewise `unfinished`. An empty
plan_gpu asks for no GPU, an empty plan_mem for no memory, which is counted; an empty plan_cpu is
`demand_unknown`.

Format: https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020. Cite Weng et al., "MLaaS
in the Wild", NSDI 2022. Built from the published schema; tried on hand-made rows only.
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

TITLE = "Alibaba GPU 2020 tasks (PAI)"
SOURCE = "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020"
OPTIONS = ()

COLUMNS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem"),
    *("plan_gpu", "gpu_type"),
)
TEXT = ("job_name", "task_name", "status", "gpu_type")
STATES = ("Running", "Terminated", "Failed", "Waiting")
EXTRA = ("job", "task", "status", "gpu_type")


def recognises(head: Head) -> bool:
    """Whether a file has these columns, by name or by kind."""
    if head.has_columns("job_name", "task_name", "inst_num"):
        return True
    return has_row(head, width=10, numbers=(2, 4, 5, 6, 7, 8), state=3, states=STATES)


def read(source: Source, rejected: Rejected, *, lenient: bool = False) -> Workload:
    """Read the tasks; resources are `cpu` [cores], `memory` [GB] and `gpu`.

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.

    Raises:
        UserError: a column is missing in a header row, or no usable job.
    """
    layout = fixed_layout(source, COLUMNS, TEXT, needed=1)
    columns = joined(
        (_columns(table, rejected) for table in read_table(source, layout, rejected)), rejected, source
    )
    extra = {name: columns.pop(name) for name in EXTRA}
    resources = [Resource("cpu", "cores"), Resource("memory", "GB"), Resource("gpu", "gpus")]
    return build(Columns(**columns, resources=resources, extra=extra), rejected, lenient)


def _columns(table: pd.DataFrame, rejected: Rejected) -> dict[str, np.ndarray]:
    table["id"] = joined_ids(table["job_name"], table["task_name"])
    for name, reason in (("start_time", "arrival_unknown"), ("end_time", "unfinished")):
        wrong = ((table[name] == 0) | table[name].isna()).to_numpy()
        table = set_aside(table, wrong, reason, rejected)
    rejected.adjust("plan_gpu was empty, so it asks for no GPU", table.index[table["plan_gpu"].isna()])
    start, end = table["start_time"].to_numpy(), table["end_time"].to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        duration = end - start
    return {
        "line": table.index.to_numpy(),
        "id": table["id"].to_numpy(),
        "arrival": start,
        "duration": duration,
        "demand": np.column_stack(
            [table["plan_cpu"] / 100, table["plan_mem"], table["plan_gpu"].fillna(0) / 100]
        ),
        "instances": table["inst_num"].to_numpy(),
        "recorded_start": start,
        "recorded_finish": end,
        "job": table["job_name"].to_numpy(),
        "task": table["task_name"].to_numpy(),
        "status": table["status"].to_numpy(),
        "gpu_type": table["gpu_type"].to_numpy(),
    }
