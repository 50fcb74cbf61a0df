"""Workloads as files: CSV holds everything, SWF what the Standard Workload Format has room for."""

from __future__ import annotations

import csv
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import UserError, appearing, safe_cell
from schedrl.settings.claims import claim_file
from schedrl.workload.constraints import Predecessors, escaped
from schedrl.workload.readers.formats.own import KIND, MARK, THINK
from schedrl.workload.readers.formats.swf import (
    EXTRA,
    FIELDS,
    PARTIAL,
    first_stated,
    parse_header,
    write_header,
)
from schedrl.workload.types import NUMBERS, Workload

PLAIN = {"i": np.int64, "u": np.uint64, "f": np.float64, "b": np.float64, "U": object, "O": object}
"""Kind of an extra column -> the type that it is written as."""
KILOBYTES = {
    **{"B": 1e-3, "KB": 1.0, "MB": 1e3, "GB": 1e6, "TB": 1e9},
    **{"KiB": 1.024, "MiB": 1.024 * 1024, "GiB": 1.024 * 1024**2, "TiB": 1.024 * 1024**3},
}
"""Unit of memory -> how many kilobytes, which is what SWF has."""
DEFAULTS = {"instances": 1.0, "priority": 0.0}
WRITERS = {".csv": "csv", ".swf": "swf"}


