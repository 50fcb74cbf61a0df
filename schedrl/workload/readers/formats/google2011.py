"""Google cluster data 2011 (clusterdata-2011-2), table task_events: 13 columns, no header row.

Columns: timestamp [microseconds], missing info, job id, task index, machine id, event type (0 SUBMIT, 1
SCHEDULE, 2 EVICT, 3 FAIL, 4 FINISH, 5 KILL, 6 LOST, 7 and 8 UPDATE), user, scheduling class (0-3), priority
(0-11, larger = more important), requests of CPU, memory and disk (fractions of the largest machine),
different machine. The record starts at 600 s; 0 and 2^63-1 are no times. A task is (job id, task index) and
becomes the job `jobid/index`; how its events are put together is said in `google_events.tasks`. The extra
column `end` says how it ended, `disk` what it asked for. A missing priority is 0; a missing request is
rejected.

Format: Reiss, Wilkes, Hellerstein, "Google cluster-usage traces: format + schema", Google 2011 (version 2.1
of 2014), linked from https://github.com/google/cluster-data/blob/master/ClusterData2011_2.md. Data: CC-BY;
cite Reiss et al. and Wilkes, "More Google cluster data", Google research blog, 2011. Built from the
published schema; tried on hand-made rows only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedrl.workload.readers.build import build
from schedrl.workload.readers.formats.google_events import KINDS, tasks
from schedrl.workload.readers.parsing.headed import has_row, joined_ids
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, joined, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Workload

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Google cluster data 2011, task events"
SOURCE = "https://github.com/google/cluster-data/blob/master/ClusterData2011_2.md"
OPTIONS = ("rebase",)

FIELDS = (
    *("time", "missing_info", "job_id", "task_index", "machine_id", "event_type", "user"),
    *("scheduling_class", "priority", "cpu", "memory", "disk", "different_machine"),
)
LAYOUT = Layout(
    FIELDS,
    frozenset(["job_id", "task_index", "user"]),
    optional=frozenset(["scheduling_class", "priority", "disk"]),
    unread=frozenset(["missing_info", "machine_id", "different_machine"]),
    needed=6,
)
EVENTS = ("SUBMIT", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE", "UPDATE")
"""By number."""
CODES = np.array([*(KINDS.index(name) for name in EVENTS), -1])


def recognises(head: Head) -> bool:
    """Whether a row has 13 fields with numbers where they must be, and a known event type."""
    types = {str(number) for number in range(len(EVENTS))}
    return has_row(head, len(FIELDS), (0, 2, 3, 8), FIELDS.index("event_type"), types)


def read(source: Source, rejected: Rejected, *, lenient: bool = False, rebase: bool = True) -> Workload:
    """Read the tasks.

    Args:
        source: the file, one part of the table or several put together.
        rejected: collects what is no job.
        lenient: as for every format; events never contradict each other.
        rebase: let the first SUBMIT be time 0; else times are seconds of the trace, which starts at 600.

    Raises:
        UserError: no usable job.
    """
    tables = read_table(source, LAYOUT, rejected)
    events = joined((_events(table, rejected) for table in tables), rejected, source)
    return build(tasks(events, rejected, rebase), rejected, lenient)


def _events(table: pd.DataFrame, rejected: Rejected) -> dict[str, np.ndarray]:
    """Bring some rows to the form that both of Google's formats share."""
    names = joined_ids(table["job_id"], table["task_index"])
    nameless = names == ""
    if nameless.any():
        rejected.add("id_missing", table.index[nameless])
        table, names = table[~nameless], names[~nameless]
    number = table["event_type"].to_numpy()
    known = np.isin(number, np.arange(len(EVENTS)))
    return {
        "line": table.index.to_numpy(),
        "id": names,
        "kind": CODES[np.where(known, number, -1).astype(int)],
        "user": table["user"].to_numpy(object),
    } | {name: table[name].to_numpy() for name in ("time", "cpu", "memory", "priority", "disk")}
