"""The queue in an order that changes while jobs wait, compiled: scored anew in every pass.

Waiting jobs are a list in any order. A pass gathers the visible ones, the best of all by their scores now,
and starts the best of those that may start, again and again. Jobs that were found not to fit carry the number
of the pass as a stamp.
"""

from schedrl.sim.jit import leaf, part

from . import orders, plan
from .kernel import HELD, STARTED, best, sort_changed, try_start
from .rule import CONSERVATIVE, EASY, HOLD, SKIP
from .schedule import WAITING
from .state import (
    AGING_TIME,
    ARRIVAL,
    CLOCK,
    DECISIONS,
    DISCIPLINE,
    EPOCH,
    ESTIMATE,
    FRESH,
    NUM_FRESH,
    NUM_RESERVED,
    ORDER,
    PRIORITY,
    PROCS,
    SCORE,
    SHARES,
    SPOT,
    STATUS,
    STOP,
    TRIED,
    USER,
    WAITING_JOBS,
    WAITS,
    WINDOW,
)  # fmt: skip

_score, _reserve = orders.score, plan.reserve


@leaf
def enqueue(c, job):
    """Add a waiting job."""
    c.jobs[job, STATUS] = WAITING
    c.jobs[job, SPOT] = c.n[WAITING_JOBS]
    c.jobs[c.n[WAITING_JOBS], WAITS] = job
    c.n[WAITING_JOBS] += 1


@leaf
def dequeue(c, job):
    """Take a job away."""
    c.n[WAITING_JOBS] -= 1
    moved = c.jobs[c.n[WAITING_JOBS], WAITS]
    c.jobs[c.jobs[job, SPOT], WAITS] = moved
    c.jobs[moved, SPOT] = c.jobs[job, SPOT]


@leaf
def _set_score(c, job):
    share = 0.0
    if c.n[SHARES] > 0:
        for r in range(c.used.shape[1]):
            if c.total[r] > 0:
                share = max(share, c.used[c.jobs[job, USER], r] / c.total[r])
    c.times[job, SCORE] = _score(
        c.n[ORDER], c.x[CLOCK], c.times[job, ARRIVAL], c.times[job, ESTIMATE], c.times[job, PROCS],
        c.times[job, PRIORITY], share, c.x[AGING_TIME], c.x[EPOCH],
    )  # fmt: skip


@leaf
def _before(c, job, other):
    one, two = c.times[job, SCORE], c.times[other, SCORE]
    return one < two or (one == two and job < other)


@leaf
def _sink(c, count, job):
    """Put a job in place of the top of the heap of visible jobs, the last in order on top."""
    i, below = 0, 1
    while below < count:
        if below + 1 < count and _before(c, c.jobs[below, FRESH], c.jobs[below + 1, FRESH]):
            below += 1
        if not _before(c, job, c.jobs[below, FRESH]):
            break
        c.jobs[i, FRESH] = c.jobs[below, FRESH]
        i, below = below, 2 * below + 1
    c.jobs[i, FRESH] = job


@leaf
def _rise(c, i, job):
    while i > 0 and _before(c, c.jobs[(i - 1) >> 1, FRESH], job):
        c.jobs[i, FRESH] = c.jobs[(i - 1) >> 1, FRESH]
        i = (i - 1) >> 1
    c.jobs[i, FRESH] = job


@part
def gather(c):
    """Score all waiting jobs and list the visible ones."""
    count = min(c.n[WINDOW], c.n[WAITING_JOBS])
    for k in range(c.n[WAITING_JOBS]):
        job = c.jobs[k, WAITS]
        _set_score(c, job)
        if k < count:
            _rise(c, k, job)
        elif _before(c, job, c.jobs[0, FRESH]):
            _sink(c, count, job)
    c.n[NUM_FRESH] = count


@leaf
def _known_unfit(c, job, stamp):
    return c.jobs[job, TRIED] == stamp - 1 and c.n[DISCIPLINE] != HOLD


@leaf
def next_job(c, stamp, only_fitting):
    """Return the best visible job not found unfit in this pass, -1 if there is none."""
    found = -1
    for k in range(c.n[NUM_FRESH]):
        job = c.jobs[k, FRESH]
        if c.jobs[job, TRIED] == stamp or (found >= 0 and not _before(c, job, found)):
            continue
        if only_fitting and best(c, job, _known_unfit(c, job, stamp)) < 0:
            c.jobs[job, TRIED] = stamp
            continue
        found = job
    return found


@leaf
def one_pass(c):
    """Start the best of the visible jobs that may start, again and again."""
    stamp, waits, discipline = c.n[DECISIONS] + 2, 0, c.n[DISCIPLINE]
    sort_changed(c)
    gather(c)
    while c.n[STOP] == 0:
        job = next_job(c, stamp, discipline <= SKIP or (discipline != CONSERVATIVE and c.n[NUM_RESERVED] > 0))
        if job < 0:
            break
        result = try_start(c, job, _known_unfit(c, job, stamp))
        if result == STARTED:
            dequeue(c, job)
            gather(c)
            continue
        c.jobs[job, TRIED] = stamp
        if result == HELD and waits == 0:
            break
        waits += 1
        if discipline == CONSERVATIVE or (discipline >= EASY and result != HELD and c.n[NUM_RESERVED] == 0):
            _reserve(c, job)
    c.n[NUM_FRESH] = 0
