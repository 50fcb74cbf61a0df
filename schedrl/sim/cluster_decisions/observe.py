"""What is seen of one cluster, compiled: scaled for networks (`slots`), or complete and unscaled (`state`).

Counts are per machine and shares of what there is, so that a policy can work on another number of machines.
"""

import math

import numpy as np

from schedrl.sim.cluster import kernel, waiting
from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.state import (
    ARRIVAL,
    ARRIVED,
    BEHIND,
    CHOSEN,
    CLOCK,
    DEVICE,
    END,
    ESTIMATE,
    FIRST,
    HEAD,
    MACHINE,
    OWNER,
    POSITION,
    PRIORITY,
    RUNNING_JOBS,
    START,
    WAITING_JOBS,
)  # fmt: skip
from schedrl.sim.jit import leaf

from . import pairs as placing
from . import rewards
from .decide import finds_room, left_of
from .state import BURST_TIME, GAP, LAST_ARRIVAL, LAST_BURST, NUM_JOBS, PRESENT, RATE, SHOWN, SUBMITTED

_fits, _pairs, _permits = kernel.fits, placing.pairs, waiting.permits
_free_share, _limit, _utilisation = rewards.free_share, rewards.limit, rewards.utilisation
_expected_finish = placing.expected_finish

MACHINE_FEATURES = ("free device", "free devices", "load history", "next finish", "instances")
"""Of each machine behind the free share and the size of each resource."""
JOB_FEATURES = (
    "there",
    "estimate",
    "wait",
    "wait over estimate",
    "instances",
    "urgency",
    "machines that fit",
    "limit used",
)
"""Of each visible job, before its demand of each resource."""
BACKLOG_FEATURES = (
    "waiting beyond the slots",
    "longest wait",
    "arrival rate",
    "since the last arrival",
    "since the last burst",
    "jobs to come",
    "load history",
    "nothing runs",
)
"""Of the cluster, before the utilisation of each resource."""
JOB_COLUMNS = ("estimate", "arrival", "priority", "instances", "deadline")
"""Of each visible job in `state`, before its demand; -1 in all where there is none."""
RUNNING_COLUMNS = ("job", "machine", "devices", "expected finish")
"""Of each running instance in `state`, before what it holds; -1 in all where there is none."""

DECADES = 10.0
"""Natural logarithms of a time over tau that are shown as 1: 22,000 tau."""
HIGHEST_URGENCY = 3.0
HIGHEST_RATE = 4.0


@leaf
def scaled(spec, time):
    """Return a time on a logarithmic scale, 0 at 0 and 1 at 22,000 tau."""
    return math.log1p(max(time, 0.0) / spec.tau) / DECADES


@leaf
def squashed(x):
    """Return a number of 0 or more as 0 to 1."""
    return x / (1.0 + x)


@leaf
def _machine(spec, c, m, out):
    resources = c.free.shape[0]
    for r in range(resources):
        out[r] = _free_share(c, r, m)
        out[resources + r] = c.capacity[r, m] / c.largest[r]
    at = 2 * resources
    most, whole, has = 0, 0, 0
    if c.n[DEVICE] >= 0:
        has = c.capacity[c.n[DEVICE], m] // ONE
        for d in range(c.share.shape[1]):
            most = max(most, c.share[m, d])
            whole += c.share[m, d] == ONE
    out[at] = most / ONE
    out[at + 1] = whole / has if has > 0 else 0.0
    out[at + 2] = c.history[m]
    soonest, count, i = math.inf, 0, c.machines[m, HEAD]
    while i >= 0:
        soonest = min(soonest, _expected_finish(c, c.instances[i, OWNER]))
        count += 1
        i = c.instances[i, BEHIND]
    out[at + 3] = scaled(spec, soonest - c.x[CLOCK]) if count > 0 else 1.0
    out[at + 4] = squashed(count / 4.0)


@leaf
def _job(spec, c, k, out):
    job, machines = c.queue[k], c.free.shape[1]
    wait = c.x[CLOCK] - c.times[job, ARRIVAL]
    out[0] = 1.0
    out[1] = c.more[job, SHOWN]
    out[2] = scaled(spec, wait)
    out[3] = squashed(wait / max(c.times[job, ESTIMATE], spec.tau))
    out[4] = math.log1p(left_of(c, job) - 1.0) / DECADES
    out[5] = min(max(c.times[job, PRIORITY], 1.0), HIGHEST_URGENCY) / HIGHEST_URGENCY
    fitting = 0
    if finds_room(c, job):
        for m in range(machines):
            fitting += _fits(c, job, m)
    out[6] = fitting / c.n[PRESENT]
    allowed = _limit(spec, c, job)
    expected = wait + c.times[job, ESTIMATE]
    out[7] = squashed(expected / allowed) if allowed > 0 else 1.0
    for r in range(c.free.shape[0]):
        out[8 + r] = c.asked[job, r] / c.largest[r]


