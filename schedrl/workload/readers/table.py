"""Rows of separated text as columns: the pandas C parser where a block is clean, row by row where it is not.

Both ways give the same table; the slow one exists to find the rows at fault. A column of numbers is float64
with NaN where nothing is stated, a column of text holds str with "" there. The index is the line number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.readers.source import Source

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "\\N")
"""What stands for an unknown number in a table."""
EXCESS = "_excess"


@dataclass(frozen=True)
class Layout:
    """What the rows of a file look like."""

    columns: Sequence[str]
    """Names in the file's order."""
    text: frozenset[str] = frozenset()
    """Those that are text; the others are numbers."""
    separator: str | None = ","
    """Between fields; None: any white space."""
    comment: str | None = None
    """From this sign on a line is a comment; only where white space separates."""
    encoding: str = "utf-8"
    """Of text, unless the user names one."""
    needed: int = 1
    """Leading fields without which a row says nothing."""
    skip: int = 0
    """Lines before the first row (a header)."""

    @property
    def quoted(self) -> bool:
        """Whether a field may hold separators and line ends between double quotes."""
        return self.separator is not None


def read_table(source: Source, layout: Layout, rejected: Rejected) -> Iterator[pd.DataFrame]:
    """Return the rows in tables of some ten thousand; rows with broken fields go to `rejected`.

    Raises:
        UserError: the text is in another encoding.
    """
    line, skip = 1, layout.skip
    for block in source.blocks(quoted=layout.quoted):
        while skip and block:
            end = block.find(b"\n") + 1 or len(block)
            block, line, skip = block[end:], line + 1, skip - 1
        if block.strip():
            table = _fast(source, block, layout, line)
            if table is None:
                table = _slow(source.text(block, layout.encoding), layout, line, rejected)
            if len(table):
                yield table
        line += block.count(b"\n")


def _fast(source: Source, block: bytes, layout: Layout, first: int) -> pd.DataFrame | None:
    """Parse a block at once; None where any row needs a look of its own."""
    import pandas as pd

    if b"\0" in block or b"\r" in block.replace(b"\r\n", b""):
        return None
    numbers = [name for name in layout.columns if name not in layout.text]
    separator = {"sep": r"\s+"} if layout.separator is None else {"sep": layout.separator}
    try:
        table = pd.read_csv(
            io.BytesIO(block),
            **separator,
            header=None,
            names=[*layout.columns, EXCESS],
            index_col=False,
            dtype=dict.fromkeys(layout.text, object),
            na_values={name: list(MISSING) for name in numbers} | {EXCESS: [""]},
            keep_default_na=False,
            skipinitialspace=True,
            comment=layout.comment,
            quoting=csv.QUOTE_MINIMAL if layout.quoted else csv.QUOTE_NONE,
            encoding=source.encoding or layout.encoding,
            float_precision="round_trip",
            low_memory=False,
        )
    except (ValueError, OverflowError, UnicodeDecodeError):  # ParserError and EmptyDataError among them
        return None
    lines = _lines(block, len(table), layout, first)
    short = table[layout.columns[layout.needed - 1]]
    if lines is None or table.pop(EXCESS).notna().any() or short.isna().any():
        return None
    for name in numbers:
        if table[name].dtype.kind not in "iuf":
            return None
        table[name] = table[name].astype(np.float64)
    for name in layout.text:
        table[name] = table[name].where(table[name].notna(), "")
    table.index = pd.Index(lines)
    return table


def _lines(block: bytes, rows: int, layout: Layout, first: int) -> np.ndarray | None:
    """Return the line numbers of `rows` rows; None where rows and lines can't be matched."""
    newlines = block.count(b"\n") + (not block.endswith(b"\n"))
    if newlines == rows:
        return np.arange(first, first + rows)
    sign = (layout.comment or "\n").encode()
    held = [n for n, line in enumerate(block.split(b"\n"), first) if line.split(sign)[0].strip()]
    return np.array(held) if len(held) == rows else None


def _slow(text: str, layout: Layout, first: int, rejected: Rejected) -> pd.DataFrame:
    """Parse a block row by row, rejecting those that can't be read."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in layout.columns}
    lines = []
    for line, fields in _rows(text, layout, first):
        values, reason, detail = _values(fields, layout)
        if reason:
            name = fields[layout.columns.index("id")] if "id" in layout.columns[: len(fields)] else ""
            rejected.add(reason, line, [name], [detail])
            continue
        lines.append(line)
        for name, value in zip(layout.columns, values, strict=True):
            columns[name].append(value)
    table = pd.DataFrame(
        {
            name: pd.Series(column, dtype=object if name in layout.text else np.float64)
            for name, column in columns.items()
        }
    )
    table.index = pd.Index(lines, dtype=np.int64)
    return table


def _rows(text: str, layout: Layout, first: int) -> Iterator[tuple[int, list[str]]]:
    """Return (line, fields) of every row; blank lines and comments are none."""
    if layout.separator is None:
        for line, words in enumerate(text.split("\n"), first):
            if fields := words.split(layout.comment or "\n")[0].split():
                yield line, fields
        return
    kept = io.StringIO(text.replace("\0", "\ufffd"), newline="")
    reader = csv.reader(kept, delimiter=layout.separator, skipinitialspace=True)
    start = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = ["\ufffd"]
        line, start = first + start, reader.line_num
        if any(field.strip() for field in row):
            yield line, row


def _values(fields: list[str], layout: Layout) -> tuple[list[Any], str, str]:
    """Return the values of a row, and why it can't be read, if so, with the text at fault."""
    if len(fields) > len(layout.columns) and any(field.strip() for field in fields[len(layout.columns) :]):
        return [], "too_many_fields", f"{len(fields)} fields, {len(layout.columns)} expected"
    values: list[Any] = []
    for name, field in zip(layout.columns, fields, strict=False):
        value = field if name in layout.text else number(field)
        if value is None:
            return [], "not_numeric", f"{name} is {field.strip()!r}"
        values.append(value)
    if len(fields) < layout.needed:
        return [], "too_few_fields", f"{len(fields)} fields, {layout.needed} needed"
    return values + ["" if n in layout.text else np.nan for n in layout.columns[len(values) :]], "", ""


def number(field: str) -> float | None:
    """Return the number that `field` states, NaN if it states none, None if it is something else."""
    field = field.strip()
    if field in MISSING:
        return np.nan
    try:
        return float(field) if "_" not in field else None
    except ValueError:
        return None


def joined(chunks: Iterable[dict[str, np.ndarray]], rejected: Rejected, source: Source) -> dict[str, Any]:
    """Put the columns of all chunks together.

    Raises:
        UserError: there is no chunk, so there are no jobs.
    """
    parts = list(chunks)
    if not parts:
        raise UserError(f"{source.path}: no jobs; {rejected.summary()}. Check the file and its format")
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
