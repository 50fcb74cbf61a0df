"""What a job waits for and where it may run: `Predecessors` and `Allowed`, the typed parts of a `Workload`.

Readers resolve names into numbers of jobs once, here; simulators read arrays. Apart from `types` because both
are ragged: of every job none, one or many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedrl.settings import UserError

ANY = -1
"""Number of the set of a job that any machine will do for."""
LEFT_OUT = {
    "partition": "a partition",
    "queue": "a queue",
    "site": "a site",
    "vc": "a virtual cluster",
    "gpu_type": "a type of GPU",
    "constraints": "features of nodes",
    "constraint": "features of nodes",
    "features": "features of nodes",
    "nodelist": "nodes",
    "node_selector": "labels of nodes",
    "max_instance_per_node": "a limit of instances on one machine",
}
"""Further columns of a workload that say where a job may run and that no rule honours -> what they name."""
FINE, ITSELF, CIRCLE, ABSENT, REJECTED = range(5)
"""Why a job can never enter the queue, see `Predecessors.faults`."""
LONGEST = 1e15
"""The longest think time, in any unit."""


@dataclass(frozen=True, eq=False)
class Predecessors:
    """Jobs that must have finished before each job enters the queue. J jobs, E pairs.

    Raises:
        UserError: on construction, naming the first job that makes no sense.
    """

    offset: np.ndarray
    """[J + 1] the predecessors of job j are `job[offset[j]:offset[j + 1]]`."""
    job: np.ndarray
    """[E] numbers of jobs; -1 - k is the job that the source calls `missing[k]` and doesn't have."""
    think: np.ndarray
    """[J] time from the finish of the last of them to the entry into the queue, in the workload's unit."""
    missing: tuple[str, ...] = ()
    """Names of jobs that are waited for and not there: such jobs are rejected when they arrive."""
    dropped: int = 0
    """Pairs that a selection of jobs broke: what was waited for is not among them and counts as finished."""

    def __post_init__(self) -> None:
        """Convert, validate and freeze."""
        columns: dict[str, np.ndarray] = {
            "offset": np.array(self.offset, np.int64),
            "job": np.array(self.job, np.int64),
            "think": np.array(self.think, np.float64),
        }
        offset, job, think = columns.values()
        count = len(think)
        if len(offset) != count + 1 or offset[0] or offset[-1] != len(job) or (np.diff(offset) < 0).any():
            raise UserError(
                f"offset of {count} jobs must rise from 0 to {len(job)} in {count + 1} numbers; "
                "make predecessors by Predecessors.of"
            )
        for wrong in np.flatnonzero((job >= count) | (job < -len(self.missing)))[:1]:
            raise UserError(f"predecessor {job[wrong]} is no number of a job; they are 0 to {count - 1}")
        if not all(self.missing):
            raise UserError("a job that isn't there has no name; give the name that the source has for it")
        for wrong in np.flatnonzero(~((think >= 0) & (think <= LONGEST)))[:1]:
            raise UserError(
                f"job number {wrong}: think time must be 0 or more, at most {LONGEST:g}, got {think[wrong]}"
            )
        columns["think"][offset[1:] == offset[:-1]] = 0.0
        for name, column in columns.items():
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def of(cls, waits_for: Iterable[Sequence[int]], think: Any = 0.0) -> Predecessors:
        """Make them of a list of numbers for each job; `think` is one time for all or [J]."""
        lists = [np.asarray(numbers, np.int64) for numbers in waits_for]
        offset = np.concatenate([[0], np.cumsum([len(numbers) for numbers in lists])])
        job = np.concatenate(lists) if lists else np.zeros(0, np.int64)
        return cls(offset, job, np.broadcast_to(np.asarray(think, float), len(lists)))

    @classmethod
    def named(cls, ids: np.ndarray, job: np.ndarray, name: np.ndarray, think: np.ndarray) -> Predecessors:
        """Resolve the names of those waited for.

        Args:
            ids: [J] of the jobs, text or whole numbers, each once.
            job: [E] numbers of the jobs that wait, rising.
            name: [E] the ids that they wait for.
            think: [J].
        """
        found = _found(ids, name)
        unknown = np.flatnonzero(found < 0)
        missing: dict[str, int] = {}
        found[unknown] = [-1 - missing.setdefault(str(x), len(missing)) for x in name[unknown].tolist()]
        offset = np.searchsorted(job, np.arange(len(ids) + 1))
        return cls(offset, found, think, tuple(missing))

    def __len__(self) -> int:
        return len(self.think)

    @property
    def waiting(self) -> np.ndarray:
        """[J] whether a job waits for others."""
        return np.diff(self.offset) > 0

    @property
    def waiter(self) -> np.ndarray:
        """[E] the job that waits."""
        return np.repeat(np.arange(len(self)), np.diff(self.offset))

    def take(self, kept: np.ndarray) -> Predecessors:
        """Return those of the jobs `kept` [n] (numbers); pairs with jobs that aren't are dropped."""
        new = np.full(len(self), len(self))
        new[kept] = np.arange(len(kept))
        size = np.diff(self.offset)[kept]
        first = np.concatenate([[0], np.cumsum(size)])
        pairs = np.repeat(self.offset[kept] - first[:-1], size) + np.arange(first[-1])
        job = self.job[pairs]
        number = np.where(job < 0, job, new[job])
        there = number < len(self)
        offset = np.concatenate([[0], np.cumsum(there)])[first]
        dropped = self.dropped + int((~there).sum())
        return Predecessors(offset, number[there], self.think[kept], self.missing, dropped)

    def between(self, first: int, last: int) -> Predecessors:
        """Return those of the jobs from `first` to before `last`, as `take` does."""
        part = slice(self.offset[first], self.offset[last])
        job, size = self.job[part], np.diff(self.offset[first : last + 1])
        there = (job < 0) | ((job >= first) & (job < last))
        kept = np.concatenate([[0], np.cumsum(there)])
        offset = kept[np.concatenate([[0], np.cumsum(size)])]
        number = np.where(job < 0, job, job - first)[there]
        dropped = self.dropped + int((~there).sum())
        return Predecessors(offset, number, self.think[first:last], self.missing, dropped)

    def faults(self, rejected: np.ndarray) -> np.ndarray:
        """Return why each job can never enter the queue, [J]: `FINE`, or else the first that applies.

        `ITSELF`: it waits for itself; `CIRCLE`: for a job that waits for it; `ABSENT`: for one not there;
        `REJECTED`: for one that never runs, for any of these reasons or because it is `rejected` [J]. No
        recursion: a chain may be as long as there are jobs.
        """
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        count, waiter = len(self), self.waiter
        fault = np.full(count, FINE, np.int8)
        there = self.job >= 0
        before, after = self.job[there], waiter[there]
        links = csr_matrix((np.ones(len(before), bool), (before, after)), (count, count))
        _, part = connected_components(links, connection="strong")
        fault[np.bincount(part)[part] > 1] = CIRCLE
        fault[waiter[~there]] = ABSENT
        fault[before[before == after]] = ITSELF
        dead = np.flatnonzero((fault != FINE) | rejected)
        if dead.size:  # what is reached from a node before all of them
            rows, columns = np.append(before, np.full(dead.size, count)), np.append(after, dead)
            links = csr_matrix((np.ones(len(rows), bool), (rows, columns)), (count + 1, count + 1))
            reached = breadth_first_order(links, count, return_predecessors=False)[1:]
            behind = np.zeros(count, bool)
            behind[reached] = True
            behind[dead] = False
            fault[behind] = REJECTED
        return fault

    def times(self, factor: float) -> Predecessors:
        """Return them with another unit of time."""
        return Predecessors(self.offset, self.job, self.think * factor, self.missing, self.dropped)

    def names(self, ids: Sequence[str] | np.ndarray) -> list[list[str]]:
        """Return what each job waits for, by the ids of the jobs. [J]."""
        texts = np.asarray(ids, object)
        named = [texts[j] if j >= 0 else self.missing[-1 - j] for j in self.job.tolist()]
        return [named[a:b] for a, b in zip(self.offset[:-1].tolist(), self.offset[1:].tolist(), strict=True)]

    def same_as(self, other: Predecessors) -> bool:
        """Tell whether both say the same."""
        mine, yours = ((p.offset, np.maximum(p.job, -1), p.think) for p in (self, other))
        equal = all(np.array_equal(a, b) for a, b in zip(mine, yours, strict=True))
        return equal and self.dropped == other.dropped and self._absent() == other._absent()

    def _absent(self) -> list[str]:
        """Return the names of those that aren't there, pair by pair."""
        return [self.missing[-1 - j] for j in self.job[self.job < 0].tolist()]


