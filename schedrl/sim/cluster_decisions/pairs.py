"""What placing a visible job on a machine would mean for the others, compiled: of each legal pair.

Apart from `observe` because it looks ahead: how much later, by estimates, the first jobs that can't start now
could start. EASY backfilling asks the same of one job, as yes or no. Amounts of devices are counted together
and a gang as one of its instances: these are features to learn from, the simulator's rules are exact.
"""

import math

import numpy as np

from schedrl.sim.cluster import kernel, waiting
from schedrl.sim.cluster.state import (
    BEHIND,
    CLOCK,
    END,
    ESTIMATE,
    FIRST,
    HEAD,
    HEAP,
    OWNER,
    RUNNING_JOBS,
    START,
    WAITING_JOBS,
)  # fmt: skip
from schedrl.sim.jit import leaf, part

from .decide import finds_room, may_start, visible
from .state import PLACED, PRESENT, SPEED

_fits, _permits = kernel.fits, waiting.permits

BLOCKED = 3
"""Waiting jobs whose delay is shown: the first visible ones that can't start now."""
PAIR_FEATURES = (*(f"delay of blocked job {k + 1}" for k in range(BLOCKED)), "room left")
"""Delays as log(1 + delay / max(estimate, tau)); the mean free share of the machine's resources after it."""
ALLOWED = len(PAIR_FEATURES)
"""Place of a further feature, where it is asked for: whether the job may run on the machine at all."""
MOST = 10.0


OVERDUE = 0.5
"""A job past its estimate is expected to run this share of its age longer, not to end now: estimates that are
wrong are often wrong by a factor."""
ROUNDING = 1e-6


@leaf
def expected_finish(c, job):
    """Return when a running job is expected to end: by its estimate, or later if that has passed."""
    start, now = c.times[job, START], c.x[CLOCK]
    end, age = start + c.times[job, ESTIMATE] / c.more[job, SPEED], now - start
    return end if now - end <= ROUNDING * age else now + OVERDUE * age


@leaf
def _running(c, ends, owners, offset):
    """Write the expected finishes of what runs, those of machine m from `offset[m]` on, the soonest first."""
    count = 0
    for m in range(c.free.shape[1]):
        offset[m] = count
        i = c.machines[m, HEAD]
        while i >= 0:
            job = c.instances[i, OWNER]
            end = expected_finish(c, job)
            k = count
            while k > offset[m] and ends[k - 1] > end:
                ends[k], owners[k] = ends[k - 1], owners[k - 1]
                k -= 1
            ends[k], owners[k] = end, job
            count += 1
            i = c.instances[i, BEHIND]
    offset[c.free.shape[1]] = count


@part
def earliest(c, job, m, other, ends, owners, first, last, left):
    """Return when the job fits on machine m if `other` (-1: none) starts there now; infinite: never.

    `ends` and `owners` from `first` to `last` are what runs there; `left` [R] is scratch.
    """
    when, back, k = c.x[CLOCK], np.inf, first
    for r in range(left.shape[0]):
        left[r] = c.free[r, m]
    if other >= 0:
        back = when + c.times[other, ESTIMATE]
        for r in range(left.shape[0]):
            left[r] -= c.demand[other, r]
    while True:
        fits = True
        for r in range(left.shape[0]):
            fits &= left[r] >= c.demand[job, r]
        if fits:
            return when
        if k < last and ends[k] <= back:
            when, freed = max(when, ends[k]), owners[k]
            k += 1
        elif back < np.inf:
            when, freed = max(when, back), other
            back = np.inf
        else:
            return np.inf
        for r in range(left.shape[0]):
            left[r] += c.demand[freed, r]


@leaf
def _blocked(spec, c, blocked):
    """Write the first visible jobs that can't start, -1 behind them; return how many there are."""
    count = 0
    blocked[:] = -1
    for k in range(min(c.n[WAITING_JOBS], spec.num_slots)):
        if count < BLOCKED and not may_start(c, c.queue[k]):
            blocked[count] = c.queue[k]
            count += 1
    return count


@leaf
def _room_left(c, job, m):
    total, has = 0.0, 0
    for r in range(c.free.shape[0]):
        if c.capacity[r, m] > 0:
            total += (c.free[r, m] - c.demand[job, r]) / c.capacity[r, m]
            has += 1
    return total / has


@leaf
def _delay(spec, c, job, before, elsewhere, here):
    """Return the feature of a job that could start at `before`, and now elsewhere or here."""
    if before == np.inf:
        return 0.0
    later = min(elsewhere, here) - before
    if later == np.inf:
        return MOST
    return min(math.log1p(max(later, 0.0) / max(c.times[job, ESTIMATE], spec.tau)), MOST)


@leaf
def _show_allowed(spec, c, out):
    for k in range(visible(spec, c) if out.shape[2] > ALLOWED else 0):
        for m in range(c.n[PRESENT]):
            out[k, m, ALLOWED] = _permits(c, c.queue[k], m)


@leaf
def _earliest_of(c, job, m, ends, owners, first, last, left):
    """Return when a blocked job fits on machine m as things are; infinite: never."""
    return earliest(c, job, m, -1, ends, owners, first, last, left) if _permits(c, job, m) else np.inf


@leaf
def pairs(spec, c, out):
    """Write the features of each legal pair [S, M, .], 0 for the others but in ALLOWED, if there."""
    machines, resources = c.free.shape[1], c.free.shape[0]
    out[:] = 0.0
    _show_allowed(spec, c, out)
    running = c.n[PLACED]
    for place in range(c.n[RUNNING_JOBS]):
        running += c.jobs[c.jobs[place, HEAP], END] - c.jobs[c.jobs[place, HEAP], FIRST]
    ends, owners = np.empty(running), np.empty(running, np.int64)
    offset, left = np.empty(machines + 1, np.int64), np.empty(resources, np.int64)
    blocked = np.empty(BLOCKED, np.int64)
    _running(c, ends, owners, offset)
    count = _blocked(spec, c, blocked)
    # Of each blocked job: its earliest start, the machine of that, and the earliest on any other machine.
    best, where, second = np.full(BLOCKED, np.inf), np.full(BLOCKED, -1), np.full(BLOCKED, np.inf)
    for b in range(count):
        for m in range(machines):
            at = _earliest_of(c, blocked[b], m, ends, owners, offset[m], offset[m + 1], left)
            if at < best[b]:
                second[b], best[b], where[b] = best[b], at, m
            else:
                second[b] = min(second[b], at)
    for k in range(visible(spec, c)):
        job = c.queue[k]
        whole = finds_room(c, job)
        for m in range(machines):
            if not whole or not _fits(c, job, m):
                continue
            out[k, m, BLOCKED] = _room_left(c, job, m)
            for b in range(count):
                if where[b] == m:  # starting something elsewhere delays nobody
                    here = earliest(c, blocked[b], m, job, ends, owners, offset[m], offset[m + 1], left)
                    out[k, m, b] = _delay(spec, c, blocked[b], best[b], second[b], here)
