"""Any CSV with a header row: columns are found by their usual names, or by a map that the user gives.

Files that `schedrl.workload.writers` wrote begin with a line of metadata and are read back exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from schedrl.settings import UserError, counted
from schedrl.workload.constraints import LEFT_OUT
from schedrl.workload.readers.build import Columns, build, names_in
from schedrl.workload.readers.formats.accounting import Record
from schedrl.workload.readers.formats.own import is_own, read_own
from schedrl.workload.readers.parsing.cells import MISSING_WORDS, UNKNOWN_WORDS
from schedrl.workload.readers.parsing.headed import header_row
from schedrl.workload.readers.parsing.mapped import Conversion, Mapped, question, seen, spared
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, first_row, joined, number, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload
from schedrl.workload.units import amount

if TYPE_CHECKING:
    import pandas as pd

TITLE = "any CSV with a header row"
SOURCE = "https://www.rfc-editor.org/rfc/rfc4180"
OPTIONS = ("map", "time_zone")

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
    "waits_for": ("waits_for", "depends_on", "dependencies", "predecessors", "preceding_job"),
    "think": ("think", "think_time"),
    "allowed": ("allowed", "allowed_machines", "gpu_spec"),
    "cpu": ("cpu", "cpus", "cores", "procs", "processors"),
    "memory": ("memory", "mem", "ram"),
    "gpu": ("gpu", "gpus", "num_gpu"),
}
"""Field -> names by which a column, or a key of the map, is known. Other keys of the map are resources."""
RESOURCES = ("cpu", "memory", "gpu")
UNMAPPED = {"waits_for": "what a job waits for", "allowed": "where a job may run"}
"""Constraints that are honoured, but not where a map leaves their column out -> what it says."""
NOTHING = MISSING_WORDS | {"-1", "[]"}
"""Cells that name no job and no machine."""
QUOTED = r'"(?:[^"]|"")*"'
"""A part of a map in which a comma belongs to a name."""


def recognises(head: Head) -> bool:
    """Whether a file is ours, or begins with a row of names; which of them are missing is said by `read`."""
    names = head.table[0] if head.table else []
    return is_own(head.text) or (
        not head.text.lstrip().startswith(("{", "["))
        and len(names) > 1
        and any(names)
        and all(not name or number(name) is None for name in names)
    )


def read(
    source: Source,
    rejected: Rejected,
    *,
    lenient: bool = False,
    map: Mapping[str, str] | str | None = None,
    time_zone: str = "",
) -> Workload:
    """Read the jobs of a table.

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        map: field -> column, the unit in brackets if it isn't seconds or the usual one:
            `{"arrival": "submit_time[ms]", "duration": "run_s", "cpu": "plan_cpu[milli]"}`, or the same as
            text, `arrival=submit_time[ms],duration=run_s`. Keys that are no field name resources.
        time_zone: of moments as text that don't say how far from UTC they are; "" takes them as UTC.

    Raises:
        UserError: no such zone or unit, missing columns (those found are listed too), or no usable job.
    """
    if is_own(source.head):
        return read_own(source, rejected, lenient)
    head = Head.of(source)
    if head.text.lstrip().startswith(("{", "[")):
        raise UserError(f"{source.path} is JSON, not a table; name its format, or save it as a table")
    header = header_row(source, head.separator)
    record = Record.of(header)
    mapped = seen(_mapping(header, map, source, record), header, head.table[1:])
    conversion = Conversion(mapped, rejected, time_zone)
    others = _left_out(header, mapped)
    texts = frozenset(conversion.texts | (record.texts if record else set()) | set(others.values()))
    only_id = "id" in mapped and texts == {mapped["id"].column}
    layout = Layout(
        header,
        texts,
        unread=frozenset(header) - {m.column for m in mapped.values()} - texts,
        separator=head.separator,
        skip=first_row(source, separator=head.separator)[1],
        numbered=only_id,
        quotes=not (record and head.separator == "|"),
        unknown=UNKNOWN_WORDS,
        optional=frozenset(mapped[name].column for name in spared(mapped)) - texts,
    )
    columns = joined(
        (
            _columns(table, conversion, record, others, rejected)
            for table in read_table(source, layout, rejected)
        ),
        rejected,
        source,
    )
    if record:
        columns = record.jobs(columns, rejected)
    about = conversion.about()
    names = [name for name in mapped if name not in NAMES or name in RESOURCES]
    resources = []
    for name in names:
        resources.append(Resource(name, amount(name, mapped[name].unit)[1]))
        question(name, mapped[name].unit, columns[name], rejected)
    demand = np.column_stack([columns.pop(name) for name in names])
    extra = {name: columns.pop(column) for name, column in others.items()}
    for name in UNMAPPED.keys() & extra.keys():
        _tell_unmapped(name, others[name], extra.pop(name), rejected)
    if "waits_for" in columns:
        columns["waits_for"] = names_in(columns["waits_for"], NOTHING)
    if "allowed" in columns:
        stated = columns["allowed"].tolist()
        columns["allowed"] = np.array(["" if text.strip() in NOTHING else text for text in stated], object)
    held = Columns(
        **columns, demand=demand, resources=resources, about=about, extra=extra, times_are_told=True
    )
    return build(held, rejected, lenient)


def _left_out(header: list[str], mapped: Mapping[str, Mapped]) -> dict[str, str]:
    """Return constraints that nothing honours -> their columns: kept, so that they can be counted."""
    read = {m.column for m in mapped.values()}
    named = {column: column.strip().lower().replace(" ", "_") for column in header if column not in read}
    unmapped = {_field(column): column for column in named}
    return {name: column for column, name in named.items() if name in LEFT_OUT} | {
        name: unmapped[name] for name in UNMAPPED if name in unmapped and name not in mapped
    }


def _tell_unmapped(name: str, column: str, cells: np.ndarray, rejected: Rejected) -> None:
    """Say how many rows have a constraint that the map leaves out."""
    stated = sum(text.strip() not in NOTHING and bool(text.strip()) for text in cells.tolist())
    if stated:
        rejected.remark(
            f"{column} says {UNMAPPED[name]} in {counted(stated, 'row')}: left out, as the map doesn't name "
            f"it; add {name}={column}"
        )


def _field(name: str) -> str | None:
    plain = name.strip().lower().replace(" ", "_")
    return next((field for field, names in NAMES.items() if plain in names), None)


def parse_map(text: str) -> dict[str, str]:
    """Read `arrival=submit_time[ms],cpu=cores`; names with commas in double quotes: `arrival="Sent, at"`.

    Raises:
        UserError: a part without "=", a field twice, or a quote that isn't closed.
    """
    if re.sub(QUOTED, "", text).count('"'):
        raise UserError(
            f'map has a quote that isn\'t closed: {text!r}; write field="column, with comma"[unit]'
        )
    listed = re.findall(rf'(?:{QUOTED}|[^,"])+', text)
    parts = [_unquoted(part).partition("=") for part in listed if part.strip()]
    fields = [_field(key.strip()) or key.strip() for key, _, _ in parts]
    for field, (key, sign, column) in zip(fields, parts, strict=True):
        if fields.count(field) > 1:
            raise UserError(f"map names a column for {field} twice; keep one of them")
        if not sign or not key.strip() or not column.strip():
            raise UserError(f"map has {key + sign + column!r}; write field=column,field=column[unit]")
    return {key.strip(): column.strip() for key, _, column in parts}


def _unquoted(text: str) -> str:
    """Return the text without the quotes around parts of it; two together stand for one."""
    return re.sub(QUOTED, lambda quoted: quoted[0][1:-1].replace('""', '"'), text)


def _mapping(
    header: list[str], given: Mapping[str, str] | str | None, source: Source, record: Record | None
) -> dict[str, Mapped]:
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
    if record:
        mapped.setdefault("id", Mapped(record.id))
        mapped = {name: _of_slurm(m) for name, m in mapped.items()}
    return mapped


def _of_slurm(m: Mapped) -> Mapped:
    """Return the unit that sacct writes a column in, where the map names none."""
    units = {"elapsed": "hms", "timelimit": "hms", "timelimitraw": "min", "reqmem": "GiB"}
    name = m.column.lower()
    return m if m.unit else Mapped(m.column, units.get(name, ""), text=name == "reqmem")


def _columns(
    table: pd.DataFrame,
    conversion: Conversion,
    record: Record | None,
    others: Mapping[str, str],
    rejected: Rejected,
) -> dict[str, np.ndarray]:
    """Bring some rows to seconds and the units used here."""
    if record:
        table = record.with_memory(record.without_steps(table, rejected))
    found, good = conversion.columns(table, record.length(table) if record else None)
    found.setdefault("id", found["line"])
    found |= record.texts_of(table) if record else {}
    found |= {column: table[column].to_numpy() for column in others.values()}
    return found if good.all() else {name: column[good] for name, column in found.items()}
