"""Azure trace for packing 2020: a SQLite database of requests for virtual machines.

Table vm: vmId, tenantId, vmTypeId, priority (0 high, 1 low), starttime and endtime [days]. Table vmType:
vmTypeId, machineId, core, memory, hdd, ssd, nic [fractions of that machine]. One type fits several kinds of
machine, with another fraction of each, so a cluster of one kind is assumed: option `machine` names it, by
default the kind that most requests fit (of equals the first in order). Requests whose type doesn't fit it
are rejected (`demand_unknown`). Resources are cpu (core) and memory, and each of hdd, ssd and nic that
every type on that machine states.

Times become seconds. A machine that was there before the record (starttime < 0) arrives at 0 and keeps what
is left of its life; one that is still there at the end (endtime NULL) is rejected (`unfinished`). Low
priority becomes 0, high 1 (larger = more important); unknown is 0. The line of a rejected row is its rowid.

Data: CC-BY 4.0, https://github.com/Azure/AzurePublicDataset/blob/master/AzureTracesForPacking2020.md; cite
Hadary et al., "Protean: VM allocation service at scale", OSDI 2020. Built from the published schema; tried
on hand-made rows only.
"""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.json_text import json_numbers
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import joined
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

TITLE = "Azure trace for packing 2020"
SOURCE = "https://github.com/Azure/AzurePublicDataset/blob/master/AzureTracesForPacking2020.md"
OPTIONS = ("machine",)

MAGIC = b"SQLite format 3\0"
TABLES = {
    "vm": ("vmId", "tenantId", "vmTypeId", "priority", "starttime", "endtime"),
    "vmType": ("vmTypeId", "machineId", "core", "memory", "hdd", "ssd", "nic"),
}
RESOURCES = {"cpu": "core", "memory": "memory", "hdd": "hdd", "ssd": "ssd", "nic": "nic"}
ALWAYS = ("cpu", "memory")
DAY = 86400.0
ROWS = 50_000


def recognises(head: Head) -> bool:
    """Whether it is a SQLite database; whether its tables are these is said by `read`."""
    return head.bytes.startswith(MAGIC)


def read(
    source: Source, rejected: Rejected, *, lenient: bool = False, machine: str | int | None = None
) -> Workload:
    """Read the requests.

    Args:
        source: the database, plain or gzip.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        machine: machineId of the kind of machine that the cluster has; None: the one that most requests fit.

    Raises:
        UserError: no such tables, a damaged database, an unknown machine, no usable job.
    """
    try:
        with _database(source) as database:
            types, columns = _types(database), joined(_requests(database, rejected), rejected, source)
    except (sqlite3.Error, UnicodeError, MemoryError, OverflowError) as error:
        raise UserError(f"{source.path} is a damaged database ({error}); fetch it again") from None
    machine, demands = _fitting(types, columns["type"].tolist(), None if machine is None else str(machine))
    unknown = [np.nan] * len(RESOURCES)
    demand = np.array([demands.get(name, unknown) for name in columns["type"].tolist()], np.float64)
    fits = np.array([name in demands for name in columns["type"].tolist()], bool)
    if (~fits).any():
        details = [f"type {name} is not offered on machine {machine}" for name in columns["type"][~fits]]
        rejected.add("demand_unknown", columns["line"][~fits], columns["id"][~fits], details)
    stated = [
        n
        for n, name in enumerate(RESOURCES)
        if name in ALWAYS or not np.isnan([amounts[n] for amounts in demands.values()]).any()
    ]
    del columns["type"]
    finish = columns["recorded_finish"][fits]
    unit = "fraction of the machine"
    kept = Columns(
        **{name: column[fits] for name, column in columns.items()},
        demand=demand[fits][:, stated],
        resources=[Resource(list(RESOURCES)[n], unit) for n in stated],
        about={"machine": str(machine)},
    )
    kept.reject(np.isnan(finish), "unfinished", rejected)
    kept.reject(finish[~np.isnan(finish)] < 0, "pre_trace", rejected)
    return build(kept, rejected, lenient)


