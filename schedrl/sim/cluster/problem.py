"""What is to be simulated, as plain arrays: jobs, machines, events and the rule, in whole micro-units.

Both the kernel and `reference.py` read it. `prepare` is the only way to make one: it refuses what makes no
sense; jobs that can never run get the number of a reason in `reject` and are rejected when they arrive.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schedrl.settings import UserError, one_of
from schedrl.workload.constraints import Predecessors
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

from .devices import MOST, ONE
from .orders import ORDERS, STATIC
from .placements import PLACEMENTS
from .rule import DEFAULT, DISCIPLINES, Hold, Rule, parse

NO_LIMIT = 1 << 62
REASONS = (
    "",
    "asks for a resource that no machine has",
    "asks for more than a device but not for whole ones",
    "one instance is larger than every machine",
    "its instances fit one by one, but not all at once, on the empty cluster",
    "no machine has a model or name that it allows",
    "it does not fit on the machines that it allows",
    "it waits for itself",
    "it waits for a job that waits for it (a circle)",
    "it waits for a job that is not there",
    "it waits for a job that is rejected",
    "it waits for a job that failed",
)
"""What the numbers in `reject_reason` mean."""
FITS, NO_SUCH_RESOURCE, NOT_WHOLE, TOO_LARGE, GANG_TOO_LARGE, NONE_ALLOWED, TOO_LARGE_THERE = range(7)
BY_FAULT = np.array([FITS, 7, 8, 9, 10])
"""Number of the reason of each fault of `Predecessors.faults`."""
AFTER_REJECTED, AFTER_FAILED = 10, 11
MOST_TYPICAL = 64
NUMBERS = Hold()


class MachineEvents(NamedTuple):
    """When machines go down and come up again; at equal times up comes before down."""

    time: Sequence[float] | np.ndarray
    machine: Sequence[int] | np.ndarray
    up: Sequence[bool] | np.ndarray


class Problem(NamedTuple):
    """J jobs, M machines, R resources, E events; amounts in micro-units, times as in the workload."""

    arrival: np.ndarray  # [J]
    duration: np.ndarray  # [J]
    estimate: np.ndarray  # [J] the duration where the workload has none
    demand: np.ndarray  # [J, R] of one instance
    offset: np.ndarray  # [J + 1] number of the first instance; none of jobs that can never run
    procs: np.ndarray  # [J] instances x demand of the first resource, in its unit
    priority: np.ndarray  # [J]
    user: np.ndarray  # [J] number of the user
    reject: np.ndarray  # [J] a number of REASONS
    set_of: np.ndarray  # [J] row of `permitted`; [0] where every job may run everywhere
    permitted: np.ndarray  # [K, M] whether a job may run there, in the first row all; [0, M] as above
    left: np.ndarray  # [J] how many jobs it waits for; [0] where no job waits for another, as the next three
    think: np.ndarray  # [J] time from their last finish to the entry into the queue
    after_first: np.ndarray  # [J + 1] jobs that wait for job j: after[after_first[j]:after_first[j + 1]]
    after: np.ndarray  # [E]
    capacity: np.ndarray  # [R, M]
    total: np.ndarray  # [R] float64, of all machines
    largest: np.ndarray  # [R] of any machine, 1 where none has any
    devices: np.ndarray  # [M] how many
    typical: np.ndarray  # [P, R + 1] demand and share of all jobs; only for fgd
    event_time: np.ndarray  # [E]
    event_machine: np.ndarray  # [E]
    event_up: np.ndarray  # [E]
    g: int  # the resource that is made of devices, -1 if none is
    order: int
    static: bool  # whether scores of waiting jobs stay
    shares: bool  # whether they depend on what each user has
    placement: int
    discipline: int
    window: int
    until: float
    requeue: bool
    aging_time: float
    epoch: float
    hold: Hold


def prepare(
    workload: Workload,
    machines: Machines,
    rule: str | Rule = DEFAULT,
    *,
    window: int | None = None,
    events: MachineEvents | None = None,
    until: float | None = None,
    on_down: str = "requeue",
    aging_time: float = 60.0,
    epoch: float | None = None,
    hold: Hold = NUMBERS,
    device: str = "gpu",
) -> Problem:
    """Bring a workload, machines and a rule into the form that the simulators read.

    Args:
        workload: the jobs.
        machines: the cluster; resources are matched with the workload's by name.
        rule: as `schedrl.sim.cluster.rule.parse` takes it.
        window: how many jobs of the queue, in its order, are looked at; None: all.
        events: machines going down and coming up.
        until: time at which the run is cut; None: it ends when nothing is left to happen.
        on_down: what becomes of jobs on a machine that goes down, "requeue" (they start anew) or "fail".
        aging_time: of orders that age, in the workload's unit of time.
        hold: numbers of the discipline of that name.
        epoch: time from which F1 to F4 count arrivals; None: the first arrival.
        device: the resource that is made of devices, if machines have it in whole numbers.

    Raises:
        UserError: a value out of range, or amounts beyond what can be added up exactly.
    """
    chosen = parse(rule) if isinstance(rule, str) else rule
    at_least("window", window, 1)
    at_least("until", until, 0)
    if not (np.isfinite(aging_time) and aging_time > 0):
        raise UserError(f"aging_time is {aging_time}; it must be finite and above 0")
    one_of("on_down", on_down, ("requeue", "fail"))
    names = [r.name for r in machines.resources]
    names += [r.name for r in workload.resources if r.name not in names]
    capacity = micro("capacity", _columns(machines.capacity, machines.resources, names)).T.copy()
    g = names.index(device) if device in names else -1
    if g >= 0 and ((capacity[g] % ONE).any() or not capacity[g].any()):
        g = -1
    asked = _columns(workload.demand, workload.resources, names)
    if g >= 0:
        asked[:, g] = whole_shares(asked[:, g])
    demand = micro("demand", asked)
    devices = capacity[g] // ONE if g >= 0 else np.zeros(len(machines), np.int64)
    if devices.max() > MOST:
        raise UserError(f"a machine has {devices.max()} of {device}; at most {MOST} can be told apart")
    when, which, up = _events(events, len(machines))
    typical = _typical(demand) if chosen.placement == "fgd" else np.zeros((0, len(names) + 1))
    return Problem(
        **_jobs(workload, demand, capacity, g, permissions(workload, machines)),
        **links(workload.predecessors),
        capacity=capacity,
        total=capacity.sum(1).astype(np.float64),
        largest=np.maximum(capacity.max(1), 1),
        devices=devices,
        typical=typical,
        event_time=when,
        event_machine=which,
        event_up=up,
        g=g,
        order=ORDERS[chosen.order],
        static=chosen.order in STATIC,
        shares=chosen.order == "drf",
        placement=PLACEMENTS[chosen.placement],
        discipline=DISCIPLINES[chosen.discipline],
        window=1 if chosen.discipline == "strict" else min(int(window or NO_LIMIT), NO_LIMIT),
        until=np.inf if until is None else float(until),
        requeue=on_down == "requeue",
        aging_time=float(aging_time),
        hold=_checked(hold),
        epoch=float(workload.arrival[0] if epoch is None else epoch),
    )


def at_least(name: str, value: float | None, low: float) -> None:
    """Refuse a value below `low`; None will do.

    Raises:
        UserError: it is below.
    """
    if value is not None and not value >= low:
        raise UserError(f"{name} is {value}; it must be at least {low}, or None")


def micro(name: str, amounts: np.ndarray) -> np.ndarray:
    """Return amounts in whole micro-units.

    Raises:
        UserError: their sum over a column is more than can be counted.
    """
    most = float(amounts.sum(0).max())
    if amounts.shape[0] and (amounts.max() if name == "demand" else most) * ONE > NO_LIMIT:
        raise UserError(f"{name} sums up to {most:g}; use a larger unit, exact sums end at 4e12")
    return np.rint(amounts * ONE).astype(np.int64)


def whole_shares(amounts: np.ndarray) -> np.ndarray:
    """Return amounts of devices [J] of which equal shares add up to a device, whatever they are rounded to.

    A share of a device is rounded down to a whole micro-unit: what adds up to a device or less fits into one.
    Where k equal shares exceed a device by less than 0.0005 (0.1667 six times), each is taken for 1/k; so
    amounts in thousandths of a device, the finest that traces have, stay as they are.
    """
    shares = (amounts > 0) & (amounts < 1)
    count = np.rint(1.0 / np.where(shares, amounts, 1.0))
    over = count * amounts - 1.0
    exact = np.where((over > 0) & (over < 0.0005) & (count < ONE), 1.0 / count, amounts)
    noise = 1e-3  # micro-units: what floating point adds to a decimal number
    return np.where(shares, np.maximum(np.floor(exact * ONE + noise), 1.0) / ONE, amounts)


def _checked(hold: Hold) -> Hold:
    if not (np.isfinite(hold).all() and hold.long_from > 0 and min(hold) >= 0):
        raise UserError(f"hold is {tuple(hold)}; long_from must be above 0, keep and slope 0 or more")
    return Hold._make(map(float, hold))


def permissions(workload: Workload, machines: Machines) -> dict[str, np.ndarray]:
    """Return `set_of` and `permitted`, both empty where every job may run everywhere."""
    allowed = workload.allowed
    found = None if allowed is None else allowed.on(machines.name, machines.model)
    if allowed is None or found is None:
        return {"set_of": np.zeros(0, np.int64), "permitted": np.zeros((0, len(machines)), bool)}
    everywhere = np.ones((1, len(machines)), bool)
    return {"set_of": allowed.set_of + 1, "permitted": np.concatenate([everywhere, found])}


def links(waits_for: Predecessors | None) -> dict[str, np.ndarray]:
    """Return `left`, `think`, `after_first` and `after`, all empty where no job waits for another."""
    if waits_for is None or not len(waits_for.job):
        none = np.zeros(0, np.int64)
        return {"left": none, "think": np.zeros(0), "after_first": none, "after": none}
    order = np.argsort(waits_for.job, kind="stable")
    order = order[waits_for.job[order] >= 0]
    return {
        "left": np.diff(waits_for.offset),
        "think": waits_for.think,
        "after_first": np.searchsorted(waits_for.job[order], np.arange(len(waits_for) + 1)),
        "after": waits_for.waiter[order],
    }


def own_reasons(reject: np.ndarray) -> np.ndarray:
    """Return the reasons [J] without those that lie in what a job waits for."""
    return np.where(reject > TOO_LARGE_THERE, FITS, reject)


def with_faults(waits_for: Predecessors | None, reject: np.ndarray) -> np.ndarray:
    """Return the reasons [J] with those of jobs that can never enter the queue, for what they wait for."""
    if waits_for is None:
        return reject
    own = own_reasons(reject)
    return np.where(own > FITS, own, BY_FAULT[waits_for.faults(own > FITS)])


def _jobs(
    workload: Workload, demand: np.ndarray, capacity: np.ndarray, g: int, where: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the fields of a problem that belong to jobs; `where` they may run is among them."""
    instances = np.asarray(workload.instances)
    reject = with_faults(workload.predecessors, _rejects(demand, instances, capacity, g, **where))
    columns = where | {
        "arrival": workload.arrival,
        "duration": workload.duration,
        "estimate": workload.estimate_or_duration,
        "demand": demand,
        "offset": np.concatenate([[0], np.cumsum(np.where(reject == FITS, instances, 0))]),
        "procs": instances * demand[:, 0] / ONE,
        "priority": np.asarray(workload.priority, np.float64),
        "user": _users(np.asarray(workload.user)),
        "reject": reject,
    }
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _columns(amounts: np.ndarray, resources: Sequence, names: list[str]) -> np.ndarray:
    """Put columns in the order of `names`; 0 of a resource that they don't have."""
    wide = np.zeros((len(amounts), len(names)))
    for column, resource in enumerate(resources):
        wide[:, names.index(resource.name)] = amounts[:, column]
    return wide


