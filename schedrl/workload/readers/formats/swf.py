"""Standard Workload Format 2.2 of the Parallel Workloads Archive: one line per job, 18 fields, -1 = unknown.

Format: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (Chapin et al., "Benchmarks and standards
for the evaluation of parallel job schedulers", JSSPP 1999). Cite a log as its header asks (`Acknowledge`)
and Feitelson, Tsafrir, Krakov, "Experience with using the Parallel Workloads Archive", JPDC 2014.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from schedrl.settings import UserError, line_of
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, joined, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected, work_unit
from schedrl.workload.types import Resource, Workload

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Standard Workload Format 2.2 (Parallel Workloads Archive)"
SOURCE = "https://www.cs.huji.ac.il/labs/parallel/workload/swf.html"
OPTIONS = ("gangs",)

FIELDS = (
    *("id", "submit", "wait", "run", "allocated", "cpu_time", "used_memory", "requested", "requested_time"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding_job"),
    "think_time",
)
NEEDED = 5
MEMORY = ("requested_memory", "used_memory")
EXTRA = ("cpu_time", "used_memory", "requested_memory", "status", *FIELDS[12:16], "allocated")
"""Fields that are kept as they are, where any job states them."""
WAITS = ("preceding_job", "think_time")
PARTIAL = (2, 3, 4)
"""States of lines that describe one execution out of several of a job."""
LAYOUT = Layout(
    FIELDS,
    frozenset(["id", "user"]),
    optional=frozenset(FIELDS) - {"id", "user", "submit", "run", "allocated", "requested", *MEMORY},
    separator=None,
    comment=";",
    needed=NEEDED,
    encodings=("utf-8", "latin-1"),
    numbered=True,
)
KEY = re.compile(r"\s*([A-Za-z]\w*)\s*:(?!//)\s*(.*?)\s*$")
NUMERIC = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?$", re.IGNORECASE)


def recognises(head: Head) -> bool:
    """Whether a file begins with comments of SWF or has rows of 18 numbers."""
    if not head.lines:
        return False
    rows = [row for line in head.lines if (row := line.split(";")[0].split())]
    if (
        head.lines[0].lstrip().startswith(";")
    ):  # also a table parted by semicolons whose first column has no name
        return head.separator != ";" or len(head.table[0]) != len(head.table[-1]) or not rows
    return head.most(lambda row: len(row) == len(FIELDS) and all(map(NUMERIC.match, row)), rows)


def read(source: Source, rejected: Rejected, *, lenient: bool = False, gangs: bool = False) -> Workload:
    """Read the jobs; resources are `cpu` and, where any job states it, `memory` [KB].

    Processors are those requested, else those allocated; memory likewise. The estimate is the requested time;
    one below the run time is raised to it, because it is the recorded run that is replayed. A job waits for
    its preceding job (0 is none, unless a job is called so), and for its think time after that.

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        gangs: make every processor an instance of its own, for clusters of many machines.

    Raises:
        UserError: no usable job.
    """
    header = read_header(source)
    columns = joined(
        (_columns(table, rejected) for table in read_table(source, LAYOUT, rejected)), rejected, source
    )
    cpu, memory = columns.pop("cpu"), columns.pop("memory")
    resources = [Resource("cpu", "processors"), Resource("memory", "KB")]
    demand = [np.where(np.isnan(cpu), np.nan, 1.0), memory] if gangs else [cpu, memory * cpu]
    extra = {name: columns.pop(name) for name in EXTRA}
    if np.array_equal(extra["allocated"], cpu):
        del extra["allocated"]
    waits_for, think = (columns.pop(name) for name in WAITS)
    if not (columns["id"].astype(str) == "0").any():
        waits_for = np.where(waits_for == 0, np.nan, waits_for)
    capacity = [_processors(header, rejected)]
    return build(
        Columns(
            **columns,
            demand=np.column_stack(demand),
            instances=cpu if gangs else None,
            resources=resources,
            waits_for=waits_for,
            think=think,
            capacity=capacity + [np.nan] * (len(resources) - 1),
            about=header,
            extra={name: column for name, column in extra.items() if not np.isnan(column).all()},
        ),
        rejected,
        lenient,
    )


def _columns(table: pd.DataFrame, rejected: Rejected) -> dict[str, np.ndarray]:
    """Apply the format's own rules to some rows."""
    partial = table["status"].isin(PARTIAL).to_numpy()
    if partial.any():
        parts = table[partial]
        rejected.add("partial_execution", parts.index, parts["id"], measured=True)
        processors = first_stated(parts["requested"].to_numpy(), parts["allocated"].to_numpy())
        work = processors * parts["run"].where(parts["run"] >= 0).to_numpy()
        rejected.lose("cpu", work_unit("processors", "s"), work)
        rejected.unmeasured += int(np.isnan(work).sum())
        table = table[~partial]
    rejected.adjust("the row was short; what is missing is unknown", table.index[table["think_time"].isna()])
    fields = {
        name: table[name].to_numpy()
        if name in LAYOUT.text
        else table[name].mask(table[name] == -1, np.nan).to_numpy()
        for name in FIELDS
    }
    run, asked = fields["run"], fields["requested_time"]
    estimate = np.where(asked > 0, asked, np.nan)
    low = estimate < run
    rejected.adjust("the estimate was below the run time, so it is raised to it", table.index[low])
    start = fields["submit"] + fields["wait"]
    return {
        "line": table.index.to_numpy(),
        "id": fields["id"],
        "arrival": fields["submit"],
        "duration": run,
        "estimate": np.where(low, run, estimate),
        "cpu": first_stated(fields["requested"], fields["allocated"]),
        "memory": first_stated(fields["requested_memory"], fields["used_memory"]),
        "user": _users(fields["user"]),
        "recorded_start": start,
        "recorded_finish": start + run,
    } | {name: fields[name] for name in (*EXTRA, *WAITS)}


