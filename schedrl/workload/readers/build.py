"""From a reader's columns to a `Workload`: the rules that hold for every format.

Nothing negative, infinite or unknown-as-a-number gets through. What can't be a job is rejected with a reason;
what has one meaning only is mended and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.constraints import Allowed, Predecessors
from schedrl.workload.readers.plausible import question_capacity, question_size
from schedrl.workload.readers.rejected import Rejected, work_unit
from schedrl.workload.types import LATEST, Distinct, Resource, Workload


@dataclass
class Columns:
    """Rows [n] as a reader found them; NaN = unknown."""

    line: np.ndarray
    """[n] line numbers."""
    id: np.ndarray
    """[n] text (dtype object), or whole numbers that stand for it."""
    arrival: np.ndarray
    duration: np.ndarray
    demand: np.ndarray
    """[n, R] of one instance."""
    resources: Sequence[Resource]
    time_unit: str = "s"
    times_are_told: bool = False
    """Whether the reader found out in which unit the times are."""
    estimate: np.ndarray | None = None
    instances: np.ndarray | None = None
    priority: np.ndarray | None = None
    deadline: np.ndarray | None = None
    user: np.ndarray | None = None
    recorded_start: np.ndarray | None = None
    recorded_finish: np.ndarray | None = None
    waits_for: np.ndarray | None = None
    """[n] tuples of the ids of the jobs that each waits for; or one number each, NaN = none."""
    dropped: int = 0
    """Pairs that had been dropped before, see `Predecessors`."""
    think: np.ndarray | None = None
    """[n] time between the finish of these and the entry into the queue."""
    allowed: np.ndarray | None = None
    """[n] names or models of the machines that will do, `A|B`; empty: any."""
    capacity: Sequence[float] | None = None
    """[R] of the cluster, where the file says."""
    about: Mapping[str, str] = field(default_factory=dict)
    """What the file says about itself."""
    extra: dict[str, np.ndarray] = field(default_factory=dict)

    def keep(self, good: np.ndarray) -> None:
        """Drop the rows that are not `good` [n]."""
        if good.all():
            return
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(self, name, column[good])
        self.extra = {name: column[good] for name, column in self.extra.items()}

    def reject(self, wrong: np.ndarray, reason: str, rejected: Rejected, values: Any = None) -> None:
        """Reject the rows that are `wrong` [n], with the `values` [n] at fault as details."""
        if wrong.any():
            details = None if values is None else [_shown(value) for value in np.asarray(values)[wrong]]
            rejected.add(reason, self.line[wrong], self.id[wrong], details, measured=True)
            self.lose(wrong, rejected)
            self.keep(~wrong)

    def lose(self, wrong: np.ndarray, rejected: Rejected) -> None:
        """Count the work of the rows that are `wrong` [n], as far as they state it."""
        duration = self.duration[wrong]
        times = np.where((duration >= 0) & (duration <= LATEST), duration, np.nan)
        if self.instances is not None:
            times = times * np.where(self.instances[wrong] >= 1, self.instances[wrong], np.nan)
        demand = self.demand[wrong]
        work = times[:, None] * np.where((demand >= 0) & np.isfinite(demand), demand, np.nan)
        rejected.unmeasured += int(np.isnan(work).all(1).sum())
        for number, resource in enumerate(self.resources):
            rejected.lose(resource.name, work_unit(resource.unit, self.time_unit), work[:, number])


def build(columns: Columns, rejected: Rejected, lenient: bool = False) -> Workload:
    """Apply the rules and return the jobs.

    Args:
        columns: what the reader found; taken apart.
        rejected: collects the rows that are no jobs.
        lenient: of rows with one id and different values keep the first; else they are an error.

    Raises:
        UserError: no job is left, or rows contradict each other.
    """
    question_size(columns, rejected)
    _reject(columns, rejected, ARRIVE_AND_RUN)
    _take_none_where_unstated(columns, rejected)
    _reject(columns, rejected, ASK)
    _forget_what_no_rule_needs(columns, rejected)
    _drop_repeated(columns, rejected, lenient)
    if not len(columns.line):
        advice = "; ".join(rejected.remarks) or "Check the file, its format and its units"
        raise rejected.nothing_left(rejected.source, advice)
    question_capacity(columns, rejected)
    not_handed_on = ("line", "waits_for", "dropped", "think", "allowed", "times_are_told")
    kept = {name: value for name, value in vars(columns).items() if name not in not_handed_on}
    kept["predecessors"] = _predecessors(columns, rejected)
    kept["allowed"] = None if columns.allowed is None else Allowed.parsed(columns.allowed)
    for column in kept.values():
        if isinstance(column, np.ndarray) and column.base is None:
            column.flags.writeable = False  # so that they are taken over, not copied
    return Workload(**kept | {"id": Distinct(columns.id)})


def _reject(columns: Columns, rejected: Rejected, rules: Sequence[Rule]) -> None:
    """Reject the rows that break a rule."""
    for name, reason, rule in rules:
        column = getattr(columns, name)
        if column is not None:
            wrong, shown = rule(column), column
            if reason.endswith("_unknown"):
                shown = _unstated(columns, wrong) if column.ndim == 2 and wrong.any() else None
            columns.reject(wrong, reason, rejected, shown)


def _unstated(columns: Columns, wrong: np.ndarray) -> np.ndarray:
    """Return which resources the rows that are `wrong` [n] don't state, as text [n] object."""
    names = [resource.name for resource in columns.resources]
    said = np.full(len(wrong), "", object)
    for row in np.flatnonzero(wrong):
        lacking = [name for name, no in zip(names, np.isnan(columns.demand[row]), strict=True) if no]
        said[row] = f"{', '.join(lacking)} not stated"
    return said


