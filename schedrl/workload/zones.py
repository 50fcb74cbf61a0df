"""Clocks on the wall: zones by name, local times as seconds since 1970, the clock that a workload has.

A year of local times has an hour that is there twice and one that is left out (PEP 495). Where a text doesn't
tell which of the two is meant, both readings are given, and who knows more of the job chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from schedrl.settings import UserError, nearest

if TYPE_CHECKING:
    import pandas as pd

DAY = 86_400.0
OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)
EPOCH = datetime(1970, 1, 1)
MOMENT = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?([A-Za-z]{3}\s+\d{1,2}\s+\d{1,2}:\d\d:\d\d)(?:\s+\S+)?\s+(\d{4})\s*$"
)
"""A moment as `date` prints it, with or without the name of a zone, which is not unique (IST, CST)."""
EITHER = (
    "a time lies in the hour that a change of the clock repeats, and either reading makes sense; the "
    "earlier is taken"
)
"""What is said of such rows."""
APART = 60.0
"""Seconds by which two statements of one clock may differ."""


def zone_of(name: str) -> tzinfo:
    """Return a zone by its name (`Europe/Berlin`) or its distance from UTC (`+01:00`).

    Raises:
        UserError: there is none.
    """
    offset = OFFSET.fullmatch(name.strip())
    if offset and int(offset[2]) < 24:
        distance = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-distance if offset[1] == "-" else distance)
    if name.strip() in available_timezones():
        return ZoneInfo(name.strip())
    close = nearest(name[:80], sorted(available_timezones())) or ["Europe/Berlin", "America/New_York"]
    raise UserError(
        f"time zone {name[:80]!r} doesn't exist; names are like {', '.join(close)}, or a distance from UTC "
        "such as +01:00"
    )


class Instants(NamedTuple):
    """Seconds since 1970 of local times [n], NaN = unknown."""

    first: np.ndarray
    """The earlier reading."""
    last: np.ndarray
    """The later one; equal to it but in the hour that is there twice."""
    left_out: np.ndarray
    """Whether no clock showed this time: it is read by the clock that was valid until then."""


def instants(clock: pd.Series, zone: tzinfo) -> Instants:
    """Read local times (datetime64 without a zone, NaT = unknown) by the clocks of a zone."""
    sure = clock.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").dt.tz_convert(None)
    first = seconds_since_1970(sure)
    last, left_out = first.copy(), np.zeros(len(first), bool)
    for row in np.flatnonzero((sure.isna() & clock.notna()).to_numpy()):
        moment = clock.iloc[row].to_pydatetime()
        before, after = ((moment.replace(tzinfo=zone, fold=fold)).timestamp() for fold in (0, 1))
        left_out[row] = after < before
        first[row], last[row] = before, max(before, after)
    return Instants(first, last, left_out)


def seconds_since_1970(moments: pd.Series) -> np.ndarray:
    """Return seconds [n] of datetime64 in UTC, NaN where it is NaT."""
    return np.where(moments.isna(), np.nan, moments.dt.as_unit("us").astype("int64").to_numpy() / 1e6)


class Clock(NamedTuple):
    """What clock a workload's time 0 had."""

    start: float
    """Local time at time 0, as if in UTC [s since 1970; only the time of day, where the day isn't stated]."""
    name: str
    """Of the zone, or what the clock is known from."""
    zone: tzinfo | None = None
    """By which clocks change later on; None: they don't."""
    utc: float = 0.0
    """Seconds since 1970 at time 0, where `zone` is known."""

    def hours(self, seconds: np.ndarray) -> np.ndarray:
        """Return hours of the day [n] in [0, 24) at these seconds [n] after time 0."""
        if self.zone is None:
            return (self.start + seconds) / 3600 % 24
        import pandas as pd

        utc = pd.Series(np.rint((self.utc + seconds) * 1e6).astype("int64").astype("datetime64[us]"))
        local = utc.dt.tz_localize("UTC").dt.tz_convert(self.zone).dt.tz_localize(None)
        return seconds_since_1970(local) / 3600 % 24


def clock_of(about: Mapping[str, str]) -> Clock | None:
    """Return the clock that a source states, in the words of SWF's header; None where it states none.

    `TimeZoneString` is what counts, with its changes of the clock; else the local time in `StartTime`; the
    deprecated `TimeZone`, a fixed number of seconds that is wrong in most logs, comes last. None too where
    `TimeZoneString` and `StartTime` contradict each other.
    """
    utc, stated = _number(about.get("UnixStartTime")), _local(about.get("StartTime", ""))
    try:
        zone = zone_of(about["TimeZoneString"])
    except (KeyError, UserError):
        zone = None
    if zone is not None and utc is None and stated is not None:
        utc = stated.replace(tzinfo=zone).timestamp()
    if zone is not None and utc is not None:
        local = datetime.fromtimestamp(utc, zone).replace(tzinfo=None)
        clock = Clock((local - EPOCH).total_seconds(), about["TimeZoneString"].strip(), zone, utc)
        apart = 0.0 if stated is None else (stated - local).total_seconds() % DAY
        return clock if min(apart, DAY - apart) <= APART else None
    if stated is not None:
        return Clock((stated - EPOCH).total_seconds(), "clock of StartTime")
    offset = _number(about.get("TimeZone"))
    if utc is not None and offset is not None:
        return Clock(utc + offset, f"UTC{offset / 3600:+g} h")
    return None


def _number(text: str | None) -> float | None:
    """Return a number of seconds that a calendar can hold."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < 2e11 else None


def _local(text: str) -> datetime | None:
    """Return the local time that a header states, its zone left aside."""
    found = MOMENT.match(text.strip())
    try:
        if found:
            return datetime.strptime(" ".join(f"{found[1]} {found[2]}".split()), "%b %d %H:%M:%S %Y")
        return datetime.fromisoformat(text.strip()[:19])
    except ValueError:
        return None


MOVING, STAYING = ("StartTime", "EndTime", "UnixStartTime"), ("TimeZone", "TimeZoneString")
"""Words of SWF's header about clocks: those that go with time 0, and those that don't."""


def without_clock(about: Mapping[str, str]) -> dict[str, str]:
    """Return what a source states of itself where its times are no times of its clock any more."""
    return {name: text for name, text in about.items() if name not in (*MOVING, *STAYING)}


def shifted(about: Mapping[str, str], by: float) -> dict[str, str]:
    """Return what a source states of itself when time 0 moves `by` seconds later.

    The clock is kept where it can be; texts that said when the record began or ended are left out.
    """
    clock = clock_of(about)
    if clock is None:
        return without_clock(about)
    kept = {name: text for name, text in about.items() if name not in MOVING}
    if clock.zone is not None:
        return kept | {"UnixStartTime": f"{clock.utc + by:.15g}"}
    moment = EPOCH + timedelta(seconds=clock.start + by)
    return kept | {"StartTime": moment.strftime("%a %b %d %H:%M:%S %Y")}
