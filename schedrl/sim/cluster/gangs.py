"""When all instances of a gang fit at once, compiled: stretches of time of all machines, counted together."""

import numpy as np

from schedrl.sim.jit import leaf, part

from . import profile, waiting
from .profile import FOLLOWS
from .state import CLOCK, DEVICE, END, ESTIMATE, EVENTS, FIRST, NUM_EVENTS, UP

_begin, _go_past, _room = profile.begin, profile.go_past, profile.room
_permits = waiting.permits


@leaf
def _times(c, job, most):
    """Return how many instances fit into row 1, no more than `most`, devices counted together."""
    times = most
    for r in range(c.spare.shape[1]):
        if c.demand[job, r] > 0:
            times = min(times, max(c.spare[1, r], 0) // c.demand[job, r])
    return times


@leaf
def _end_runs(c, job, level, time, top, levels, since, found, begin, until, weight):
    """Close the stretches in which more than `level` instances fit; return their numbers, open and closed.

    Those too short for the job's estimate are dropped.
    """
    while top > 0 and levels[top - 1] > level:
        under = max(level, levels[top - 2] if top > 1 else 0)
        if since[top - 1] + c.times[job, ESTIMATE] <= time:
            begin[found], until[found] = since[top - 1], time
            weight[found] = levels[top - 1] - under
            found += 1
        levels[top - 1] = under
        if top > 1 and levels[top - 2] == under or under == 0:
            top -= 1
    return top, found


@leaf
def _runs(c, job, m, before, found, levels, since, begin, until, weight):
    """Write from `found` on the stretches of time in which machine m has room for so many instances more."""
    now, most_of = c.x[CLOCK], c.jobs[job, END] - c.jobs[job, FIRST]
    event = _begin(c, m)
    while event >= 0 and c.event_at[event] <= now:
        event = _go_past(c, event, before)
    top, time = 0, now
    while True:
        level = _times(c, job, most_of)
        top, found = _end_runs(c, job, level, time, top, levels, since, found, begin, until, weight)
        if level > (levels[top - 1] if top > 0 else 0):
            levels[top], since[top] = level, time
            top += 1
        if event < 0:
            break
        time = c.event_at[event]
        while event >= 0 and c.event_at[event] == time:
            event = _go_past(c, event, before)
    top, found = _end_runs(c, job, 0, np.inf, top, levels, since, found, begin, until, weight)
    return found


@part
def room_for_all(c, job, when, before):
    """Tell whether all instances of the job fit from `when` on."""
    left = c.jobs[job, END] - c.jobs[job, FIRST]
    for m in range(c.capacity.shape[1]):
        left -= _room(c, job, m, when, before)
        if left <= 0:
            return True
    return False


@leaf
def _by_devices(c, job, start, before):
    """Return the earliest time from `start` on at which all instances fit on whole devices too."""
    moments, count = np.empty(c.n[NUM_EVENTS] + 1), 1
    moments[0] = start
    for m in range(c.capacity.shape[1]):
        event = c.machines[m, EVENTS]
        while event >= 0:
            if event & 1 and c.event_at[event] > start:
                moments[count] = c.event_at[event]
                count += 1
            event = c.event_links[event, FOLLOWS]
    moments[:count].sort()
    last = -np.inf
    for k in range(count):
        if moments[k] > last and room_for_all(c, job, moments[k], before):
            return moments[k]
        last = moments[k]
    return np.inf


@part
def earliest_gang(c, job, before):
    """Return the earliest time at which all instances fit; infinite: never.

    Each machine gives stretches of time in which one more instance may start; sorted by their beginnings and
    by their ends, one walk over both counts how many of them there are at once.
    """
    size = 2 * c.n[NUM_EVENTS] + 2 * c.capacity.shape[1] + 2
    begin, until, weight = np.empty(size), np.empty(size), np.empty(size, np.int64)
    levels, since = np.empty(c.n[NUM_EVENTS] + 2, np.int64), np.empty(c.n[NUM_EVENTS] + 2)
    found = 0
    for m in range(c.capacity.shape[1]):
        if c.machines[m, UP] > 0 and _permits(c, job, m):
            found = _runs(c, job, m, before, found, levels, since, begin, until, weight)
    first, last = np.argsort(begin[:found]), np.argsort(until[:found])
    left, k, gone = c.jobs[job, END] - c.jobs[job, FIRST], 0, 0
    while k < found:
        when = begin[first[k]]
        while k < found and begin[first[k]] == when:
            left -= weight[first[k]]
            k += 1
        ends = when + c.times[job, ESTIMATE]
        while gone < found and (until[last[gone]] < ends or until[last[gone]] <= when):
            left += weight[last[gone]]
            gone += 1
        if left <= 0:
            if c.n[DEVICE] >= 0 and c.demand[job, c.n[DEVICE]] > 0:
                return _by_devices(c, job, when, before)
            return when
    return np.inf
