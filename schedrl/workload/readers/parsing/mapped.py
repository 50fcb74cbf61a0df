"""Columns of a table that a name or a map makes fields of jobs: what their cells are worth.

Numbers are read at once. Text that stands for a number (a date, `1-02:00:00`, `16G`) is read by `cells`;
which columns hold such text is told by the unit in the map, or by the first rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from schedrl.settings import UserError, counted
from schedrl.workload.readers.parsing.cells import (
    DATE,
    EPOCH_WORDS,
    EPOCHS,
    LENGTH,
    Moments,
    amounts,
    epoch_seconds,
    has_suffix,
    lengths,
    moments,
    out_of_place,
)
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.units import SECONDS, amount, seconds
from schedrl.workload.zones import EITHER, zone_of

if TYPE_CHECKING:
    import pandas as pd

MOMENTS = ("arrival", "recorded_start", "recorded_finish", "deadline")
LENGTHS = ("duration", "estimate", "think")
TIMES = (*MOMENTS, *LENGTHS)
TEXTS = ("id", "user", "waits_for", "allowed")
PLAIN = ("instances", "priority")
"""Numbers without a unit."""
PAIRS = ("hms", "hm")
DATES = re.compile(r"[A-Za-z]{3}\s+(?:[A-Za-z]{3}\s+)?\d{1,2}\s+\d\d:\d\d:\d\d\s+\d{4}")
SUFFIXED = r"[-+.\d]+(?:e\d+)?\s*([kKMGTPE]i?B?|B|m|%)"
LARGE = {"memory": 16384.0, "gpu": 16.0, "cpu": 1024.0}
"""Resource -> what half of the jobs of no cluster ask for more of, in GB, devices and cores."""
OTHERWISE = {"memory": "MB", "gpu": "percent", "cpu": "milli"}


@dataclass(frozen=True)
class Mapped:
    """Where a field comes from."""

    column: str
    unit: str = ""
    text: bool = False
    """Whether its cells are text such as `16G` or `1-02:00:00` beside numbers."""

    @classmethod
    def of(cls, text: str) -> Mapped:
        """Read `column` or `column[unit]`."""
        column, bracket, unit = text.rstrip().removesuffix("]").rpartition("[")
        return (
            cls(column.strip(), unit.strip())
            if bracket and text.rstrip().endswith("]")
            else cls(text.strip())
        )

    @property
    def is_calendar(self) -> bool:
        """Whether it holds moments of a calendar: `iso`, `iso:ZONE`, or how they are written (`%d.%m.%Y`)."""
        return self.unit.partition(":")[0] == "iso" or "%" in self.unit

    @property
    def zone(self) -> str:
        """Name of its own zone, "" if none."""
        return self.unit.partition(":")[2] if self.unit.startswith("iso:") else ""

    def check(self, name: str) -> None:
        """Refuse a unit that the field can't have.

        Raises:
            UserError: it is no unit of time.
        """
        if self.zone:
            zone_of(self.zone)
        if name in LENGTHS and self.is_calendar:
            raise UserError(
                f"{name} is a length of time, {self.column}[{self.unit}] are moments; map start and finish"
            )
        if name in TIMES and self.unit not in ("", *PAIRS) and not self.is_calendar:
            seconds(self.unit)


def seen(
    mapped: Mapping[str, Mapped], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> dict[str, Mapped]:
    """Return the map with what the first rows show where it names no unit: dates, or text for numbers.

    Args:
        mapped: field -> column.
        header: names of the columns.
        rows: the first rows.
    """
    shown = {}
    for name, m in mapped.items():
        place = header.index(m.column)
        texts = [row[place] for row in rows if place < len(row)]
        if name in TEXTS or m.unit and (name in TIMES or name in PLAIN):
            shown[name] = m
        elif name in MOMENTS and any(re.fullmatch(DATE, text) or DATES.fullmatch(text) for text in texts):
            shown[name] = Mapped(m.column, "iso")
        else:
            form = LENGTH if name in LENGTHS else SUFFIXED if name not in (*TIMES, *PLAIN) else ""
            text = bool(form) and any(re.fullmatch(form, text) for text in texts)
            shown[name] = Mapped(m.column, m.unit, m.text or text)
    return shown


def spared(mapped: Mapping[str, Mapped]) -> set[str]:
    """Return the fields that no rule needs, so that what is no number there rejects no row."""
    times = ("recorded_start", "recorded_finish") if "duration" in mapped else ()
    return {"estimate", "priority", "deadline", *times} & set(mapped)


class Conversion:
    """Brings tables of text and numbers to seconds and the units used here, block by block.

    Args:
        mapped: field or resource -> column, as `seen` returns it.
        rejected: collects rows whose cells are no numbers, and remarks.
        time_zone: of local times; "": they are taken as UTC, and that is said.

    Raises:
        UserError: no such zone, or a unit that a field can't have.
    """

    def __init__(self, mapped: Mapping[str, Mapped], rejected: Rejected, time_zone: str = "") -> None:
        self.mapped = mapped
        self.rejected = rejected
        self.time_zone = time_zone
        for name, m in mapped.items():
            m.check(name)
        self._zone = zone_of(time_zone or "UTC")
        self.local = 0
        """Rows with a local time whose zone nobody named."""
        self.zones = {m.zone for m in mapped.values() if m.zone} | ({time_zone} - {""})
        self.settled = 0
        self.backwards = 0
        """Rows that end up to an hour before they start, by local times."""
        self.epochs: dict[str, str] = {}
        """Column -> unit in which it counts from 1970."""
        self.misplaced: dict[str, list[int]] = {}
        """Column -> lines in which such a time has another size than most."""

    @property
    def texts(self) -> set[str]:
        """Columns that hold text."""
        return {
            m.column
            for name, m in self.mapped.items()
            if name in TEXTS or m.is_calendar or m.unit in PAIRS or m.text
        }

    def columns(
        self, table: pd.DataFrame, length: np.ndarray | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return field -> values [n], and which rows [n] could be read; the others are rejected.

        Args:
            table: some rows.
            length: run times [n] that are known besides, to tell which of two readings of a clock is meant.
        """
        found: dict[str, np.ndarray] = {"line": table.index.to_numpy()}
        calendar: dict[str, Moments] = {}
        wrong = np.zeros(len(table), bool)
        for name, m in self.mapped.items():
            cells = table[m.column].to_numpy()
            if name in TEXTS:
                found[name] = cells
                continue
            bad = np.zeros(len(cells), bool)
            if name in MOMENTS and m.is_calendar:
                calendar[name] = self._moments(m, cells)
                found[name], bad = calendar[name].first, calendar[name].bad
            else:
                found[name], bad = self._numbers(name, m, cells)
                if m.column in self.epochs:
                    lines = table.index[out_of_place(found[name])].tolist()
                    self.misplaced.setdefault(m.column, []).extend(lines)
            if name in spared(self.mapped):
                self.rejected.adjust(f"{m.column} was no number, so it is unknown", table.index[bad])
                found[name] = np.where(bad, np.nan, found[name])
                bad = np.zeros_like(bad)
            fresh = bad & ~wrong
            self.rejected.add(
                "not_numeric",
                table.index[fresh],
                self._ids(table, fresh),
                [f"{m.column} is {text!r}" for text in cells[fresh]],
            )
            wrong |= bad
        self._settle(found, calendar, found.get("duration", length))
        if "duration" not in found:
            found["duration"] = found["recorded_finish"] - found["recorded_start"]
        self._hint(found, calendar)
        return found, ~wrong

    def _ids(self, table: pd.DataFrame, rows: np.ndarray) -> list[str] | None:
        return table[self.mapped["id"].column].to_numpy()[rows].tolist() if "id" in self.mapped else None

    def _moments(self, m: Mapped, cells: np.ndarray) -> Moments:
        zone = zone_of(m.zone) if m.zone else self._zone
        read = moments(cells, zone, m.unit if "%" in m.unit else "")
        self.local += 0 if m.zone or self.time_zone else int(read.local.sum())
        return read

    def _numbers(self, name: str, m: Mapped, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers [n] in seconds or the unit used here, and which cells are none [n]."""
        unit = m.unit
        none = np.zeros(len(cells), bool)
        if name in TIMES:
            parts = EPOCHS.get(unit, 0.0)
            factor = 1.0 if unit in ("", *PAIRS) else SECONDS[unit]
            if cells.dtype == object:
                values, none = lengths(cells, factor, pairs=unit if unit in PAIRS else "")
            else:  # divided, not multiplied, so that 1500 ms are what 1.5 s are
                values = cells / parts if parts else cells * factor if factor != 1 else cells
            if name in MOMENTS and unit == "":
                values, counts = epoch_seconds(values)
                if counts:
                    self.epochs[m.column] = counts
            return values, none
        if name in PLAIN:
            return amounts(cells) if cells.dtype == object else (cells, none)
        factor, kept = amount(name, unit)
        if cells.dtype != object:
            return (cells * factor if factor != 1 else cells), none
        read = amounts(cells, binary="i" in kept)
        bytes_ = has_suffix(cells)
        return np.where(
            bytes_, read.values / (2.0**30 if "i" in kept else 1e9), read.values * factor
        ), read.bad

    def _settle(
        self, found: dict[str, np.ndarray], calendar: Mapping[str, Moments], length: np.ndarray | None
    ) -> None:
        """Choose between two readings of a time in the hour that is there twice: ends come after starts."""
        names = [name for name in MOMENTS if name in calendar]
        twice = np.zeros(len(found["line"]), bool)
        for name in names:
            twice |= calendar[name].last > calendar[name].first
            self.rejected.adjust(
                "a time lies in the hour that a change of the clock leaves out; the clock before it is taken",
                found["line"][calendar[name].left_out],
            )
        either = []
        for row in np.flatnonzero(twice):
            readings = [sorted({float(calendar[n].first[row]), float(calendar[n].last[row])}) for n in names]
            known = np.nan if length is None else float(length[row])
            ranked = sorted(
                (_oddity(dict(zip(names, times, strict=True)), known), times) for times in product(*readings)
            )
            for name, value in zip(names, ranked[0][1], strict=True):
                found[name][row] = value
            if ranked[0][0] == ranked[1][0]:
                either.append(found["line"][row])
            else:
                self.settled += 1
        self.rejected.adjust(EITHER, either)

    def _hint(self, found: dict[str, np.ndarray], calendar: Mapping[str, Moments]) -> None:
        if self.zones or not {"recorded_start", "recorded_finish"} & set(calendar):
            return
        early = (found["duration"] < 0) & (found["duration"] >= -3600)
        self.backwards += int(early.sum())

    def about(self) -> dict[str, str]:
        """Say what was told from the cells, and return what clock the times have in words of SWF's header."""
        say = self.rejected.remark
        if self.local:
            ends = (
                f" (rows that end up to an hour before they start: {self.backwards:,})"
                if self.backwards
                else ""
            )
            say(
                "times have no zone, so they are taken as UTC: lengths are an hour wrong over a change of "
                f"the clock{ends}; name it: --time_zone Europe/Berlin, or COLUMN[iso:Europe/Berlin] in a map"
            )
        if self.settled:
            say(
                f"rows with a time in the hour that a change of the clock repeats: {self.settled:,} settled, "
                "because only one reading makes sense (a job ends after it starts)"
            )
        for column, unit in self.epochs.items():
            scaled = (
                "" if unit == "s" else f", read as {column}[{unit}]; write {column}[s] if they are seconds"
            )
            say(f"{column} counts {EPOCH_WORDS[unit]} since 1970, by the size of its numbers{scaled}")
            if lines := self.misplaced[column]:
                say(
                    f"{column} is 0 or of another size in {counted(len(lines), 'row')} (first in line "
                    f"{lines[0]}), which lies years from the others; mend or leave out such rows"
                )
        calendar = any(m.is_calendar for m in self.mapped.values())
        if not calendar and not self.epochs:
            if self.time_zone:
                raise UserError(
                    f"time_zone is {self.time_zone!r}, and no column holds times of a calendar; leave it out"
                )
            return {}
        zone = self.time_zone or self.mapped["arrival"].zone or "UTC"
        return {"UnixStartTime": "0", "TimeZoneString": zone}


def _oddity(times: Mapping[str, float], length: float) -> tuple[int, float]:
    """Return how little sense a reading makes: times out of order, distance from the run time."""
    arrival, start, finish = (times.get(name, np.nan) for name in MOMENTS[:3])
    off = abs(finish - start - length)
    return (start < arrival) + (finish < start) + (finish < arrival), 0.0 if np.isnan(off) else off


def question(name: str, unit: str, demand: np.ndarray, rejected: Rejected) -> None:
    """Question the unit of a resource if half of the jobs ask for more than any machine has."""
    if not unit and name in LARGE and demand.size and 2 * (demand > LARGE[name]).sum() > demand.size:
        other = OTHERWISE[name]
        rejected.remark(
            f"half of the jobs ask for more than {LARGE[name]:,.0f} {amount(name, '')[1]} of {name}; if the "
            f"column is in {other}, write {name}=COLUMN[{other}]"
        )
