"""The reward's terms, compiled: what the passing of time and the ends of jobs earn and cost.

Every term is counted in units of one job, so that the terms of an episode are of comparable size: rates are
per mean gap between arrivals, times in mean durations (docs/simple_cluster.md, "Rewards"). Each is written
with its weight, and the reward is their sum.
"""

import math

from schedrl.sim.cluster.state import ARRIVAL, CLOCK, ESTIMATE, RUNNING_JOBS, WAITING_JOBS
from schedrl.sim.jit import leaf

from .spec import (
    COMPLETION_TIME,
    FINISHED_TERM,
    FRAGMENTATION,
    MAKESPAN,
    SLA,
    SLA_STEPS,
    SLOWDOWN,
    UTILISATION,
    WAITING_TERM,
)  # fmt: skip
from .state import BURST_TIME, DEADLINE, GAP, RATE, RUN_WEIGHT, TERMS, WAIT_WEIGHT

(MINOR, MINOR_COST), (MAJOR, MAJOR_COST), (SEVERE, SEVERE_COST) = SLA_STEPS


@leaf
def free_share(c, r, m):
    """Return the share of a resource that is free on a machine, 0 where it has none."""
    return c.free[r, m] / c.capacity[r, m] if c.capacity[r, m] > 0 else 0.0


@leaf
def used_share(c, m):
    """Return the mean over what machine m has of the shares in use."""
    total, count = 0.0, 0
    for r in range(c.free.shape[0]):
        if c.capacity[r, m] > 0:
            total += 1.0 - free_share(c, r, m)
            count += 1
    return total / count if count > 0 else 0.0


@leaf
def utilisation(c):
    """Return the mean over resources of the share of the cluster's amount that is in use."""
    total, count = 0.0, 0
    for r in range(c.free.shape[0]):
        free, capacity = 0, 0
        for m in range(c.free.shape[1]):
            free += c.free[r, m]
            capacity += c.capacity[r, m]
        if capacity > 0:
            total += 1.0 - free / capacity
            count += 1
    return total / count


@leaf
def stranded(c):
    """Return the mean over machines of what is free beyond the scarcest resource's free share.

    0 on an empty or a full machine; 0.5 where all of one resource is taken and nothing of the other.
    """
    total, machines = 0.0, 0
    for m in range(c.free.shape[1]):
        least, shares, count = 1.0, 0.0, 0
        for r in range(c.free.shape[0]):
            if c.capacity[r, m] > 0:
                share = free_share(c, r, m)
                least, shares, count = min(least, share), shares + share, count + 1
        if count > 0:
            total += shares / count - least
            machines += 1
    return total / machines if machines > 0 else 0.0


@leaf
def limit(spec, c, job):
    """Return how long the job may take from its arrival: to its deadline, or a multiple of its estimate."""
    if c.more[job, DEADLINE] == c.more[job, DEADLINE]:
        return c.more[job, DEADLINE] - c.times[job, ARRIVAL]
    return spec.sla_factor * max(c.times[job, ESTIMATE], spec.tau)


@leaf
def severity(spec, c, job):
    """Return what the job's violation of its limit costs as of now, by steps."""
    allowed = limit(spec, c, job)
    late = c.x[CLOCK] - c.times[job, ARRIVAL] - allowed
    if late <= MINOR:
        return 0.0
    if late <= MAJOR * allowed:
        return MINOR_COST
    return MAJOR_COST if late <= SEVERE * allowed else SEVERE_COST


@leaf
def _waited(spec, c, dt):
    """Return by how much 1 - exp(-rate x wait) grows, summed over the waiting jobs."""
    total, shrink = 0.0, 1.0 - math.exp(-spec.waiting_rate * dt)
    for k in range(c.n[WAITING_JOBS]):
        total += math.exp(-spec.waiting_rate * (c.x[CLOCK] - c.times[c.queue[k], ARRIVAL]))
    return total * shrink


@leaf
def pass_time(spec, c, dt):
    """Charge for a stretch of time in which nothing happens, smooth the histories; then move the clock."""
    n, x = c.n, c.x
    gaps = dt / x[GAP]
    x[TERMS + SLOWDOWN] += spec.slowdown * (x[WAIT_WEIGHT] + x[RUN_WEIGHT]) * dt
    present = n[WAITING_JOBS] + n[RUNNING_JOBS]
    x[TERMS + COMPLETION_TIME] += spec.completion_time * present * dt / spec.mean_duration
    x[TERMS + MAKESPAN] += spec.makespan * gaps
    if spec.utilisation != 0.0:
        x[TERMS + UTILISATION] += spec.utilisation * utilisation(c) * gaps
    if spec.fragmentation != 0.0:
        x[TERMS + FRAGMENTATION] += spec.fragmentation * stranded(c) * gaps
    if spec.waiting != 0.0:
        x[TERMS + WAITING_TERM] += spec.waiting * _waited(spec, c, dt)
    step = 1.0 - math.exp(-dt / spec.history_time)
    for m in range(c.history.shape[0]):
        c.history[m] += step * (used_share(c, m) - c.history[m])
    x[RATE] *= math.exp(-dt / x[BURST_TIME])
    x[CLOCK] += dt


@leaf
def job_finished(spec, c, job):
    """Reward and charge the end of a job."""
    c.x[TERMS + FINISHED_TERM] += spec.finished
    if spec.sla != 0.0:
        c.x[TERMS + SLA] += spec.sla * severity(spec, c, job)


@leaf
def cut_off(spec, c):
    """Charge what is late at the end of an episode that leaves jobs behind."""
    if spec.sla != 0.0:
        for k in range(c.n[WAITING_JOBS]):
            c.x[TERMS + SLA] += spec.sla * severity(spec, c, c.queue[k])
