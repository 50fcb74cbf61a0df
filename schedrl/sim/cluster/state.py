"""One run as a handful of arrays, which the compiled functions read and change.

Few arrays with many columns, not one array for each thing: every array in the arguments costs compile time in
every function. J jobs, I instances, M machines, D devices, R resources, E machine events. Batches have the
same arrays with a leading axis.
"""

from typing import NamedTuple

import numpy as np

from .devices import ONE
from .problem import Problem
from .rule import CONSERVATIVE, PLANNING
from .tree import NONE, new_tree, steps_of

# Columns of `jobs` [J, ...]; those from JOB_AT on are lists, as long as a counter says.
JOB_COLUMNS = 16
USER, REJECT, FIRST, END, STATUS, RESTARTS, PLACE, POSITION, SPOT, TRIED, STEP = range(11)
JOB_AT, HEAP, FRESH, WAITS, STALE_HEAP = range(11, JOB_COLUMNS)
DUE_SPOT, IS_STALE, DUE_HEAP = SPOT, TRIED, WAITS  # `conservative` and `aging` are never both at work
# Columns of `times` [J, ...].
TIME_COLUMNS = 10
ARRIVAL, DURATION, ESTIMATE, PROCS, PRIORITY, START, FINISH, SCORE, LOST, DUE = range(TIME_COLUMNS)
"""The arrival becomes the entry into the queue where a job enters it late, having waited for others."""
# Columns of `instances` [I, ...]: machine (-1: never placed), devices as bits, job, links.
INSTANCE_COLUMNS = 5
MACHINE, CHOSEN, OWNER, BEFORE, BEHIND = range(INSTANCE_COLUMNS)
# Columns of `machines` [M, ...]. HEAD is the first instance on it, RESERVED counts its reservations; CHANGED
# lists machines where something was given back since the last pass, AHEAD the next place that may fit there.
# EVENTS is the first event of `profile`; FREED and FREED_AHEAD are in `conservative` what CHANGED and AHEAD
# are in the other passes.
# VIEWED counts the steps of its row in `viewed_at` (0: to be made anew), with reservations before VIEW_OF.
MACHINE_COLUMNS = 12
UP, HEAD, RESERVED, IS_CHANGED, CHANGED, AHEAD, EVENTS, IS_FREED, FREED, FREED_AHEAD = range(10)
VIEWED, VIEW_OF = range(10, MACHINE_COLUMNS)
MOST_VIEWED = 1 << 18
"""Steps that are kept of all machines together."""
# Columns of `links` [J, ...], of jobs that wait for others or may not run everywhere: row of `permitted`, how
# many it still waits for, its part of `after`; LATER is a list, of jobs whose think time goes by.
LINK_COLUMNS = 5
SET, LEFT, AFTER, AFTER_END, LATER = range(LINK_COLUMNS)
THINK, READY = range(2)
"""Columns of `pauses` [J, ...]: think time, and the moment at which it is over."""
# Columns of `reserved` [K, ...] of each instance: machine (-1: none) and devices, of this and of its last
# reservation; R_LIST lists instances that have one.
R_MACHINE, R_CHOSEN, R_OLD_MACHINE, R_OLD_CHOSEN, R_LIST = range(5)
# Places in `n`: first what stays.
ORDER, STATIC, SHARES, PLACEMENT, DISCIPLINE, WINDOW, REQUEUE, DEVICE = range(8)
DECISIONS, LAST, ARRIVED, HAPPENED, RUNNING_JOBS, WAITING_JOBS, NUM_CHANGED, NUM_FRESH = range(8, 16)
VISIBLE, EDGE, NUM_RESERVED, PLANNED, REST = range(16, 21)
"""Jobs in the window; the place of the last of them (NONE: all are in it); reservations; the place up
to which this pass has made them; the resource of `tree.steps_of`."""
LATER_JOBS = 21
"""Jobs whose think time goes by."""
NUM_EVENTS, NUM_DUE, NUM_STALE, NUM_FREED, REPLAN, STOP, LAST_BOOKED = range(22, 29)
"""Events of `profile`; lengths of lists; whether all of the plan is to be looked at; whether to stop; a place
in the queue behind which no job has a reservation."""
COUNTERS = 29
NUM_X = 7
UNTIL, AGING_TIME, EPOCH, LONG_FROM, KEEP, SLOPE, CLOCK = range(NUM_X)
"""Places in `x`."""
OFFLINE = 1 << 61
"""Taken off what is free on a machine that is down, so that nothing fits."""


