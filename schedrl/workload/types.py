"""`Workload`: a list of jobs as a struct of arrays, the one form in which jobs enter the library.

Generators and trace readers make it, simulators read it. It is validated where it is made, so that nothing
negative, non-finite or empty of meaning gets further, and it cannot be changed afterwards.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.constraints import Allowed, Predecessors

UNKNOWN = np.nan
"""What `estimate`, `deadline`, `recorded_start` and `recorded_finish` hold where nothing is known."""
LATEST = 1e15
"""The largest time, in any unit: up to here times keep a digit behind the point."""


NUMBERS = (
    "arrival",
    "duration",
    "demand",
    "estimate",
    "instances",
    "priority",
    "deadline",
    "recorded_start",
    "recorded_finish",
)


class Resource(NamedTuple):
    """A resource that jobs demand and clusters have."""

    name: str
    unit: str = "units"


class Distinct(NamedTuple):
    """Ids that were looked at already: text, none blank, none twice. A million are not looked at again."""

    ids: np.ndarray


class Texts:
    """An attribute that is an array of text; whole numbers that stand for it stay so until it is read.

    A million Python strings take longer to make than the file they come from takes to read.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return None
        column = vars(instance)[self._name]
        if isinstance(column, np.ndarray) and column.dtype != object:
            column = vars(instance)[self._name] = _texts(self._name, list(map(str, column.tolist())))
            column.flags.writeable = False
        return column

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._name] = value


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs sorted by arrival; jobs that arrive together keep the order in which they were given.

    J jobs, R resources. Lists are taken too; every array is a read-only copy. Two workloads are told apart by
    `same_as`, not by `==`.

    Raises:
        UserError: on construction, naming job, value and remedy.
    """

    arrival: np.ndarray
    """[J] time at which the job is submitted, in `time_unit`; 0 or more."""
    duration: np.ndarray
    """[J] run time, in `time_unit`; 0 is legal."""
    demand: np.ndarray
    """[J, R] demand of one instance, in the unit of each resource; fractions allowed, not all 0."""
    resources: Sequence[Resource] = (Resource("cpu"), Resource("memory"))
    """R names and units; a plain name is taken too."""
    time_unit: str = "step"
    estimate: np.ndarray | None = None
    """[J] run time the user asked for; `UNKNOWN` where not stated, see `estimate_or_duration`."""
    instances: np.ndarray | None = None
    """[J] gang size: that many instances start and end together; 1 or more, default 1."""
    priority: np.ndarray | None = None
    """[J] larger = more important; any finite number, default 0."""
    deadline: np.ndarray | None = None
    """[J] time by which the job should finish; `UNKNOWN` = none."""
    user: Sequence[str] | np.ndarray | None = None
    """[J] opaque text, default empty = unknown."""
    id: Any = Texts()
    """[J] opaque text, unique and never changed; default the number in the given order. An array of whole
    numbers stands for their text."""
    recorded_start: np.ndarray | None = None
    """[J] start in the trace; `UNKNOWN` where it has none."""
    recorded_finish: np.ndarray | None = None
    """[J] finish in the trace; `UNKNOWN` where it has none."""
    capacity: Sequence[float] | np.ndarray | None = None
    """[R] what the cluster has that the jobs were recorded on or made for; `UNKNOWN` where not stated."""
    predecessors: Predecessors | None = None
    """Jobs that must have finished before each job enters the queue; None: no job waits for another."""
    allowed: Allowed | None = None
    """Machines that will do for each job; None: every machine will."""
    about: Mapping[str, str] = field(default_factory=dict)
    """What the source says about itself, key -> text."""
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Further columns [J] of a trace, each of one type."""

    def __post_init__(self) -> None:
        """Convert, validate, sort and freeze."""
        resources = tuple(Resource(r) if isinstance(r, str) else Resource(*r) for r in self.resources)
        names = [r.name for r in resources]
        if not names or not all(names) or len(set(names)) < len(names) or not self.time_unit:
            raise UserError(f"resources and time_unit need distinct, non-empty names, got {names}")
        if not len(self.arrival):
            raise UserError("no jobs: a workload holds at least one; check the file or the filter")
        columns = self._columns(len(resources))
        _check_columns(columns, given=self._to_check())
        columns["instances"] = columns["instances"].astype(np.int64)
        extra = {name: _extra_column(name, c, len(self.arrival)) for name, c in self.extra.items()}
        arrival = columns["arrival"]
        order = None if (arrival[1:] >= arrival[:-1]).all() else np.argsort(arrival, kind="stable")
        for held in (columns, extra):
            for name, column in held.items():
                held[name] = column if order is None else column[order]
                held[name].flags.writeable = False
        for name, value in (columns | {"resources": resources} | self._parts(order)).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "capacity", _capacity(self.capacity, len(resources)))
        object.__setattr__(self, "about", MappingProxyType(dict(self.about)))
        object.__setattr__(self, "extra", MappingProxyType(extra))

    def _parts(self, order: np.ndarray | None) -> dict[str, Any]:
        """Return predecessors and allowed machines in the order of the jobs, None where they say nothing."""
        parts: dict[str, Any] = {"predecessors": self.predecessors, "allowed": self.allowed}
        for name, part in parts.items():
            if part is not None and len(part) != len(self.arrival):
                raise UserError(f"{name} is of {len(part)} jobs, there are {len(self.arrival)}; give all")
            if part is not None and order is not None:
                parts[name] = part.take(order)
        if self.predecessors is not None and not (len(self.predecessors.job) or self.predecessors.dropped):
            parts["predecessors"] = None
        if self.allowed is not None and not self.allowed.limited.any():
            parts["allowed"] = None
        return parts

    def _to_check(self) -> list[str]:
        """List the columns that were given and not looked at."""
        held = vars(self)
        return [n for n in (*NUMBERS, "id") if held[n] is not None and not isinstance(held[n], Distinct)]

    def _columns(self, num_resources: int) -> dict[str, np.ndarray]:
        """Bring every column to its type and its shape, defaults filled in."""
        count = len(self.arrival)
        defaults = {"instances": 1.0, "priority": 0.0}
        columns = {}
        for name in NUMBERS:
            given = getattr(self, name)
            missing = given is None
            columns[name] = _same(defaults.get(name, UNKNOWN), count) if missing else _numbers(name, given)
        columns["user"] = _same("", count) if self.user is None else _texts("user", self.user)
        ids = vars(self)["id"]
        if ids is None:
            columns["id"] = np.arange(count)
        elif isinstance(ids, Distinct):
            columns["id"] = ids.ids
        else:
            whole = isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"
            columns["id"] = ids.copy() if whole else _texts("id", ids)
        for name, column in columns.items():
            shape = (count, num_resources) if name == "demand" else (count,)
            if column.shape != shape:
                raise UserError(f"{name} has shape {list(column.shape)}, expected {list(shape)}")
        return columns

    def __len__(self) -> int:
        return len(self.arrival)

    @property
    def estimate_or_duration(self) -> np.ndarray:
        """[J] the estimate, or the duration where there is none: what a rule that needs one reads."""
        estimate = np.asarray(self.estimate)
        return np.where(np.isnan(estimate), self.duration, estimate)

    def take(self, index: np.ndarray | slice) -> "Workload":
        """Return some of the jobs; `index` as for an array of jobs.

        A predecessor that is not among them counts as finished (`Predecessors.dropped`).
        """
        kept = {f.name: vars(self)[f.name] for f in fields(self)}
        for name in (*NUMBERS, "user", "id"):
            kept[name] = vars(self)[name][index]
        kept["extra"] = {name: column[index] for name, column in self.extra.items()}
        for name in ("predecessors", "allowed"):
            if kept[name] is not None:
                kept[name] = kept[name].take(np.arange(len(self))[index])
        return Workload(**kept)

    def on(self, capacity: Sequence[float] | np.ndarray) -> "Workload":
        """Return the same jobs with another `capacity` [R]."""
        return self._with(capacity=capacity)

    def estimated(self, estimate: Sequence[float] | np.ndarray | None) -> "Workload":
        """Return the same jobs with other estimates [J]; None: `UNKNOWN` for all."""
        return self._with(estimate=estimate)

    def _with(self, **changes: Any) -> "Workload":
        held = {f.name: vars(self)[f.name] for f in fields(self)}
        return Workload(**held | {"id": Distinct(held["id"])} | changes)

    def same_as(self, other: "Workload") -> bool:
        """Tell whether both hold the same jobs, names and columns; unknown equals unknown."""
        if set(self.extra) != set(other.extra):
            return False
        mine, yours = dict(vars(self)), dict(vars(other))
        if mine["id"].dtype != yours["id"].dtype:
            mine["id"], yours["id"] = self.id, other.id
        pairs = [(mine[f.name], yours[f.name]) for f in fields(self)[:-1]]
        pairs += [(self.extra[name], other.extra[name]) for name in self.extra]
        return all(_equal(a, b) for a, b in pairs)

    def load(
        self, capacity: Sequence[float] | np.ndarray | float | None = None, span: float | None = None
    ) -> np.ndarray:
        """Return the work that arrives per unit of time, over the work the cluster can do. [R], 1 = 100 %.

        Args:
            capacity: R amounts in the units of `demand`, or one for all; default the workload's own, with
                `UNKNOWN` for a resource of which it isn't known.
            span: length of the time in which the jobs arrive, in `time_unit`. By default J times the mean
                gap between arrivals, as if one more gap closed the record.

        Raises:
            UserError: a capacity of 0 or less, or no span and fewer than two arrival times.
        """
        room = np.asarray(self.capacity if capacity is None else capacity, float)
        if (room <= 0).any():
            raise UserError(f"capacity must be above 0, got {capacity}")
        if span is None and len(self) > 1:
            span = (self.arrival[-1] - self.arrival[0]) * len(self) / (len(self) - 1)
        if not span or not span > 0:
            raise UserError(f"the load of {len(self)} jobs at one moment is not defined; pass span above 0")
        work = (np.asarray(self.instances) * self.duration) @ self.demand
        return work / (span * room)


