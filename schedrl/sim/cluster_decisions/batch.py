"""Whole batches of clusters in one call: load job sequences, step, observe.

Functions take the rules as numbers and the arrays of a `State` as a plain tuple: Numba recognises both much
faster than the NamedTuples they stand for.
"""

import numpy as np

from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.state import (
    AFTER,
    AFTER_END,
    ARRIVAL,
    CHOSEN,
    DECISIONS,
    DEVICE,
    DURATION,
    END,
    ESTIMATE,
    FINISH,
    FIRST,
    HEAD,
    LAST,
    LEFT,
    OWNER,
    POSITION,
    PRIORITY,
    READY,
    REJECT,
    SET,
    START,
    THINK,
)  # fmt: skip
from schedrl.sim.jit import borrowed, leaf, named, njit

from . import decide, observe
from .spec import ELASTIC, TERM_NAMES, Spec
from .state import (
    BURST_TIME,
    DEADLINE,
    ENDED,
    GAP,
    LAST_BURST,
    LENGTH,
    NUM_JOBS,
    PRESENT,
    RETURN,
    SEQUENCE,
    SHOWN,
    SPEED,
    SUBMITTED,
    TERMINATED,
    TERMS,
    TRUNCATED,
    row,
)  # fmt: skip

_step, _legal_choices, _to_next_decision, _least, _outcome = (
    decide.step,
    decide.legal_choices,
    decide.to_next_decision,
    decide.least,
    decide.outcome,
)
_slots, _complete, _scaled = observe.slots, observe.complete, observe.scaled
_constraints = observe.constraints


@njit
def step(rules, s, actions, devices, ratios, rewards, terms, terminated, truncated):
    """Take one decision in each cluster that is not over; the others earn nothing.

    Args:
        rules: the spec's numbers.
        s: arrays.
        actions: [N] choices.
        devices: [N] of elastic actions.
        ratios: [N, 2] of elastic actions.
        rewards: [N] written.
        terms: [T, N] written, what the rewards are made of.
        terminated: [N] written.
        truncated: [N] written.
    """
    for k in range(actions.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, k)
        going = c.n[ENDED] == 0
        rewards[k] = 0.0
        if going:
            rewards[k] = _step(spec, c, actions[k], devices[k], ratios[k, 0], ratios[k, 1])
        for term in range(len(TERM_NAMES)):
            terms[term, k] = c.x[TERMS + term] if going else 0.0
        terminated[k], truncated[k] = c.n[ENDED] == TERMINATED, c.n[ENDED] == TRUNCATED


@leaf
def _empty(spec, c, present, capacity):
    """Put the machines and the counters of a cluster as they are before anything has come.

    It has the first `present` machines of `capacity`; the mean gap is that of all of them.
    """
    device = c.n[DEVICE]
    c.n[:] = 0
    c.n[DEVICE], c.n[LAST], c.n[PRESENT] = device, -1, present
    c.x[:] = 0.0
    c.x[LAST_BURST] = -1.0
    stretch = c.free.shape[1] / present
    c.x[GAP], c.x[BURST_TIME] = spec.mean_gap * stretch, spec.burst_time * stretch
    for m in range(c.share.shape[0]):
        for r in range(c.free.shape[0]):  # a copy in one line would compile texts of errors, for seconds
            c.free[r, m] = c.capacity[r, m] = capacity[r, m] if m < present else 0
        for d in range(c.share.shape[1]):
            has = c.capacity[device, m] // ONE if device >= 0 else 0
            c.share[m, d] = ONE if d < has else 0
    c.machines[:] = 0
    c.machines[:, HEAD] = -1
    c.history[:] = 0.0
    c.jobs[:] = 0
    c.jobs[:, POSITION] = -1
    c.times[:, START] = np.nan
    c.times[:, FINISH] = np.nan
    c.instances[:] = -1
    c.instances[:, CHOSEN] = 0


@leaf
def _constrain(c, count, links, think, after):
    """Write what the jobs wait for and where they may run."""
    pair = 0
    for j in range(min(count, links.shape[0])):
        c.links[j, SET], c.links[j, LEFT] = links[j, 0], links[j, 1]
        c.links[j, AFTER] = pair
        pair += links[j, 2]
        c.links[j, AFTER_END] = pair
    for j in range(min(count, think.shape[0])):
        c.pauses[j, THINK], c.pauses[j, READY] = think[j], 0.0 if links[j, 1] > 0 else -1.0
    for k in range(pair):
        c.after[k] = after[k]


