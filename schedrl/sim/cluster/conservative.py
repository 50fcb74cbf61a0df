"""Conservative backfilling in an order that stays, compiled: a plan that is kept and mended where it changed.

A plan made anew in each pass (that is the rule, see `reference.py`) would mostly say what the last one said:
the reservation of a job depends on what runs and on the reservations of the jobs before it, nothing else. It
is another one only if

* its time has come: the job starts, or what it waits for is late and it waits on,
* something before it took its place (an overlapping event of a job before it on its machine), or
* something was given back on a machine (a job ended before its estimate, or a reservation moved) from which
  the job now gains a start that is earlier, or as early on a machine before its own.

A pass goes through these jobs alone, in order, and each that changes may make later ones change. So arrivals
at the end of the queue and ends by estimate cost one search each. The same schedules as of plans made anew
are what the tests compare.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

from . import plan, profile, queue, tree, views
from .kernel import STARTED, try_start
from .profile import FOLLOWS
from .state import (
    CHOSEN,
    CLOCK,
    DEVICE,
    DUE,
    DUE_HEAP,
    DUE_SPOT,
    EDGE,
    END,
    ESTIMATE,
    EVENTS,
    FIRST,
    FREED,
    FREED_AHEAD,
    FRESH,
    IS_FREED,
    IS_STALE,
    JOB_AT,
    MACHINE,
    NUM_DUE,
    NUM_FREED,
    NUM_FRESH,
    NUM_STALE,
    OWNER,
    PLACE,
    R_CHOSEN,
    R_MACHINE,
    R_OLD_CHOSEN,
    R_OLD_MACHINE,
    REPLAN,
    REST,
    STALE_HEAP,
    STOP,
    VIEW_OF,
    VIEWED,
)  # fmt: skip
from .tree import NONE

_reserve, _unbook = plan.reserve, plan.unbook
_room, _earliest = profile.room, profile.earliest
_look, _most, _not_before = views.look, views.most, views.not_before
_has, _first, _following = tree.has, tree.first, tree.following
_admit, _dequeue, _sort_fresh = queue.admit, queue.dequeue, queue.sort_fresh
UNKNOWN = -2
"""As `FREED_AHEAD`: what is free at most on the machine has changed."""


# -- jobs by the time of their reservations: a heap ----------------------------------------------------------


@leaf
def _set_due(c, k, job):
    c.jobs[k, DUE_HEAP] = job
    c.jobs[job, DUE_SPOT] = k


@leaf
def _rise(c, k, job):
    while k > 0 and c.times[job, DUE] < c.times[c.jobs[(k - 1) >> 1, DUE_HEAP], DUE]:
        _set_due(c, k, c.jobs[(k - 1) >> 1, DUE_HEAP])
        k = (k - 1) >> 1
    _set_due(c, k, job)


@leaf
def _await(c, job):
    _rise(c, c.n[NUM_DUE], job)
    c.n[NUM_DUE] += 1


@leaf
def _await_no_more(c, job):
    k, count = c.jobs[job, DUE_SPOT], c.n[NUM_DUE] - 1
    if k < 0:
        return
    c.jobs[job, DUE_SPOT] = -1
    c.n[NUM_DUE] = count
    moved, below = c.jobs[count, DUE_HEAP], 2 * k + 1
    if moved == job:
        return
    while below < count:
        if below + 1 < count and (
            c.times[c.jobs[below + 1, DUE_HEAP], DUE] < c.times[c.jobs[below, DUE_HEAP], DUE]
        ):
            below += 1
        if not c.times[c.jobs[below, DUE_HEAP], DUE] < c.times[moved, DUE]:
            break
        _set_due(c, k, c.jobs[below, DUE_HEAP])
        k, below = below, 2 * below + 1
    _rise(c, k, moved)


# -- jobs to look at in this pass: a heap of places ----------------------------------------------------------


@leaf
def _look_at(c, place):
    job = c.jobs[place, JOB_AT]
    if c.jobs[job, IS_STALE]:
        return
    c.jobs[job, IS_STALE] = True
    k = c.n[NUM_STALE]
    c.n[NUM_STALE] += 1
    while k > 0 and place < c.jobs[(k - 1) >> 1, STALE_HEAP]:
        c.jobs[k, STALE_HEAP] = c.jobs[(k - 1) >> 1, STALE_HEAP]
        k = (k - 1) >> 1
    c.jobs[k, STALE_HEAP] = place


@leaf
def _take_stale(c):
    """Take the first place out."""
    count, k, below = c.n[NUM_STALE] - 1, 0, 1
    c.n[NUM_STALE] = count
    c.jobs[c.jobs[c.jobs[0, STALE_HEAP], JOB_AT], IS_STALE] = False
    last = c.jobs[count, STALE_HEAP]
    while below < count:
        if below + 1 < count and c.jobs[below + 1, STALE_HEAP] < c.jobs[below, STALE_HEAP]:
            below += 1
        if last <= c.jobs[below, STALE_HEAP]:
            break
        c.jobs[k, STALE_HEAP] = c.jobs[below, STALE_HEAP]
        k, below = below, 2 * below + 1
    c.jobs[k, STALE_HEAP] = last


@leaf
def _look_at_due(c):
    """Look at the jobs whose time has come; after a machine went down or came up, at all."""
    while c.n[NUM_DUE] > 0 and c.times[c.jobs[0, DUE_HEAP], DUE] <= c.x[CLOCK]:
        job = c.jobs[0, DUE_HEAP]
        _await_no_more(c, job)
        _look_at(c, c.jobs[job, PLACE])
    if c.n[REPLAN] > 0:
        c.n[REPLAN] = 0
        place = _following(c.low, 0)
        while place <= c.n[EDGE] and place < NONE:
            _look_at(c, place)
            place = _following(c.low, place + 1)


@leaf
def _look_at_overlapping(c, m, start, end, place):
    """Look at the jobs behind `place` with a reservation on machine m between two times."""
    event = c.machines[m, EVENTS]
    while event >= 0 and c.event_at[event] < end:
        if not event & 1 and c.event_at[event + 1] > start:
            other = c.jobs[c.instances[event >> 1, OWNER], PLACE]
            if other > place:
                _look_at(c, other)
        event = c.event_links[event, FOLLOWS]


# -- what was given back -------------------------------------------------------------------------------------


@leaf
def give_back(c, m, start, end):
    """Note that something on machine m that was taken from `start` to `end` is not, from now on."""
    if c.machines[m, IS_FREED] == 0:
        c.machines[m, IS_FREED] = 1
        c.machines[c.n[NUM_FREED], FREED] = m
        c.n[NUM_FREED] += 1
        c.freed[m, 0], c.freed[m, 1] = start, end
    c.freed[m, 0], c.freed[m, 1] = min(c.freed[m, 0], start), max(c.freed[m, 1], end)
    c.machines[m, FREED_AHEAD] = UNKNOWN


@leaf
def _see(c, m, place):
    """Look at what machine m has free with the reservations of the jobs before a place."""
    _look(c, m, place)
    _most(c, m, max(c.freed[m, 0], c.x[CLOCK]), c.freed[m, 1])


@leaf
def _next_ahead(c, after):
    """Return the next place behind `after` of a job small enough for what was given back; else NONE."""
    found = NONE
    for k in range(c.n[NUM_FREED]):
        m = c.machines[k, FREED]
        ahead = c.machines[m, FREED_AHEAD]
        if ahead == UNKNOWN:
            _see(c, m, after + 1)
        if ahead <= after:
            ahead = _first(c.low, after + 1, c.n[EDGE], c.level, m, c.n[REST], c.least, c.n[DEVICE])
            c.machines[m, FREED_AHEAD] = ahead
        found = min(found, ahead)
    return found


@leaf
def _gains(c, job, m):
    """Tell whether the job may gain from what was given back on machine m."""
    due, place, length = c.times[job, DUE], c.jobs[job, PLACE], c.times[job, ESTIMATE]
    first, count = c.jobs[job, FIRST], c.jobs[job, END] - c.jobs[job, FIRST]
    start = max(c.freed[m, 0] - length, c.x[CLOCK])
    if start > due:
        return False
    limit, own = due, c.reserved[first, R_MACHINE]
    if due < np.inf and (
        count > 1 or m < own or (m == own and c.n[DEVICE] >= 0 and c.demand[job, c.n[DEVICE]] > 0)
    ):
        limit = np.nextafter(due, np.inf)
    limit = min(limit, c.freed[m, 1])
    if c.machines[m, VIEWED] > 0 and c.machines[m, VIEW_OF] <= place:
        start = _not_before(c, job, m, start, limit)
        if start == np.inf:
            return False
    if _earliest(c, job, m, start, limit, place) < np.inf:
        return True
    _see(c, m, place)
    return False


@leaf
def _gains_anywhere(c, job, place):
    """Tell whether the job may gain from anything that was given back."""
    gains = False
    for k in range(c.n[NUM_FREED]):
        m = c.machines[k, FREED]
        if not gains and c.machines[m, FREED_AHEAD] == place:
            gains = _gains(c, job, m)
    return gains


@leaf
def _still_fits(c, job, place):
    """Tell whether the job, whose time has not come, keeps its reservation, though others came before it."""
    if not c.times[job, DUE] > c.x[CLOCK] or c.times[job, DUE] == np.inf:
        return False
    if c.n[DEVICE] >= 0 and c.demand[job, c.n[DEVICE]] > 0:
        return False
    i = c.jobs[job, FIRST]
    while i < c.jobs[job, END]:
        m, count = c.reserved[i, R_MACHINE], 0
        while i < c.jobs[job, END] and c.reserved[i, R_MACHINE] == m:
            count += 1
            i += 1
        if _room(c, job, m, c.times[job, DUE], place) < count:
            return False
    return True


# -- one job, and all ----------------------------------------------------------------------------------------


@leaf
def cancel(c, job):
    """Drop the reservation of a job, if it has one."""
    _await_no_more(c, job)
    for i in range(c.jobs[job, FIRST], c.jobs[job, END]):
        c.reserved[i, R_OLD_MACHINE] = c.reserved[i, R_MACHINE]
        c.reserved[i, R_OLD_CHOSEN] = c.reserved[i, R_CHOSEN]
        if c.reserved[i, R_MACHINE] >= 0:
            _unbook(c, i)
    c.times[job, DUE] = np.inf


@leaf
def _tell_others(c, job, start, end, started, new_start, new_end):
    """Look at later jobs that the move of this one may concern; it was to run from `start` to `end`."""
    place = c.jobs[job, PLACE]
    for i in range(c.jobs[job, FIRST], c.jobs[job, END]):
        old, m = c.reserved[i, R_OLD_MACHINE], c.reserved[i, R_MACHINE]
        chosen = c.reserved[i, R_CHOSEN]
        if started:
            m, chosen = c.instances[i, MACHINE], c.instances[i, CHOSEN]
        same = old == m and c.reserved[i, R_OLD_CHOSEN] == chosen
        free_from = max(start, c.x[CLOCK])
        if same and new_start <= free_from:
            free_from = max(free_from, new_end)
        if old >= 0 and free_from < end:
            give_back(c, old, free_from, end)
        if m >= 0 and not (same and start <= new_start and new_end <= end):
            _look_at_overlapping(c, m, new_start, new_end, place)
            if c.machines[m, IS_FREED] > 0:
                c.machines[m, FREED_AHEAD] = UNKNOWN


@part
def replan(c, job, seen):
    """Start a job or reserve for it anew, and look at those behind it whom that concerns."""
    first, start, end = c.jobs[job, FIRST], c.times[job, DUE], np.inf
    if c.reserved[first, R_MACHINE] >= 0:
        end = c.event_at[2 * first + 1]
    cancel(c, job)
    if try_start(c, job, seen < 0) == STARTED:
        _dequeue(c, job)
        _tell_others(c, job, start, end, True, c.x[CLOCK], c.x[CLOCK] + c.times[job, ESTIMATE])
        return
    edge = c.n[EDGE]
    if not _has(c.low, c.jobs[job, PLACE]):
        _admit(c, job, seen)
    if c.n[EDGE] < edge and edge < NONE:
        cancel(c, c.jobs[edge, JOB_AT])
    when = _reserve(c, job)
    c.times[job, DUE] = when
    if when < np.inf:
        _await(c, job)
        _tell_others(c, job, start, end, False, when, c.event_at[2 * first + 1])
    else:
        _tell_others(c, job, start, end, False, np.inf, np.inf)


@leaf
def one_pass(c):
    """Start every visible job that may start, in order, and mend the plan of the others."""
    _sort_fresh(c)
    _look_at_due(c)
    seen, place = 0, -1
    while c.n[STOP] == 0:
        new = c.jobs[seen, FRESH] if seen < c.n[NUM_FRESH] else NONE
        stale = c.jobs[0, STALE_HEAP] if c.n[NUM_STALE] > 0 else NONE
        place = min(new, stale, _next_ahead(c, place))
        if place > c.n[EDGE] or place >= NONE:
            break
        seen += place == new
        job = c.jobs[place, JOB_AT]
        if place == stale:
            _take_stale(c)
        moves = place == new or (place == stale and not _still_fits(c, job, place))
        if moves or _gains_anywhere(c, job, place):
            replan(c, job, seen)
    while c.n[NUM_STALE] > 0:
        _take_stale(c)
    for k in range(c.n[NUM_FREED]):
        c.machines[c.machines[k, FREED], IS_FREED] = 0
    c.n[NUM_FREED] = c.n[NUM_FRESH] = 0
