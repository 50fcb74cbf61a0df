"""The per-job table: one line for each arrived job of each policy, job_completion_time.csv."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from schedrl.evaluation.metrics import arrived, slowdowns
from schedrl.settings import appearing, safe_cell
from schedrl.sim.deeprm.outcome import JobStatus, Outcome

COLUMNS = (
    "job_id", "arrival_time", "start_time", "finish_time", "slowdown", "status", "duration",
    "sequence", "policy",
)  # fmt: skip


def job_rows(outcome: Outcome, policy: str, floor: bool = False) -> Iterator[tuple]:
    """Yield the `COLUMNS` of each arrived job.

    `job_id` counts the arrivals of a sequence; times in steps, -1 where not known; the slowdown of a job that
    isn't finished is its lower bound at the end of the episode, and `status` says so.
    """
    counts, values = arrived(outcome), slowdowns(outcome, floor)
    ids = np.cumsum(counts, axis=1) - 1
    names = {int(code): code.name.lower() for code in JobStatus}
    where = np.nonzero(counts)
    columns = [a[where].tolist() for a in (ids, outcome.arrival, outcome.start, outcome.finish, values)]
    status = [names[code] for code in outcome.status[where].tolist()]
    rest = [outcome.duration[where].tolist(), where[0].tolist()]
    for job, arrival, start, finish, value, state, duration, sequence in zip(
        *columns, status, *rest, strict=True
    ):
        yield job, arrival, start, finish, f"{value:.6g}", state, duration, sequence, policy


def write_jobs(
    path: str | Path, outcomes: Mapping[str, Outcome] | Iterable[tuple[str, Outcome]], floor: bool = False
) -> int:
    """Write the jobs of all policies (label -> outcome), whole or not at all, and return their number."""
    pairs = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
    count = 0
    with appearing(path) as part, open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for label, outcome in pairs:
            for row in job_rows(outcome, safe_cell(label), floor):
                writer.writerow(row)
                count += 1
    return count
