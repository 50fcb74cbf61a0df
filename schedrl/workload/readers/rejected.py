"""`Rejected`: the rows of a file that did not become jobs, each with line number and reason.

Nothing is left out in silence: a reader adds here whatever it does not pass on, and counts under `adjusted`
what it changed by rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from schedrl.settings import UserError, counted

if TYPE_CHECKING:
    from schedrl.workload.types import Workload

REASONS = {
    "not_numeric": "a field that must be a number is none",
    "not_finite": "a number is infinite, or a time beyond 1e15",
    "unclosed_quote": "a quote opens in it and isn't closed, so where the row ends can't be told",
    "unreadable": "it can't be parsed, such as a field of over 131,072 characters",
    "no_object": "an entry is not the JSON object that belongs there",
    "too_few_fields": "the row ends before its last needed field",
    "too_many_fields": "the row has more fields than the format",
    "arrival_unknown": "no time of arrival",
    "runtime_unknown": "no run time, so there is nothing to replay",
    "negative_runtime": "the run time is negative",
    "demand_unknown": "a demand is not stated",
    "negative_demand": "a demand is negative",
    "no_demand": "it asks for no resource at all",
    "bad_instances": "the number of instances is not a whole number of 1 or more",
    "id_missing": "it has no id",
    "exact_repeat": "the same job again, equal in everything",
    "conflict": "the same id again with other values; the first is kept",
    "partial_execution": "a part of a job (SWF status 2, 3, 4), not a job",
    "pre_trace": "it was there before the record began, so its arrival is not known",
    "never_ran": "it was never started: it waits, or was cancelled before",
    "step": "a part of a job (a step of Slurm, such as 123.batch), whose line has the whole",
    "earlier_record": "an earlier record of a job that was requeued or resized; the last one is the job",
    "unfinished": "it was still running when the record ended, so its run time is not known",
    "alloc_set": "it holds room for jobs, and is none (Google 2019)",
    "too_large": "it does not fit the cluster",
    "waits_for_rejected": "it waits for a job that does not fit the cluster, or can never run",
}
"""reason -> what it means. Readers may have reasons of their own: `Rejected.explain`."""


class RejectedRow(NamedTuple):
    """One row that is no job."""

    line: int
    """Number of its line in the file, from 1; of its entry, where the file has no lines."""
    reason: str
    """A key of `REASONS`, or one that the format's documentation explains."""
    id: str = ""
    """The job's id, if known."""
    detail: str = ""
    """The value that was wrong."""


