"""Files that `schedrl.workload.writers` wrote as CSV: a line of metadata, then a table; read back exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.constraints import unescaped
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, first_row, joined, read_table
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import NUMBERS, Resource, Workload

MARK = "#schedrl "
"""How the first line begins; JSON follows."""
KIND = re.compile(r"text|\|b1|[<>|][iu][1248]|[<>]f[248]")
"""Types of extra columns in it."""
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
THINK = "predecessors.think"
"""Column of think times."""
TEXTS = {"id", "user", "predecessors", "allowed"}
FIELDS = {THINK, *TEXTS, *NUMBERS} - {"demand"}


@dataclass(frozen=True)
class _Meta:
    """The line of metadata."""

    time_unit: str
    resources: list[Resource]
    capacity: list[float]
    about: dict[str, str]
    extra: dict[str, str]
    rows: int | None
    """Of the table, where some texts hold line ends, so that lines don't tell."""
    dropped: int = 0
    """Pairs of jobs that a selection broke, see `Predecessors`."""

    @classmethod
    def of(cls, held: dict[str, Any]) -> _Meta:
        """Check what a file states; raise one of `DAMAGE` if it makes no sense."""
        resources = [Resource(name, unit) for name, unit in held["resources"]]
        texts = [held["time_unit"], *held["about"], *held["about"].values(), *held["extra"].values()]
        wrong = [text for text in sum(resources, tuple(texts)) if not isinstance(text, str)]
        wrong += [kind for kind in held["extra"].values() if not KIND.fullmatch(kind)]
        if wrong or not resources:
            raise ValueError(f"{wrong} in it")
        capacity = [np.nan if amount is None else float(amount) for amount in held["capacity"]]
        if len(capacity) != len(resources):
            raise ValueError(f"{len(capacity)} capacities of {len(resources)} resources")
        rows = held.get("rows")
        return cls(
            held["time_unit"],
            resources,
            capacity,
            held["about"],
            held["extra"],
            None if rows is None else int(rows),
            int(held.get("dropped", 0)),
        )


def is_own(start: bytes | str) -> bool:
    """Whether a file begins as ours do."""
    text = start if isinstance(start, str) else start[:32].decode("utf-8-sig", "replace")
    return text.startswith(MARK)


def read_own(source: Source, rejected: Rejected, lenient: bool) -> Workload:
    """Read the jobs.

    Raises:
        UserError: metadata or columns are damaged, or no usable job.
    """
    first = source.text(next(source.blocks())).partition("\n")[0]
    try:
        meta = _Meta.of(json.loads(first.removeprefix(MARK)))
    except DAMAGE as error:
        raise UserError(f"{source.path}, line 1: damaged metadata ({error!r}); write the file anew") from None
    header, lines = first_row(source, before=1)
    demands = [f"demand.{name}" for name, _ in meta.resources]
    known = FIELDS | set(demands) | set(meta.extra)
    lacking = {"id", "arrival", "duration", *demands, *meta.extra} - set(header)
    if lacking or set(header) - known or len(set(header)) < len(header):
        raise UserError(f"{source.path}: metadata and header row don't belong together; write the file anew")
    exact = {name for name, kind in meta.extra.items() if kind == "text" or kind[1] in "iu"}
    texts = frozenset({*TEXTS, *exact} & set(header))
    layout = Layout(header, texts, skip=lines, numbered=texts == {"id"}, ours=meta.rows is not None)
    columns = joined(_columns(source, layout, rejected), rejected, source)
    found = len(columns[LINE]) + len(rejected)
    if meta.rows is not None and found != meta.rows:
        raise UserError(
            f"{source.path} holds {found:,} rows and says that it has {meta.rows:,}: it was changed or cut "
            "(a quote too many or too few takes rows along); write the file anew"
        )
    extra = {name: _typed(source, name, columns.pop(name), kind) for name, kind in meta.extra.items()}
    demand = np.column_stack([columns.pop(name) for name in demands])
    constraints = _constraints(columns)
    return build(
        Columns(
            times_are_told=True,
            **constraints,
            dropped=meta.dropped,
            **{"line" if name is LINE else name: column for name, column in columns.items()},
            demand=demand,
            resources=meta.resources,
            capacity=_capacity(meta, rejected),
            time_unit=meta.time_unit,
            about=meta.about,
            extra=extra,
        ),
        rejected,
        lenient,
    )


def _capacity(meta: _Meta, rejected: Rejected) -> list[float]:
    """Return what the file states of the cluster; what can be no amount is unknown, and said."""
    found = []
    for resource, amount in zip(meta.resources, meta.capacity, strict=True):
        possible = 0 < amount < np.inf
        if not possible and not np.isnan(amount):
            rejected.remark(
                f"the file states a capacity of {amount:g} {resource.unit} of {resource.name}, which can't "
                f"be, so it is not known; give --capacity {resource.name}=..."
            )
        found.append(amount if possible else np.nan)
    return found


def _constraints(columns: dict[Any, Any]) -> dict[str, np.ndarray]:
    """Take out what a job waits for and where it may run."""
    found: dict[str, np.ndarray] = {}
    if "predecessors" in columns:
        lists = [tuple(map(unescaped, text.split())) for text in columns.pop("predecessors").tolist()]
        found["waits_for"] = np.fromiter(lists, object, len(lists))
    if THINK in columns:
        found["think"] = columns.pop(THINK)
    if "allowed" in columns:
        found["allowed"] = columns.pop("allowed")
    return found


LINE: Any = ("line",)
"""Key of the line numbers, which no column can be called."""


def _columns(source: Source, layout: Layout, rejected: Rejected) -> Iterator[dict[Any, np.ndarray]]:
    for table in read_table(source, layout, rejected):
        yield {LINE: table.index.to_numpy()} | {name: table[name].to_numpy() for name in layout.columns}


def _typed(source: Source, name: str, column: np.ndarray, kind: str) -> np.ndarray:
    """Return an extra column in its type.

    Raises:
        UserError: it holds something else.
    """
    if kind == "text" or kind[1] == "f":
        return column if kind == "text" else column.astype(kind)
    try:
        if kind[1] != "b":
            return np.array(list(map(int, column.tolist())), np.dtype(kind))
        if np.isin(column, (0, 1)).all():
            return column.astype(bool)
    except (ValueError, OverflowError):
        pass
    what = "truth values" if kind[1] == "b" else "whole numbers that fit"
    raise UserError(f"{source.path}: column {name!r} must hold {what}; mend the file") from None
