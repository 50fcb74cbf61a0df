"""Rows of separated text as columns: the pandas C parser where a block is clean, row by row where it is not.

Both ways give the same table; the slow one exists to find the rows at fault. A column of numbers is float64
with NaN where nothing is stated, a column of text holds str with "" there. The index is the line number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.parsing.quotes import quoted_rows
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.rejected import Rejected

if TYPE_CHECKING:
    import pandas as pd

MISSING = (
    *("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""What stands for an unknown number in a table: the list of pandas, which parses it fastest."""
PLAIN = re.compile(r"-?[0-9]+")
BLANKS = re.compile(r"[ \t\r]+")
SHOWN = 200
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Layout:
    """What the rows of a file look like."""

    columns: Sequence[str]
    """Names in the file's order."""
    text: frozenset[str] = frozenset()
    """Those that are text; the others are numbers."""
    unread: frozenset[str] = frozenset()
    """Those that nothing is read from, so that anything may stand there; they aren't in the table."""
    separator: str | None = ","
    """Between fields; None: any white space."""
    comment: str | None = None
    """From this sign on a line is a comment; only where white space separates."""
    encodings: Sequence[str] = ("utf-8",)
    """Of text, unless the user names one: the first that a block is in."""
    needed: int = 1
    """Leading fields without which a row says nothing."""
    skip: int = 0
    """Lines before the first row (a header)."""
    quotes: bool = True
    """Whether a double quote holds a field together; else it is a sign like any other (`sacct -P`)."""
    unknown: Sequence[str] = ()
    """Words besides `MISSING` that stand for an unknown number."""
    numbered: bool = False
    """Give a text column whose every field is a plain whole number as such (int64): quicker by far."""
    ours: bool = False
    """Whether a line end in a field is meant, whatever it looks like: the file says how many rows it has."""
    optional: frozenset[str] = frozenset()
    """Numbers that no rule needs: what is none there is unknown, and the row stays."""

    @property
    def quoted(self) -> bool:
        """Whether a field may hold separators and line ends between double quotes."""
        return self.separator is not None and self.quotes

    @property
    def numbers(self) -> list[str]:
        """Columns that must be numbers."""
        return [name for name in self.columns if name not in self.text and name not in self.unread]


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
        newlines = int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
        if block.strip():
            table = _fast(source, block, layout, line, newlines)
            if table is None:
                table = _slow(source.text(block, layout.encodings), layout, line, rejected)
            if len(table):
                yield table
        line += newlines


def _fast(source: Source, block: bytes, layout: Layout, first: int, newlines: int) -> pd.DataFrame | None:
    """Parse a block at once; None where any row needs a look of its own."""
    import pandas as pd

    if b"\0" in block or (b"\r" in block and b"\r" in block.replace(b"\r\n", b"")):
        return None
    row = _first_row(block, layout)
    if len(row) > len(layout.columns):  # pandas takes the first fields for names of the rows then
        return None
    numbered = _may_be_numbered(block, row, layout)
    table = _parsed(source, block, layout, as_numbers=True) if numbered else None
    numbered = table is not None and all(table[name].dtype == np.int64 for name in layout.text)
    if not numbered:
        table = _parsed(source, block, layout, as_numbers=False)
    if table is None:
        return None
    lines = _lines(block, len(table), layout, first, newlines)
    last = table[layout.columns[layout.needed - 1]]
    if lines is None or (layout.needed > 1 and (last.isna() | (last == "")).any()):
        return None
    if any(kind.kind not in "iuf" for kind in table.dtypes[layout.numbers]):
        return None
    table = table.drop(columns=list(layout.unread))
    table = table.astype(dict.fromkeys(layout.numbers, np.float64))
    table.index = pd.Index(lines)
    if numbered:
        return table
    for name in layout.text:
        table[name] = table[name].where(table[name].notna(), "")
    return table