class Rejected:
    """Rows that are no jobs, sorted by line; `len`, iteration and `counts`.

    Args:
        source: name of the file, for messages.
        strict: raise on the first row instead of collecting it.
        place: what `line` counts: lines of the file, or numbers of jobs that are no rows of a file.
    """

    def __init__(self, source: str = "", strict: bool = False, place: str = "line") -> None:
        self.source = source
        self.place = place
        self.strict = strict
        self._rows: list[RejectedRow] = []
        self.adjusted: Counter[str] = Counter()
        """What was changed by rule -> how many rows."""
        self.lost: dict[str, float] = {}
        """Resource -> work of rejected rows, amount x time in the units of the workload."""
        self.lost_units: dict[str, str] = {}
        """Resource -> unit of that."""
        self.unmeasured = 0
        """Rejected rows of which the work is not known."""
        self.remarks: list[str] = []
        """What a result rests on besides: how the file was read, where it doesn't say so itself."""

    def add(
        self,
        reason: str,
        lines: Any,
        ids: Iterable[str] | None = None,
        details: Iterable[Any] | None = None,
        *,
        measured: bool = False,
    ) -> None:
        """Add the rows at `lines` [n] for one `reason`, with their ids [n] and details [n] where known.

        `measured`: their work is told by `lose`, or they are no loss.

        Raises:
            UserError: there is one, and `strict` is on.
        """
        numbers = np.atleast_1d(np.asarray(lines, np.int64)).tolist()
        texts = [""] * len(numbers) if ids is None else [str(text) for text in ids]
        values = [""] * len(numbers) if details is None else [str(value) for value in details]
        rows = [RejectedRow(n, reason, i, d) for n, i, d in zip(numbers, texts, values, strict=True)]
        if self.strict and rows:
            raise UserError(f"{self._place(min(rows))}; mend the file or leave out strict")
        self._rows += rows
        self.unmeasured += 0 if measured else len(rows)

    def lose(self, resource: str, unit: str, work: np.ndarray) -> None:
        """Count the `work` [n] of rejected rows, NaN where it isn't known, in `unit`, core-seconds say."""
        self.lost[resource] = self.lost.get(resource, 0.0) + float(np.nansum(work))
        self.lost_units[resource] = unit

    def adjust(self, what: str, lines: Any) -> None:
        """Count rows that were changed by a rule.

        Raises:
            UserError: there is one, and `strict` is on.
        """
        numbers = np.atleast_1d(np.asarray(lines, np.int64))
        if self.strict and len(numbers):
            raise UserError(
                f"{self.source}, {self.place} {numbers.min()}: {what}; mend the file or leave out strict"
            )
        if len(numbers):
            self.adjusted[what] += len(numbers)

    def remark(self, text: str) -> None:
        """Say something about the file as a whole, once; no reason to refuse it."""
        if text not in self.remarks:
            self.remarks.append(text)

    def _place(self, row: RejectedRow) -> str:
        return f"{self.source}, {self.place} {self._told(row)}"

    @staticmethod
    def _told(row: RejectedRow) -> str:
        about = f" ({', '.join(filter(None, (row.id and f'job {row.id}', row.detail)))})"
        return f"{row.line}: {row.reason}{about if about != ' ()' else ''}"

    @property
    def counts(self) -> dict[str, int]:
        """Return reason -> number of rows, the most frequent first."""
        return dict(Counter(row.reason for row in self._rows).most_common())

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RejectedRow]:
        return iter(sorted(self._rows))

    def work_lines(self, workload: Workload | None = None) -> list[str]:
        """Return what was lost in work, and the share of it where the jobs that were kept are given."""
        if not len(self) or not (self.lost or self.unmeasured):
            return []
        kept = {} if workload is None else work_of(workload)
        parts = []
        for name, work in self.lost.items():
            whole = work + kept.get(name, 0.0)
            share = f" ({work / whole:.2%} of what is stated)" if name in kept and whole > 0 else ""
            parts.append(f"{work:,.6g} {self.lost_units[name]} of {name}{share}")
        unknown = f"of {counted(self.unmeasured, 'row')} the work is not known" * (self.unmeasured > 0)
        return [f"lost with them: {'; '.join(filter(None, [*parts, unknown]))}"]

    def lines(self, workload: Workload | None = None) -> list[str]:
        """Return what a result rests on besides the jobs: what was rejected, lost, changed and told."""
        lost = [self.summary(), *self.work_lines(workload)] if len(self) else []
        changed = [f"{counted(count, 'row')}: {what}" for what, count in self.adjusted.items()]
        return lost + changed + [f"note: {remark}" for remark in self.remarks]

    def nothing_left(self, path: object, advice: str = "") -> UserError:
        """Return the error that a file holds no jobs: how many rows are none, why, and the first of them."""
        first = f". The first: {self.place} {self._told(min(self._rows))}" if self._rows else ""
        return UserError(
            f"{path}: no jobs; {self.summary()}{first}. {advice or 'Check the file and its format'}"
        )

    def summary(self) -> str:
        """Return one line: how many, and why."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.counts.items())
        return f"{counted(len(self), 'row')} rejected" + (f": {reasons}" if reasons else "")


def work_unit(unit: str, time_unit: str) -> str:
    """Return the name of an amount x a time: core-seconds, GB-seconds."""
    single = {"cores": "core", "processors": "core", "gpus": "gpu", "units": "unit"}.get(unit, unit)
    times = {"s": "seconds", "h": "hours", "d": "days", "min": "minutes", "step": "steps"}
    return f"{single}-{times.get(time_unit, time_unit)}"


def work_of(workload: Workload) -> dict[str, float]:
    """Return resource -> amount x time that the jobs ask for."""
    total = (np.asarray(workload.instances) * workload.duration) @ workload.demand
    return {resource.name: float(work) for resource, work in zip(workload.resources, total, strict=True)}
