"""What a path must be to be read: a plain file. Apart from ``guard``: readers need it too."""

import os
import stat
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
    """Refuse what can't be read as a file, from its beginning to its end: a folder, a pipe, a device.

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
