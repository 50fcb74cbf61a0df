"""What a path must be to be read: a plain file; and files that appear whole or not at all.

Apart from ``guard``: readers and writers need it too.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from schedrl.settings.base import UserError

KINDS = {
    "a pipe": stat.S_ISFIFO,
    "a device": stat.S_ISCHR,
    "a block device": stat.S_ISBLK,
    "a socket": stat.S_ISSOCK,
}
"""What is no plain file -> how its mode tells."""


def check_plain_file(path: str | os.PathLike[str]) -> None:
    """Refuse what isn't a file, with a beginning and an end: a folder, a pipe, a device.

    What is not there passes: whoever opens it says so.

    Raises:
        UserError: it is one of these.
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return
    if stat.S_ISDIR(mode):
        raise UserError(f"{path} is a folder; name the file in it")
    if not stat.S_ISREG(mode):
        kind = next((name for name, applies in KINDS.items() if applies(mode)), "no plain file")
        raise UserError(f"{path} is {kind}; save what comes out of it to a file, and name that")


def read_plain(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a plain file of at most so many bytes, so that a sparse one takes no memory.

    Raises:
        UserError: it is larger, or no plain file, from which reading might never end.
        OSError: it can't be read.
    """
    check_plain_file(path)
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(f"{path} has more than {most:,} bytes; put back the file that was written")
    return content


@contextlib.contextmanager
def appearing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield where to write what is to appear at `path`: whole, when the `with` is over, or not at all.

    That is a hidden file beside it with the same suffix. Of a link the file that it names is replaced.

    Raises:
        UserError: a folder, a pipe or a device is there. Renaming would put a file in its place.
    """
    check_plain_file(path)
    place = Path(os.path.realpath(path))
    part = place.with_name(f".{place.name}.part{Path(path).suffix}")
    try:
        yield part
        part.replace(place)
    finally:
        with contextlib.suppress(OSError):  # on a read-only file system removing fails too, even nothing
            part.unlink(missing_ok=True)