class Cluster(NamedTuple):
    """Jobs, machines and the state of a run."""

    n: np.ndarray  # [COUNTERS]
    x: np.ndarray  # [7]
    jobs: np.ndarray  # [J, 16]
    times: np.ndarray  # [J, 10]
    instances: np.ndarray  # [I, 5]
    machines: np.ndarray  # [M, 10]
    demand: np.ndarray  # [J, R]
    free: np.ndarray  # [R, M]
    capacity: np.ndarray  # [R, M]
    share: np.ndarray  # [M, D]
    largest: np.ndarray  # [R]
    total: np.ndarray  # [R]
    typical: np.ndarray  # [P, R + 1]
    least: np.ndarray  # [2, 4] see tree.steps_of
    low: np.ndarray  # [2 N, R]
    used: np.ndarray  # [users + 1, R] running amounts, of users where the order reads them; last: of all
    reserved: np.ndarray  # [K, 5]
    event_at: np.ndarray  # [2 K] times of the events of `profile`
    event_links: np.ndarray  # [2 K, 2] event that follows, and that precedes
    freed: np.ndarray  # [M, 2] from when to when something was given back
    level: np.ndarray  # [R, M] and how much is free then at most
    viewed_at: np.ndarray  # [M, S] times of steps, see `views`
    viewed: np.ndarray  # [M, S, R] what is free from each on
    spare: np.ndarray  # [2, R] scratch: what a machine has free over a time, and at a moment
    spare_share: np.ndarray  # [2, D] the same of each device
    since: np.ndarray  # [D + 1] scratch: since when a device suffices, and all else
    event_time: np.ndarray  # [E]
    event: np.ndarray  # [E, 2] machine, up
    links: np.ndarray  # [J, 5], or [0, 5] as a problem has it without constraints
    pauses: np.ndarray  # [J, 2], or [0, 2]
    after: np.ndarray  # [P] jobs that wait for others
    permitted: np.ndarray  # [K, M], or [0, M]


def new_cluster(problem: Problem, place: np.ndarray, job_at: np.ndarray) -> Cluster:
    """Return a run before anything has happened; `place` as `run.places_of` gives it."""
    p = problem
    count, resources = p.demand.shape
    jobs = np.zeros((count, JOB_COLUMNS), np.int64)
    for column, values in (
        (USER, p.user), (REJECT, p.reject), (FIRST, p.offset[:-1]), (END, p.offset[1:]),
        (PLACE, place), (JOB_AT, job_at), (POSITION, -1),
    ):  # fmt: skip
        jobs[:, column] = values
    times = np.full((count, TIME_COLUMNS), np.nan)
    times[:, : PRIORITY + 1] = np.column_stack([p.arrival, p.duration, p.estimate, p.procs, p.priority])
    times[:, LOST], times[:, DUE] = 0.0, np.inf
    if p.discipline == CONSERVATIVE and p.static:
        jobs[:, DUE_SPOT] = -1
    instances = np.full((p.offset[-1], INSTANCE_COLUMNS), -1)
    instances[:, CHOSEN] = 0
    instances[:, OWNER] = np.repeat(np.arange(count), np.diff(p.offset))
    machines = np.zeros((len(p.devices), MACHINE_COLUMNS), np.int64)
    machines[:, UP], machines[:, HEAD], machines[:, EVENTS] = 1, -1, -1
    n = np.zeros(COUNTERS, np.int64)
    n[: DEVICE + 1] = p.order, p.static, p.shares, p.placement, p.discipline, p.window, p.requeue, p.g
    n[LAST], n[EDGE], n[LAST_BOOKED] = -1, NONE, -1
    n[REST], jobs[:, STEP], least = steps_of(p.demand, p.g)
    planned = len(instances) if p.discipline in PLANNING else 1
    devices = max(int(p.devices.max()), 1)
    steps = min(max(MOST_VIEWED // len(p.devices), 16), 1024) if p.discipline in PLANNING else 1
    return Cluster(
        n=n,
        x=np.array([p.until, p.aging_time, p.epoch, *p.hold, 0.0]),
        jobs=jobs,
        times=times,
        instances=instances,
        machines=machines,
        demand=p.demand,
        free=p.capacity.copy(),
        capacity=p.capacity,
        share=(np.arange(devices) < p.devices[:, None]) * ONE,
        largest=p.largest,
        total=p.total,
        typical=p.typical,
        least=least,
        low=new_tree(count if p.static else 1, resources, int(n[REST])),
        used=np.zeros((int(p.user.max()) + 2 if p.shares else 1, resources), np.int64),
        reserved=np.full((planned, 5), -1),
        event_at=np.zeros(2 * planned),
        event_links=np.zeros((2 * planned, 2), np.int64),
        freed=np.zeros((len(p.devices), 2)),
        level=np.zeros_like(p.capacity),
        viewed_at=np.zeros((len(p.devices), steps)),
        viewed=np.zeros((len(p.devices), steps, resources), np.int64),
        spare=np.zeros((2, resources), np.int64),
        spare_share=np.zeros((2, devices), np.int64),
        since=np.zeros(devices + 1),
        event_time=p.event_time,
        event=np.column_stack([p.event_machine, p.event_up]),
        **_constraints(p),
    )


def _constraints(p: Problem) -> dict[str, np.ndarray]:
    """Return the arrays of what jobs wait for and where they may run."""
    count = len(p.arrival) if len(p.set_of) or len(p.left) else 0
    links, pauses = np.zeros((count, LINK_COLUMNS), np.int64), np.zeros((len(p.left), 2))
    if len(p.set_of):
        links[:, SET] = p.set_of
    if len(p.left):
        links[:, LEFT], pauses[:, THINK] = p.left, p.think
        links[:, AFTER], links[:, AFTER_END] = p.after_first[:-1], p.after_first[1:]
    return {"links": links, "pauses": pauses, "after": p.after, "permitted": p.permitted}
