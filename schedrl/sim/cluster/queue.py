"""The queue in an order that stays, compiled: what is visible, what is new in it, one pass by a discipline.

Jobs wait in a tree by their place in the order (`tree.py`). The window is an edge, the place of the last
visible job; `fresh` lists visible jobs that were not looked at yet, all others before the edge are known to
fit nowhere but perhaps on changed machines.
"""

from schedrl.sim.jit import leaf

from . import plan, tree
from .kernel import HELD, STARTED, try_start
from .rule import CONSERVATIVE, EASY, HOLD
from .schedule import WAITING
from .state import (
    AHEAD,
    CHANGED,
    DEVICE,
    DISCIPLINE,
    EDGE,
    FRESH,
    JOB_AT,
    NUM_CHANGED,
    NUM_FRESH,
    NUM_RESERVED,
    PLACE,
    PLANNED,
    REST,
    STATUS,
    STEP,
    VISIBLE,
    WAITING_JOBS,
    WINDOW,
)  # fmt: skip
from .tree import NONE

_reserve = plan.reserve
_add, _remove, _first, _following, _preceding = (
    tree.add,
    tree.remove,
    tree.first,
    tree.following,
    tree.preceding,
)


@leaf
def enqueue(c, job):
    """Add a waiting job."""
    n, place = c.n, c.jobs[job, PLACE]
    c.jobs[job, STATUS] = WAITING
    n[WAITING_JOBS] += 1
    _add(c.low, place, c.demand, job, n[REST], c.jobs[job, STEP])
    if place > n[EDGE]:
        return
    c.jobs[n[NUM_FRESH], FRESH] = place
    n[NUM_FRESH] += 1
    n[VISIBLE] += 1
    if n[VISIBLE] > c.n[WINDOW]:
        n[EDGE] = _preceding(c.low, _preceding(c.low, n[EDGE]) - 1)
        n[VISIBLE] -= 1


@leaf
def dequeue(c, job):
    """Take away a visible job; the next one becomes visible."""
    n, place = c.n, c.jobs[job, PLACE]
    n[WAITING_JOBS] -= 1
    n[VISIBLE] -= 1
    _remove(c.low, place)
    if n[EDGE] < NONE:
        n[EDGE] = _following(c.low, n[EDGE] + 1)
        if n[EDGE] < NONE:
            n[VISIBLE] += 1
            c.jobs[n[NUM_FRESH], FRESH] = n[EDGE]
            n[NUM_FRESH] += 1


@leaf
def sort_fresh(c):
    """Sort the visible jobs not looked at yet, and drop those that were pushed out of the window."""
    kept = 0
    if c.n[DISCIPLINE] == HOLD:  # what is held may start without any machine having changed
        place = _following(c.low, 0)
        while place <= c.n[EDGE] and place < NONE:
            c.jobs[kept, FRESH] = place
            kept += 1
            place = _following(c.low, place + 1)
        c.n[NUM_FRESH] = kept
        return
    for k in range(c.n[NUM_FRESH]):
        if c.jobs[k, FRESH] <= c.n[EDGE]:
            c.jobs[kept, FRESH] = c.jobs[k, FRESH]
            kept += 1
    c.n[NUM_FRESH] = kept
    if kept > 1:
        c.jobs[:kept, FRESH].sort()


@leaf
def next_old(c, after):
    """Return the next place behind `after` of a job that may now fit on a changed machine; else NONE."""
    found = NONE
    for k in range(c.n[NUM_CHANGED]):
        if c.machines[k, AHEAD] <= after:
            c.machines[k, AHEAD] = _first(
                c.low, after + 1, c.n[EDGE], c.free, c.machines[k, CHANGED], c.n[REST], c.least, c.n[DEVICE]
            )
        found = min(found, c.machines[k, AHEAD])
    return found


@leaf
def forget_ahead(c):
    """Make `next_old` search anew: machines have less room than before."""
    for k in range(c.n[NUM_CHANGED]):
        c.machines[k, AHEAD] = -1


@leaf
def plan_before(c, place):
    """Reserve for the jobs before `place`, which can't start: all, or the first of the queue."""
    n = c.n
    while n[PLANNED] < place:
        waiting = _following(c.low, n[PLANNED])
        if waiting >= place:
            n[PLANNED] = place
            break
        _reserve(c, c.jobs[waiting, JOB_AT])
        more = n[DISCIPLINE] == CONSERVATIVE or n[NUM_RESERVED] == 0  # none: it can't run as things stand
        n[PLANNED] = waiting + 1 if more else NONE


@leaf
def one_pass(c):
    """Start every visible job that may start, in order."""
    sort_fresh(c)
    forget_ahead(c)
    c.n[PLANNED] = 0 if c.n[DISCIPLINE] == EASY or c.n[DISCIPLINE] == CONSERVATIVE else NONE
    seen, place = 0, -1
    while True:
        new = c.jobs[seen, FRESH] if seen < c.n[NUM_FRESH] else NONE
        place = min(new, next_old(c, place))
        if place >= NONE:
            break
        seen += place == new
        job = c.jobs[place, JOB_AT]
        plan_before(c, place)
        result = try_start(c, job, place != new)
        if result == STARTED:
            dequeue(c, job)
            forget_ahead(c)
        elif result == HELD and _following(c.low, 0) == place:
            break
        elif c.n[DISCIPLINE] == HOLD and result != HELD and c.n[NUM_RESERVED] == 0:
            _reserve(c, job)
    c.n[NUM_FRESH] = 0