def _first_row(block: bytes, layout: Layout) -> list[str]:
    """Return the fields of the first row that has any."""
    sign = (layout.comment or "\n").encode()
    lines = (line.split(sign)[0].decode("latin-1") for line in io.BytesIO(block))
    if layout.separator is None:
        return next((words for line in lines if (words := line.split())), [])
    if not layout.quotes:
        return next((fields for line in lines if (fields := _unquoted(line, layout))), [])
    rows = csv.reader(lines, delimiter=layout.separator, skipinitialspace=True)
    try:
        return next((row for row in rows if len(row) > 1 or any(field.strip() for field in row)), [])
    except csv.Error:
        return []


def _may_be_numbered(block: bytes, row: list[str], layout: Layout) -> bool:
    """Whether columns of text might hold only whole numbers as Python writes them: no 007, +5, -0, "5"."""
    if not layout.numbered or layout.separator not in (None, ",", "\t") or layout.quoted and b'"' in block:
        return False
    places = [layout.columns.index(name) for name in layout.text]
    if max(places) >= len(row) or not all(PLAIN.fullmatch(row[place]) for place in places):
        return False
    if b"+" in block or (b"-" in block and b"-0" in block):
        return False
    if layout.separator is not None and (b" " in block or b"\t" in block):  # blanks are part of a text
        return False
    return not _has_leading_zero(block)


def _has_leading_zero(block: bytes, size: int = 1 << 17) -> bool:
    """Whether a digit follows a zero at the start of a field; a little at a time, to stay in the cache."""
    signs = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    for start in range(0, len(block), size):
        before, zero, after = (signs[start + n : start + n + size] for n in range(3))
        size = len(after)
        found = (before[:size] < ord(".")) & (zero[:size] == ord("0")) & (after - ord("0") <= 9)
        if found.any():
            return True
    return False


def _parsed(source: Source, block: bytes, layout: Layout, *, as_numbers: bool) -> pd.DataFrame | None:
    """Parse a block with pandas, columns of text as text or as the numbers they may be; None if it can't."""
    import pandas as pd

    text: dict[str, Any] = {}
    if layout.text and not as_numbers:
        text = {
            "dtype": dict.fromkeys(layout.text, object),
            "na_values": {name: list(MISSING) for name in layout.numbers},
            "keep_default_na": False,
        }
    if layout.unknown:
        text["na_values"] = {name: [*MISSING, *layout.unknown] for name in layout.numbers}
    try:
        return pd.read_csv(
            io.BytesIO(block),
            sep=layout.separator or r"\s+",
            header=None,
            names=list(layout.columns),
            skipinitialspace=b" " in block,  # takes as long again as all the rest
            comment=layout.comment,
            quoting=csv.QUOTE_MINIMAL if layout.quoted else csv.QUOTE_NONE,
            encoding=source.encoding_of(block, layout.encodings),
            low_memory=False,
            **text,
            **({} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}),
        )
    except (ValueError, OverflowError, UnicodeDecodeError):  # ParserError and EmptyDataError among them
        return None


def _lines(block: bytes, rows: int, layout: Layout, first: int, newlines: int) -> np.ndarray | None:
    """Return the line numbers of `rows` rows; None where rows and lines can't be matched."""
    if newlines + (not block.endswith(b"\n")) == rows:
        return np.arange(first, first + rows)
    sign = (layout.comment or "\n").encode()
    held = [n for n, line in enumerate(block.split(b"\n"), first) if line.split(sign)[0].strip()]
    return np.array(held) if len(held) == rows else None