@dataclass(frozen=True, eq=False)
class Allowed:
    """Machines that will do for each job, by name or model; many jobs share one of a few sets.

    Raises:
        UserError: on construction.
    """

    set_of: np.ndarray
    """[J] place in `sets`, or `ANY`."""
    sets: tuple[tuple[str, ...], ...]
    """Names or models of machines; an empty set allows none."""

    def __post_init__(self) -> None:
        """Convert, validate and freeze."""
        set_of = np.array(self.set_of, np.int64)
        sets = tuple(tuple(map(str.strip, names)) for names in self.sets)
        for wrong in np.flatnonzero((set_of < ANY) | (set_of >= len(sets)))[:1]:
            raise UserError(f"job number {wrong} has the set {set_of[wrong]}; they are 0 to {len(sets) - 1}")
        for name in (name for names in sets for name in names):
            if not name:
                raise UserError("an allowed machine has no name; give names or models, or an empty set")
        set_of.flags.writeable = False
        object.__setattr__(self, "set_of", set_of)
        object.__setattr__(self, "sets", sets)

    @classmethod
    def of(cls, names: Iterable[Sequence[str] | None]) -> Allowed:
        """Make them of names or models for each job, None where any machine will do."""
        sets: dict[tuple[str, ...], int] = {}
        numbers = [ANY if given is None else sets.setdefault(tuple(given), len(sets)) for given in names]
        return cls(np.array(numbers, np.int64), tuple(sets))

    @classmethod
    def parsed(cls, texts: np.ndarray, separator: str = "|") -> Allowed:
        """Read `A|B`; a text that is empty or blank says nothing, one of separators alone allows none."""
        known: dict[str, tuple[str, ...] | None] = {
            text: tuple(unescaped(part.strip()) for part in text.split(separator) if part.strip())
            if text.strip()
            else None
            for text in set(texts.tolist())
        }
        return cls.of([known[text] for text in texts.tolist()])

    def __len__(self) -> int:
        return len(self.set_of)

    @property
    def limited(self) -> np.ndarray:
        """[J] whether not every machine will do."""
        return self.set_of != ANY

    def take(self, kept: np.ndarray) -> Allowed:
        """Return those of some jobs; the sets stay."""
        return Allowed(self.set_of[kept], self.sets)

    def names(self) -> list[tuple[str, ...] | None]:
        """Return the names or models of each job, None where any machine will do. [J]."""
        return [None if number == ANY else self.sets[number] for number in self.set_of.tolist()]

    def on(self, name: np.ndarray, model: np.ndarray) -> np.ndarray | None:
        """Return which machines each set allows, [sets, M]; None where nothing is known of the machines.

        That is where no machine has a model and no set names a machine.

        Args:
            name: [M] of the machines.
            model: [M], empty = none or not stated.
        """
        wanted = {label for labels in self.sets for label in labels}
        if not any(model.tolist()) and wanted and wanted.isdisjoint(name.tolist()):
            return None
        found = np.zeros((len(self.sets), len(name)), bool)
        for row, labels in zip(found, self.sets, strict=True):
            row[:] = np.isin(model.astype(str), labels) & (model != "") if labels else False
            row |= np.isin(name.astype(str), labels) if labels else False
        return found

    def same_as(self, other: Allowed) -> bool:
        """Tell whether both say the same of every job."""
        return self.names() == other.names()


def _found(ids: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return the number of the job of each name, -1 where there is none. [E]."""
    if ids.dtype != object and names.dtype.kind in "iu":
        order = np.argsort(ids, kind="stable")
        place = np.minimum(np.searchsorted(ids[order], names), len(ids) - 1)
        return np.where(ids[order][place] == names, order[place], -1)
    number = {str(name): j for j, name in enumerate(ids.tolist())}
    return np.array([number.get(str(name), -1) for name in names.tolist()], np.int64)


def escaped(name: str) -> str:
    """Return a name without blanks and bars, for lists of names in one field of a file."""
    return re.sub(r"[\s%|\x00-\x1f\x7f]", lambda sign: f"%{ord(sign[0]):x};", name)


def unescaped(text: str) -> str:
    """Return the name that `escaped` made this of."""
    return re.sub(r"%([0-9a-f]{1,6});", lambda sign: chr(int(sign[1], 16)), text)
