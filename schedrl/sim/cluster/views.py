"""What a machine has free over time as a table, compiled: made once, asked often.

A walk along the events of a machine reads six places of memory at each. A *view* has the times and what is
free from each on side by side, with the reservations of jobs before a place of the queue. It is made anew
where the machine's events have changed. Devices count together, so for who needs some it only says what can't
be; and so it does for whoever stands further back, who sees more reservations. A view that is full says
nothing of the time from its last step on.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

from . import profile, waiting
from .state import CLOCK, DEVICE, ESTIMATE, LAST_BOOKED, UP, VIEW_OF, VIEWED
from .tree import NONE

_begin, _go_past, _earliest = profile.begin, profile.go_past, profile.earliest
_permits = waiting.permits


@part
def look(c, m, before):
    """Make the view of machine m from now on, with reservations of the jobs before a place."""
    event, step, time = _begin(c, m), 0, c.x[CLOCK]
    while event >= 0 and c.event_at[event] <= time:
        event = _go_past(c, event, before)
    while True:
        c.viewed_at[m, step] = time
        for r in range(c.spare.shape[1]):
            c.viewed[m, step, r] = c.spare[1, r]
        step += 1
        if event < 0 or step == c.viewed_at.shape[1]:
            break
        time = c.event_at[event]
        while event >= 0 and c.event_at[event] == time:
            event = _go_past(c, event, before)
    c.machines[m, VIEWED], c.machines[m, VIEW_OF] = step, before


@leaf
def most(c, m, when, until):
    """Write the most of each resource that the view ever shows free from `when` to `until` into `level`."""
    steps = c.machines[m, VIEWED]
    full = steps == c.viewed_at.shape[1] and c.viewed_at[m, steps - 1] < until
    for r in range(c.level.shape[0]):
        c.level[r, m] = c.capacity[r, m] if full else 0
    for k in range(steps):
        if c.viewed_at[m, k] >= until:
            break
        if k + 1 < steps and c.viewed_at[m, k + 1] <= when:
            continue
        for r in range(c.level.shape[0]):
            c.level[r, m] = max(c.level[r, m], c.viewed[m, k, r])


@part
def not_before(c, job, m, start, limit):
    """Return a time from `start` on before which machine m can't take an instance.

    Infinite if that is not before `limit`. It is when the machine can, if the view is of the job's place and
    the job needs no devices, and is over before a view that is full ends.
    """
    steps = c.machines[m, VIEWED]
    when, length = np.inf, c.times[job, ESTIMATE]
    low = 0
    while low + 1 < steps and c.viewed_at[m, low + 1] <= start:
        low += 1
    for k in range(low, steps):
        time = max(c.viewed_at[m, k], start)
        if when + length <= time or (time >= limit and when >= limit):
            return when if when < limit else np.inf
        fits = True
        for r in range(c.demand.shape[1]):
            fits &= c.viewed[m, k, r] >= c.demand[job, r]
        when = min(when, time) if fits else np.inf
    if steps == c.viewed_at.shape[1]:
        when = min(when, max(c.viewed_at[m, steps - 1], start))
    return when if when < limit else np.inf


@leaf
def earliest(c, job, m, limit, before):
    """Return what `profile.earliest` does from now on, by a view where the job sees all reservations."""
    if c.machines[m, UP] == 0 or not _permits(c, job, m):
        return np.inf
    start = c.x[CLOCK]
    if before > c.n[LAST_BOOKED]:
        if c.machines[m, VIEWED] == 0 or c.machines[m, VIEW_OF] < NONE:
            look(c, m, NONE)
        start = not_before(c, job, m, start, limit)
        last = c.viewed_at.shape[1] - 1
        known = c.machines[m, VIEWED] <= last or start + c.times[job, ESTIMATE] <= c.viewed_at[m, last]
        if start == np.inf or (known and (c.n[DEVICE] < 0 or c.demand[job, c.n[DEVICE]] == 0)):
            return start
    return _earliest(c, job, m, start, limit, before)
