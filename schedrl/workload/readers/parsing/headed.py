"""Tables of a known format: columns by their names where there is a header row, else by their places."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, first_row, number
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected

if TYPE_CHECKING:
    import pandas as pd


def has_row(head: Head, width: int, numbers: Collection[int], state: int, states: Collection[str]) -> bool:
    """Whether the rows have `width` fields, numbers at these places, and one of `states` at that one.

    Some may be damaged, and what is wrong with them is said where they are read: see `Head.most`.
    """
    return head.most(
        lambda row: (
            len(row) == width and row[state] in states and all(number(row[n]) is not None for n in numbers)
        ),
        head.rows,
    )


def headed_layout(source: Source, needed: Collection[str], text: Collection[str] = ()) -> Layout:
    """Return the layout of a table with a header row; its columns may stand in any order, among others.

    Args:
        source: the file.
        needed: columns without which there are no jobs.
        text: columns that are text, needed or not; others are not read.

    Raises:
        UserError: columns are missing; names them and those found.
    """
    header = header_row(source)
    missing = [name for name in needed if name not in header]
    if missing:
        raise UserError(
            f"{source.path} lacks the columns {', '.join(missing)}; found: {', '.join(header)} "
            "(no jobs were read). Add them, or name another format"
        )
    kept = frozenset(text) & set(header)
    return Layout(header, kept, frozenset(header) - kept - set(needed), skip=1)


def fixed_layout(source: Source, columns: Sequence[str], text: Collection[str], needed: int) -> Layout:
    """Return the layout of a table that comes without a header row, or with one that was put on.

    Args:
        source: the file.
        columns: all of its columns, in order.
        text: those that are text.
        needed: leading fields of a row without which it says nothing.

    Raises:
        UserError: there is a header row, and a column is missing in it.
    """
    first = source.head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    if {columns[0], columns[1]} <= {word.strip(' "\r') for word in first.decode("latin-1").split(",")}:
        return headed_layout(source, columns, text)
    return Layout(columns, frozenset(text), needed=needed)


def set_aside(table: pd.DataFrame, wrong: np.ndarray, reason: str, rejected: Rejected) -> pd.DataFrame:
    """Reject the rows that are `wrong` [n] and return the others; `id` is a column of the table."""
    if not wrong.any():
        return table
    rejected.add(reason, table.index[wrong], table["id"][wrong])
    return table[~wrong]


def joined_ids(*parts: pd.Series) -> np.ndarray:
    """Return `a/b/c`, empty where a part is. [n] object."""
    names = parts[0].to_numpy()
    empty = names == ""
    for part in parts[1:]:
        empty |= (part == "").to_numpy()
        names = names + "/" + part.to_numpy()
    return np.where(empty, "", names)


def header_row(source: Source, separator: str = ",") -> list[str]:
    """Return the names in the header row, made distinct and never empty.

    Raises:
        UserError: it can't be read.
    """
    found: list[str] = []
    for place, name in enumerate(map(str.strip, first_row(source, separator=separator)[0]), 1):
        name = name or f"column {place}"
        while name in found:
            name = f"{name} ({place})"
        found.append(name)
    return found
