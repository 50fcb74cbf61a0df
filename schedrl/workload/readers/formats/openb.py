"""Alibaba GPU trace v2023 (OpenB): `openb_pod_list_*.csv`, one pod per row, with a header row.

Columns, in any order: name, cpu_milli, memory_mib, num_gpu (0 to 8), gpu_milli (part of a GPU where num_gpu
is 1, else 1000), creation_time, deletion_time, scheduled_time [s]; gpu_spec (models of the machines that
will do, `A|B`; empty: any), kept as text too, as qos and pod_phase are. A pod with num_gpu 1 and gpu_milli
460 asks for 0.46 of a GPU. Its machines are in `openb_node_list_*.csv`, see `schedrl.workload.machines`.

The arrival is the creation, the duration deletion - scheduled. A pod without scheduled_time (Pending) never
ran: it stays, because to drop it would hide the worst waits; its start is unknown and its duration is its
lifetime, deletion - creation; such pods are counted. Missing otherwise (empty): no creation is
`arrival_unknown`, no deletion `unfinished`, no cpu_milli, and GPUs of no stated size,
`demand_unknown`; no memory_mib is no memory.

Format: https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023. Cite Weng et al., "Beware
of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.headed import headed_layout, set_aside
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import joined, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Alibaba GPU 2023 pods (OpenB)"
SOURCE = "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023"
OPTIONS = ()

RESOURCES = (Resource("cpu", "cores"), Resource("memory", "GiB"), Resource("gpu", "gpus"))
NEEDED = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
EXTRA = ("gpu_spec", "qos", "pod_phase")


def recognises(head: Head) -> bool:
    """Whether the first row names columns that only this format has."""
    return head.has_columns("cpu_milli", "num_gpu")


def read(source: Source, rejected: Rejected, *, lenient: bool = False) -> Workload:
    """Read the pods; resources are `cpu` [cores], `memory` [GiB] and `gpu`.

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.

    Raises:
        UserError: a column is missing, or no usable job.
    """
    layout = headed_layout(source, NEEDED, text=["name", *EXTRA])
    columns = joined(
        (_columns(table, rejected) for table in read_table(source, layout, rejected)), rejected, source
    )
    extra = {name: columns.pop(name) for name in EXTRA if name in columns}
    allowed = extra.get("gpu_spec")
    return build(Columns(**columns, resources=RESOURCES, allowed=allowed, extra=extra), rejected, lenient)


def _columns(table: pd.DataFrame, rejected: Rejected) -> dict[str, np.ndarray]:
    table["id"] = table["name"]
    table = set_aside(table, table["deletion_time"].isna().to_numpy(), "unfinished", rejected)
    asks = table["num_gpu"].isna() | ((table["num_gpu"] > 0) & table["gpu_milli"].isna())
    table = set_aside(table, asks.to_numpy(), "demand_unknown", rejected)
    created, deleted, started = (
        table[name].to_numpy() for name in ("creation_time", "deletion_time", "scheduled_time")
    )
    pending = np.isnan(started)
    rejected.adjust(
        "the pod never started, so its duration is its lifetime and its start unknown", table.index[pending]
    )
    with np.errstate(invalid="ignore", over="ignore"):
        duration = deleted - np.where(pending, created, started)
        gpus = (table["num_gpu"] * table["gpu_milli"]).mask(table["num_gpu"] == 0, 0.0)
    return {
        "line": table.index.to_numpy(),
        "id": table["id"].to_numpy(),
        "arrival": created,
        "duration": duration,
        "demand": np.column_stack([table["cpu_milli"] / 1000, table["memory_mib"] / 1024, gpus / 1000]),
        "recorded_start": started,
        "recorded_finish": deleted,
    } | {name: table[name].to_numpy() for name in EXTRA if name in table}
