"""What stands around a command line's ``main``: errors as one line and an exit code, folders checked first.

Apart from ``command_line`` because it has nothing to do with settings.
"""

import errno
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from schedrl.settings.base import UserError
from schedrl.settings.claims import FolderLost
from schedrl.settings.output import Lasting, lasting
from schedrl.settings.printable import error_line, printable_streams
from schedrl.settings.values import shown

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes, with 0 (ok) and 42 (preempted: checkpoint saved, run again)."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def check_folder_writable(path: str | os.PathLike[str], flag: str = "--output_dir") -> Path:
    """Return ``path`` if files can be made in it, or if it can be made; leaves nothing on disk.

    Raises:
        UserError: it is a file, lies under one, or its nearest existing parent can't be written.
    """
    if not str(path):
        raise UserError(f"{flag} is empty; name a folder, . for this one")
    if "\0" in str(path):
        raise UserError(f"{flag} holds a NUL character, which no name of a folder can; choose another folder")
    try:
        folder = Path(path).expanduser()
        parent = folder.absolute()
        while not parent.exists() and parent != parent.parent:
            parent = parent.parent
    except (OSError, RuntimeError) as error:  # too long a name; no such user's home
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{flag} {shown(str(path))}: {reason}; choose another folder") from None
    if not parent.is_dir():
        raise UserError(f"{flag} {folder}: {parent} is a file, not a folder; choose another folder")
    try:
        # Only trying tells: permission bits say nothing to root, nor of read-only or virtual file systems.
        with tempfile.TemporaryDirectory(prefix=".schedrl-probe-", dir=parent):
            pass
    except OSError as error:
        raise UserError(
            f"{flag} {folder}: can't write in {parent} ({error.strerror}); choose another"
        ) from None
    return folder


def main_guard(main: Callable[..., int | None]) -> Callable[..., int]:
    """Wrap a command line's ``main(argv=None)``: its errors become one line on stderr and an exit code.

    ``UserError``, or too little memory -> ``error: ...`` and 2; Ctrl-C -> 130; None -> 0. A folder that was
    removed while it was in use -> 1; likewise a standard output that a command which only prints can't write
    to, unless its reader has seen enough (``| head``). Anything else is our bug: a traceback and 1. Command
    lines do linear algebra in one thread, unless the environment says otherwise: on matrices as small as ours
    a second one costs more than it gives. What is printed goes through the door of ``printable``.
    """

    @functools.wraps(main)
    def guarded(argv: Iterable[str] | None = None) -> int:
        for variable in THREADS:  # read when NumPy is imported, which is later
            os.environ.setdefault(variable, "1")
        with printable_streams(), lasting() as output:
            try:
                code = _carried_out(main, None if argv is None else list(argv))
            except SystemExit as end:  # of --help
                if not end.code and _lost(output):
                    raise SystemExit(FAILURE) from None
                raise
            return code or (FAILURE if _lost(output) else 0)

    return guarded


def _lost(output: Lasting) -> bool:
    """Tell, and say, whether what a command was for could not be written to standard output."""
    output.flush()
    if output.lost is None or output.outlived or output.lost.errno == errno.EPIPE:
        return False
    print(f"error: can't write standard output: {output.lost.strerror}", file=sys.stderr)
    return True


def _carried_out(main: Callable[..., int | None], argv: list[str] | None) -> int:
    try:
        return main(argv) or 0
    except UserError as error:
        print(f"error: {error_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except FolderLost as error:
        print(f"error: {error_line(error)}", file=sys.stderr)
        return FAILURE
    except MemoryError as error:
        text = str(error) or "the machine has not as much"
        told = error_line(f"not enough memory: {text}; give less data, or smaller sizes")
        print(f"error: {told}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
