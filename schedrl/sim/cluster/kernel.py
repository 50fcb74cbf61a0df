"""What happens on the machines, compiled: whether a job fits, where it goes, start and release.

Every function takes `c`, a `state.Cluster`; the rules are those of `reference.py`.
"""

import math

import numpy as np

from schedrl.sim.jit import leaf, part

from . import devices, heap, placements, plan, waiting
from .placements import FIRST_FIT, TIE
from .rule import HOLD, MOST_KEPT
from .schedule import RUNNING
from .state import (
    AHEAD,
    BEFORE,
    BEHIND,
    CHANGED,
    CHOSEN,
    CLOCK,
    DEVICE,
    DISCIPLINE,
    DURATION,
    END,
    ESTIMATE,
    FINISH,
    FIRST,
    HEAD,
    IS_CHANGED,
    KEEP,
    LAST,
    LONG_FROM,
    MACHINE,
    NUM_CHANGED,
    PLACEMENT,
    RUNNING_JOBS,
    SHARES,
    SLOPE,
    START,
    STATUS,
    USER,
)  # fmt: skip

_allowed, _devices_beside, _begins, _ends = plan.allowed, plan.devices_beside, plan.begins, plan.ends
_permits = waiting.permits
NO, HELD, STARTED = range(3)
"""What became of an attempt to start a job."""
_device_fits, _device_room, _pick, _change_devices = devices.fits, devices.room, devices.pick, devices.change
_placement_score, _heap_push, _heap_remove = placements.score, heap.push, heap.remove


@leaf
def fits(c, job, m):
    """Tell whether one instance of the job fits on machine m now, and may run there."""
    for r in range(c.free.shape[0]):
        if c.free[r, m] < c.demand[job, r]:
            return False
    if not _permits(c, job, m):
        return False
    return c.n[DEVICE] < 0 or _device_fits(c.share, m, c.demand[job, c.n[DEVICE]])


