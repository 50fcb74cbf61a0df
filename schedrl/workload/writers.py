"""Workloads as files: CSV holds everything, SWF what the Standard Workload Format has room for."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.own import MARK
from schedrl.workload.readers.swf import EXTRA, FIELDS, write_header
from schedrl.workload.types import NUMBERS, Workload

DEFAULTS = {"instances": 1.0, "priority": 0.0}
WRITERS = {".csv": "csv", ".swf": "swf"}


def write_trace(workload: Workload, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a workload; `read_trace` reads it back equal. Nothing is left half-written.

    Args:
        workload: the jobs.
        path: the file; `.csv` or `.swf`, with `.gz` behind it for gzip.
        format: "csv" or "swf" where the name doesn't say.

    Raises:
        UserError: no such format, jobs that SWF can't hold (what, and that CSV can), a path that can't be
            written.
    """
    path = Path(path)
    name = format or WRITERS.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "")
    if name not in WRITERS.values():
        raise UserError(f"{path}: can't tell the format to write; name it .csv or .swf (.gz may follow)")
    import pandas as pd

    head, columns = _csv(workload) if name == "csv" else _swf(workload)
    options: dict[str, Any] = {"quoting": csv.QUOTE_NONNUMERIC} if name == "csv" else {"sep": " "}
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as raw:
            raw.write(b"")
        kind = "gzip" if path.name.endswith(".gz") else None
        with pd.io.common.get_handle(
            part, "w", encoding="utf-8", compression=kind, errors="strict"
        ) as handles:
            handles.handle.write(head)
            pd.DataFrame(columns).to_csv(
                handles.handle, index=False, header=name == "csv", lineterminator="\n", **options
            )
        part.replace(path)
    except UnicodeEncodeError as error:
        raise UserError(
            f"{path}: {error.object[error.start]!r} is no character that UTF-8 can hold"
        ) from None
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror}; choose another path") from None
    finally:
        part.unlink(missing_ok=True)


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
    kinds = {}
    for name, column in workload.extra.items():
        text = column.dtype.kind in "UO" and all(isinstance(value, str) for value in column.tolist())
        if not text and column.dtype.kind not in "iufb" or column.ndim > 1:
            raise UserError(f"extra column {name!r} holds neither numbers nor text; leave it out")
        kinds[name] = "text" if text else column.dtype.str
        columns[name] = column.astype(object) if text else column.astype(float)
    meta = {
        "time_unit": workload.time_unit,
        "resources": [list(resource) for resource in workload.resources],
        "capacity": [
            None if np.isnan(amount) else amount for amount in np.asarray(workload.capacity).tolist()
        ],
        "about": dict(workload.about),
        "extra": kinds,
    }
    return MARK + json.dumps(meta) + "\n", columns


def _default(name: str, column: np.ndarray) -> bool:
    return bool((column == DEFAULTS[name]).all() if name in DEFAULTS else np.isnan(column).all())


def _swf(workload: Workload) -> tuple[str, dict[str, np.ndarray]]:
    """Return header and columns of SWF; raise where the format has no room for something."""
    names = [resource.name for resource in workload.resources]
    instances, start, estimate, users = map(
        np.asarray, (workload.instances, workload.recorded_start, workload.estimate, workload.user)
    )
    ids = np.asarray(workload.id).tolist()
    procs = workload.demand[:, 0] * instances
    odd_user = [user for user in set(users.tolist()) if re.search(r"[\s;]|^-1$", user)]
    refused = {
        f"the resources {', '.join(names)} (SWF has cpu, and memory)": names
        not in (["cpu"], ["cpu", "memory"]),
        f"time in {workload.time_unit}s (SWF has seconds)": workload.time_unit != "s",
        "parts of a processor": bool((procs != np.rint(procs)).any()) or bool((procs <= 0).any()),
        "priorities": bool(np.any(workload.priority)),
        "deadlines": not np.isnan(np.asarray(workload.deadline)).all(),
        "gangs of several processors an instance": bool(
            ((instances > 1) & (workload.demand[:, 0] != 1)).any()
        ),
        f"users like {odd_user[:1]}": bool(odd_user),
        f"extra columns {', '.join(set(workload.extra) - set(EXTRA))}": bool(
            set(workload.extra) - set(EXTRA)
        ),
    }
    bad = next((job for job in ids if not re.fullmatch(r"[^\s;]+", job)), None)
    refused[f"ids like {bad!r}"] = bad is not None
    if what := [text for text, applies in refused.items() if applies]:
        raise UserError(f"SWF has no room for {'; '.join(what)}. Write CSV, which holds everything")
    unknown = np.full(len(ids), -1.0)
    columns = dict.fromkeys(FIELDS, unknown) | {
        name: np.nan_to_num(np.asarray(column, float), nan=-1.0) for name, column in workload.extra.items()
    }
    columns |= {
        "id": np.array(ids, object),
        "submit": workload.arrival,
        "wait": np.nan_to_num(start - workload.arrival, nan=-1.0),
        "run": workload.duration,
        "requested": procs,
        "requested_time": np.nan_to_num(estimate, nan=-1.0),
        "user": np.where(users == "", "-1", users),
    }
    columns["allocated"] = columns["allocated"] if "allocated" in workload.extra else procs
    if len(names) > 1 and not {"requested_memory", "used_memory"} & set(workload.extra):
        columns["requested_memory"] = workload.demand[:, 1] / workload.demand[:, 0]
    return write_header(dict(workload.about)), {name: _whole(columns[name]) for name in FIELDS}


def _whole(column: np.ndarray) -> np.ndarray:
    """Write 5, not 5.0, where every number of a column is whole."""
    if column.dtype.kind == "f" and (np.abs(column) < 2**53).all() and (column == np.rint(column)).all():
        return column.astype(np.int64)
    return column
