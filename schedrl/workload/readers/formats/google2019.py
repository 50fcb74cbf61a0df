"""Google cluster data 2019 (clusterdata-2019): instance or collection events, CSV or JSON lines.

Fields as in the published protocol buffer (clusterdata_trace_format_v3.proto of
https://github.com/google/cluster-data): time [microseconds], type (a number, 0 SUBMIT to 10 UPDATE_RUNNING,
or its name), collection_id, instance_index, collection_type (0 JOB, 1 ALLOC_SET), priority (larger = more
important), user, resource_request {cpus, memory} (fractions of the largest machine). A CSV, as BigQuery
exports it, has them flat, in any order: `resource_request.cpus`, `resource_request_cpus`, `cpus` or `cpu`,
and so for memory; JSON has one object a line, whole numbers as text or as numbers. Other columns are not
read.

An instance becomes the job `collection/index`, a collection without index the job `collection`; how events
are put together is said in `google_events.tasks`. The record starts at 600 s; 0 and 2^63-1 are no times.
The extra column `end` says how a job ended. Alloc sets and their instances hold room for jobs and are
rejected as `alloc_set`. A missing priority is 0; a missing request is rejected. The published collection
events state no resources, so instance events are the table to take.

Data: CC-BY 4.0; cite Tirmazi et al., "Borg: the next generation", EuroSys 2020, and Wilkes, "Google
cluster-usage traces v3", Google 2020. Built from the published schema; tried on hand-made rows only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import build
from schedrl.workload.readers.formats.google_events import KINDS, tasks
from schedrl.workload.readers.parsing.headed import header_row
from schedrl.workload.readers.parsing.json_text import json_numbers
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, joined, number, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Workload

TITLE = "Google cluster data 2019, instance or collection events"
SOURCE = "https://github.com/google/cluster-data/blob/master/ClusterData2019.md"
OPTIONS = ("rebase",)

TEXTS = ("type", "collection_id", "instance_index", "collection_type", "user")
NUMBERS = ("time", "priority", "cpu", "memory")
NEEDED = ("time", "type", "collection_id")
SAME = {"cpus": "cpu", "mem": "memory", "ram": "memory"}
"""Other names of a field, its prefix `resource_request` taken off."""
EVENTS = {name: code for code, name in enumerate(KINDS[:-1])} | {
    name: KINDS.index("UPDATE") for name in ("UPDATE_PENDING", "UPDATE_RUNNING")
}
COLLECTIONS = {"": 0, "JOB": 0, "ALLOC_SET": 1}


def recognises(head: Head) -> bool:
    """Whether a header row or a first JSON object names the fields that every event has."""
    if head.has_columns(*NEEDED):
        return True
    try:
        first = json.loads(head.lines[0]) if head.lines and head.lines[0].lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and {"time", "collection_id"} <= set(first)


def read(source: Source, rejected: Rejected, *, lenient: bool = False, rebase: bool = True) -> Workload:
    """Read the instances, or the collections.

    Args:
        source: the file.
        rejected: collects what is no job.
        lenient: as for every format; events never contradict each other.
        rebase: let the first SUBMIT be time 0; else times are seconds of the trace, which starts at 600.

    Raises:
        UserError: no usable job, or columns are missing.
    """
    json_lines = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    tables = _objects(source, rejected) if json_lines else _rows(source, rejected)
    events = joined((_events(table, rejected) for table in tables), rejected, source)
    alloc = events.pop("collection_type") == 1
    if alloc.any():
        first = np.unique(events["id"][alloc], return_index=True)[1]
        rejected.add("alloc_set", events["line"][alloc][first], events["id"][alloc][first])
        events = {name: column[~alloc] for name, column in events.items()}
    return build(tasks(events, rejected, rebase), rejected, lenient)


def _rows(source: Source, rejected: Rejected) -> Iterator[dict[str, np.ndarray]]:
    """Return the columns of a CSV, piece by piece."""
    header = header_row(source)
    fields = {_field(name): name for name in reversed(header) if _field(name) in TEXTS + NUMBERS}
    lacking = sorted(set(NEEDED) - set(fields))
    if lacking:
        raise UserError(
            f"{source.path} has the columns {', '.join(header)}; {', '.join(lacking)} missing "
            "(no jobs were read)"
        )
    texts = frozenset(column for field, column in fields.items() if field in TEXTS)
    layout = Layout(header, texts, frozenset(header) - set(fields.values()), skip=1)
    for table in read_table(source, layout, rejected):
        yield {"line": table.index.to_numpy()} | {f: table[name].to_numpy() for f, name in fields.items()}


def _field(column: str) -> str:
    name = column.strip().lower().removeprefix("resource_request").lstrip("._").removesuffix("_request")
    return SAME.get(name, name)


def _objects(source: Source, rejected: Rejected) -> Iterator[dict[str, np.ndarray]]:
    """Return the fields of JSON lines, piece by piece."""
    first = 1
    for block in source.blocks():
        texts = source.text(block).split("\n")
        held = [(line, text) for line, text in enumerate(texts, first) if text.strip()]
        first += len(texts) - 1
        rows = _parsed([text for _, text in held])
        wrong = [line for (line, _), row in zip(held, rows, strict=True) if row is None]
        rejected.add("no_object", wrong)
        yield _fields([line for line, _ in held], rows, rejected)


def _parsed(texts: list[str]) -> list[dict[str, Any] | None]:
    """Return the objects; None for text that is none."""
    try:
        rows = json.loads(f"[{','.join(texts)}]")
    except (ValueError, RecursionError):
        rows = []
    if len(rows) == len(texts) and all(type(row) is dict for row in rows):
        return rows
    return [_object(text) for text in texts]


def _object(text: str) -> dict[str, Any] | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _fields(lines: list[int], rows: list[dict[str, Any] | None], rejected: Rejected) -> dict[str, np.ndarray]:
    """Return the fields of some objects; those with text for a number are rejected."""
    kept = [(line, row) for line, row in zip(lines, rows, strict=True) if row is not None]
    found: dict[str, np.ndarray] = {"line": np.array([line for line, _ in kept], np.int64)}
    objects = [row for _, row in kept]
    for name in TEXTS:
        values = [row.get(name) for row in objects]
        found[name] = np.array(["" if v is None else str(v) for v in values] + [""], object)[:-1]
    wrong = np.zeros(len(kept), bool)
    requests = list(map(_request, objects))
    for name in NUMBERS:
        key = {"cpu": "cpus"}.get(name, name)
        values = [row.get(key) for row in (requests if name in SAME.values() else objects)]
        found[name], bad = json_numbers(values)
        fresh = np.flatnonzero(bad & ~wrong)
        rejected.add("not_numeric", found["line"][fresh], None, [f"{name} is {values[n]!r}" for n in fresh])
        wrong |= bad
    return {name: column[~wrong] for name, column in found.items()}


def _request(row: Mapping[str, Any]) -> Mapping[str, Any]:
    request = row.get("resource_request")
    return request if isinstance(request, dict) else {}


def _events(table: dict[str, np.ndarray], rejected: Rejected) -> dict[str, np.ndarray]:
    """Bring some rows to the form that both of Google's formats share."""
    count = len(table["line"])
    nothing, empty = np.full(count, np.nan), np.full(count, "", object)
    table = dict.fromkeys(NUMBERS, nothing) | dict.fromkeys(TEXTS, empty) | table
    nameless = np.array([not text.strip() for text in table["collection_id"].tolist()], bool)
    if nameless.any():
        rejected.add("id_missing", table["line"][nameless])
        table = {name: column[~nameless] for name, column in table.items()}
    collection, index = table.pop("collection_id"), table.pop("instance_index")
    return table | {
        "kind": _codes(table.pop("type"), EVENTS, range(len(EVENTS))),
        "collection_type": _codes(table["collection_type"], COLLECTIONS, range(2)),
        "id": np.where(index == "", collection, collection + "/" + index),
    }


def _codes(texts: np.ndarray, names: Mapping[str, int], codes: range) -> np.ndarray:
    """Return the code [n] that a name or a number stands for, -1 for any other text."""
    import pandas as pd

    place, distinct = pd.factorize(texts)
    found = []
    for text in distinct.tolist():
        value = number(text)
        stated = int(value) if value is not None and value in codes else -1
        found.append(names.get(text.strip().upper(), min(stated, len(KINDS) - 1)))
    return np.array([*found, -1], np.int64)[place]