@leaf
def room(c, job, m):
    """Return how many instances of the job fit on machine m now."""
    if not fits(c, job, m):
        return 0
    times = 1 << 40
    for r in range(c.free.shape[0]):
        if c.demand[job, r] > 0:
            if r == c.n[DEVICE]:
                times = min(times, _device_room(c.share, m, c.demand[job, r]))
            else:
                times = min(times, c.free[r, m] // c.demand[job, r])
    return times


@leaf
def fits_whole(c, job):
    """Tell whether all instances of the job fit at once."""
    left = c.jobs[job, END] - c.jobs[job, FIRST]
    for m in range(c.free.shape[1]):
        left -= room(c, job, m)
        if left <= 0:
            return True
    return False


@leaf
def score(c, job, m):
    """Return the placement's score of a machine on which the job fits; lower is better."""
    return _placement_score(
        c.n[PLACEMENT], m, job, c.free, c.capacity, c.share, c.demand, c.largest, c.typical,
        c.n[LAST], c.n[DEVICE],
    )  # fmt: skip


@part
def best(c, job, known_unfit):
    """Return the machine for one instance of the job by the placement, -1 if it fits on none.

    A job that is known not to have fitted in the last pass can fit only where something was given back since.
    Machines are looked at by index, see `placements`.
    """
    found, lowest, need = -1, np.inf, c.demand[job, 0]
    for k in range(c.n[NUM_CHANGED] if known_unfit else c.free.shape[1]):
        m = c.machines[k, CHANGED] if known_unfit else k
        if c.free[0, m] < need or not fits(c, job, m) or not _allowed(c, job, m):
            continue
        if c.n[PLACEMENT] == FIRST_FIT:
            return m
        value = score(c, job, m)
        if value < lowest - TIE:
            found, lowest = m, value
    return found


@leaf
def _change(c, job, i, sign):
    m = c.instances[i, MACHINE]
    for r in range(c.free.shape[0]):
        c.free[r, m] += sign * c.demand[job, r]
        c.used[-1, r] -= sign * c.demand[job, r]
        if c.n[SHARES] > 0:
            c.used[c.jobs[job, USER], r] -= sign * c.demand[job, r]
    if c.n[DEVICE] >= 0:
        _change_devices(c.share, m, c.instances[i, CHOSEN], sign * c.demand[job, c.n[DEVICE]])


@leaf
def fullest(c, job, m):
    """Return the devices of machine m that an instance of the job is to take where nothing is reserved."""
    return _pick(c.share, m, c.demand[job, c.n[DEVICE]]) if c.n[DEVICE] >= 0 else 0


@leaf
def put(c, job, i, m, chosen):
    """Place instance i of the job on the chosen devices of machine m."""
    c.instances[i, MACHINE] = m
    c.instances[i, CHOSEN] = chosen
    c.instances[i, BEFORE] = -1
    c.instances[i, BEHIND] = c.machines[m, HEAD]
    if c.machines[m, HEAD] >= 0:
        c.instances[c.machines[m, HEAD], BEFORE] = i
    c.machines[m, HEAD] = i
    c.n[LAST] = m
    _change(c, job, i, -1)


@leaf
def mark_changed(c, m):
    """Remember that something was given back on machine m."""
    if not c.machines[m, IS_CHANGED]:
        c.machines[m, IS_CHANGED] = True
        c.machines[c.n[NUM_CHANGED], CHANGED] = m
        c.machines[c.n[NUM_CHANGED], AHEAD] = -1
        c.n[NUM_CHANGED] += 1


@leaf
def sort_changed(c):
    """Bring the machines where something was given back in order, for `best`."""
    if c.n[NUM_CHANGED] > 1:
        c.machines[: c.n[NUM_CHANGED], CHANGED].sort()


@leaf
def take_back(c, job, i):
    """Take instance i of the job off its machine as if it had never been there."""
    m, before, behind = c.instances[i, MACHINE], c.instances[i, BEFORE], c.instances[i, BEHIND]
    if before >= 0:
        c.instances[before, BEHIND] = behind
    else:
        c.machines[m, HEAD] = behind
    if behind >= 0:
        c.instances[behind, BEFORE] = before
    _change(c, job, i, 1)


@leaf
def lift(c, job, i):
    """Take instance i of the job off its machine, where others may find room now."""
    take_back(c, job, i)
    mark_changed(c, c.instances[i, MACHINE])


@leaf
def begin(c, job):
    """Let a job run whose instances have been placed."""
    c.jobs[job, STATUS] = RUNNING
    c.times[job, START] = c.x[CLOCK]
    c.times[job, FINISH] = c.x[CLOCK] + c.times[job, DURATION]
    _heap_push(c, job)


@leaf
def release(c, job):
    """Take a running job off its machines."""
    for i in range(c.jobs[job, FIRST], c.jobs[job, END]):
        lift(c, job, i)
    _heap_remove(c, job)


@leaf
def held(c, job):
    """Tell whether `hold` makes a job wait that fits: it is long and would leave too little free."""
    if c.n[DISCIPLINE] != HOLD or c.n[RUNNING_JOBS] == 0 or c.times[job, ESTIMATE] <= c.x[LONG_FROM]:
        return False
    long = math.log(c.times[job, ESTIMATE] / c.x[LONG_FROM])
    kept = min(c.x[KEEP] + c.x[SLOPE] * long, MOST_KEPT)
    instances = c.jobs[job, END] - c.jobs[job, FIRST]
    for r in range(c.free.shape[0]):
        need = c.demand[job, r]
        if need > 0 and c.total[r] - c.used[-1, r] - instances * need < kept * c.total[r]:
            return True
    return False


@part
def try_start(c, job, known_unfit):
    """Start a job if it may; one that the last pass found unfit is tried where that may be over."""
    m = best(c, job, known_unfit)
    first, end, last = c.jobs[job, FIRST], c.jobs[job, END], c.n[LAST]
    if m < 0 or not (end - first == 1 or fits_whole(c, job)):
        return NO
    if held(c, job):
        return HELD
    c.times[job, START] = c.x[CLOCK]
    known_unfit &= end - first == 1  # a constant would compile `best` anew
    for i in range(first, end):
        if end - first > 1:
            m = best(c, job, known_unfit)
        if m < 0:  # one by one, reservations do not let all of them in
            for placed in range(first, i):
                _ends(c, placed)
                take_back(c, job, placed)
                c.instances[placed, MACHINE], c.instances[placed, CHOSEN] = -1, 0
            c.n[LAST] = last
            c.times[job, START] = np.nan
            return NO
        put(c, job, i, m, _devices_beside(c, job, m))
        _begins(c, job, i)
    begin(c, job)
    return STARTED
