"""What a machine has free over time, compiled: its running instances and its reservations as events in order.

Instance i has two events, 2 i when its reservation begins and 2 i + 1 when that, or its run, ends by its
estimate. Each machine links its own in the order of time. Going along them from what is free now gives what
is free at any later time; an estimate that has passed counts as ending now. Whoever asks for a job sees the
reservations of the jobs `before` it in the queue alone, so that a plan of all may stay where it is.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

from . import devices, waiting
from .state import (
    CHOSEN,
    DEVICE,
    ESTIMATE,
    EVENTS,
    NUM_EVENTS,
    OWNER,
    PLACE,
    R_CHOSEN,
    R_MACHINE,
    UP,
    VIEWED,
)  # fmt: skip

ONE = devices.ONE
_device_room, _change, _permits = devices.room, devices.change, waiting.permits
FOLLOWS, PRECEDES = range(2)
"""Columns of `event_links`."""


@leaf
def link(c, m, event, when):
    """Put an event of machine m among its others."""
    c.event_at[event] = when
    before, behind = -1, c.machines[m, EVENTS]
    while behind >= 0 and c.event_at[behind] <= when:
        before, behind = behind, c.event_links[behind, FOLLOWS]
    c.event_links[event, PRECEDES], c.event_links[event, FOLLOWS] = before, behind
    if before >= 0:
        c.event_links[before, FOLLOWS] = event
    else:
        c.machines[m, EVENTS] = event
    if behind >= 0:
        c.event_links[behind, PRECEDES] = event
    c.n[NUM_EVENTS] += 1
    c.machines[m, VIEWED] = 0


@leaf
def unlink(c, m, event):
    """Take an event away."""
    before, behind = c.event_links[event, PRECEDES], c.event_links[event, FOLLOWS]
    if before >= 0:
        c.event_links[before, FOLLOWS] = behind
    else:
        c.machines[m, EVENTS] = behind
    if behind >= 0:
        c.event_links[behind, PRECEDES] = before
    c.n[NUM_EVENTS] -= 1
    c.machines[m, VIEWED] = 0


@leaf
def begin(c, m):
    """Write what machine m has free now into row 1; return its first event."""
    for r in range(c.spare.shape[1]):
        c.spare[1, r] = c.free[r, m]
    if c.n[DEVICE] >= 0:
        for d in range(c.spare_share.shape[1]):
            c.spare_share[1, d] = c.share[m, d]
    return c.machines[m, EVENTS]


@leaf
def go_past(c, event, before):
    """Let an event happen to row 1; return the next one."""
    i = event >> 1
    job, chosen = c.instances[i, OWNER], c.instances[i, CHOSEN]
    if c.reserved[i, R_MACHINE] >= 0:
        if c.jobs[job, PLACE] >= before:
            return c.event_links[event, FOLLOWS]
        chosen = c.reserved[i, R_CHOSEN]
    sign = 1 if event & 1 else -1
    for r in range(c.spare.shape[1]):
        c.spare[1, r] += sign * c.demand[job, r]
    if c.n[DEVICE] >= 0 and chosen > 0:
        _change(c.spare_share, 1, chosen, sign * c.demand[job, c.n[DEVICE]])
    return c.event_links[event, FOLLOWS]


@part
def least(c, m, when, until, before):
    """Write what machine m has free from `when` to `until` at least into row 0; `when` itself counts."""
    event = begin(c, m)
    while event >= 0 and c.event_at[event] <= when:
        event = go_past(c, event, before)
    for r in range(c.spare.shape[1]):
        c.spare[0, r] = c.spare[1, r]
    for d in range(c.spare_share.shape[1]):
        c.spare_share[0, d] = c.spare_share[1, d]
    while event >= 0 and c.event_at[event] < until:
        time = c.event_at[event]
        while event >= 0 and c.event_at[event] == time:
            event = go_past(c, event, before)
        for r in range(c.spare.shape[1]):
            c.spare[0, r] = min(c.spare[0, r], c.spare[1, r])
        for d in range(c.spare_share.shape[1]):
            c.spare_share[0, d] = min(c.spare_share[0, d], c.spare_share[1, d])


@part
def room(c, job, m, when, before):
    """Return how many instances of the job machine m can take from `when` to their end by estimate."""
    if c.machines[m, UP] == 0 or not _permits(c, job, m):
        return 0
    least(c, m, when, when + c.times[job, ESTIMATE], before)
    times = 1 << 40
    for r in range(c.spare.shape[1]):
        if c.spare[0, r] < c.demand[job, r]:
            return 0
        if c.demand[job, r] > 0:
            if r == c.n[DEVICE]:
                times = min(times, _device_room(c.spare_share, 0, c.demand[job, r]))
            else:
                times = min(times, c.spare[0, r] // c.demand[job, r])
    return times


@leaf
def _fits_since(c, job, time):
    """Note of each device, and last of all else, since when without a break an instance could have it."""
    fits, last = True, c.since.shape[0] - 1
    for r in range(c.spare.shape[1]):
        fits &= c.spare[1, r] >= c.demand[job, r]
    c.since[last] = min(c.since[last], time) if fits else np.inf
    need = min(c.demand[job, c.n[DEVICE]], ONE) if c.n[DEVICE] >= 0 else 0
    if need > 0:
        for d in range(last):
            c.since[d] = min(c.since[d], time) if c.spare_share[1, d] >= need else np.inf


@leaf
def _could_start(c, job):
    """Return since when one instance could have all that it needs at once; infinite: it can't."""
    last = c.since.shape[0] - 1
    amount, when = c.demand[job, c.n[DEVICE]] if c.n[DEVICE] >= 0 else 0, c.since[last]
    if amount == 0 or when == np.inf:
        return when
    there, wanted = np.inf, max(amount // ONE, 1)
    for d in range(last):
        if c.since[d] < there:
            count = 0
            for other in range(last):
                count += c.since[other] <= c.since[d]
            if count >= wanted:
                there = c.since[d]
    return max(when, there)


@part
def earliest(c, job, m, start, limit, before):
    """Return the earliest time from `start` on at which machine m takes one instance.

    Infinite if that is not before `limit`.
    """
    if c.machines[m, UP] == 0 or not _permits(c, job, m):
        return np.inf
    event = begin(c, m)
    while event >= 0 and c.event_at[event] <= start:
        event = go_past(c, event, before)
    c.since[:] = np.inf
    _fits_since(c, job, start)
    while True:
        when = _could_start(c, job)
        time = c.event_at[event] if event >= 0 else np.inf
        if when + c.times[job, ESTIMATE] <= time or (time >= limit and when >= limit):
            return when if when < limit else np.inf
        while event >= 0 and c.event_at[event] == time:
            event = go_past(c, event, before)
        _fits_since(c, job, time)
