"""The waiting jobs by their place in the order, with the least that any of them demands: a tree of minima.

Leaf N + k is the job at place k of the order of all jobs, node i the minimum over nodes 2 i and 2 i + 1: of
each resource apart, and of one resource over the jobs that demand little of the first and of devices, for
each of a few steps of both. So the next job in order that may fit somewhere is found by going down where the
minima fit, in about log J steps, however many jobs wait; nothing is ever moved. Without the steps, a node
with a job small in one way and a job small in another would look like a job small in both.
"""

import numpy as np

from schedrl.sim.jit import leaf, part

EMPTY = 1 << 62
"""Demand of what isn't waiting."""
NONE = 1 << 62
"""Place of a job that there isn't."""


STEPS, DEVICE_STEPS = 4, 3
"""Steps of the first resource and of devices."""


def new_tree(num_jobs: int, num_resources: int, rest: int) -> np.ndarray:
    """Return an empty tree for J places, [2 N, R], or [2 N, R + 12] if there is a resource `rest`, not -1."""
    leaves = 1 << max(num_jobs - 1, 1).bit_length()
    columns = num_resources + (STEPS * DEVICE_STEPS if rest >= 0 else 0)
    return np.full((2 * leaves, columns), EMPTY, np.int64)


def steps_of(demand: np.ndarray, g: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Choose steps for the first resource and for devices `g` (-1: none).

    Returns:
        The resource `rest` (-1: there is no third), the step of each job [J] as first x 3 + device step, and
        the least demand of each step [2, 4].
    """
    others = [r for r in range(1, demand.shape[1]) if r != g]
    least = np.full((2, STEPS), EMPTY, np.int64)
    least[1, 0] = 0
    first, least[0] = _steps(demand[:, 0], STEPS)
    device = np.zeros(len(demand), np.int64)
    if g > 0:
        device, least[1, :DEVICE_STEPS] = _steps(demand[:, g], DEVICE_STEPS)
    return (others[0] if others else -1), first * DEVICE_STEPS + device, least


def _steps(amounts: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Divide amounts into steps: each its own if they are few. Returns step of each, least of each step."""
    distinct = np.unique(amounts)
    least = np.full(count, EMPTY, np.int64)
    starts = distinct
    if len(distinct) > count:
        starts = np.unique(np.quantile(amounts, np.arange(count) / count, method="lower").astype(np.int64))
    least[: len(starts)] = starts
    return np.searchsorted(starts, amounts, side="right") - 1, least


@part
def add(low, place, demand, job, rest, step):
    """Add a waiting job; `rest` and `step` are of `steps_of`."""
    node, resources = (low.shape[0] >> 1) + place, demand.shape[1]
    while node > 0:
        news = False
        for q in range(low.shape[1]):
            if q < resources:
                value = demand[job, q]
            else:
                first, device = divmod(q - resources, DEVICE_STEPS)
                inside = first >= step // DEVICE_STEPS and device >= step % DEVICE_STEPS
                value = demand[job, rest] if inside else EMPTY
            if value < low[node, q]:
                low[node, q] = value
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
def has(low, place):
    """Tell whether a job waits at a place."""
    return low[(low.shape[0] >> 1) + place, 0] < EMPTY


@leaf
def _passes(low, node, free, m, rest, column):
    for r in range(free.shape[0]):
        if low[node, r] > free[r, m]:
            return False
    return rest < 0 or low[node, column] <= free[rest, m]


@leaf
def _column(least, free, m, g):
    """Return the step of the most that can be had on machine m, of both, -1 if it can take no job at all."""
    first = device = -1
    for k in range(STEPS):
        if least[0, k] <= free[0, m]:
            first = k
        if least[1, k] <= (free[g, m] if g > 0 else 0):
            device = k
    return first * DEVICE_STEPS + device if first >= 0 and device >= 0 else -1


@part
def first(low, start, end, free, m, rest, least, g):
    """Return the first place in start..end at which a job waits that may fit on machine m; else NONE.

    Resource by resource: whether it fits on the devices is for the caller to see.
    """
    leaves, column = low.shape[0] >> 1, _column(least, free, m, g)
    if start > end or start >= leaves or column < 0:
        return NONE
    column += free.shape[0]
    node, height = leaves + start, 0
    if start == 0:  # from the top, where most searches end: nothing fits
        node = 1
        while leaves >> height > 1:
            height += 1
    while node > 0 and (node << height) - leaves <= end:
        if _passes(low, node, free, m, rest, column):
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
