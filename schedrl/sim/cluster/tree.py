"""The waiting jobs by their place in the order, with the least that any of them demands: a tree of minima.

Leaf N + k is the job at place k of the order of all jobs, node i the minimum over nodes 2 i and 2 i + 1, of
each resource apart. So the next job in order that may fit somewhere is found by going down where the minima
fit, in about log J steps, however many jobs wait; nothing is ever moved.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

EMPTY = 1 << 62
"""Demand of what isn't waiting."""
NONE = 1 << 62
"""Place of a job that there isn't."""


def new_tree(num_jobs: int, num_resources: int) -> np.ndarray:
    """Return an empty tree for J places, [2 N, R]."""
    leaves = 1 << max(num_jobs - 1, 1).bit_length()
    return np.full((2 * leaves, num_resources), EMPTY, np.int64)


@part
def add(low, place, demand, job):
    """Add a waiting job."""
    node = (low.shape[0] >> 1) + place
    while node > 0:
        news = False
        for r in range(low.shape[1]):
            if demand[job, r] < low[node, r]:
                low[node, r] = demand[job, r]
                news = True
        if not news:
            break
        node >>= 1


@part
def remove(low, place):
    """Take a job away."""
    node = (low.shape[0] >> 1) + place
    for r in range(low.shape[1]):
        low[node, r] = EMPTY
    node >>= 1
    news = True
    while node > 0 and news:
        news = False
        for r in range(low.shape[1]):
            least = min(low[2 * node, r], low[2 * node + 1, r])
            if least != low[node, r]:
                low[node, r] = least
                news = True
        node >>= 1


@leaf
def _passes(low, node, free, m):
    for r in range(low.shape[1]):  # noqa: SIM110 - Numba compiles no generators here
        if low[node, r] > free[r, m]:
            return False
    return True


@part
def first(low, start, end, free, m):
    """Return the first place in start..end at which a job waits that may fit on machine m; else NONE.

    Resource by resource: whether it fits on the devices is for the caller to see.
    """
    leaves = low.shape[0] >> 1
    if start > end or start >= leaves:
        return NONE
    node, height = leaves + start, 0
    while node > 0 and (node << height) - leaves <= end:
        if _passes(low, node, free, m):
            if height == 0:
                return node - leaves
            node, height = 2 * node, height - 1
        else:
            while node & 1:
                node, height = node >> 1, height + 1
            node += node > 0
    return NONE


@part
def following(low, start):
    """Return the first place from `start` on at which a job waits; else NONE."""
    leaves = low.shape[0] >> 1
    if start >= leaves:
        return NONE
    node, height = leaves + start, 0
    while node > 0:
        if low[node, 0] < EMPTY:
            if height == 0:
                return node - leaves
            node, height = 2 * node, height - 1
        else:
            while node & 1:
                node, height = node >> 1, height + 1
            node += node > 0
    return NONE


@part
def preceding(low, end):
    """Return the last place up to `end` at which a job waits; else -1."""
    leaves = low.shape[0] >> 1
    if end < 0:
        return -1
    node, height = leaves + min(end, leaves - 1), 0
    while node > 0:
        if low[node, 0] < EMPTY:
            if height == 0:
                return node - leaves
            node, height = 2 * node + 1, height - 1
        else:
            while node > 1 and not node & 1:
                node, height = node >> 1, height + 1
            node -= 1
    return -1
