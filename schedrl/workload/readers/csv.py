"""Any CSV with a header row: columns are found by their usual names, or by a map that the user gives.

Files that `schedrl.workload.writers` wrote begin with a line of metadata and are read back exactly.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.readers.source import Source
from schedrl.workload.readers.table import Layout, joined, number, read_table
from schedrl.workload.types import Resource, Workload
from schedrl.workload.units import SECONDS, amount, seconds

if TYPE_CHECKING:
    import pandas as pd

TITLE = "any CSV with a header row"
SOURCE = "https://www.rfc-editor.org/rfc/rfc4180"
OPTIONS = ("map",)
MARK = "#schedrl "
"""How the first line of our own files begins; JSON follows."""

NAMES = {
    "id": ("id", "job_id", "jobid", "job", "name"),
    "arrival": ("arrival", "arrival_time", "submit", "submit_time", "submission_time", "submitted_time"),
    "duration": ("duration", "run", "run_time", "runtime", "run_s", "duration_s"),
    "recorded_start": ("recorded_start", "start", "start_time"),
    "recorded_finish": ("recorded_finish", "finish", "finish_time", "end", "end_time"),
    "estimate": ("estimate", "walltime", "requested_time", "time_limit"),
    "instances": ("instances", "instance_num", "inst_num", "instances_num"),
    "priority": ("priority",),
    "deadline": ("deadline",),
    "user": ("user", "user_id"),
    "cpu": ("cpu", "cpus", "cores", "procs", "processors"),
    "memory": ("memory", "mem", "ram"),
    "gpu": ("gpu", "gpus", "num_gpu"),
}
"""Field -> names by which a column, or a key of the map, is known. Other keys of the map are resources."""
RESOURCES = ("cpu", "memory", "gpu")
TIMES = ("arrival", "duration", "recorded_start", "recorded_finish", "estimate", "deadline")
TEXTS = ("id", "user")


@dataclass(frozen=True)
class Mapped:
    """Where a field comes from."""

    column: str
    unit: str = ""

    @classmethod
    def of(cls, text: str) -> Mapped:
        """Read `column` or `column[unit]`."""
        column, bracket, unit = text.rstrip().removesuffix("]").rpartition("[")
        return (
            cls(column.strip(), unit.strip())
            if bracket and text.rstrip().endswith("]")
            else cls(text.strip())
        )


def recognises(head: Head) -> bool:
    """Whether a file is ours, or begins with a row of names; which of them are missing is said by `read`."""
    names = head.rows[0] if head.rows else []
    return head.text.startswith(MARK) or (len(names) > 1 and all(number(name) is None for name in names))


def read(
    source: Source,
    rejected: Rejected,
    *,
    lenient: bool = False,
    map: Mapping[str, str] | str | None = None,
) -> Workload:
    """Read the jobs of a table.

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        map: field -> column, the unit in brackets if it isn't seconds or the usual one:
            `{"arrival": "submit_time[ms]", "duration": "run_s", "cpu": "plan_cpu[milli]"}`, or the same as
            text, `arrival=submit_time[ms],duration=run_s`. Keys that are no field name resources.

    Raises:
        UserError: columns are missing (those found and those needed are listed), or no usable job.
    """
    if source.head.removeprefix(b"\xef\xbb\xbf").startswith(MARK.encode()):
        return _read_own(source, rejected, lenient)
    header = header_row(source)
    mapped = _mapping(header, map, source)
    texts = frozenset(_texts(mapped))
    only_id = "id" in mapped and texts == {mapped["id"].column}
    unread = frozenset(header) - {m.column for m in mapped.values()}
    layout = Layout(header, texts, unread, skip=1, numbered=only_id)
    columns = joined(
        (_columns(table, mapped, rejected) for table in read_table(source, layout, rejected)),
        rejected,
        source,
    )
    names = [name for name in mapped if name not in NAMES or name in RESOURCES]
    resources = [Resource(name, amount(name, mapped[name].unit)[1]) for name in names]
    demand = np.column_stack([columns.pop(name) for name in names])
    return build(Columns(**columns, demand=demand, resources=resources), rejected, lenient)


def _texts(mapped: Mapping[str, Mapped]) -> list[str]:
    return [m.column for name, m in mapped.items() if name in TEXTS or m.unit == "iso"]


def _field(name: str) -> str | None:
    plain = name.strip().lower().replace(" ", "_")
    return next((field for field, names in NAMES.items() if plain in names), None)


def header_row(source: Source, line: int = 1) -> list[str]:
    """Return the names in the header row, made distinct and never empty.

    Raises:
        UserError: that line is no row.
    """
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    if b"\n" not in head:
        head = head.replace(b"\r", b"\n")
    text = source.text(b"".join(head.split(b"\n", line)[line - 1 : line])).removesuffix("\r")
    try:
        found = next(csv.reader(io.StringIO(text, newline="")), [])
    except csv.Error as error:
        raise UserError(f"{source.path}, line {line}: no row of column names ({error}); mend it") from None
    names: list[str] = []
    for place, name in enumerate(found, 1):
        name = name.strip() or f"column {place}"
        names.append(name if name not in names else f"{name} ({place})")
    return names


def parse_map(text: str) -> dict[str, str]:
    """Read `arrival=submit_time[ms],cpu=cores`.

    Raises:
        UserError: a part without "=".
    """
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    for key, sign, column in parts:
        if not sign or not key.strip() or not column.strip():
            raise UserError(f"map has {key + sign + column!r}; write field=column,field=column[unit]")
    return {key.strip(): column.strip() for key, _, column in parts}


def _mapping(header: list[str], given: Mapping[str, str] | str | None, source: Source) -> dict[str, Mapped]:
    """Return field or resource -> column; raise with what was found and what is needed."""
    wanted = parse_map(given) if isinstance(given, str) else dict(given or {})
    mapped: dict[str, Mapped] = {}
    for column in header:
        field, named = _field(Mapped.of(column).column), Mapped.of(column)
        if field and not wanted:
            mapped.setdefault(field, Mapped(column, named.unit))
    for key, text in wanted.items():
        name = _field(key) or key
        mapped[name] = Mapped(text) if text in header else Mapped.of(text)
    absent = [m.column for m in mapped.values() if m.column not in header]
    needed = ["arrival"] * ("arrival" not in mapped)
    if "duration" not in mapped and not {"recorded_start", "recorded_finish"} <= set(mapped):
        needed.append("duration (or start and finish)")
    if not any(name not in NAMES or name in RESOURCES for name in mapped):
        needed.append("a resource (cpu, memory, gpu, ...)")
    if absent or needed:
        needed += [f"the columns {', '.join(absent)} of the map"] if absent else []
        raise UserError(
            f"{source.path} has the columns {', '.join(header)}; needed: {', '.join(needed)}. Name them "
            "by a map, for example arrival=submit_time[ms],duration=run_s,cpu=cores (no jobs were read)"
        )
    for name in TIMES:
        if name in mapped and mapped[name].unit not in ("", "iso"):
            seconds(mapped[name].unit)
    return mapped


def _columns(table: pd.DataFrame, mapped: dict[str, Mapped], rejected: Rejected) -> dict[str, np.ndarray]:
    """Bring some rows to seconds and the units used here."""
    wrong = np.zeros(len(table), bool)
    found: dict[str, np.ndarray] = {"line": table.index.to_numpy()}
    for name, m in mapped.items():
        values = table[m.column].to_numpy()
        if name in TEXTS:
            found[name] = values
        elif m.unit == "iso":
            found[name], bad = _moments(values)
            rejected.add("not_numeric", table.index[bad & ~wrong], None, values[bad & ~wrong])
            wrong |= bad
        elif name in TIMES:
            found[name] = values * SECONDS[m.unit or "s"] if m.unit not in ("", "s") else values
        else:
            factor = amount(name, m.unit)[0] if name not in NAMES or name in RESOURCES else 1.0
            found[name] = values * factor if factor != 1 else values
    found.setdefault("id", found["line"])
    if "duration" not in found:
        found["duration"] = found["recorded_finish"] - found["recorded_start"]
    return {name: column[~wrong] for name, column in found.items()} if wrong.any() else found


def _moments(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds since 1970 of ISO 8601 texts, and which are none; empty text is unknown."""
    import pandas as pd

    moments = pd.to_datetime(pd.Series(texts), errors="coerce", utc=True, format="ISO8601")
    unknown = moments.isna().to_numpy()
    stated = np.array([bool(text.strip()) for text in texts.tolist()], bool)
    return np.where(unknown, np.nan, moments.astype("int64").to_numpy() / 1e9), unknown & stated