def _same(value: float | str, count: int) -> np.ndarray:
    """One value for all jobs; takes no room, a million jobs have many columns that nobody filled in."""
    return np.broadcast_to(np.array(value, object if isinstance(value, str) else np.float64), count)


def _numbers(name: str, values: Any) -> np.ndarray:
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and _is_final(values):
        return values
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} must be numbers: {error}") from None


def _is_final(values: np.ndarray) -> bool:
    """Whether nobody can change the array any more, so that it needs no copy."""
    return not values.flags.writeable and (values.base is None or values.strides == (0,))


def _texts(name: str, values: Iterable[str]) -> np.ndarray:
    """Keep text as it is: Python objects, because a NumPy string array drops trailing NULs and pads."""
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if set(map(type, items)) - {str}:
        item = next(item for item in items if type(item) is not str)
        raise UserError(f"{name} is text, got {item!r}; write str(...)")
    column = np.empty(len(items), dtype=object)
    column[:] = items
    return column


def _capacity(given: Any, num_resources: int) -> np.ndarray:
    capacity = _numbers("capacity", np.full(num_resources, UNKNOWN) if given is None else given)
    if capacity.shape != (num_resources,) or (np.isinf(capacity) | (capacity <= 0)).any():
        raise UserError(
            f"capacity is {capacity.tolist()}; give {num_resources} finite amounts above 0, or UNKNOWN"
        )
    capacity.flags.writeable = False
    return capacity


