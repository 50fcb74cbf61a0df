"""Grid Workload Format of the Grid Workloads Archive, in its two flavours; -1 = unknown in both.

* The archive's text: comments begin with `#`, then 29 fields between white space: JobID, SubmitTime,
  WaitTime, RunTime [s], NProcs, AverageCPUTimeUsed, UsedMemory [KB per processor], ReqNProcs, ReqTime [s],
  ReqMemory, Status (1 completed, 0 failed, 5 cancelled), UserID, GroupID, ExecutableID, QueueID, PartitionID,
  OrigSiteID, LastRunSiteID, JobStructure (UNITARY, BoT), JobStructureParams, and nine more that are not read.
  Built from the published schema; tried on hand-made rows only.
* Workflows as OpenDC reads them: a table with a header row, fields padded with blanks: WorkflowID, JobID,
  SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies (JobIDs between blanks: what the job waits for; kept as
  text too).

Processors are those requested, else those allocated. The estimate is ReqTime; one below the run time is
raised to it, because it is the recorded run that is replayed. Times are taken as they are.

Format: http://gwa.ewi.tudelft.nl/grid-workload-format/. Cite Iosup et al., "The Grid Workloads Archive", FGCS
2008; for workflows https://github.com/atlarge-research/opendc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from schedrl.workload.readers.build import Columns, build, names_in
from schedrl.workload.readers.parsing.headed import headed_layout
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, joined, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Grid Workload Format (Grid Workloads Archive)"
SOURCE = "http://gwa.ewi.tudelft.nl/grid-workload-format/"
OPTIONS = ("gangs",)

FIELDS = (
    *("JobID", "SubmitTime", "WaitTime", "RunTime", "NProcs", "AverageCPUTimeUsed", "UsedMemory"),
    *("ReqNProcs", "ReqTime", "ReqMemory", "Status", "UserID", "GroupID", "ExecutableID", "QueueID"),
    *("PartitionID", "OrigSiteID", "LastRunSiteID", "JobStructure", "JobStructureParams", "UsedNetwork"),
    *("UsedLocalDiskSpace", "UsedResources", "ReqPlatform", "ReqNetwork", "ReqLocalDiskSpace"),
    *("ReqResources", "VOID", "ProjectID"),
)
NUMBERS = ("SubmitTime", "WaitTime", "RunTime", "NProcs", "ReqNProcs", "ReqTime")
WORKFLOW = ("JobID", "SubmitTime", "RunTime", "NProcs", "ReqNProcs")
EXTRA = {
    "WorkflowID": "workflow",
    "Dependencies": "depends_on",
    "Status": "status",
    "GroupID": "group",
    "ExecutableID": "executable",
    "QueueID": "queue",
    "OrigSiteID": "site",
    "JobStructure": "structure",
    "JobStructureParams": "structure_id",
}
"""Column -> name of the extra column, where any job states it."""
TEXT = frozenset(["JobID", "UserID", *EXTRA])
NUMERIC = re.compile(r"-?[\d.]+(e[-+]?\d+)?$")
FLAT = Layout(
    FIELDS,
    TEXT & set(FIELDS),
    optional=frozenset(["WaitTime", "ReqTime"]),
    unread=frozenset(FIELDS) - TEXT - set(NUMBERS),
    separator=None,
    comment="#",
    needed=5,
    encodings=("utf-8", "latin-1"),
)


def recognises(head: Head) -> bool:
    """Whether a file has the columns of a workflow, or fields as the archive's text has them."""
    if head.has_columns("JobID", "SubmitTime", "RunTime"):
        return True
    lines = [line for line in head.text.splitlines() if line.strip()]
    rows = [line.split() for line in lines if not line.lstrip().startswith("#")][:20]
    return head.most(lambda row: len(row) == len(FIELDS) and all(map(NUMERIC.match, row[1:5])), rows)


def read(source: Source, rejected: Rejected, *, lenient: bool = False, gangs: bool = False) -> Workload:
    """Read the jobs; the resource is `cpu` [processors].

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        gangs: make every processor an instance of its own, for clusters of many machines.

    Raises:
        UserError: a column is missing, or no usable job.
    """
    first = next(iter(Head.of(source).rows), [])
    workflows = not {"JobID", "SubmitTime", "RunTime"}.isdisjoint(first)
    layout = headed_layout(source, WORKFLOW, text=["JobID", *EXTRA]) if workflows else FLAT
    columns = joined(
        (_columns(table, rejected) for table in read_table(source, layout, rejected)), rejected, source
    )
    cpu = columns.pop("cpu")
    extra = {name: columns.pop(name) for name in EXTRA.values() if name in columns}
    return build(
        Columns(
            **columns,
            demand=(np.ones_like(cpu) if gangs else cpu)[:, None],
            instances=cpu if gangs else None,
            resources=[Resource("cpu", "processors")],
            waits_for=names_in(extra["depends_on"]) if "depends_on" in extra else None,
            extra={name: column for name, column in extra.items() if (column != "").any()},
        ),
        rejected,
        lenient,
    )


def _columns(table: pd.DataFrame, rejected: Rejected) -> dict[str, np.ndarray]:
    numbers = {name: table[name].mask(table[name] == -1).to_numpy() for name in NUMBERS if name in table}
    texts = {name: table[name].str.strip().replace("-1", "").to_numpy() for name in EXTRA if name in table}
    submit, run = numbers["SubmitTime"], numbers["RunTime"]
    found = {
        "line": table.index.to_numpy(),
        "id": table["JobID"].str.strip().to_numpy(),
        "arrival": submit,
        "duration": run,
        "cpu": np.where(numbers["ReqNProcs"] > 0, numbers["ReqNProcs"], numbers["NProcs"]),
    } | {EXTRA[name]: column for name, column in texts.items()}
    if "WaitTime" in numbers:
        asked = numbers["ReqTime"]
        estimate = np.where(asked > 0, asked, np.nan)
        low = estimate < run
        rejected.adjust("the estimate was below the run time, so it is raised to it", table.index[low])
        with np.errstate(invalid="ignore", over="ignore"):
            start = submit + numbers["WaitTime"]
            finish = start + run
        found |= {
            "estimate": np.where(low, run, estimate),
            "user": table["UserID"].replace("-1", "").to_numpy(),
            "recorded_start": start,
            "recorded_finish": finish,
        }
    return found