@leaf
def _backlog(spec, c, out):
    n, x = c.n, c.x
    machines, resources = c.free.shape[1], c.free.shape[0]
    out[0] = squashed(max(n[WAITING_JOBS] - spec.num_slots, 0) / (2.0 * n[PRESENT]))
    longest = 0.0
    for k in range(n[WAITING_JOBS]):
        longest = max(longest, x[CLOCK] - c.times[c.queue[k], ARRIVAL])
    out[1] = scaled(spec, longest)
    since = x[CLOCK] - x[LAST_ARRIVAL]
    out[2] = min(x[RATE] * x[GAP] / HIGHEST_RATE, 1.0)
    out[3] = squashed(since / x[GAP])
    out[4] = squashed((x[CLOCK] - x[LAST_BURST]) / x[BURST_TIME]) if x[LAST_BURST] >= 0 else 1.0
    out[5] = 1.0 - n[ARRIVED] / n[NUM_JOBS] if not spec.continuing else 1.0
    total = 0.0
    for m in range(machines):
        total += c.history[m]
    out[6] = total / n[PRESENT]
    out[7] = n[RUNNING_JOBS] == 0
    for r in range(resources):
        free, capacity = 0, 0
        for m in range(machines):
            free += c.free[r, m]
            capacity += c.capacity[r, m]
        out[8 + r] = 1.0 - free / capacity if capacity > 0 else 0.0


@leaf
def slots(spec, c, cluster, queue, backlog, pairs):
    """Write the scaled observation: cluster [M, .], queue [S, .], backlog [.], pairs [S, M, .]."""
    present = c.n[PRESENT]
    for m in range(present):
        _machine(spec, c, m, cluster[m])
    cluster[present:] = 0.0
    shown = min(c.n[WAITING_JOBS], spec.num_slots)
    for k in range(shown):
        _job(spec, c, k, queue[k])
    queue[shown:] = 0.0
    _backlog(spec, c, backlog)
    _pairs(spec, c, pairs)


@leaf
def _by_start(c, out):
    """Write the running jobs in the order of their starts, then of their numbers.

    Not as the heap has them: that is the order in which they will really finish.
    """
    count = 0
    for job in range(c.n[ARRIVED]):
        if c.jobs[job, POSITION] >= 0:
            k = count
            while k > 0 and c.times[out[k - 1], START] > c.times[job, START]:
                out[k] = out[k - 1]
                k -= 1
            out[k] = job
            count += 1


@leaf
def complete(spec, c, free, capacity, share, jobs, running, scalars):
    """Write the unscaled observation, in the units of the resources and of time.

    free and capacity [M, R], share [M, D], jobs [S, .], running [I, .] (instances beyond its rows, the last
    to start, are left out), scalars [3]: time, waiting jobs, the resource that is made of devices.
    """
    resources, machines = c.free.shape
    for m in range(machines):
        for r in range(resources):
            free[m, r] = c.free[r, m] / ONE
            capacity[m, r] = c.capacity[r, m] / ONE
        for d in range(c.share.shape[1]):
            share[m, d] = c.share[m, d] / ONE
    jobs[:] = -1.0
    for k in range(min(c.n[WAITING_JOBS], spec.num_slots)):
        job = c.queue[k]
        jobs[k, 0], jobs[k, 1] = c.times[job, ESTIMATE], c.more[job, SUBMITTED]
        jobs[k, 2], jobs[k, 3] = c.times[job, PRIORITY], left_of(c, job)
        deadline = c.times[job, ARRIVAL] + _limit(spec, c, job)
        jobs[k, 4] = deadline
        for r in range(resources):
            jobs[k, 5 + r] = c.asked[job, r] / ONE
    running[:] = -1.0
    row, by_start = 0, np.empty(c.n[RUNNING_JOBS], np.int64)
    _by_start(c, by_start)
    for place in range(c.n[RUNNING_JOBS]):
        job = by_start[place]
        for i in range(c.jobs[job, FIRST], c.jobs[job, END]):
            if row < running.shape[0]:
                running[row, 0], running[row, 1] = job, c.instances[i, MACHINE]
                running[row, 2], running[row, 3] = c.instances[i, CHOSEN], _expected_finish(c, job)
                for r in range(resources):
                    running[row, 4 + r] = c.demand[job, r] / ONE
            row += 1
    scalars[0], scalars[1], scalars[2] = c.x[CLOCK], c.n[WAITING_JOBS], c.n[DEVICE]


@leaf
def constraints(spec, c, entered, allowed):
    """Write of each visible job when it entered the queue [S], -1 = none, and where it may run [S, M]."""
    entered[:] = -1.0
    allowed[:] = 0.0
    for k in range(min(c.n[WAITING_JOBS], spec.num_slots)):
        job = c.queue[k]
        entered[k] = c.times[job, ARRIVAL]
        for m in range(c.n[PRESENT]):
            allowed[k, m] = _permits(c, job, m)
