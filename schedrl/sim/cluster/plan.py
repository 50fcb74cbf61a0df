"""Reservations of jobs that must wait, compiled: made by estimates, in the queue's order.

EASY makes one in each pass, for the first job that can't start; conservative backfilling one for every
visible job: in orders that change while jobs wait anew in each pass, in others it keeps them, see
`conservative`.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

from . import devices, gangs, profile, views
from .rule import CONSERVATIVE, EASY
from .state import (
    CLOCK,
    DEVICE,
    DISCIPLINE,
    END,
    ESTIMATE,
    FIRST,
    LAST_BOOKED,
    MACHINE,
    NUM_RESERVED,
    PLACE,
    R_CHOSEN,
    R_LIST,
    R_MACHINE,
    RESERVED,
    START,
    STATIC,
)  # fmt: skip
from .tree import NONE

ONE = devices.ONE
_pick, _pick_beside, _change = devices.pick, devices.pick_beside, devices.change
_room, _earliest, _earliest_gang = profile.room, views.earliest, gangs.earliest_gang
_link, _unlink = profile.link, profile.unlink


@leaf
def keeps(c):
    """Tell whether reservations stay from one pass to the next."""
    return c.n[DISCIPLINE] == CONSERVATIVE and c.n[STATIC] > 0


@leaf
def before(c, job):
    """Return the place in the queue before which reservations count for the job."""
    return c.jobs[job, PLACE] if keeps(c) else NONE


# -- what runs -----------------------------------------------------------------------------------------------


@leaf
def begins(c, job, i):
    """Note that instance i runs from now on, until its estimate has passed."""
    if c.n[DISCIPLINE] >= EASY:
        _link(c, c.instances[i, MACHINE], 2 * i + 1, c.times[job, START] + c.times[job, ESTIMATE])


@leaf
def ends(c, i):
    """Note that instance i runs no more."""
    if c.n[DISCIPLINE] >= EASY:
        _unlink(c, c.instances[i, MACHINE], 2 * i + 1)


# -- may it start beside the reservations? -------------------------------------------------------------------


@part
def _beside(c, job, m):
    """Return the devices for an instance that is to start now on machine m beside reservations; -1: none."""
    if _room(c, job, m, c.x[CLOCK], before(c, job)) == 0:
        return -1
    return _pick_beside(c.share, m, c.demand[job, c.n[DEVICE]], c.spare_share, 0) if c.n[DEVICE] >= 0 else 0


@leaf
def devices_beside(c, job, m):
    """Return the devices of machine m for an instance that may start there, the fullest that serve."""
    if c.n[DEVICE] < 0:
        return 0
    if c.machines[m, RESERVED] > 0:
        return _beside(c, job, m)
    return _pick(c.share, m, c.demand[job, c.n[DEVICE]])


@leaf
def allowed(c, job, m):
    """Tell whether an instance that fits on machine m now, to start now, leaves all reservations alone."""
    return c.machines[m, RESERVED] == 0 or _beside(c, job, m) >= 0


# -- reservations --------------------------------------------------------------------------------------------


@leaf
def _book(c, job, i, m, when, chosen):
    end = when + c.times[job, ESTIMATE]
    c.reserved[i, R_MACHINE], c.reserved[i, R_CHOSEN] = m, chosen
    _link(c, m, 2 * i, when)
    _link(c, m, 2 * i + 1, end if end > when else np.nextafter(when, np.inf))
    c.machines[m, RESERVED] += 1
    c.reserved[c.n[NUM_RESERVED], R_LIST] = i
    c.n[NUM_RESERVED] += 1
    c.n[LAST_BOOKED] = max(c.n[LAST_BOOKED], c.jobs[job, PLACE])


@leaf
def unbook(c, i):
    """Drop the reservation of instance i."""
    m = c.reserved[i, R_MACHINE]
    _unlink(c, m, 2 * i)
    _unlink(c, m, 2 * i + 1)
    c.machines[m, RESERVED] -= 1
    c.reserved[i, R_MACHINE] = -1
    c.n[NUM_RESERVED] -= 1
    if c.n[NUM_RESERVED] == 0:
        c.n[LAST_BOOKED] = -1


@leaf
def _first_single(c, job):
    """Return the machine that takes the one instance first, -1 if none ever does, and when."""
    found, when = -1, np.inf
    for m in range(c.free.shape[1]):
        if when <= c.x[CLOCK]:
            break
        sooner = _earliest(c, job, m, when, before(c, job))
        if sooner < when:
            found, when = m, sooner
    return found, when


@part
def reserve(c, job):
    """Reserve the earliest start for a job that can't start now, first fit by machine; return when."""
    i, end, last = c.jobs[job, FIRST], c.jobs[job, END], c.free.shape[1]
    if end - i == 1:
        m, when = _first_single(c, job)
        last = m + 1
    else:
        m, when = 0, _earliest_gang(c, job, before(c, job))
    while i < end and when < np.inf and m < last:
        fitting = min(_room(c, job, m, when, before(c, job)), end - i)
        for _ in range(fitting):
            chosen = 0
            if c.n[DEVICE] >= 0:
                chosen = _pick(c.spare_share, 0, c.demand[job, c.n[DEVICE]])
                _change(c.spare_share, 0, chosen, -c.demand[job, c.n[DEVICE]])
            _book(c, job, i, m, when, chosen)
            i += 1
        m += 1
    return when


@leaf
def clear(c):
    """Drop all reservations."""
    while c.n[NUM_RESERVED] > 0:
        unbook(c, c.reserved[c.n[NUM_RESERVED] - 1, R_LIST])
