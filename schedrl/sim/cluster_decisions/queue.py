"""Waiting jobs of one cluster in an order, compiled: a sorted list, of which the first jobs are visible.

A list and not the tree of `schedrl.sim.cluster.queue`: an episode has hundreds of jobs, not a million, and
an order that changes while jobs wait keeps a list nearly sorted.
"""

import math

from schedrl.sim.cluster.schedule import WAITING
from schedrl.sim.cluster.state import ARRIVAL, CLOCK, ESTIMATE, PRIORITY, STATUS, WAITING_JOBS
from schedrl.sim.jit import leaf

from .spec import ARRIVAL_ORDER, PRIORITY_ORDER, SJF_ORDER
from .state import LENGTH, WAIT_WEIGHT


@leaf
def urgency(spec, c, job):
    """Return urgency x (1 + wait / aging_time); the urgency is the priority, at least 1."""
    wait = c.x[CLOCK] - c.times[job, ARRIVAL]
    return max(c.times[job, PRIORITY], 1.0) * (1.0 + wait / spec.aging_time)


@leaf
def overdue(spec, c, job):
    """Tell whether the job has waited longer than any should: such jobs stand first, by arrival."""
    return c.x[CLOCK] - c.times[job, ARRIVAL] > spec.wait_limit


@leaf
def before(spec, c, job, other):
    """Tell whether a job stands before another one; ties go to the earlier one in the file."""
    mine, others = overdue(spec, c, job), overdue(spec, c, other)
    if mine or others:
        return mine and (not others or job < other)
    if spec.order == SJF_ORDER and c.times[job, ESTIMATE] != c.times[other, ESTIMATE]:
        return c.times[job, ESTIMATE] < c.times[other, ESTIMATE]
    if spec.order == PRIORITY_ORDER:
        urgent, less = urgency(spec, c, job), urgency(spec, c, other)
        if urgent != less:
            return urgent > less
    return job < other


@leaf
def _sift(spec, c, k):
    """Move the job at place k forward to where it belongs among those before it."""
    job = c.queue[k]
    while k > 0 and before(spec, c, job, c.queue[k - 1]):
        c.queue[k] = c.queue[k - 1]
        k -= 1
    c.queue[k] = job


@leaf
def weight(spec, c, job):
    """Return what a unit of waiting costs the job in slowdown."""
    return 1.0 / max(c.more[job, LENGTH], spec.tau)


@leaf
def enqueue(spec, c, job):
    """Add a waiting job."""
    c.jobs[job, STATUS] = WAITING
    k = c.n[WAITING_JOBS]
    c.queue[k] = job
    c.n[WAITING_JOBS] += 1
    c.x[WAIT_WEIGHT] += weight(spec, c, job)
    if spec.order != ARRIVAL_ORDER or c.pauses.shape[0] > 0:  # who waited for others may come before others
        _sift(spec, c, k)


@leaf
def resort(spec, c):
    """Put the queue in order again after time has passed."""
    moves = spec.order == SJF_ORDER or c.pauses.shape[0] > 0
    if spec.order == PRIORITY_ORDER or (moves and spec.wait_limit < math.inf):
        for k in range(1, c.n[WAITING_JOBS]):
            _sift(spec, c, k)


@leaf
def dequeue(spec, c, k):
    """Take the job at place k out."""
    job = c.queue[k]
    c.n[WAITING_JOBS] -= 1
    for place in range(k, c.n[WAITING_JOBS]):
        c.queue[place] = c.queue[place + 1]
    # Exactly 0 where nothing waits: sums of reals drift.
    c.x[WAIT_WEIGHT] = c.x[WAIT_WEIGHT] - weight(spec, c, job) if c.n[WAITING_JOBS] > 0 else 0.0
    return job
