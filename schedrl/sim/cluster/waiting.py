"""What limits jobs, compiled: where one may run, who is let go when one finishes, and who never will be.

A job enters the queue when the last job it waits for has finished and its think time has gone by, but not
before it arrives. Those whose think time goes by are in a heap by the end of it. Nothing here calls itself: a
chain may be as long as there are jobs.
"""

import numpy as np

from schedrl.sim.jit import leaf

from .schedule import REJECTED
from .state import (
    AFTER,
    AFTER_END,
    ARRIVAL,
    ARRIVED,
    CLOCK,
    LATER,
    LATER_JOBS,
    LEFT,
    READY,
    REJECT,
    SET,
    STATUS,
    THINK,
)  # fmt: skip


@leaf
def permits(c, job, m):
    """Tell whether the job may run on machine m at all."""
    return c.permitted.shape[0] == 0 or c.permitted[c.links[job, SET], m] > 0


@leaf
def _sooner(c, job, other):
    one, two = c.pauses[job, READY], c.pauses[other, READY]
    return one < two or (one == two and job < other)


@leaf
def _push(c, job):
    k = c.n[LATER_JOBS]
    c.n[LATER_JOBS] += 1
    while k > 0 and _sooner(c, job, c.links[(k - 1) >> 1, LATER]):
        c.links[k, LATER] = c.links[(k - 1) >> 1, LATER]
        k = (k - 1) >> 1
    c.links[k, LATER] = job


@leaf
def _pop(c):
    first, last = c.links[0, LATER], c.n[LATER_JOBS] - 1
    c.n[LATER_JOBS] = last
    job, k, below = c.links[last, LATER], 0, 1
    while below < last:
        if below + 1 < last and _sooner(c, c.links[below + 1, LATER], c.links[below, LATER]):
            below += 1
        if not _sooner(c, c.links[below, LATER], job):
            break
        c.links[k, LATER] = c.links[below, LATER]
        k, below = below, 2 * below + 1
    c.links[k, LATER] = job
    return first


@leaf
def let_go(c, job):
    """Tell those who wait for the job that it has finished."""
    if c.pauses.shape[0] == 0:
        return
    for k in range(c.links[job, AFTER], c.links[job, AFTER_END]):
        other = c.after[k]
        c.links[other, LEFT] -= 1
        if c.links[other, LEFT] == 0 and c.jobs[other, REJECT] == 0:
            c.pauses[other, READY] = c.x[CLOCK] + c.pauses[other, THINK]
            if other < c.n[ARRIVED]:
                _push(c, other)


@leaf
def must_wait(c, job):
    """Tell whether a job that arrives now must wait for others, or for its think time to go by."""
    if c.pauses.shape[0] == 0:
        return False
    if c.links[job, LEFT] > 0:
        return True
    if c.pauses[job, READY] <= c.x[CLOCK]:
        return False
    _push(c, job)
    return True


@leaf
def still_waits(c, job):
    """Tell whether a job that has come waits for others, or for its think time to go by."""
    return c.pauses.shape[0] > 0 and (c.links[job, LEFT] > 0 or c.pauses[job, READY] > c.x[CLOCK])


@leaf
def next_ready(c):
    """Return when the next think time is over; infinite: none goes by."""
    return c.pauses[c.links[0, LATER], READY] if c.n[LATER_JOBS] > 0 else np.inf


@leaf
def ready(c):
    """Take out a job whose think time is over, which has now come; -1 if there is none."""
    if next_ready(c) > c.x[CLOCK]:
        return -1
    job = _pop(c)
    c.times[job, ARRIVAL] = c.x[CLOCK]
    return job


@leaf
def turn_away(c, job, reason):
    """Reject whatever waits for the job, and whatever waits for that; return how many have come already.

    The list of think times is the heap's: what is behind its end serves as a stack.
    """
    if c.pauses.shape[0] == 0:
        return 0
    bottom = top = c.n[LATER_JOBS]
    come = 0
    while True:
        for k in range(c.links[job, AFTER], c.links[job, AFTER_END]):
            other = c.after[k]
            if c.jobs[other, REJECT] > 0:
                continue
            c.jobs[other, REJECT] = reason
            if other < c.n[ARRIVED]:
                c.jobs[other, STATUS] = REJECTED
                come += 1
            c.links[top, LATER] = other
            top += 1
        if top == bottom:
            return come
        top -= 1
        job = c.links[top, LATER]
