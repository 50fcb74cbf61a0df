"""What of a run's logs a checkpoint goes with: read whole and compared before a resumed run writes anything.

A checkpoint knows length and hash of `metrics.csv` and of the histories as they were when it was made. What
came later was taken back and is cut off; what came before must be there as it was.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import UserError, read_plain

METRICS = "metrics.csv"
HISTORIES = {"r": "reward_history.npy", "slowdown": "slowdown_history.npy"}
COLUMN = re.compile(r"[\w./-]+")
MOST = 1_000_000_000  # bytes of a log
ASIDE = ".changed"
"""Ending of a file that was set aside."""


@dataclass
class Kept:
    """The logs up to a checkpoint; what is not as it was stands in `changed`, name -> reason."""

    metrics: bytes = b""
    histories: dict[str, np.ndarray] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)


class _Changed(Exception):
    """The file is not what was written; the text says in what."""


def digest_of(content: Any) -> str:
    """Return the hash of bytes or of an array's values."""
    return hashlib.sha256(content).hexdigest()


def kept_logs(folder: Path, state: Mapping[str, Any], decisions: int) -> Kept:
    """Read the logs in a run's folder that go with a checkpoint.

    Args:
        folder: of the run.
        state: of the logger in the checkpoint.
        decisions: after which the checkpoint was made.
    """
    kept = Kept()
    try:
        kept.metrics = _metrics(folder / METRICS, state, decisions)
    except _Changed as reason:
        kept.changed[METRICS] = str(reason)
    for key, name in HISTORIES.items():
        try:
            kept.histories[key] = _history(folder / name, key, state)
        except _Changed as reason:
            kept.changed[name] = str(reason)
            kept.histories[key] = np.zeros(0, np.float32)
    return kept


def require_unchanged(folder: Path, kept: Kept, decisions: int, older: str) -> None:
    """Raise `UserError` if a log is not as it was when the checkpoint was made.

    Args:
        folder: of the run.
        kept: its logs.
        decisions: after which the checkpoint was made.
        older: what to do to go on from an older one.
    """
    for name, reason in kept.changed.items():
        raise UserError(
            f"{folder / name} is not as it was when the newest checkpoint was made, after {decisions:,} "
            f"decisions ({reason}); put the former file back, {older}or give --accept_changes True, which "
            "sets it aside and begins it anew"
        )


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, MOST)
    except UserError:
        raise _Changed("it is no plain file, or far too large") from None
    except FileNotFoundError:
        raise _Changed("it is missing") from None
    except OSError as error:
        raise _Changed(f"it can't be read: {error.strerror}") from None


def _metrics(path: Path, state: Mapping[str, Any], decisions: int) -> bytes:
    if not decisions:
        return b""
    content = _read(path)
    if not {"metrics/bytes", "metrics/digest"} <= state.keys():  # a checkpoint of an earlier version
        return _plausible(content, decisions)
    kept = content[: state["metrics/bytes"]]
    if len(kept) < state["metrics/bytes"]:
        raise _Changed(f"it has {len(content):,} bytes, not {state['metrics/bytes']:,} or more")
    if digest_of(kept) != state["metrics/digest"]:
        raise _Changed("its rows are others")
    return kept


def _plausible(content: bytes, decisions: int) -> bytes:
    """Return the rows up to a checkpoint that doesn't know their hash; they must be numbers, in order."""
    try:
        first, *lines = content.decode("utf-8").splitlines()
    except ValueError:
        raise _Changed("it is empty or no text") from None
    header, rows, last = first.split(","), [first], -1.0
    if header[0] != "decisions" or not all(map(COLUMN.fullmatch, header)):
        raise _Changed("its first line has no names of columns")
    for number, line in enumerate(lines, start=2):
        cells = line.split(",")
        try:
            values = [float(cell) for cell in cells]
            right = len(cells) == len(header) and math.isfinite(values[0]) and values[0] >= last
        except ValueError:
            right = False
        if not right and number == len(lines) + 1:
            break  # a row that a kill cut off
        if not right:
            raise _Changed(f"line {number} is no row of numbers in order")
        if values[0] > decisions:
            break
        rows.append(line)
        last = values[0]
    if float(format(decisions, ".9g")) != last:
        raise _Changed("its rows don't reach that far")
    return ("\n".join(rows) + "\n").encode()


def _history(path: Path, key: str, state: Mapping[str, Any]) -> np.ndarray:
    length = state[f"length/{key}"]
    if not length and not path.exists():
        return np.zeros(0, np.float32)
    try:
        found = np.load(io.BytesIO(_read(path)), allow_pickle=False)
    except _Changed:
        raise
    except Exception:  # whatever NumPy stumbles over
        raise _Changed("it is no array") from None
    if not isinstance(found, np.ndarray) or found.dtype != np.float32 or found.ndim != 1:
        raise _Changed("it is no list of numbers in single precision")
    kept = found[:length].copy()
    if len(kept) < length:
        raise _Changed(f"it has {len(kept):,} episodes, not {length:,} or more")
    if digest_of(kept) != state.get(f"digest/{key}", digest_of(kept)):
        raise _Changed("its values are others")
    return kept