def _extra_column(name: str, values: Any, num_jobs: int) -> np.ndarray:
    column = np.array(values)
    if not name or hasattr(Workload, name) or name in Workload.__dataclass_fields__:
        raise UserError(f"extra column {name!r} needs a name of its own; rename it")
    if column.ndim == 0 or len(column) != num_jobs:
        raise UserError(f"extra column {name!r} has shape {list(column.shape)}, expected {num_jobs} rows")
    return column


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Predecessors):
        return isinstance(b, Predecessors) and a.same_as(b)
    if isinstance(a, Allowed):
        return isinstance(b, Allowed) and a.same_as(b)
    if not isinstance(a, np.ndarray):
        return bool(a == b)
    numbers = a.dtype.kind == "f" and np.asarray(b).dtype.kind == "f"
    return np.array_equal(a, b, equal_nan=numbers)


def _check_columns(columns: dict[str, np.ndarray], given: Sequence[str]) -> None:
    """Refuse the first job that makes no sense; only the columns that were `given` need a look."""
    rules: list[tuple[str, Callable[[np.ndarray], Any], str]] = [
        ("arrival", lambda c: (c >= 0) & (c <= LATEST), f"must be 0 or more, at most {LATEST:g}"),
        ("duration", lambda c: (c >= 0) & (c <= LATEST), f"must be 0 or more, at most {LATEST:g}"),
        ("demand", lambda c: (np.isfinite(c) & (c >= 0)).all(1), "must be finite and 0 or more"),
        ("demand", lambda c: (c > 0).any(1), "must be above 0 in at least one resource"),
        ("estimate", _unknown_or_not_negative, "must be 0 or more, or UNKNOWN"),
        ("instances", lambda c: np.isfinite(c) & (c >= 1) & (c == np.rint(c)), "must be whole and 1 or more"),
        ("priority", np.isfinite, "must be finite"),
        ("deadline", _unknown_or_not_negative, "must be 0 or more, or UNKNOWN"),
        ("recorded_start", _unknown_or_not_negative, "must be 0 or more, or UNKNOWN"),
        ("recorded_finish", _unknown_or_not_negative, "must be 0 or more, or UNKNOWN"),
        ("id", _not_empty, "must not be empty"),
        ("id", _first_of_its_name, "is not unique; drop the repeated job"),
    ]
    for name, good, rule in rules:
        if name not in given:
            continue
        wrong = np.flatnonzero(~good(columns[name]))
        if wrong.size:
            job, value = int(wrong[0]), columns[name][wrong[0]]
            shown = value.tolist() if isinstance(value, np.ndarray) else value
            raise UserError(f"job {str(columns['id'][job])!r} (number {job}): {name} {rule}, got {shown}")
    started, finished = columns["recorded_start"], columns["recorded_finish"]
    backwards = np.flatnonzero(finished < started)
    if backwards.size:
        job = int(backwards[0])
        raise UserError(
            f"job {str(columns['id'][job])!r} (number {job}): recorded_finish {finished[job]:g} is before "
            f"recorded_start {started[job]:g}"
        )


def _unknown_or_not_negative(column: np.ndarray) -> np.ndarray:
    return np.isnan(column) | (np.isfinite(column) & (column >= 0))


def _not_empty(column: np.ndarray) -> np.ndarray:
    if column.dtype != object:
        return np.ones(len(column), bool)
    return np.fromiter(map(bool, map(str.strip, column.tolist())), bool, len(column))


def _first_of_its_name(column: np.ndarray) -> np.ndarray:
    if column.dtype != object and (column[1:] > column[:-1]).all():
        return np.ones(len(column), bool)
    ids = column.tolist()
    if len(set(ids)) == len(ids):
        return np.ones(len(ids), bool)
    first = {text: number for number, text in reversed(list(enumerate(ids)))}
    good = np.zeros(len(ids), bool)
    good[list(first.values())] = True
    return good
