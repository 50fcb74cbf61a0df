"""Processor time of other processes, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path


def seconds_of(pid: int) -> float:
    """Return the processor time of a running process; 0 of one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
