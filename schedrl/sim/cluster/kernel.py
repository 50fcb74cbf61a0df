"""What happens on the machines, compiled: whether a job fits, where it goes, start and release.

Every function takes `c`, a `state.Cluster`; the rules are those of `reference.py`.
"""

import numpy as np

from schedrl.sim.jit import leaf

from . import devices, heap, placements
from .placements import FIRST_FIT
from .schedule import RUNNING
from .state import (
    BEFORE,
    BEHIND,
    CHANGED,
    CHOSEN,
    CLOCK,
    DEVICE,
    DURATION,
    END,
    FINISH,
    FIRST,
    HEAD,
    IS_CHANGED,
    LAST,
    MACHINE,
    NUM_CHANGED,
    PLACEMENT,
    SHARES,
    START,
    STATUS,
    USER,
)  # fmt: skip

_device_fits, _device_room, _pick, _change_devices = devices.fits, devices.room, devices.pick, devices.change
_placement_score, _heap_push, _heap_remove = placements.score, heap.push, heap.remove


@leaf
def fits(c, job, m):
    """Tell whether one instance of the job fits on machine m now."""
    for r in range(c.free.shape[0]):
        if c.free[r, m] < c.demand[job, r]:
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


@leaf
def best(c, job):
    """Return the machine for one instance of the job by the placement, -1 if it fits on none."""
    found, lowest, need = -1, np.inf, c.demand[job, 0]
    for m in range(c.free.shape[1]):
        if c.free[0, m] >= need and fits(c, job, m):
            if c.n[PLACEMENT] == FIRST_FIT:
                return m
            value = score(c, job, m)
            if value < lowest:
                found, lowest = m, value
    return found


@leaf
def best_of_changed(c, job):
    """Return the same, where only machines that gave something back since the last pass can fit."""
    found, lowest = -1, np.inf
    for k in range(c.n[NUM_CHANGED]):
        m = c.machines[k, CHANGED]
        if fits(c, job, m):
            value = 0.0 if c.n[PLACEMENT] == FIRST_FIT else score(c, job, m)
            if value < lowest or (value == lowest and m < found):
                found, lowest = m, value
    return found


@leaf
def _change(c, job, i, sign):
    m = c.instances[i, MACHINE]
    for r in range(c.free.shape[0]):
        c.free[r, m] += sign * c.demand[job, r]
        if c.n[SHARES] > 0:
            c.used[c.jobs[job, USER], r] -= sign * c.demand[job, r]
    if c.n[DEVICE] >= 0:
        _change_devices(c.share, m, c.instances[i, CHOSEN], sign * c.demand[job, c.n[DEVICE]])


@leaf
def put(c, job, i, m):
    """Place instance i of the job on machine m."""
    c.instances[i, MACHINE] = m
    c.instances[i, CHOSEN] = _pick(c.share, m, c.demand[job, c.n[DEVICE]]) if c.n[DEVICE] >= 0 else 0
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
        c.n[NUM_CHANGED] += 1


@leaf
def lift(c, job, i):
    """Take instance i of the job off its machine."""
    m, before, behind = c.instances[i, MACHINE], c.instances[i, BEFORE], c.instances[i, BEHIND]
    if before >= 0:
        c.instances[before, BEHIND] = behind
    else:
        c.machines[m, HEAD] = behind
    if behind >= 0:
        c.instances[behind, BEFORE] = before
    _change(c, job, i, 1)
    mark_changed(c, m)


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
def try_start(c, job, known_unfit):
    """Start a job if it fits; one that the last pass found unfit is tried where that may be over."""
    m = best_of_changed(c, job) if known_unfit else best(c, job)
    if m < 0:
        return False
    first, end = c.jobs[job, FIRST], c.jobs[job, END]
    if end - first == 1:
        put(c, job, first, m)
    else:
        if not fits_whole(c, job):
            return False
        for i in range(first, end):
            put(c, job, i, best(c, job))
    begin(c, job)
    return True