def _take_none_where_unstated(columns: Columns, rejected: Rejected) -> None:
    """Let a job that doesn't state a resource ask for none of it: one field of one row, and no more.

    A resource that no row states is left out. Nothing runs without a processor, so a row without `cpu` where
    others have it stays as it is, and is rejected; so does one that states nothing.
    """
    unknown = np.isnan(columns.demand)
    if not unknown.any():
        return
    kept = ~unknown.all(0)
    if kept.any() and not kept.all():
        columns.demand, unknown = columns.demand[:, kept], unknown[:, kept]
        columns.resources = [r for r, keep in zip(columns.resources, kept, strict=True) if keep]
        if columns.capacity is not None:
            columns.capacity = [c for c, keep in zip(columns.capacity, kept, strict=True) if keep]
    stated = ~unknown.all(1)
    demand = np.array(columns.demand)
    for number, resource in enumerate(columns.resources):
        none = unknown[:, number] & stated
        if resource.name != "cpu":
            what = f"{resource.name} was not stated, so the job asks for none of it"
            rejected.adjust(what, columns.line[none])
            demand[none, number] = 0.0
    columns.demand = demand


def _forget_what_no_rule_needs(columns: Columns, rejected: Rejected) -> None:
    """Mend what a job can do without."""
    if columns.priority is not None:
        odd = np.isinf(columns.priority)
        rejected.adjust("priority was infinite, so it is 0", columns.line[odd])
        columns.priority = np.where(np.isfinite(columns.priority), columns.priority, 0.0)
    for name in ("estimate", "deadline", "recorded_start", "recorded_finish"):
        column = getattr(columns, name)
        if column is not None:
            odd = ~np.isnan(column) & ~((column >= 0) & (column <= LATEST))
            rejected.adjust(f"{name} was no time, so it is unknown", columns.line[odd])
            setattr(columns, name, np.where(odd, np.nan, column))
    if columns.recorded_start is not None and columns.recorded_finish is not None:
        odd = columns.recorded_finish < columns.recorded_start
        rejected.adjust("recorded_finish was before recorded_start, so it is unknown", columns.line[odd])
        columns.recorded_finish = np.where(odd, np.nan, columns.recorded_finish)
    early = columns.arrival < 0
    rejected.adjust("arrival was before the record began (negative), so it is 0", columns.line[early])
    columns.arrival = np.where(early, 0.0, columns.arrival)


def names_in(texts: np.ndarray, nothing: Collection[str] = ()) -> np.ndarray:
    """Return the names between blanks, commas, semicolons or bars as tuples. [n] object.

    A cell that is one of the words for `nothing` names none.
    """
    split = {
        text: () if text.strip() in nothing else tuple(filter(None, re.split(r"[\s,;|]+", text)))
        for text in set(texts.tolist())
    }
    return np.fromiter((split[text] for text in texts.tolist()), object, len(texts))


