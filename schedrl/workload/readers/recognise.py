"""Which format a file is in, from its first lines; and what it is instead, where it holds no jobs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from schedrl.settings import UserError
from schedrl.workload.readers.companions import COMPANIONS
from schedrl.workload.readers.source import Source


@dataclass(frozen=True)
class Head:
    """How a file begins."""

    name: str
    """Of the file, in lower case: a last resort for formats whose rows look alike."""
    bytes: bytes

    @classmethod
    def of(cls, source: Source) -> Head:
        """Take it from a file."""
        return cls(source.path.name.lower().removesuffix(".gz"), source.head)

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
        reader = csv.reader(io.StringIO("\n".join(self.lines), newline=""), strict=False)
        try:
            return [[field.strip() for field in row] for row in reader if row]
        except csv.Error:
            return []

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
        raise UserError(f"{head.name} is empty: no jobs; check that it was fetched whole")
    for applies, what, lacks in OTHERS:
        if applies(head):
            raise UserError(f"{head.name} is {what}: {lacks}")
    readers = list(readers)
    for module in readers:
        if module.recognises(head):
            return module.__name__.rpartition(".")[2]
    names = ", ".join(module.__name__.rpartition(".")[2] for module in readers)
    raise UserError(
        f"{head.name} is in no format that is recognised by its content; name it (format: {names}). "
        f"It begins with {head.lines[0][:60] if head.lines else ''!r}"
    )