def _users(user: np.ndarray) -> np.ndarray:
    if user.strides == (0,):  # nobody filled the column in
        return np.zeros(len(user), np.int64)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in user.tolist()], np.int64)


def _events(events: MachineEvents | None, num_machines: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if events is None:
        return np.zeros(0), np.zeros(0, np.int64), np.zeros(0, bool)
    when, which = np.asarray(events.time, np.float64), np.asarray(events.machine)
    up = np.asarray(events.up, bool)
    if not (when.shape == which.shape == up.shape and when.ndim == 1):
        raise UserError(
            f"events have {when.size} times, {which.size} machines, {up.size} states; give one each"
        )
    if which.dtype.kind not in "iu" and which.size:
        raise UserError(f"machines of events are numbers from 0 on, got {which[0]!r}")
    for wrong in np.flatnonzero(~((which >= 0) & (which < num_machines) & np.isfinite(when) & (when >= 0)))[
        :1
    ]:
        raise UserError(
            f"event {wrong} is at time {when[wrong]} on machine {which[wrong]}; "
            f"times are 0 or more, machines 0 to {num_machines - 1}"
        )
    order = np.lexsort((~up, when))
    return when[order], which[order].astype(np.int64), up[order]


def _rejects(
    demand: np.ndarray,
    instances: np.ndarray,
    capacity: np.ndarray,
    g: int,
    set_of: np.ndarray,
    permitted: np.ndarray,
) -> np.ndarray:
    """Find the jobs that fit on no cluster of these machines, however empty. [J] numbers of REASONS."""
    reject = _unfit(demand, instances, capacity, g)
    for number in np.unique(set_of[set_of > 0]).tolist():
        jobs, there = np.flatnonzero((set_of == number) & (reject == FITS)), permitted[number]
        if not there.any():
            reject[jobs] = NONE_ALLOWED
        elif jobs.size:
            unfit = _unfit(demand[jobs], instances[jobs], capacity[:, there], g) > FITS
            reject[jobs[unfit]] = TOO_LARGE_THERE
    return reject


def _unfit(demand: np.ndarray, instances: np.ndarray, capacity: np.ndarray, g: int) -> np.ndarray:
    """Find the jobs that fit on no cluster of machines that they may all run on. [J]."""
    kinds, count = np.unique(capacity, axis=1, return_counts=True)
    room = np.zeros(len(demand), np.int64)
    for kind, number in zip(kinds.T, count, strict=True):
        room += number * _room(demand, kind, g)
    reject = np.where(room < instances, GANG_TOO_LARGE, FITS)
    reject[room == 0] = TOO_LARGE
    if g >= 0:
        reject[(demand[:, g] > ONE) & (demand[:, g] % ONE > 0)] = NOT_WHOLE
    reject[(demand[:, capacity.max(1) == 0] > 0).any(1)] = NO_SUCH_RESOURCE
    return reject


def _room(demand: np.ndarray, kind: np.ndarray, g: int) -> np.ndarray:
    """Return how many instances of each job one empty machine holds. [J]."""
    room = np.full(len(demand), 1 << 31, np.int64)
    for r, has in enumerate(kind):
        amount = np.maximum(demand[:, r], 1)
        times = has // amount
        if r == g:
            shared = np.minimum(amount, ONE)
            times = np.where(amount <= ONE, has // ONE * (ONE // shared), has // amount)
        room = np.where(demand[:, r] > 0, np.minimum(room, times), room)
    return room


def _typical(demand: np.ndarray) -> np.ndarray:
    """Return the most frequent demands and how often they occur among these."""
    rows, count = np.unique(demand, axis=0, return_counts=True)
    most = np.argsort(-count, kind="stable")[:MOST_TYPICAL]
    return np.column_stack([rows[most], count[most] / count[most].sum()])
