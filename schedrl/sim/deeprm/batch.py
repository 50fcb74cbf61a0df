"""Whole batches of clusters in one call: load job sequences, step, observe.

Each is a `Batch`: call it with `threads=1` (the default) for the loop in order, or with more. Observing takes
`envs` [K], the environments to look at, and writes row k for environment envs[k].
"""

from numba import prange

from schedrl.sim.jit import Batch, borrowed

from . import kernel, observe
from .sequences import NEVER
from .state import ENDED, SEQUENCE, TERMINATED, TERMS, TRUNCATED


@Batch
def step(rules, ints, reals, words, actions, rewards, terms, terminated, truncated):
    """Take one decision, one of 0..S, in each environment that is not over; the others earn nothing.

    Writes rewards [N], terms [4, N] (what the rewards are made of) and whether the episodes are over [N].
    """
    ints, reals, words = borrowed(ints), borrowed(reals), borrowed(words)
    for n in prange(actions.shape[0]):
        spec, at = kernel.opened(rules)
        going = ints[n, ENDED] == 0
        rewards[n] = kernel.step(spec, at, ints[n], reals[n], words[n], actions[n]) if going else 0.0
        for k in range(4):
            terms[k, n] = reals[n, TERMS + k] if going else 0.0
        terminated[n], truncated[n] = ints[n, ENDED] == TERMINATED, ints[n, ENDED] == TRUNCATED


@Batch
def load(rules, ints, reals, words, envs, numbers, arrival, duration, demand, left):
    """Give environment envs[k] the k-th row of jobs as sequence number numbers[k], and reset it.

    The rows may be shorter than the state's, and have gaps: an arrival at NEVER is no job. SUMMARY of the
    episode that is left goes into its column of left [5, N].
    """
    ints, reals, words, left = borrowed(ints), borrowed(reals), borrowed(words), borrowed(left)
    for k in prange(envs.shape[0]):
        spec, at = kernel.opened(rules)
        n = envs[k]
        row = ints[n]
        kernel.summarise(at, row, reals[n], left[:, n])
        j = 0
        for given in range(arrival.shape[1]):
            if arrival[k, given] != NEVER:
                row[at.arrival + j] = arrival[k, given]
                row[at.duration + j] = duration[k, given]
                for r in range(spec.num_resources):
                    row[at.demand + j * spec.num_resources + r] = demand[k, given, r]
                j += 1
        row[at.arrival + j : at.arrival + at.jobs] = NEVER
        row[at.duration + j : at.duration + at.jobs] = 0
        row[at.demand + j * spec.num_resources : at.demand + at.jobs * spec.num_resources] = 0
        row[SEQUENCE] = numbers[k]
        kernel.reset(spec, at, row, reals[n], words[n])


@Batch
def legal_actions(rules, ints, reals, words, envs, masks):
    """Write the masks [K, S + 1]."""
    ints, reals, words = borrowed(ints), borrowed(reals), borrowed(words)
    masks = borrowed(masks)
    for k in prange(envs.shape[0]):
        spec, at = kernel.opened(rules)
        n = envs[k]
        kernel.legal_actions(spec, at, ints[n], words[n], masks[k])


@Batch
def compact(rules, ints, reals, words, envs, masks, out):
    """Write masks [K, S + 1] and the compact vectors [K, D]."""
    ints, reals, words = borrowed(ints), borrowed(reals), borrowed(words)
    masks, out = borrowed(masks), borrowed(out)
    for k in prange(envs.shape[0]):
        spec, at = kernel.opened(rules)
        n = envs[k]
        kernel.legal_actions(spec, at, ints[n], words[n], masks[k])
        observe.compact(spec, at, ints[n], out[k])


@Batch
def image(rules, ints, reals, words, envs, masks, scale, out):
    """Write masks [K, S + 1] and the pictures [K, H, W]."""
    ints, reals, words = borrowed(ints), borrowed(reals), borrowed(words)
    masks, out = borrowed(masks), borrowed(out)
    for k in prange(envs.shape[0]):
        spec, at = kernel.opened(rules)
        n = envs[k]
        kernel.legal_actions(spec, at, ints[n], words[n], masks[k])
        observe.image(spec, at, ints[n], scale, out[k])


@Batch
def slots(rules, ints, reals, words, envs, masks, scale, cluster, queue, backlog):
    """Write masks [K, S + 1] and the structured observation."""
    ints, reals, words = borrowed(ints), borrowed(reals), borrowed(words)
    masks, cluster, queue, backlog = borrowed(masks), borrowed(cluster), borrowed(queue), borrowed(backlog)
    for k in prange(envs.shape[0]):
        spec, at = kernel.opened(rules)
        n = envs[k]
        kernel.legal_actions(spec, at, ints[n], words[n], masks[k])
        observe.slots(spec, at, ints[n], words[n], scale, masks[k], cluster[k], queue[k], backlog[k])


@Batch
def decision_state(
    rules, ints, reals, words, envs, masks, startable, duration, demand, arrival, free, scalars
):
    """Write masks [K, S + 1] and what rules read."""
    ints, reals, words = borrowed(ints), borrowed(reals), borrowed(words)
    for k in prange(envs.shape[0]):
        spec, at = kernel.opened(rules)
        n, mask = envs[k], masks[k]
        kernel.legal_actions(spec, at, ints[n], words[n], mask)
        observe.decision_state(
            spec, at, ints[n], words[n], mask,
            startable[k], duration[k], demand[k], arrival[k], free[k], scalars[k],
        )  # fmt: skip