@contextmanager
def _database(source: Source) -> Iterator[sqlite3.Connection]:
    """Open the database for reading only; one that is zipped is unpacked into a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        path = source.path.resolve()
        if source.zipped:
            path = Path(folder) / "trace.sqlite"
            try:
                with source.open() as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise UserError(f"{source.path} is a damaged gzip file: {error}; fetch it again") from None
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            _check_tables(source, database)
            yield database


def _check_tables(source: Source, database: sqlite3.Connection) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    lower = {str(name).lower() for name in tables}
    for table, wanted in TABLES.items():
        if table.lower() not in lower:
            raise UserError(
                f"{source.path} is a SQLite database with the tables {', '.join(map(str, tables))}; "
                f"{' and '.join(TABLES)} of the Azure packing trace are needed (no jobs were read)"
            )
        names = [str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")]
        lacking = [name for name in wanted if name.lower() not in map(str.lower, names)]
        if lacking:
            raise UserError(
                f"{source.path}: table {table} has the columns {', '.join(names)}; {', '.join(lacking)} "
                "missing (no jobs were read)"
            )


def _types(database: sqlite3.Connection) -> dict[str, dict[str, list[float]]]:
    """Return machine -> type -> amount of each of `RESOURCES`, NaN where nothing or no number is stated."""
    names = ", ".join(RESOURCES.values())
    found: dict[str, dict[str, list[float]]] = {}
    for name, machine, *amounts in database.execute(f"SELECT vmTypeId, machineId, {names} FROM vmType"):
        values = json_numbers(amounts)[0].tolist()
        found.setdefault(_text(machine), {}).setdefault(_text(name), values)
    return found


def _requests(database: sqlite3.Connection, rejected: Rejected) -> Iterator[dict[str, np.ndarray]]:
    """Return the columns of table vm, piece by piece."""
    rows = database.execute(f"SELECT rowid, {', '.join(TABLES['vm'])} FROM vm ORDER BY rowid")
    while piece := rows.fetchmany(ROWS):
        line, name, tenant, kind, *rest = zip(*piece, strict=True)
        texts = {"id": name, "user": tenant, "type": kind}
        found: dict[str, np.ndarray] = {"line": np.array(line, np.int64)}
        found |= {key: np.array([*map(_text, values), ""], object)[:-1] for key, values in texts.items()}
        wrong = np.zeros(len(line), bool)
        stated = []
        for field, values in zip(TABLES["vm"][3:], rest, strict=True):
            column, bad = json_numbers(values)
            fresh = np.flatnonzero(bad & ~wrong)
            details = [f"{field} is {values[n]!r}" for n in fresh]
            rejected.add("not_numeric", found["line"][fresh], found["id"][fresh], details)
            wrong |= bad
            stated.append(column)
        priority, start, end = stated
        found |= {
            "arrival": start * DAY,
            "duration": (end - np.maximum(start, 0.0)) * DAY,
            "recorded_finish": end * DAY,
            "priority": np.where(np.isnan(priority), 0.0, 1.0 - priority),
        }
        yield {key: column[~wrong] for key, column in found.items()}


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _fitting(
    types: dict[str, dict[str, list[float]]], wanted: list[str], machine: str | None
) -> tuple[str, dict[str, list[float]]]:
    """Return the machine that is meant, and type -> amounts on it.

    Raises:
        UserError: there is no such machine, or none at all.
    """
    if not types:
        raise UserError("the table vmType is empty, so no demand is known: no jobs; fetch the trace again")
    if machine is None:
        asked = Counter(wanted)
        fits = {name: sum(asked[kind] for kind in held) for name, held in types.items()}
        machine = min(fits, key=lambda name: (-fits[name], len(name), name))
    if machine not in types:
        raise UserError(f"machine {machine!r} is none of this trace; it has {', '.join(sorted(types))}")
    return machine, types[machine]
