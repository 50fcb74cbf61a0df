"""The per-job table of clusters, job_completion_time.csv: one line for each job of each policy."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.evaluation.cluster.metrics import bounded_slowdowns, reason_of
from schedrl.settings import printable, safe_cell
from schedrl.sim.cluster.schedule import REJECTED, STATUS, Schedule

COLUMNS = (
    "policy", "sequence", "job_id", "user", "priority", "arrival_time", "start_time", "finish_time", "wait",
    "duration", "bounded_slowdown", "status", "reason", "restarts", "instances", "machines",
    "entered_time",
)  # fmt: skip


class JobsFile:
    """Writes schedules one after another, so that only one is held at a time.

    The file appears whole when the `with` is over, or not at all.

    Args:
        path: of the CSV.
        tau: of the bounded slowdown, in the workloads' unit of time.
        safe: keep spreadsheets from taking ids, users and names of machines for formulas.
    """

    def __init__(self, path: str | Path, tau: float, safe: bool = True) -> None:
        self._tau, self._path = tau, Path(path)
        self._text = safe_cell if safe else printable
        self._part = self._path.with_name(f".{self._path.name}.part")
        self._file = open(self._part, "w", newline="", encoding="utf-8")  # noqa: SIM115 (closed by __exit__)
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def __enter__(self) -> JobsFile:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self._file.close()
            if kind is None:
                self._part.replace(self._path)
        finally:
            self._part.unlink(missing_ok=True)

    def add(self, policy: str, schedule: Schedule, sequence: int = 0) -> None:
        """Write a line for each job; what is not known is empty, between machines stand semicolons."""
        jobs, placed = schedule.workload, schedule.placed
        names = list(map(str, schedule.machines.name))
        where = [
            self._text(";".join(names[m] for m in placed.machine[first:last].tolist() if m >= 0))
            for first, last in zip(placed.offset[:-1].tolist(), placed.offset[1:].tolist(), strict=True)
        ]
        columns = [
            list(map(self._text, jobs.id.tolist())),
            list(map(self._text, np.asarray(jobs.user).tolist())),
            _texts(jobs.priority),
            _texts(jobs.arrival),
            _texts(schedule.start),
            _texts(schedule.finish),
            _texts(schedule.start - schedule.came),
            _texts(jobs.duration),
            _texts(bounded_slowdowns(schedule, self._tau)),
            [STATUS[code] for code in schedule.status.tolist()],
            _reasons(schedule),
            schedule.restarts.tolist(),
            np.asarray(jobs.instances).tolist(),
            where,
            _texts(schedule.came),
        ]
        self._writer.writerows((self._text(policy), sequence, *row) for row in zip(*columns, strict=True))


def _reasons(schedule: Schedule) -> list[str]:
    codes = zip(schedule.status.tolist(), schedule.reject_reason.tolist(), strict=True)
    return [reason_of(code) if status == REJECTED else "" for status, code in codes]


def _texts(values: Any) -> list[str]:
    return [f"{value:.10g}" if value == value else "" for value in np.asarray(values).tolist()]