@njit
def load(
    rules, s, envs, numbers, capacity, counts, columns, demands, instances, machines, links, think, after
):
    """Give cluster envs[k] the k-th jobs as sequence numbers[k], reset it and go to its first decision.

    Args:
        rules: the spec's numbers.
        s: arrays.
        envs: [K].
        numbers: [K] of the sequences.
        capacity: [R, M] micro-units of all machines.
        counts: [K] jobs of each.
        columns: [K, J, 6] arrival, duration, estimate, priority, deadline (NaN: none), number of a reason to
            reject (0: none).
        demands: [K, J, R] micro-units.
        instances: [K, J].
        machines: [K] how many of the machines each has, the first ones.
        links: [K, J, 3] row of `permitted`, jobs it waits for, how many wait for it; [K, 0, 3]: none.
        think: [K, J] think times; [K, 0] where no job waits for another.
        after: [K, P] the jobs that wait for the first, for the second, and so on.
    """
    for k in range(envs.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, envs[k])
        _empty(spec, c, machines[k], capacity)
        c.n[SEQUENCE], c.n[NUM_JOBS] = numbers[k], counts[k]
        first = 0
        for j in range(counts[k]):
            c.times[j, ARRIVAL], c.times[j, DURATION] = columns[k, j, 0], columns[k, j, 1]
            c.times[j, ESTIMATE], c.times[j, PRIORITY] = columns[k, j, 2], columns[k, j, 3]
            c.more[j, LENGTH], c.more[j, DEADLINE] = columns[k, j, 1], columns[k, j, 4]
            c.more[j, SPEED], c.more[j, SUBMITTED] = 1.0, columns[k, j, 0]
            c.more[j, SHOWN] = _scaled(spec, columns[k, j, 2])
            c.jobs[j, REJECT] = int(columns[k, j, 5])
            c.jobs[j, FIRST], c.jobs[j, END] = first, first + instances[k, j]
            for i in range(first, first + instances[k, j]):
                c.instances[i, OWNER] = j
            first += instances[k, j]
            for r in range(demands.shape[2]):
                c.asked[j, r] = c.demand[j, r] = demands[k, j, r]
                if spec.action == ELASTIC and (r == spec.cpu or r == spec.memory):
                    c.demand[j, r] = _least(spec, demands[k, j, r])
        _constrain(c, counts[k], links[k], think[k], after[k])
        _to_next_decision(spec, c, c.n[ENDED] == 0)


@leaf
def _mask(spec, c, mask):
    """Write the mask of the discrete choice; device numbers behind it are always legal."""
    mask[:] = True
    if spec.masked:
        _legal_choices(spec, c, mask[: spec.num_choices])


@njit
def legal_choices(rules, s, envs, masks):
    """Write the masks [K, A] of the discrete choices and of the device numbers."""
    for k in range(envs.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, envs[k])
        _mask(spec, c, masks[k])


@njit
def slots(rules, s, envs, masks, cluster, queue, backlog, pairs):
    """Write masks [K, A] and the scaled observation, see `observe.slots`."""
    masks, cluster, queue, backlog = borrowed(masks), borrowed(cluster), borrowed(queue), borrowed(backlog)
    pairs = borrowed(pairs)
    for k in range(envs.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, envs[k])
        _mask(spec, c, masks[k])
        _slots(spec, c, cluster[k], queue[k], backlog[k], pairs[k])


@njit
def complete(rules, s, envs, masks, free, capacity, share, jobs, running, scalars, entered, allowed):
    """Write masks [K, A] and the unscaled observation, see `observe.complete`."""
    for k in range(envs.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, envs[k])
        _mask(spec, c, masks[k])
        _complete(spec, c, free[k], capacity[k], share[k], jobs[k], running[k], scalars[k])
        _constraints(spec, c, entered[k], allowed[k])


@njit
def summarise(rules, s, envs, out):
    """Write of each episode [K, 6]: return, decisions, mean bounded slowdown of finished jobs, jobs that
    arrived, finished and rejected ones.
    """  # noqa: D205
    for k in range(envs.shape[0]):
        spec, c = named(Spec, rules, 0), row(s, envs[k])
        out[k, 0], out[k, 1] = c.x[RETURN], c.n[DECISIONS]
        out[k, 2], out[k, 3], out[k, 4], out[k, 5] = _outcome(spec, c)
