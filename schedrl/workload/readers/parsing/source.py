"""A file as blocks of whole lines: plain or gzip, told apart by content, never read whole.

Raises `UserError` for what a path can be that is no readable text: missing, a folder, an archive, damaged.
"""

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from schedrl.settings import UserError, check_plain_file

BLOCK = 1 << 23
"""Bytes read at a time: large enough for the parser to be fast, small beside the jobs of a large trace."""
HEAD = 1 << 16
LONGEST_TEXT = 1 << 16
"""Bytes over which a quoted field may go on; a quote that isn't closed within them was never meant as one."""
LONGEST_LINE = 1 << 25
"""Bytes of a line; what has none so far is no table, and would fill the memory before anybody heard of it."""

ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"7z\xbc\xaf": "a 7z archive",
}
GZIP = b"\x1f\x8b"


class Source:
    """A trace file.

    Args:
        path: where it is.
        encoding: of text columns; None: UTF-8 (a byte order mark is dropped).

    Raises:
        UserError: no such file, not readable, no plain file, an archive, not a gzip file after all.
    """

    def __init__(self, path: str | os.PathLike[str], encoding: str | None = None) -> None:
        self.path = Path(path)
        self.encoding = encoding
        if encoding is not None:
            try:
                plain = '\n,;" 0'.encode(encoding) == b'\n,;" 0'
            except (LookupError, ValueError):
                raise UserError(f"encoding {encoding!r} is unknown; try utf-8, gbk or latin-1") from None
            if not plain:
                raise UserError(
                    f"encoding {encoding!r} can't be read line by line; convert the file to utf-8"
                )
        check_plain_file(self.path)
        try:
            with self.path.open("rb") as file:
                magic = file.read(8)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            why = getattr(error, "strerror", None) or error
            raise UserError(f"can't read {self.path}: {why}; check the path") from None
        for start, name in ARCHIVES.items():
            if magic.startswith(start):
                raise UserError(f"{self.path} is {name}; unpack it first (gzip is read as it is)")
        self.zipped = magic.startswith(GZIP)
        """Whether it is packed by gzip."""
        self.head = next(self.raw(HEAD), b"")
        """The first bytes, unpacked: to recognise a format by."""
        self._old = b"\r" in self.head and b"\n" not in self.head
        if self._old:
            self.head = self.head.replace(b"\r", b"\n")
        if self.head[257:262] == b"ustar":
            raise UserError(f"{self.path} is a tar archive; unpack it first and name the file in it")

    def open(self) -> IO[bytes]:
        """Open it for reading, unpacked."""
        if self.zipped:
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        return self.path.open("rb")

    def raw(self, size: int = BLOCK) -> Iterator[bytes]:
        """Return the bytes, unpacked, `size` at a time."""
        try:
            with self.open() as file:
                while block := file.read(size):
                    yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"{self.path} is a damaged gzip file: {error}; fetch it again") from None
        except OSError as error:
            raise UserError(f"can't read {self.path}: {error}") from None

    def blocks(self, quoted: bool = False, size: int = BLOCK) -> Iterator[bytes]:
        """Return blocks of whole lines, the last one with or without a line end; no byte order mark.

        Lines that end with a carriage return only, as of old, end with a line feed here.

        Args:
            quoted: a line end between double quotes belongs to the field, so don't cut there.
            size: bytes of a block, about.
        """
        rest, first = b"", True
        for raw in self.raw(size):
            if first:
                raw, first = raw.removeprefix(b"\xef\xbb\xbf"), False
            if self._old:
                raw = raw.replace(b"\r", b"\n")
            block = rest + raw
            cut = _balanced(block) if quoted and b'"' in block else block.rfind(b"\n") + 1
            rest = block[cut:]
            if len(rest) > LONGEST_LINE and b"\n" not in rest:
                raise UserError(
                    f"{self.path} has a line of more than {LONGEST_LINE >> 20} MB, so it is no table; "
                    "check what it is, or name its format"
                )
            if cut:
                yield block[:cut]
        if rest:
            yield rest

    def encoding_of(self, block: bytes, usual: Sequence[str] = ("utf-8",)) -> str:
        """Return the encoding given, else the first of the usual ones that `block` is in, else their last."""
        if self.encoding or len(usual) == 1 or block.isascii():
            return self.encoding or usual[0]
        for encoding in usual[:-1]:
            try:
                block.decode(encoding)
            except UnicodeError:
                continue
            return encoding
        return usual[-1]

    def text(self, block: bytes, usual: Sequence[str] = ("utf-8",)) -> str:
        """Decode what a person may read.

        Raises:
            UserError: it is in another encoding.
        """
        encoding = self.encoding_of(block, usual)
        try:
            return block.decode(encoding)
        except UnicodeError as error:
            why = str(error).rpartition(": ")[2]
            raise UserError(
                f"{self.path} is not in {encoding} ({why}); give its encoding, such as gbk or latin-1"
            ) from None


def _balanced(block: bytes) -> int:
    """Return the end of the last line that closes every quote before it; 0 to wait for more of the file.

    Where no line of the last `LONGEST_TEXT` bytes does, a quote was opened and never closed: then it is the
    end of the last line.
    """
    last = cut = block.rfind(b"\n") + 1
    odd = block.count(b'"', 0, cut) % 2
    low = max(0, len(block) - LONGEST_TEXT)
    while odd and cut > low:
        before = block.rfind(b"\n", 0, cut - 1) + 1
        odd ^= block.count(b'"', before, cut) % 2
        cut = before
    return last if odd and low else cut