def write_trace(workload: Workload, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a workload; `read_trace` reads it back equal. Nothing is left half-written.

    SWF has processors, and memory in KB per processor; a cluster's memory is left out, its processors become
    `MaxProcs`. Gangs of single processors are read back with `gangs=True`.

    Args:
        workload: the jobs.
        path: the file; `.csv` or `.swf`, with `.gz` behind it for gzip.
        format: "csv" or "swf" where the name doesn't say.

    Raises:
        UserError: no such format, jobs that SWF can't hold (what, and that CSV can), a path that can't be
            written, or that another process is writing.
    """
    path = Path(path)
    name = format or WRITERS.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "")
    if name not in WRITERS.values():
        raise UserError(f"{path}: can't tell the format to write; name it .csv or .swf (.gz may follow)")
    head, columns = _csv(workload) if name == "csv" else _swf(workload)
    options: dict[str, Any] = (
        {"quoting": csv.QUOTE_NONNUMERIC}
        if name == "csv"
        else {"sep": " ", "header": False, "quoting": csv.QUOTE_NONE}
    )
    with claim_file(path):
        _write(path, head, columns, options)


def for_spreadsheets(workload: Workload) -> Workload:
    """Return the jobs with a ' before each text that a spreadsheet takes for a formula, see `safe_cell`.

    Written and read back these are other texts: for people, not for programs.
    """
    extra = {
        safe_cell(name): _safe(column) if column.dtype.kind in "OU" else column
        for name, column in workload.extra.items()
    }
    return replace(
        workload, id=_safe(np.asarray(workload.id)), user=_safe(np.asarray(workload.user)), extra=extra
    )


def _safe(texts: np.ndarray) -> np.ndarray:
    safe = {text: safe_cell(text) for text in set(texts.tolist())}
    return np.array([safe[text] for text in texts.tolist()], object)


def _write(path: Path, head: str, columns: dict[str, np.ndarray], options: dict[str, Any]) -> None:
    import pandas as pd

    kind = "gzip" if path.name.endswith(".gz") else None
    text = {"encoding": "utf-8", "errors": "strict", "compression": kind}
    try:
        with appearing(path) as part:
            part.write_bytes(b"")  # an error of its own where that can't be
            with pd.io.common.get_handle(part, "w", **text) as handles:
                handles.handle.write(head)
                pd.DataFrame(columns).to_csv(handles.handle, index=False, lineterminator="\n", **options)
    except UnicodeEncodeError as error:
        raise UserError(
            f"{path}: {error.object[error.start]!r} is no character that UTF-8 can hold"
        ) from None
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror}; choose another path") from None


def _csv(workload: Workload) -> tuple[str, dict[str, np.ndarray]]:
    """Return the line of metadata, and the columns that differ from the defaults."""
    columns: dict[str, np.ndarray] = {"id": np.asarray(workload.id)}
    for name in NUMBERS:
        column = getattr(workload, name)
        if name == "demand":
            columns |= {f"demand.{r.name}": column[:, n] for n, r in enumerate(workload.resources)}
        elif name in ("arrival", "duration") or not _default(name, column):
            columns[name] = column
    if any(np.asarray(workload.user)):
        columns["user"] = np.asarray(workload.user)
    columns |= _constraints(workload)
    kinds = {}
    for name, column in workload.extra.items():
        if name in columns:
            raise UserError(f"extra column {name!r} is called like a column of jobs or demands; rename it")
        kinds[name] = _kind(name, column)
        columns[name] = column.astype(PLAIN[column.dtype.kind])
    meta: dict[str, Any] = {
        "time_unit": workload.time_unit,
        "resources": [list(resource) for resource in workload.resources],
        "capacity": [
            None if np.isnan(amount) else amount for amount in np.asarray(workload.capacity).tolist()
        ],
        "about": dict(workload.about),
        "extra": kinds,
    }
    if _has_line_ends(columns):
        meta["rows"] = len(workload)
    if workload.predecessors is not None and workload.predecessors.dropped:
        meta["dropped"] = workload.predecessors.dropped
    # No quote within a text: readers count quotes to find the ends of rows.
    line = re.sub(r"\\(.)", lambda escape: r"\u0022" if escape[1] == '"' else escape[0], json.dumps(meta))
    return f"{MARK}{line}\n", columns


def _has_line_ends(columns: dict[str, np.ndarray]) -> bool:
    """Whether a text goes on over lines, so that a reader can't count the rows by them."""
    ends = re.compile(r"[\r\n]")
    return any(
        ends.search(text) for column in columns.values() if column.dtype == object for text in set(column)
    )


def _constraints(workload: Workload) -> dict[str, np.ndarray]:
    """Return what each job waits for, by ids between blanks, and the machines that will do, by bars."""
    found: dict[str, np.ndarray] = {}
    waits_for, allowed = workload.predecessors, workload.allowed
    if waits_for is not None and len(waits_for.job):
        lists = waits_for.names(np.asarray(workload.id))
        found["predecessors"] = np.array([" ".join(map(escaped, names)) for names in lists], object)
        if waits_for.think.any():
            found[THINK] = waits_for.think
    if allowed is not None:
        texts = ["" if names is None else "|".join(map(escaped, names)) or "|" for names in allowed.names()]
        found["allowed"] = np.array(texts, object)
    return found


def _default(name: str, column: np.ndarray) -> bool:
    return bool((column == DEFAULTS[name]).all() if name in DEFAULTS else np.isnan(column).all())


def _kind(name: str, column: np.ndarray) -> str:
    """Return what the line of metadata says of an extra column: its type."""
    if column.dtype.kind in "UO" and all(isinstance(value, str) for value in column.tolist()):
        return "text"
    if column.ndim > 1 or not KIND.fullmatch(column.dtype.str):
        raise UserError(f"extra column {name!r} holds neither numbers nor text; leave it out")
    return column.dtype.str


def _swf(workload: Workload) -> tuple[str, dict[str, np.ndarray]]:
    """Return header and columns of SWF.

    Raises:
        UserError: the format has no room for something.
    """
    names = [resource.name for resource in workload.resources]
    about, held = dict(workload.about), _arrays(workload)
    capacity = np.asarray(workload.capacity)[0]
    if not {"MaxProcs", "MaxNodes"} & set(about) and not np.isnan(capacity):
        about["MaxProcs"] = f"{capacity:.0f}"
    header = write_header(about)
    wrong = _no_room_for(workload) | {"texts like these in its header": parse_header(header) != about}
    if what := [text for text, applies in wrong.items() if applies]:
        raise UserError(f"SWF has no room for {'; '.join(what)}. Write CSV, which holds everything")
    count, procs = len(workload), workload.demand[:, 0] * held["instances"]
    columns = dict.fromkeys(FIELDS, np.full(count, np.nan)) | dict(workload.extra)
    columns |= {
        "id": np.asarray(workload.id),
        "submit": workload.arrival,
        "wait": held["recorded_start"] - workload.arrival,
        "run": workload.duration,
        "requested": procs,
        "allocated": workload.extra.get("allocated", procs),
        "requested_time": held["estimate"],
        "user": np.where(held["user"] == "", "-1", held["user"]),
    }
    if workload.predecessors is not None:
        columns |= _preceding(workload, workload.predecessors)
    if len(names) > 1:
        memory = _memory(workload)
        stated = first_stated(columns["requested_memory"], columns["used_memory"])
        if not np.array_equal(memory, stated, equal_nan=True):
            columns["requested_memory"] = memory
    return header, {name: _whole(columns[name]) for name in FIELDS}


def _preceding(workload: Workload, waits_for: Predecessors) -> dict[str, np.ndarray]:
    """Return the preceding job and the think time of each."""
    names = [float(names[0]) if names else np.nan for names in waits_for.names(workload.id)]
    think = np.where(waits_for.waiting, waits_for.think, np.nan)
    return {"preceding_job": np.array(names), "think_time": think}


def _memory(workload: Workload) -> np.ndarray:
    """Return KB per processor [J], unknown where a job asks for none."""
    memory = workload.demand[:, 1] / workload.demand[:, 0] * KILOBYTES[workload.resources[1].unit]
    return np.where(memory > 0, memory, np.nan)


def _arrays(workload: Workload) -> dict[str, np.ndarray]:
    names = ("estimate", "instances", "priority", "deadline", "user", "recorded_start", "recorded_finish")
    return {name: np.asarray(getattr(workload, name)) for name in names}


def _no_room_for(workload: Workload) -> dict[str, bool]:
    """Return what SWF can't hold -> whether these jobs have it."""
    held = _arrays(workload)
    names = [resource.name for resource in workload.resources]
    cpu, procs = workload.demand[:, 0], workload.demand[:, 0] * held["instances"]
    start, finish, run = held["recorded_start"], held["recorded_finish"], workload.duration
    unsaid = np.isnan(start) & np.isnan(finish)
    memory = names == ["cpu", "memory"]
    unit = workload.resources[-1].unit
    odd_id = next((name for name in workload.id if not re.fullmatch(r"[^\s;]+", name)), None)
    odd_user = next((name for name in set(held["user"]) if re.search(r"[\s;]|^-1$", name)), None)
    odd_extra = [
        name for name, c in workload.extra.items() if name not in EXTRA or c.dtype.kind not in "iufb"
    ]
    status = workload.extra.get("status", np.zeros(0))
    links = [] if workload.predecessors is None else workload.predecessors.names(workload.id)
    odd_link = next((n for names in links for n in names if not re.fullmatch(r"\d{1,15}", n)), None)
    used = workload.extra.get("used_memory", np.zeros(len(workload)))
    return {
        "jobs that wait for several others": any(len(names) > 1 for names in links),
        f"jobs that wait for one called {odd_link!r}": odd_link is not None,
        "machines that are allowed": workload.allowed is not None,
        f"the resources {', '.join(names)} (SWF has cpu, and memory)": not memory and names != ["cpu"],
        f"memory in {unit}": memory and unit not in KILOBYTES,
        "memory that no job asks for": memory and not (workload.demand[:, -1] > 0).any(),
        "jobs that ask for no memory and used some": memory
        and bool(((workload.demand[:, -1] <= 0) & (used > 0)).any()),
        f"time in {workload.time_unit}s (SWF has seconds)": workload.time_unit != "s",
        "parts of a processor": bool((procs != np.rint(procs)).any() or (procs <= 0).any()),
        "priorities": bool(held["priority"].any()),
        "deadlines": not np.isnan(held["deadline"]).all(),
        "gangs of several processors an instance": bool(((held["instances"] > 1) & (cpu != 1)).any()),
        "estimates below the run time": bool(((held["estimate"] < run) | (held["estimate"] == 0)).any()),
        "starts before the arrival": bool((start < workload.arrival).any()),
        "recorded ends other than start + run time": not np.allclose(
            finish[~unsaid], (start + run)[~unsaid], rtol=1e-9, atol=1e-6
        ),
        "parts of jobs (status 2, 3, 4)": bool(np.isin(status, PARTIAL).any()),
        f"users like {odd_user!r}": odd_user is not None,
        f"ids like {odd_id!r}": odd_id is not None,
        f"extra columns {', '.join(odd_extra)}": bool(odd_extra),
    }


def _whole(column: np.ndarray) -> np.ndarray:
    """Write unknown as -1, and 5, not 5.0, where every number of a column is whole."""
    if column.dtype == object:
        return column
    column = np.nan_to_num(np.asarray(column, float), nan=-1.0)
    if (np.abs(column) < 2**53).all() and (column == np.rint(column)).all():
        return column.astype(np.int64)
    return column
