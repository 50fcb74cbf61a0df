"""The queue in an order that stays, compiled: what is visible, what is new in it, one pass by a discipline.

Jobs wait in a tree by their place in the order (`tree.py`). The window is an edge, the place of the last
visible job of the tree once there are as many as are visible; `fresh` lists visible jobs that were not looked
at yet, all others before the edge are known to fit nowhere but perhaps on changed machines. Most jobs start
when they arrive, and the tree costs a walk of its whole height: so a new job goes into it only when it was
looked at and did not start. Until then it needs no edge: if it stands before that of a full window, the
window's last job is behind it.
"""

from schedrl.sim.jit import leaf

from . import plan, tree
from .kernel import HELD, NO, STARTED, sort_changed, try_start
from .rule import EASY, HOLD, SKIP
from .schedule import WAITING
from .state import (
    AHEAD,
    CHANGED,
    DEVICE,
    DISCIPLINE,
    EDGE,
    END,
    FIRST,
    FRESH,
    JOB_AT,
    NUM_CHANGED,
    NUM_FRESH,
    NUM_RESERVED,
    PLACE,
    PLANNED,
    REST,
    SET,
    STATUS,
    STEP,
    STOP,
    VISIBLE,
    WAITING_JOBS,
    WINDOW,
)  # fmt: skip
from .tree import NONE

_reserve = plan.reserve
_add, _remove, _has, _first = tree.add, tree.remove, tree.has, tree.first
_following, _preceding = tree.following, tree.preceding


@leaf
def enqueue(c, job):
    """Add a waiting job: to the tree, or to those that the next pass looks at before the tree has them."""
    n, place = c.n, c.jobs[job, PLACE]
    c.jobs[job, STATUS] = WAITING
    n[WAITING_JOBS] += 1
    if place > n[EDGE]:
        _add(c.low, place, c.demand, job, n[REST], c.jobs[job, STEP])
    elif n[DISCIPLINE] == HOLD:
        admit(c, job, 0)
    else:
        c.jobs[n[NUM_FRESH], FRESH] = place
        n[NUM_FRESH] += 1


@leaf
def admit(c, job, seen):
    """Put a visible job into the tree; of a full window the last leaves, and new ones behind `seen` too."""
    n = c.n
    _add(c.low, c.jobs[job, PLACE], c.demand, job, n[REST], c.jobs[job, STEP])
    n[VISIBLE] += 1
    if n[VISIBLE] < n[WINDOW]:
        return
    n[EDGE] = _preceding(c.low, n[EDGE])
    if n[VISIBLE] > n[WINDOW]:
        n[EDGE] = _preceding(c.low, n[EDGE] - 1)
        n[VISIBLE] -= 1
    while n[NUM_FRESH] > seen and c.jobs[n[NUM_FRESH] - 1, FRESH] > n[EDGE]:
        n[NUM_FRESH] -= 1
        place = c.jobs[n[NUM_FRESH], FRESH]
        if not _has(c.low, place):
            other = c.jobs[place, JOB_AT]
            _add(c.low, place, c.demand, other, n[REST], c.jobs[other, STEP])


@leaf
def dequeue(c, job):
    """Take away a visible job; if the tree had it, the next one becomes visible."""
    n, place = c.n, c.jobs[job, PLACE]
    n[WAITING_JOBS] -= 1
    if not _has(c.low, place):
        return
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
    """Sort the visible jobs not looked at yet."""
    if c.n[DISCIPLINE] == HOLD:  # what is held may start without any machine having changed
        kept, place = 0, _following(c.low, 0)
        while place <= c.n[EDGE] and place < NONE:
            c.jobs[kept, FRESH] = place
            kept += 1
            place = _following(c.low, place + 1)
        c.n[NUM_FRESH] = kept
    elif c.n[NUM_FRESH] > 1:
        c.jobs[: c.n[NUM_FRESH], FRESH].sort()


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
    """Reserve for the first job of the queue if it stands before `place`: it can't start."""
    n = c.n
    while n[PLANNED] < place:
        waiting = _following(c.low, n[PLANNED])
        if waiting >= place:
            n[PLANNED] = place
            break
        _reserve(c, c.jobs[waiting, JOB_AT])
        # None is made where the job can't run as things stand.
        n[PLANNED] = waiting + 1 if n[NUM_RESERVED] == 0 else NONE


@leaf
def _hopeless(c, job, place):
    """Tell whether a job of one instance before this one asks for no more and yet waits.

    Then this can't start, if that one may run wherever this may. In a full cluster that is so for most, and
    found sooner than by looking at every machine.
    """
    if c.n[DISCIPLINE] != SKIP:
        return False
    less = _first(c.low, 0, place - 1, c.demand.T, job, c.n[REST], c.least, c.n[DEVICE])
    if less >= NONE:
        return False
    other = c.jobs[less, JOB_AT]
    if c.permitted.shape[0] > 0 and c.links[other, SET] not in (0, c.links[job, SET]):
        return False
    return c.jobs[other, END] - c.jobs[other, FIRST] == 1


@leaf
def one_pass(c):
    """Start every visible job that may start, in order."""
    sort_changed(c)
    sort_fresh(c)
    forget_ahead(c)
    c.n[PLANNED] = 0 if c.n[DISCIPLINE] == EASY else NONE
    seen, place = 0, -1
    while c.n[STOP] == 0:
        new = c.jobs[seen, FRESH] if seen < c.n[NUM_FRESH] else NONE
        place = min(new, next_old(c, place))
        if place > c.n[EDGE] or place >= NONE:
            break
        seen += place == new
        job = c.jobs[place, JOB_AT]
        plan_before(c, place)
        result = NO
        if place != new or not _hopeless(c, job, place):
            result = try_start(c, job, place != new)
        if result == STARTED:
            dequeue(c, job)
            forget_ahead(c)
            continue
        if not _has(c.low, place):
            admit(c, job, seen)
        if result == HELD and _following(c.low, 0) == place:
            break
        if c.n[DISCIPLINE] == HOLD and result != HELD and c.n[NUM_RESERVED] == 0:
            _reserve(c, job)
    c.n[NUM_FRESH] = 0
