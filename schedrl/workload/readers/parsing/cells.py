"""Cells of a table that are text and stand for numbers: lengths of time, moments, amounts with a suffix.

Every function takes an object array of text [n] and returns float64 [n], NaN = unknown, beside which cells
are something else [n].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from schedrl.workload.readers.parsing.table import MISSING, number
from schedrl.workload.zones import instants, seconds_since_1970

if TYPE_CHECKING:
    from datetime import tzinfo

    import pandas as pd

UNKNOWN_WORDS = (
    *("Unknown", "None", "UNLIMITED", "Partition_Limit", "INVALID", "unlimited"),
    *("unknown", "none", "N/A", "n/a", "-", "--", "NONE", "UNKNOWN"),
)
"""What accounting logs write where there is no time, no limit or no amount."""
MISSING_WORDS = frozenset({*MISSING, *UNKNOWN_WORDS} - {"", " "})

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
LENGTH = r"(?:(\d+)(?:-|\s*days?,?\s+))?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)"
"""`D-HH:MM:SS`, `HH:MM:SS`, `MM:SS.mmm`, and `1 day, 2:00:00` as Python prints it."""
OFFSET = r"[T ]\d\d.*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
"""A moment with a distance from UTC at its end."""
DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:?\d\d.*)?"
WRITTEN = ("%a %b %d %H:%M:%S %Y", "%b %d %H:%M:%S %Y")
"""How C, LSF and PBS print a moment."""

EPOCHS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
EPOCH_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""Unit in which clocks count from 1970 -> how many are a second."""
FIRST, LATEST = 6.3e8, 4.2e9
"""Seconds since 1970 of 1990 and 2103: between them lie the moments of a log, whatever the unit."""

DECIMAL = {letter: 1000.0**power for power, letter in enumerate(("", "K", "M", "G", "T", "P", "E"))}
BINARY = {letter: 1024.0**power for power, letter in enumerate(("", "K", "M", "G", "T", "P", "E"))}


class Cells(NamedTuple):
    """What cells state."""

    values: np.ndarray
    bad: np.ndarray


class Moments(NamedTuple):
    """What cells state of moments, in seconds since 1970."""

    first: np.ndarray
    last: np.ndarray
    """Later reading, see `zones.Instants`."""
    bad: np.ndarray
    local: np.ndarray
    """Whether it is a local time, without a distance from UTC."""
    left_out: np.ndarray


def lengths(cells: np.ndarray, factor: float = 1.0, *, pairs: str = "") -> Cells:
    """Read lengths of time [s].

    Args:
        cells: text [n].
        factor: what a plain number is worth [s].
        pairs: "hms" reads `12:30` as minutes and seconds, "hm" as hours and minutes; else it is neither.
    """
    texts, numbers, known = _plain(cells)
    found = texts.str.extract(f"^{LENGTH}$")
    parts = [found[n].astype(float) for n in range(4)]
    days, hours, minutes, seconds = (part.fillna(0.0).to_numpy() for part in parts)
    stated = found[3].notna().to_numpy()
    pair = stated & found[1].isna().to_numpy()
    whole = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if pairs == "hm":
        whole = np.where(pair, days * 86400 + minutes * 3600 + seconds * 60, whole)
    if not pairs:
        stated = stated & ~pair
    values = np.where(stated, whole, numbers * factor)
    return Cells(values, known & np.isnan(values))


def moments(cells: np.ndarray, zone: tzinfo, written: str = "") -> Moments:
    """Read moments: ISO 8601, what C prints, numbers that count from 1970 in any unit.

    Args:
        cells: text [n].
        zone: of those that don't say how far from UTC they are.
        written: how they are written, as for `strptime`, where they are in no form that can be told.
    """
    import pandas as pd

    texts, numbers, known = _plain(cells)
    numbers = epoch_seconds(numbers)[0]
    numbers = np.where((numbers >= FIRST) & (numbers <= LATEST), numbers, np.nan)
    offset = texts.str.contains(OFFSET).to_numpy() if not written else np.zeros(len(texts), bool)
    open_ = known & np.isnan(numbers)
    first = np.where(known, numbers, np.nan)
    first[offset & open_] = seconds_since_1970(
        pd.to_datetime(texts[offset & open_], format="ISO8601", utc=True, errors="coerce").dt.tz_convert(None)
    )
    local = open_ & ~offset
    clock = _clock(texts[local], written)
    readings = instants(clock, zone)
    last, left_out = first.copy(), np.zeros(len(first), bool)
    first[local], last[local], left_out[local] = readings
    last = np.where(offset, first, last)
    return Moments(first, last, known & np.isnan(first), local & ~np.isnan(first), left_out)


