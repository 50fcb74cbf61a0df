"""Standard output and error that fail no command: closed, full, or of a reader or a terminal that has gone.

What can't be written is dropped, and remembered. A command that only prints has then failed; one that trains
goes on, and says on standard error that it does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

DESCRIPTORS = {"stdin": 0, "stdout": 1, "stderr": 2}


class Lasting:
    """A text stream whose writes never raise.

    Attributes:
        lost: what came of the first write that failed; None while all went well.
        outlived: whether the command has more to do than to print, so that the loss is told at once.
    """

    def __init__(self, stream: Any, lost: OSError | None = None):
        self._stream, self.lost, self.outlived = stream, lost, False

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        if self.lost is None:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush, or drop what can't be written."""
        if self.lost is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(error)

    def tell_loss(self) -> None:
        """Say on standard error that the command goes on without its output."""
        assert self.lost is not None
        print(f"standard output is lost ({self.lost.strerror}); going on without it", file=sys.stderr)

    def _lose(self, error: OSError) -> None:
        self.lost = error
        with contextlib.suppress(OSError, ValueError):  # what lies in the buffer goes there too
            descriptor = os.open(os.devnull, os.O_WRONLY)
            os.dup2(descriptor, self._stream.fileno())
            os.close(descriptor)
        if self.outlived:
            self.tell_loss()


@contextlib.contextmanager
def lasting() -> Iterator[Lasting]:
    """Replace standard output and error by lasting ones; yield standard output."""
    if isinstance(sys.stdout, Lasting):  # a command called by another one
        yield sys.stdout
        return
    closed = _open_closed()
    before = sys.stdout, sys.stderr
    sys.stdout = output = Lasting(before[0], OSError(*_BAD) if "stdout" in closed else None)
    sys.stderr = Lasting(before[1])
    try:
        yield output
    finally:
        output.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def outlive() -> None:
    """From now on the command has more to do than to print: it goes on where its output is lost."""
    if isinstance(sys.stdout, Lasting) and not sys.stdout.outlived:
        sys.stdout.outlived = True
        if sys.stdout.lost is not None:
            sys.stdout.tell_loss()


_BAD = (errno.EBADF, os.strerror(errno.EBADF))


def _open_closed() -> list[str]:
    """Open what the caller has closed (`>&-`), or the next file would get its number and what is printed."""
    closed = []
    for name, number in DESCRIPTORS.items():
        try:
            os.fstat(number)
            continue
        except OSError:
            closed.append(name)
        found = os.open(os.devnull, os.O_RDWR)
        if found != number:
            os.dup2(found, number)
            os.close(found)
        os.set_inheritable(number, True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(DESCRIPTORS[name], "w", closefd=False))  # noqa: SIM115
    return closed
