"""What ends a training run by no fault of the program, in one line: numbers, lost workers, a full disk."""

from __future__ import annotations

import errno
from typing import Any

from schedrl.learning.lost_workers import WorkersLost
from schedrl.learning.rollout import NumericsError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of writing that are the disk's."""


def explained(error: Exception, folder: Any, resume: str) -> str | None:
    """Return one line about a failure and what to do; None for a fault of the program.

    Args:
        error: that ended the run.
        folder: of the run.
        resume: the command that continues it.
    """
    if isinstance(error, NumericsError):
        return f"not a number: {error}"
    if isinstance(error, WorkersLost):
        return str(error)
    if isinstance(error, OSError) and error.errno in FULL:
        return (
            f"can't write to {folder}: {error.strerror}; nothing half-written is left. Make room, then go on "
            f"from the last checkpoint: {resume}"
        )
    return None