def _slow(text: str, layout: Layout, first: int, rejected: Rejected) -> pd.DataFrame:
    """Parse a block row by row, rejecting those that can't be read."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in layout.columns}
    lines = []
    unknown: dict[str, list[int]] = {}
    for line, row, broken in _rows(text, layout, first):
        values, reason, detail = ([], broken, row[0][:SHOWN]) if broken else _values(row, layout)
        if reason:
            named = not broken and "id" in layout.columns[: len(row)]
            rejected.add(reason, line, [row[layout.columns.index("id")] if named else ""], [detail])
            continue
        lines.append(line)
        for name, value in zip(layout.columns, values, strict=True):
            if value is None:
                unknown.setdefault(name, []).append(line)
            columns[name].append(np.nan if value is None else value)
    for name, where in unknown.items():
        rejected.adjust(f"{name} was no number, so it is unknown", where)
    table = pd.DataFrame(
        {
            name: pd.Series(column, dtype=object if name in layout.text else np.float64)
            for name, column in columns.items()
            if name not in layout.unread
        }
    )
    table.index = pd.Index(lines, dtype=np.int64)
    return table


def _rows(text: str, layout: Layout, first: int) -> Iterator[tuple[int, list[str], str]]:
    """Return (line, fields, why they are none) of every row; blank lines and comments are none."""
    if layout.separator is None or not layout.quotes:
        for line, words in enumerate(text.split("\n"), first):
            if fields := _unquoted(words, layout):
                yield line, fields, ""
        return
    width = len(layout.columns)

    def readable(row: list[str]) -> bool:
        return not _values(row, layout)[1]

    for place, row, broken in quoted_rows(text, layout.separator, width, readable, layout.ours):
        if len(row) > 1 or any(field.strip(" \t") for field in row):
            yield first + place, row, broken


def _unquoted(line: str, layout: Layout) -> list[str]:
    """Return the fields of a line in which quotes are signs like any other; none if it is blank."""
    if layout.separator is None:
        return [word for word in BLANKS.split(line.split(layout.comment or "\n")[0]) if word]
    fields = line.removesuffix("\r").split(layout.separator)
    return [field.lstrip(" ") for field in fields] if line.strip() else []


def _values(fields: list[str], layout: Layout) -> tuple[list[Any], str, str]:
    """Return the values of a row (None: no number where none is needed); and why it can't be read, if so."""
    if len(fields) > len(layout.columns) and any(field.strip() for field in fields[len(layout.columns) :]):
        return [], "too_many_fields", f"{len(fields)} fields, {len(layout.columns)} expected"
    values: list[Any] = []
    for name, field in zip(layout.columns, fields, strict=False):
        value = field if name in layout.text or name in layout.unread else number(field)
        if value is None and field.strip() in layout.unknown:
            value = np.nan
        if value is None and name not in layout.optional:
            return [], "not_numeric", f"{name} is {field.strip()[:SHOWN]!r}"
        values.append(value)
    if len(fields) < layout.needed:
        return [], "too_few_fields", f"{len(fields)} fields, {layout.needed} needed"
    return values + ["" if n in layout.text else np.nan for n in layout.columns[len(values) :]], "", ""


def number(field: str) -> float | None:
    """Return the number that `field` states, NaN if it states none, None if it is something else."""
    try:
        return float(field) if "_" not in field else None
    except ValueError:
        return np.nan if field.strip() in MISSING else None


def first_row(source: Source, before: int = 0, separator: str = ",") -> tuple[list[str], int]:
    """Return the fields of the row behind the first `before` lines, and the number of lines up to its end.

    Raises:
        UserError: it can't be read.
    """
    lines = source.head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[before:]
    texts = (source.text(line) + "\n" for line in lines)
    rows = csv.reader(texts, delimiter=separator, skipinitialspace=True)
    try:
        return next(rows, []), before + rows.line_num
    except csv.Error as error:
        raise UserError(f"{source.path}: line {before + 1} is no header row ({error}); mend it") from None


def joined(chunks: Iterable[dict[str, np.ndarray]], rejected: Rejected, source: Source) -> dict[str, Any]:
    """Put the columns of all chunks together.

    Raises:
        UserError: there is no chunk, so there are no jobs.
    """
    parts = list(chunks)
    if not parts:
        raise rejected.nothing_left(source.path)
    columns: dict[str, Any] = {}
    for name in list(parts[0]):
        column = [part.pop(name) for part in parts]
        if len({part.dtype for part in column}) > 1:
            column = [part.astype(str).astype(object) if part.dtype == np.int64 else part for part in column]
        columns[name] = np.concatenate(column)
    return columns
