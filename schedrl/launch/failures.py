"""What ends a training run by no fault of the program, in one line: numbers, lost workers, a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from schedrl.learning.lost_workers import WorkersLost
from schedrl.learning.rollout import NumericsError
from schedrl.learning.run_folder import newest_checkpoint

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of writing that are the disk's."""


def explained(error: Exception, folder: Path | None, resume: str) -> str | None:
    """Return one line about a failure and what to do; None for a fault of the program.

    Args:
        error: that ended the run.
        folder: of the run.
        resume: the command that continues it.
    """
    if isinstance(error, NumericsError):
        return f"not a number: {error}"
    saved = folder is not None and newest_checkpoint(folder) is not None
    then = f"go on from the last checkpoint: {resume}" if saved else "start again: there is no checkpoint yet"
    if isinstance(error, WorkersLost):
        return f"{error}. To {then}" if saved else str(error)
    if (reason := disk_says(error)) is not None:
        return (
            f"can't write to {folder}: {reason}; no half-written checkpoint is left. Make room, then {then}"
        )
    return None


def disk_says(error: Exception) -> str | None:
    """Return what the disk's fault is, if it is the disk's; TensorFlow tells in words only."""
    if isinstance(error, OSError):
        return error.strerror if error.errno in FULL else None
    if type(error).__module__.startswith("tensorflow"):
        return next((os.strerror(code) for code in FULL if os.strerror(code) in str(error)), None)
    return None
