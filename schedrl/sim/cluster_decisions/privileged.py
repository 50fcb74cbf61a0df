"""What a simulator knows and no policy can: true run times and the jobs to come, compiled; for critics alone.

A critic that sees them tells luck from skill, and its advantages are the less noisy for it. Actions don't
change which jobs come nor how long they run, so the policy's gradient stays unbiased: an asymmetric
actor-critic (Pinto et al., RSS 2018) with an input-dependent baseline (Mao et al., ICLR 2019).
"""

import math

from schedrl.sim.cluster.state import (
    ARRIVAL,
    ARRIVED,
    BEHIND,
    CLOCK,
    DURATION,
    END,
    FIRST,
    HEAD,
    OWNER,
    REJECT,
    START,
    WAITING_JOBS,
)  # fmt: skip
from schedrl.sim.jit import borrowed, leaf, named, njit

from . import observe, queue
from .spec import Spec
from .state import LENGTH, NUM_JOBS, PRESENT, row

_scaled, _weight = observe.scaled, queue.weight

JOB_FEATURES = ("duration",)
"""Of each visible job, on the scale of its estimate."""
MACHINE_FEATURES = ("next finish", "mean time left", "last finish")
"""Of what really runs on each machine, 0 where nothing does."""
ARRIVAL_FEATURES = ("jobs", "their weight in slowdown")
"""Of the jobs that arrive within each horizon and can run, before their work of each resource (duration x
demand, in mean durations and largest machines): per machine and first horizon, as log(1 + x)."""
HORIZONS = 6
FIRST_HORIZON = 0.25
"""In mean durations; each of the HORIZONS is twice the one before."""


@leaf
def _jobs(spec, c, out):
    out[:] = 0.0
    for k in range(min(c.n[WAITING_JOBS], spec.num_slots)):
        out[k, 0] = _scaled(spec, c.more[c.queue[k], LENGTH])


@leaf
def _machine(spec, c, m, out):
    first, last, total, count, i = math.inf, 0.0, 0.0, 0, c.machines[m, HEAD]
    while i >= 0:
        job = c.instances[i, OWNER]
        left = c.times[job, START] + c.times[job, DURATION] - c.x[CLOCK]
        first, last, total, count = min(first, left), max(last, left), total + left, count + 1
        i = c.instances[i, BEHIND]
    out[:] = 0.0
    if count > 0:
        out[0], out[1], out[2] = _scaled(spec, first), _scaled(spec, total / count), _scaled(spec, last)


@leaf
def _add(spec, c, job, out):
    instances = c.jobs[job, END] - c.jobs[job, FIRST]
    out[0] += 1.0
    out[1] += _weight(spec, c, job) * spec.tau
    for r in range(c.largest.shape[0]):
        work = c.more[job, LENGTH] / spec.mean_duration * c.asked[job, r] / c.largest[r]
        out[len(ARRIVAL_FEATURES) + r] += work * instances


@leaf
def _arrivals(spec, c, out):
    out[:] = 0.0
    j, horizon = c.n[ARRIVED], FIRST_HORIZON
    for h in range(HORIZONS):
        until = c.x[CLOCK] + horizon * spec.mean_duration
        while j < c.n[NUM_JOBS] and c.times[j, ARRIVAL] <= until:
            if c.jobs[j, REJECT] == 0:
                _add(spec, c, j, out[h])
            j += 1
        scale = c.n[PRESENT] * horizon / FIRST_HORIZON
        for i in range(out.shape[1]):
            if h + 1 < HORIZONS:
                out[h + 1, i] = out[h, i]
            out[h, i] = math.log1p(out[h, i] / scale)
        horizon *= 2.0


@njit
def privileged(rules, s, envs, jobs, machines, arrivals):
    """Write the features [K, S, .], [K, M, .] and [K, HORIZONS, .] of the environments `envs` [K]."""
    jobs, machines, arrivals = borrowed(jobs), borrowed(machines), borrowed(arrivals)
    for k in range(envs.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, envs[k])
        _jobs(spec, c, jobs[k])
        for m in range(c.free.shape[1]):
            _machine(spec, c, m, machines[k, m])
        _arrivals(spec, c, arrivals[k])
