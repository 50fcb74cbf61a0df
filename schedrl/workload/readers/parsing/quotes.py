"""Where a row of a table with quotes ends: a quote that isn't closed must never swallow the rows behind it.

A field between quotes may hold line ends. So one quote too many can make a field of the rest of the file, and
no parser objects. Here a row goes on over line ends only if its quotes are closed as they should be, it can
be read, and the lines in it don't look like rows of their own. Otherwise its first line alone is the row that
can't be read, and the next line begins the next one: whatever quotes are in a file, the rows that are read
and those that are rejected are all the rows that there are.
"""

import csv
import io
from collections.abc import Callable, Iterator

from schedrl.workload.readers.parsing.source import LONGEST_TEXT

UNCLOSED, UNREADABLE = "unclosed_quote", "unreadable"


def quoted_rows(
    text: str, separator: str, width: int, readable: Callable[[list[str]], bool], ours: bool = False
) -> Iterator[tuple[int, list[str], str]]:
    """Return (number of its first line, from 0; fields; why it can't be read) of every row, blank ones too.

    Args:
        text: whole rows.
        separator: between fields.
        width: fields of a whole row.
        readable: whether fields make a row.
        ours: a field may look as if it held rows.
    """
    lines = _Lines(text)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    while lines.at < len(lines.held):
        start = lines.at
        try:
            row, broken = next(rows), ""
        except csv.Error:
            row, broken = [], UNREADABLE
        if lines.ended or (lines.at > start + 1 and not broken):
            held = [] if lines.ended else lines.held[start : lines.at]
            one = held and _closed(held, separator, width) and readable(row)
            broken = "" if one and (ours or not _are_rows(held, separator, width)) else UNCLOSED
        if broken:
            rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
            row = [lines.held[start].strip()]
            lines.at = start + 1
        yield start, row, broken
        lines.begin()


class _Lines:
    """Lines for a parser, which takes as many as its row needs; `at` is the next one."""

    def __init__(self, text: str) -> None:
        self.held = list(io.StringIO(text, newline=""))
        self.at = 0
        self.begin()

    def begin(self) -> None:
        """Begin another row."""
        self.ended = False
        """Whether more was wanted than there is, or than a field may take."""
        self._left = LONGEST_TEXT

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.at == len(self.held) or self._left <= 0:
            self.ended = True
            raise StopIteration
        line = self.held[self.at]
        self.at += 1
        self._left -= len(line)
        return line


def _closed(lines: list[str], separator: str, width: int) -> bool:
    """Whether several lines are a whole row, every quote closed as it should be."""
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return False
    return len(rows) == 1 and len(rows[0]) == width


def _are_rows(lines: list[str], separator: str, width: int) -> bool:
    """Whether several lines look like rows of which one lacks a quote."""
    first, *between, last = [_fields(line, separator) >= width > 1 for line in lines]
    return first and last or any(between)


def _fields(line: str, separator: str) -> int:
    """Count the fields of a line by itself; a quote that isn't closed in it is an ordinary sign."""
    line = line.rstrip("\r\n") + "\n"
    held = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return len(held) + (held[-1].count(separator) if held and held[-1].endswith("\n") else 0)