def _clock(texts: pd.Series, written: str) -> pd.Series:
    """Return local times as datetime64, NaT where they are none."""
    import pandas as pd

    if written:
        return pd.to_datetime(texts, format=written, errors="coerce").astype("datetime64[us]")
    clock = pd.to_datetime(texts.where(texts.str.match(DATE)), format="ISO8601", errors="coerce")
    clock = clock.astype("datetime64[us]")
    for form in WRITTEN:
        rest = clock.isna().to_numpy()
        if not rest.any():
            break
        other = pd.to_datetime(texts[rest].str.replace(r"\s+", " ", regex=True), format=form, errors="coerce")
        clock[rest] = other.astype("datetime64[us]")
    return clock


def amounts(cells: np.ndarray, *, binary: bool = False) -> Cells:
    """Read amounts with a suffix: bytes of `16G`, `2Gi`, `512 MB`, parts of one of `500m`, `50%`.

    Args:
        cells: text [n].
        binary: whether a letter alone is a power of 1,024, as in Slurm's and LSF's logs; else of 1,000.
    """
    texts, numbers, known = _plain(cells)
    found = texts.str.extract(rf"^({NUMBER})\s*(?:([kKMGTPE])(i?)(B?)|(B)|(m)|(%))$")
    letters = found[1].fillna("").str.upper()
    powers = letters.map(BINARY).where((found[2] == "i") | binary, letters.map(DECIMAL)).to_numpy(float)
    powers = np.where(found[5].notna(), 1e-3, np.where(found[6].notna(), 1e-2, powers))
    values = np.where(found[0].notna(), found[0].astype(float).to_numpy() * powers, numbers)
    return Cells(values, known & np.isnan(values))


def has_suffix(cells: np.ndarray) -> np.ndarray:
    """Whether cells [n] are amounts of bytes with a suffix, so that their unit is known."""
    import pandas as pd

    return pd.Series(cells, dtype=object).str.match(rf"^\s*{NUMBER}\s*(?:[kKMGTPE]i?B?|B)\s*$").to_numpy(bool)


def epoch_seconds(values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return times [n] in seconds, and the unit in which they count from 1970: "" where they don't.

    The unit is told by the size: seconds of our time are 1e9, milliseconds 1e12, and so on, a thousand times
    apart, so none is taken for another. Half of the times decide, as some may be 0 or damaged.
    """
    known = values[np.isfinite(values) & (values != 0)]
    for unit, parts in EPOCHS.items():
        if known.size and 2 * ((known >= FIRST * parts) & (known <= LATEST * parts)).sum() >= known.size:
            return (values / parts if unit != "s" else values), unit
    return values, ""


def out_of_place(seconds: np.ndarray) -> np.ndarray:
    """Return which times [n] can't be seconds since 1970 of a log: 0, or of another size. NaN is none."""
    return ~np.isnan(seconds) & ~((seconds >= FIRST) & (seconds <= LATEST))


def _plain(cells: np.ndarray) -> tuple[pd.Series, np.ndarray, np.ndarray]:
    """Return cells without blanks around them, the numbers that they are, and whether they state anything."""
    import pandas as pd

    texts = pd.Series(cells, dtype=object).str.strip()
    known = ~(texts.isin(MISSING_WORDS) | (texts == "")).to_numpy()
    stated = [number(text) for text in texts.tolist()]
    numbers = np.array([np.nan if value is None else value for value in stated], float)
    return texts, np.where(known, numbers, np.nan), known
