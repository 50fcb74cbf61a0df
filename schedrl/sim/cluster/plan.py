"""Reservations of jobs that must wait, compiled: made by estimates, anew in every pass, in the queue's order.

EASY makes one, for the first job that can't start; conservative backfilling one for every visible job. What a
machine has free over a time is the least over the moments at which something is reserved to begin; running
jobs only ever give back. An estimate that has passed counts as ending now.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

from . import devices, waiting
from .state import (
    BEHIND,
    CHOSEN,
    CLOCK,
    DEVICE,
    END,
    ESTIMATE,
    FIRST,
    HEAD,
    HEAP,
    NUM_RESERVED,
    OWNER,
    R_CHOSEN,
    R_JOB,
    R_MACHINE,
    R_NEXT,
    RESERVED,
    RUNNING_JOBS,
    START,
    UP,
)  # fmt: skip

ONE = devices.ONE
_room, _change = devices.room, devices.change
_pick, _pick_beside = devices.pick, devices.pick_beside
_permits = waiting.permits


@leaf
def _take(c, row, job, chosen):
    """Take an instance out of row `row` of what is free."""
    for r in range(c.spare.shape[1]):
        c.spare[row, r] -= c.demand[job, r]
    if c.n[DEVICE] >= 0:
        _change(c.spare_share, row, chosen, -c.demand[job, c.n[DEVICE]])


@part
def _at(c, m, when):
    """Write what machine m has free at a moment, by estimates and reservations, into row 1."""
    for r in range(c.spare.shape[1]):
        c.spare[1, r] = c.capacity[r, m]
    left = c.capacity[c.n[DEVICE], m] if c.n[DEVICE] >= 0 else 0
    for d in range(c.spare_share.shape[1]):
        c.spare_share[1, d] = max(min(left - d * ONE, ONE), 0)
    i = c.machines[m, HEAD]
    while i >= 0:
        job = c.instances[i, OWNER]
        if c.times[job, START] + c.times[job, ESTIMATE] > when:
            _take(c, 1, job, c.instances[i, CHOSEN])
        i = c.instances[i, BEHIND]
    k = c.machines[m, RESERVED]
    while k >= 0:
        if c.reserved_time[k, 0] <= when and when < c.reserved_time[k, 1]:
            _take(c, 1, c.reserved[k, R_JOB], c.reserved[k, R_CHOSEN])
        k = c.reserved[k, R_NEXT]


@leaf
def _lower(c):
    """Bring row 0 down to row 1."""
    for r in range(c.spare.shape[1]):
        c.spare[0, r] = min(c.spare[0, r], c.spare[1, r])
    for d in range(c.spare_share.shape[1]):
        c.spare_share[0, d] = min(c.spare_share[0, d], c.spare_share[1, d])


@leaf
def least(c, m, when, until):
    """Write what machine m has free from `when` to `until` at least into row 0."""
    _at(c, m, when)
    for r in range(c.spare.shape[1]):
        c.spare[0, r] = c.spare[1, r]
    for d in range(c.spare_share.shape[1]):
        c.spare_share[0, d] = c.spare_share[1, d]
    k = c.machines[m, RESERVED]
    while k >= 0:
        if when < c.reserved_time[k, 0] and c.reserved_time[k, 0] < until:
            _at(c, m, c.reserved_time[k, 0])
            _lower(c)
        k = c.reserved[k, R_NEXT]


@part
def room(c, job, m, when):
    """Return how many instances of the job machine m can take from `when` to their end by estimate."""
    if c.machines[m, UP] == 0 or not _permits(c, job, m):
        return 0
    least(c, m, when, when + c.times[job, ESTIMATE])
    times = 1 << 40
    for r in range(c.spare.shape[1]):
        if c.spare[0, r] < c.demand[job, r]:
            return 0
        if c.demand[job, r] > 0:
            if r == c.n[DEVICE]:
                times = min(times, _room(c.spare_share, 0, c.demand[job, r]))
            else:
                times = min(times, c.spare[0, r] // c.demand[job, r])
    return times


@part
def _beside(c, job, m):
    """Return the devices for an instance that is to start now on machine m beside reservations; -1: none."""
    if room(c, job, m, c.x[CLOCK]) == 0:
        return -1
    return _pick_beside(c.share, m, c.demand[job, c.n[DEVICE]], c.spare_share, 0) if c.n[DEVICE] >= 0 else 0


@leaf
def devices_beside(c, job, m):
    """Return the devices of machine m for an instance that may start there, the fullest that serve."""
    if c.n[DEVICE] < 0:
        return 0
    if c.machines[m, RESERVED] >= 0:
        return _beside(c, job, m)
    return _pick(c.share, m, c.demand[job, c.n[DEVICE]])


@leaf
def allowed(c, job, m):
    """Tell whether an instance that fits on machine m now, to start now, leaves all reservations alone."""
    return c.machines[m, RESERVED] < 0 or _beside(c, job, m) >= 0


@leaf
def _worth_a_look(c, job, m, best):
    """Tell whether machine m may take the job before `best`; where nothing is reserved, room only grows."""
    return c.machines[m, UP] > 0 and (
        c.machines[m, RESERVED] >= 0 or best == np.inf or room(c, job, m, np.nextafter(best, -np.inf)) > 0
    )


@leaf
def _sooner(c, job, m, when, best):
    """Return `when`, or now if it has passed, if that is before `best` and machine m can take the job."""
    when = max(when, c.x[CLOCK])
    return when if when < best and room(c, job, m, when) > 0 else best


@leaf
def earliest_single(c, job):
    """Return the earliest time at which one instance fits somewhere; infinite: never."""
    best = np.inf
    for m in range(c.capacity.shape[1]):
        if best <= c.x[CLOCK]:
            break
        if not _worth_a_look(c, job, m, best):
            continue
        best = _sooner(c, job, m, c.x[CLOCK], best)
        i = c.machines[m, HEAD]
        while i >= 0:
            owner = c.instances[i, OWNER]
            best = _sooner(c, job, m, c.times[owner, START] + c.times[owner, ESTIMATE], best)
            i = c.instances[i, BEHIND]
        k = c.machines[m, RESERVED]
        while k >= 0:
            best = _sooner(c, job, m, c.reserved_time[k, 1], best)
            k = c.reserved[k, R_NEXT]
    return best


@leaf
def room_for_all(c, job, when):
    """Tell whether all instances of the job fit from `when` on."""
    left = c.jobs[job, END] - c.jobs[job, FIRST]
    for m in range(c.capacity.shape[1]):
        left -= room(c, job, m, when)
        if left <= 0:
            return True
    return False


@leaf
def earliest_gang(c, job):
    """Return the earliest time at which all instances fit; infinite: never."""
    running, count = c.n[RUNNING_JOBS], c.n[NUM_RESERVED]
    moments = np.empty(running + count + 1)
    moments[running + count] = c.x[CLOCK]
    for k in range(running):
        other = c.jobs[k, HEAP]
        moments[k] = c.times[other, START] + c.times[other, ESTIMATE]
    for k in range(count):
        moments[running + k] = c.reserved_time[k, 1]
    moments.sort()
    before = -np.inf
    for when in moments:
        when = max(when, c.x[CLOCK])
        if when > before and room_for_all(c, job, when):
            return when
        before = when
    return np.inf


@leaf
def _book(c, job, m, when, chosen):
    k = c.n[NUM_RESERVED]
    c.n[NUM_RESERVED] += 1
    end = when + c.times[job, ESTIMATE]
    c.reserved_time[k, 0] = when
    c.reserved_time[k, 1] = end if end > when else np.nextafter(when, np.inf)
    c.reserved[k, R_JOB], c.reserved[k, R_CHOSEN], c.reserved[k, R_MACHINE] = job, chosen, m
    c.reserved[k, R_NEXT] = c.machines[m, RESERVED]
    c.machines[m, RESERVED] = k


@part
def reserve(c, job):
    """Reserve the earliest start for a job that can't start now, first fit by machine."""
    left = c.jobs[job, END] - c.jobs[job, FIRST]
    when = earliest_single(c, job) if left == 1 else earliest_gang(c, job)
    for m in range(c.free.shape[1] if when < np.inf else 0):
        if left == 0:
            break
        fitting = min(room(c, job, m, when), left)
        left -= fitting
        for _ in range(fitting):
            chosen = _pick(c.spare_share, 0, c.demand[job, c.n[DEVICE]]) if c.n[DEVICE] >= 0 else 0
            _take(c, 0, job, chosen)
            _book(c, job, m, when, chosen)


@leaf
def clear(c):
    """Drop all reservations."""
    for k in range(c.n[NUM_RESERVED]):
        c.machines[c.reserved[k, R_MACHINE], RESERVED] = -1
    c.n[NUM_RESERVED] = 0