def _read_own(source: Source, rejected: Rejected, lenient: bool) -> Workload:
    """Read a file of `schedrl.workload.writers`."""
    first = source.text(next(source.blocks())).partition("\n")[0]
    try:
        held: dict[str, Any] = json.loads(first.removeprefix(MARK))
        resources = [Resource(*pair) for pair in held["resources"]]
        capacity = [np.nan if amount is None else float(amount) for amount in held["capacity"]]
        unit, about, types = held["time_unit"], held["about"], dict(held["extra"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{source.path}, line 1: damaged metadata ({error}); write the file anew") from None
    header = header_row(source, 2)
    texts = {*TEXTS, *(name for name, kind in types.items() if kind == "text")} & set(header)
    columns = joined(
        read_table_columns(
            source, Layout(header, frozenset(texts), skip=2, numbered=texts == {"id"}), rejected
        ),
        rejected,
        source,
    )
    try:
        demand = np.column_stack([columns.pop(f"demand.{name}") for name, _ in resources])
        extra = {name: columns.pop(name) for name in types}
        extra = {n: c if types[n] == "text" else c.astype(types[n]) for n, c in extra.items()}
        return build(
            Columns(
                **columns,
                demand=demand,
                resources=resources,
                capacity=capacity,
                time_unit=unit,
                about=about,
                extra=extra,
            ),
            rejected,
            lenient,
        )
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{source.path}: metadata and columns don't belong together ({error}); write the file anew"
        ) from None


def read_table_columns(source: Source, layout: Layout, rejected: Rejected) -> Iterable[dict[str, np.ndarray]]:
    """Return the columns of each table, `line` among them."""
    for table in read_table(source, layout, rejected):
        yield {"line": table.index.to_numpy()} | {name: table[name].to_numpy() for name in layout.columns}
