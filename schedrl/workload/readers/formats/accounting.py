"""Rows of an accounting log that are no jobs: steps, jobs that never ran or have not ended, earlier records.

Slurm's log has a line for every step beside that of its job, which has the whole: counted naively, the work
is two to four times what it was. The rules hold wherever its columns are found, whatever a map names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from schedrl.workload.readers.parsing.cells import MISSING_WORDS, amounts, lengths
from schedrl.workload.readers.rejected import Rejected

if TYPE_CHECKING:
    import pandas as pd

COMMAND = (
    "sacct -a -P -S 2024-01-01 -o "
    "JobID,User,Partition,Submit,Start,End,Elapsed,Timelimit,AllocCPUS,AllocNodes,ReqMem,AllocTRES,State"
)
"""What prints a log that has all that is read."""
IDS = ("JobID", "JobIDRaw")
OWN = frozenset(
    (
        *(
            "submit",
            "eligible",
            "start",
            "end",
            "elapsed",
            "elapsedraw",
            "timelimit",
            "timelimitraw",
            "state",
        ),
        *(
            "alloccpus",
            "ncpus",
            "reqcpus",
            "reqmem",
            "alloctres",
            "reqtres",
            "nnodes",
            "allocnodes",
            "partition",
        ),
        *("cputimeraw", "cputime", "exitcode", "nodelist", "qos", "account", "jobname", "maxrss", "totalcpu"),
    )
)
"""Names that sacct gives its columns, in lower case."""
STEP = r"\d+(?:_\d+)?(?:\+\d+)?\.(?:batch|extern|interactive|\d+(?:\+\d+)?)"
"""Id of a step: of a job, of a task of an array, of a component of a heterogeneous job."""
WAITING = re.compile(r"\d+_\[(.+?)(?:%\d+)?\]")
"""Tasks of an array that were not started yet, which share a line."""
NOT_ENDED = (
    "RUNNING",
    "PENDING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "REQUEUED",
    "RESIZING",
    "STAGE_OUT",
    "SIGNALING",
)


def find(header: Sequence[str], *names: str) -> str:
    """Return the first of `names` that is a column, whatever its case; "" if none is."""
    by_lower = {column.lower(): column for column in reversed(header)}
    return next((by_lower[name.lower()] for name in names if name.lower() in by_lower), "")


def is_slurm(header: Sequence[str]) -> bool:
    """Whether columns are those of sacct: a job id and at least three others that it names so."""
    plain = {name.lower() for name in header}
    return (
        bool(find(header, *IDS)) and len(OWN & plain) >= 3 and bool(OWN & plain - {"start", "end", "state"})
    )


@dataclass(frozen=True)
class Record:
    """Where Slurm's log says what a row is; "" where it doesn't."""

    id: str
    submit: str
    start: str
    end: str
    state: str
    elapsed: str
    cpus: str
    user: str
    nodes: str
    memory: str

    @classmethod
    def of(cls, header: Sequence[str]) -> Record | None:
        """Find the columns; None where the table isn't Slurm's."""
        if not is_slurm(header):
            return None
        return cls(
            id=find(header, *IDS),
            submit=find(header, "Submit"),
            start=find(header, "Start"),
            end=find(header, "End"),
            state=find(header, "State"),
            elapsed=find(header, "ElapsedRaw", "Elapsed"),
            cpus=find(header, "AllocCPUS", "NCPUS"),
            user=find(header, "User"),
            nodes=find(header, "AllocNodes", "NNodes", "ReqNodes"),
            memory=find(header, "ReqMem"),
        )

    @property
    def texts(self) -> set[str]:
        """Columns that have to be read as text."""
        return {name for name in vars(self).values() if name}

    def without_steps(self, table: pd.DataFrame, rejected: Rejected) -> pd.DataFrame:
        """Set the steps aside."""
        step = table[self.id].str.strip().str.fullmatch(STEP).to_numpy(bool)
        if step.any():
            rejected.add("step", table.index[step], table[self.id][step], measured=True)  # no work of its own
            table = table[~step]
        return table

    def length(self, table: pd.DataFrame) -> np.ndarray | None:
        """Return the run times [n] that the log states, if it does."""
        return lengths(table[self.elapsed].to_numpy(), pairs="hms").values if self.elapsed else None

    def with_memory(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with the memory of the whole job [GiB, text] where ReqMem has that of a part."""
        if not self.memory:
            return table
        cpus, nodes = (
            amounts(table[name].to_numpy()).values if name else np.full(len(table), np.nan)
            for name in (self.cpus, self.nodes)
        )
        total = requested_memory(table[self.memory].to_numpy(), cpus, nodes)
        return table.assign(**{self.memory: total.astype(str).astype(object)})

    def texts_of(self, table: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the columns by which `jobs` tells what a row is, as text [n]."""
        return {f"record.{name}": table[column].to_numpy() for name, column in vars(self).items() if column}

    def jobs(self, columns: dict[str, np.ndarray], rejected: Rejected) -> dict[str, np.ndarray]:
        """Return the rows that are jobs which have run to an end; the others are rejected.

        Args:
            columns: field -> values [n], and those of `texts_of`.
            rejected: collects the others.
        """
        texts = {
            name.partition(".")[2]: columns.pop(name) for name in list(columns) if name.startswith("record.")
        }
        ids = np.array([text.strip() for text in texts["id"].tolist()], object)
        state = texts.get("state", np.full(len(ids), "", object))
        earlier = _earlier(ids, texts)
        never, unfinished = self._unlike_jobs(texts, state)
        parts = [_waiting(text) for text in ids[never & ~earlier].tolist()]
        details = [
            " ".join(filter(None, pair)) for pair in zip(state[never & ~earlier].tolist(), parts, strict=True)
        ]
        line = columns["line"]
        rejected.add("earlier_record", line[earlier], ids[earlier], state[earlier])
        rejected.add("never_ran", line[never & ~earlier], ids[never & ~earlier], details, measured=True)
        unfinished &= ~never & ~earlier
        rejected.add("unfinished", line[unfinished], ids[unfinished], state[unfinished])
        good = ~(earlier | never | unfinished)
        return {name: column[good] for name, column in columns.items()}

    def _unlike_jobs(self, texts: dict[str, np.ndarray], state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows [n] were never started, and which have not ended."""
        first = np.array([text.split(" ")[0].rstrip("+").upper() for text in state.tolist()], object)
        never = np.isin(first, ["PENDING"])
        if self.start:
            never |= _blank(texts["start"])
        if self.elapsed and self.cpus:  # cancelled before, and both times are those of the cancelling
            idle = lengths(texts["elapsed"], pairs="hms").values == 0
            never |= idle & np.isin(texts["cpus"], ["0", "0.0"]) & (first == "CANCELLED")
        unfinished = np.isin(first, NOT_ENDED)
        if self.end:
            unfinished |= _blank(texts["end"])
        return never, unfinished


def _blank(texts: np.ndarray) -> np.ndarray:
    return np.array([not text.strip() or text.strip() in MISSING_WORDS for text in texts.tolist()], bool)


def _earlier(ids: np.ndarray, texts: dict[str, np.ndarray]) -> np.ndarray:
    """Return which records [n] another one of the same job follows; equal ones are left to `build`."""
    earlier = np.zeros(len(ids), bool)
    if len(set(ids.tolist())) == len(ids):
        return earlier
    told = [name for name in ("submit", "start", "end", "state", "elapsed", "cpus", "user") if name in texts]
    last: dict[str, int] = {}
    for row, name in enumerate(ids.tolist()):
        other = last.setdefault(name, row)
        same = all(texts[field][row] == texts[field][other] for field in told)
        if other == row or same or ("user" in texts and texts["user"][row] != texts["user"][other]):
            continue
        newer = _when(texts, row) >= _when(texts, other)
        earlier[other if newer else row] = True
        last[name] = row if newer else other
    for row, name in enumerate(ids.tolist()):  # repeats of a record that another one follows
        one = last[name]
        if (
            row != one
            and not earlier[row]
            and ("user" not in texts or texts["user"][row] == texts["user"][one])
        ):
            earlier[row] = any(texts[field][row] != texts[field][one] for field in told)
    return earlier


def _when(texts: dict[str, np.ndarray], row: int) -> tuple[str, str]:
    """Return what orders the records of a job: submission, then start (not yet is last), as text."""
    submit = texts["submit"][row].strip() if "submit" in texts else ""
    start = texts["start"][row].strip() if "start" in texts else ""
    return submit, "~" if not start or start in MISSING_WORDS else start


def _waiting(name: str) -> str:
    """Say how many tasks of an array share a line."""
    found = WAITING.fullmatch(name)
    if not found:
        return ""
    count = 0
    for part in found[1].split(","):
        ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part.strip())
        if not ends:
            return "(tasks of an array)"
        count += len(range(int(ends[1]), int(ends[2] or ends[1]) + 1, int(ends[3] or 1) or 1))
    return f"({count:,} tasks of an array)"


def requested_memory(cells: np.ndarray, cpus: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return ReqMem [n] in GiB of the whole job: `2Gc` is of a processor, `2Gn` of a node; NaN if 0."""
    import pandas as pd

    texts = pd.Series(cells, dtype=object).str.strip()
    per = texts.str.extract(r"[\dKMGTPE]([cn])$")[0]
    size = amounts(
        texts.str.replace(r"[cn]$", "", regex=True).where(per.notna(), texts).to_numpy(), binary=True
    )
    megabytes = texts.str.contains(r"^[\d.]+[cn]?$").to_numpy()  # a number alone counts MB
    total = size.values * np.where(megabytes, 2.0**20, 1.0) / 2.0**30
    total = np.where(
        per == "c", total * cpus, np.where(per == "n", total * np.where(nodes >= 1, nodes, 1.0), total)
    )
    return np.where(total > 0, total, np.nan)