def _predecessors(columns: Columns, rejected: Rejected) -> Predecessors | None:
    """Find the jobs that each job waits for among those that are left."""
    waits_for, think = columns.waits_for, columns.think
    if waits_for is None and not columns.dropped:
        return None
    if waits_for is None:
        waits_for = np.full(len(columns.id), np.nan)
    if waits_for.dtype == object:
        counts = np.fromiter(map(len, waits_for.tolist()), np.int64, len(waits_for))
        job = np.repeat(np.arange(len(counts)), counts)
        name = np.array([name for names in waits_for.tolist() for name in names], object)
    else:
        job = np.flatnonzero(~np.isnan(waits_for))
        number = waits_for[job]
        whole = bool((np.abs(number) < 2**53).all() and (number == np.rint(number)).all())
        name = number.astype(np.int64) if whole else np.array([_shown(x) for x in number.tolist()], object)
    if not len(job) and not columns.dropped:
        return None
    pause = np.zeros(len(waits_for)) if think is None else np.where(np.isnan(think), 0.0, think)
    odd = ~((pause >= 0) & (pause <= LATEST))
    rejected.adjust("the think time was no time, so it is 0", columns.line[odd])
    found = Predecessors.named(columns.id, job, name, np.where(odd, 0.0, pause))
    return replace(found, dropped=columns.dropped)


def _blank(ids: np.ndarray) -> np.ndarray:
    if ids.dtype != object:
        return np.zeros(len(ids), bool)
    return ~np.fromiter(map(bool, map(str.strip, ids.tolist())), bool, len(ids))


Rule = tuple[str, str, Callable[[np.ndarray], Any]]
ARRIVE_AND_RUN: tuple[Rule, ...] = (
    ("arrival", "arrival_unknown", np.isnan),
    ("arrival", "not_finite", lambda c: np.abs(c) > LATEST),
    ("duration", "runtime_unknown", np.isnan),
    ("duration", "negative_runtime", lambda c: c < 0),
    ("duration", "not_finite", lambda c: c > LATEST),
)
ASK: tuple[Rule, ...] = (
    ("demand", "demand_unknown", lambda c: np.isnan(c).any(1)),
    ("demand", "negative_demand", lambda c: (c < 0).any(1)),
    ("demand", "not_finite", lambda c: np.isinf(c).any(1)),
    ("demand", "no_demand", lambda c: ~(c > 0).any(1)),
    ("instances", "bad_instances", lambda c: ~((c >= 1) & (c == np.rint(c)) & (c < 2**62))),
    ("id", "id_missing", _blank),
)


def _drop_repeated(columns: Columns, rejected: Rejected, lenient: bool) -> None:
    """Drop repeats of an id; rows that contradict the first of it are an error, unless `lenient`."""
    if columns.id.dtype != object and (columns.id[1:] > columns.id[:-1]).all():
        return
    ids = columns.id.tolist()
    if len(set(ids)) == len(ids):
        return
    first: dict[Any, int] = {}
    wrong: dict[str, list[tuple[int, str]]] = {"exact_repeat": [], "conflict": []}
    for row, name in enumerate(ids):
        origin = first.setdefault(name, row)
        if origin != row:
            difference = _difference(columns, origin, row)
            wrong["conflict" if difference else "exact_repeat"].append((row, difference))
    if wrong["conflict"] and not lenient:
        row, difference = wrong["conflict"][0]
        raise UserError(
            f"{rejected.source}, {rejected.place} {columns.line[row]}: job {ids[row]} is there twice with "
            f"different values ({difference}), {len(wrong['conflict'])} such rows in all; mend the file, or "
            "be lenient to keep the first of each"
        )
    repeated = np.zeros(len(ids), bool)
    for reason, rows in wrong.items():
        if rows:
            at = np.array([row for row, _ in rows])
            details = [text for _, text in rows]
            rejected.add(reason, columns.line[at], columns.id[at], details, measured=True)
            repeated[at] = True
            if reason == "conflict":  # the same job again is no loss
                columns.lose(np.isin(np.arange(len(ids)), at), rejected)
    columns.keep(~repeated)


def _difference(columns: Columns, one: int, other: int) -> str:
    """Say in which fields two rows differ; empty if in none."""
    found = []
    for name, column in {**vars(columns), **columns.extra}.items():
        if name in ("line", "id") or not isinstance(column, np.ndarray):
            continue
        a, b = column[one], column[other]
        if name == "demand":
            pairs = zip(columns.resources, np.asarray(a), np.asarray(b), strict=True)
            found += [f"{r.name} {_shown(x)} and {_shown(y)}" for r, x, y in pairs if x != y]
        elif a != b and not (a != a and b != b):
            found.append(f"{name} {_shown(a)} and {_shown(b)}")
    return ", ".join(found)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return " / ".join(map(_shown, value))
    return repr(float(value)).removesuffix(".0") if isinstance(value, float | np.floating) else str(value)