def _users(users: np.ndarray) -> np.ndarray:
    """Return users as text, "" where they are not known; there are few of them, so each is made once."""
    import pandas as pd

    codes, names = pd.factorize(users)
    texts = np.array(["" if name == -1 or name == "-1" else str(name) for name in names.tolist()], object)
    return texts[codes]


def first_stated(wanted: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return what was asked for, else what was had, where either is above 0; NaN elsewhere. [n]."""
    chosen = np.where(wanted > 0, wanted, otherwise)
    return np.where(chosen > 0, chosen, np.nan)


def _processors(header: dict[str, str], rejected: Rejected) -> float:
    """Return how many processors there are by the header, unknown where it doesn't say that plainly."""
    name = next((name for name in ("MaxProcs", "MaxNodes") if header.get(name, "").strip()), "")
    if not name:
        return np.nan
    text = header[name].strip()
    plain = re.fullmatch(r"(\d{1,12}|\d{1,3}(?:[,' ]\d{3}){1,3})(?:\s*\(.*\)|\D*)", text, re.ASCII)
    count = float(re.sub(r"\D", "", plain[1])) if plain else 0.0
    if not count:
        rejected.remark(
            f"the header's {name} is {line_of(text, 60)!r}, no plain number, so the capacity is not known; "
            "give --capacity cpu=..."
        )
        return np.nan
    if name == "MaxNodes":
        rejected.remark(
            f"the header has no MaxProcs, so MaxNodes, {count:,.0f}, is taken for processors; where a node "
            "has several, give --capacity cpu=..."
        )
    return count


def read_header(source: Source) -> dict[str, str]:
    """Return key -> text of the comments before the first job."""
    held = re.match(rb"(?:\xef\xbb\xbf)?((?:[ \t\r]*(?:;[^\n]*)?\n)*(?:[ \t]*;[^\n]*$)?)", source.head)
    raw = held[1] if held else b""
    return parse_header(raw.decode(source.encoding_of(raw, LAYOUT.encodings), "replace"))


def parse_header(text: str) -> dict[str, str]:
    """Return key -> text of comment lines; a text that goes on over lines is joined by line ends."""
    found: dict[str, str] = {}
    last = ""
    for line in text.split("\n"):
        comment = line.strip().removeprefix(";")
        match = KEY.match(comment)
        last, words = match.groups() if match else (last, comment.strip())
        if last and words:
            found[last] = f"{found[last]}\n{words}" if last in found else words
    return found


def write_header(about: dict[str, str]) -> str:
    """Return the comment lines that `read_header` reads.

    Raises:
        UserError: a key that is no word.
    """
    lines = []
    for key, text in about.items():
        if not re.fullmatch(r"[A-Za-z]\w*", key):
            raise UserError(f"{key!r} can't be a key of an SWF header; use letters, digits and _")
        first, *more = text.split("\n")
        lines += [f"; {key}: {first}", *(f";   {words}" for words in more)]
    return "".join(f"{line}\n" for line in lines)
