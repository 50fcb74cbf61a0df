"""Which format a file is in, from its first lines; and what it is instead, where it holds no jobs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from schedrl.settings import UserError
from schedrl.workload.readers.companions import COMPANIONS
from schedrl.workload.readers.formats.own import is_own
from schedrl.workload.readers.parsing.source import Source

SEPARATORS = (",", ";", "\t", "|")
"""What may part the columns of a table; the first is taken where two do equally well."""


@dataclass(frozen=True)
class Head:
    """How a file begins."""

    path: str
    """Of the file, as it was typed: for messages."""
    bytes: bytes

    @classmethod
    def of(cls, source: Source) -> Head:
        """Take it from a file."""
        return cls(str(source.path), source.head)

    @cached_property
    def text(self) -> str:
        """The first bytes as text, whatever the encoding; no byte order mark."""
        raw = self.bytes.removeprefix(b"\xef\xbb\xbf")
        for encoding in ("utf-8", "gbk"):
            try:
                return raw[: raw.rfind(b"\n") + 1 or None].decode(encoding)
            except UnicodeDecodeError:
                continue
        return raw.decode("latin-1")

    @cached_property
    def lines(self) -> list[str]:
        """Up to 20 lines that are not blank; a last one that is cut off isn't among them."""
        lines = self.text.splitlines()
        return [line for line in lines[: 400 if len(lines) < 400 else -1] if line.strip()][:20]

    @cached_property
    def rows(self) -> list[list[str]]:
        """Those lines split at commas, quotes respected, white space around fields dropped."""
        return self.split(",")

    def split(self, separator: str) -> list[list[str]]:
        """Split the lines at another sign in the same way."""
        reader = csv.reader(io.StringIO("\n".join(self.lines), newline=""), delimiter=separator)
        try:
            return [[field.strip() for field in row] for row in reader if row]
        except csv.Error:
            return []

    @cached_property
    def separator(self) -> str:
        """What parts the columns of a table with a header row.

        The sign that gives the first row most fields, of those that give half of the others as many; a comma
        where none does.
        """
        found = {}
        for sign in SEPARATORS:
            header, *rows = self.split(sign) or [[]]
            alike = sum(len(row) == len(header) for row in rows)
            if len(header) > 1 and 2 * alike >= len(rows):
                found[sign] = len(header)
        return max(found, key=lambda sign: found[sign], default=",")

    @cached_property
    def table(self) -> list[list[str]]:
        """The lines split at what parts the columns."""
        return self.split(self.separator)

    def most(self, resembles: Callable[[Sequence[str]], bool], rows: Sequence[Sequence[str]]) -> bool:
        """Whether rows without a header are of a format: half of them, since others may be damaged.

        One row below a row of names is not enough: that is a table with a header.
        """
        alike = sum(map(resembles, rows))
        headed = bool(rows) and not any(re.fullmatch(r"[-+.\deE]*\d", field) for field in rows[0])
        return 2 * alike >= len(rows) and alike > headed

    def has_columns(self, *names: str) -> bool:
        """Whether the first row names all these columns."""
        return bool(self.rows) and set(names) <= set(self.rows[0])

    def is_header(self, *names: str) -> bool:
        """Whether the first row names these columns and no others."""
        return bool(self.rows) and set(self.rows[0]) == set(names)


OTHERS: tuple[tuple[Callable[[Head], bool], str, str], ...] = (*COMPANIONS,)
"""(how it begins, what it is, what it lacks) of files that people take for job traces."""


def recognised(head: Head, readers: Iterable[ModuleType]) -> str:
    """Return the name of the format.

    Raises:
        UserError: none; says what the file is, where that is known.
    """
    if not head.bytes.strip():
        raise UserError(f"{head.path} is empty: no jobs; check that it was fetched whole")
    if is_own(head.bytes):  # its mark says more than any likeness
        return "csv"
    for applies, what, lacks in OTHERS:
        if applies(head):
            raise UserError(f"{head.path} is {what}: {lacks}")
    readers = list(readers)
    for module in readers:
        if module.recognises(head):
            return module.__name__.rpartition(".")[2]
    names = ", ".join(module.__name__.rpartition(".")[2] for module in readers)
    raise UserError(
        f"{head.path} is in no format that is recognised by its content; name it (format: {names}). "
        f"It begins with {head.lines[0][:60] if head.lines else ''!r}"
    )
