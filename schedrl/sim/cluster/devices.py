"""Devices: one resource (GPUs) that is made of whole pieces, kept as the free share of each piece.

`share` [M, D] holds micro-units, 0 for a device that a machine doesn't have. An amount of at most one device
must lie on a single one: the fullest on which it fits, the lowest index among equals. A larger amount is
whole and takes that many devices of which nothing is used. Devices on which a reservation would suffer do not
count. Which devices is a set of bits.
"""

from schedrl.sim.jit import leaf

ONE = 1_000_000
"""Micro-units in one unit; amounts are whole numbers of them, so that sums are exact."""
MOST = 62
"""Devices that a machine may have: as many as a set of bits holds."""


@leaf
def room(share, m, amount):
    """Return how many times an amount above 0 fits on the devices of machine m."""
    times = 0
    for d in range(share.shape[1]):
        if amount <= ONE:
            times += share[m, d] // amount
        elif share[m, d] == ONE:
            times += 1
    return times if amount <= ONE else times // (amount // ONE)


@leaf
def fits(share, m, amount):
    """Tell whether an amount (0: always) fits on the devices of machine m."""
    left = amount
    for d in range(share.shape[1]):
        if left <= 0:
            break
        if share[m, d] >= (amount if amount <= ONE else ONE):
            left -= ONE
    return left <= 0


@leaf
def pick(share, m, amount):
    """Return the devices of machine m that the amount, which must fit, is to take, as a set of bits."""
    chosen = 0
    if amount > ONE:
        left = amount
        for d in range(share.shape[1]):
            if left > 0 and share[m, d] == ONE:
                chosen |= 1 << d
                left -= ONE
    elif amount > 0:
        best = -1
        for d in range(share.shape[1]):
            if share[m, d] >= amount and (best < 0 or share[m, d] < share[m, best]):
                best = d
        chosen = 1 << best
    return chosen


@leaf
def pick_beside(share, m, amount, spare, row):
    """Return what `pick` does of the devices with room in row `row` of `spare` too; -1: too few."""
    chosen, left = 0, amount
    if amount > ONE:
        for d in range(share.shape[1]):
            if left > 0 and share[m, d] == ONE and spare[row, d] == ONE:
                chosen |= 1 << d
                left -= ONE
        return chosen if left <= 0 else -1
    best = -1
    for d in range(share.shape[1]):
        if min(share[m, d], spare[row, d]) >= amount and (best < 0 or share[m, d] < share[m, best]):
            best = d
    return (1 << best if best >= 0 else -1) if amount > 0 else 0


@leaf
def change(share, m, chosen, amount):
    """Give the amount back to the chosen devices of machine m; below 0: take it."""
    each = min(max(amount, -ONE), ONE)
    for d in range(share.shape[1]):
        if chosen >> d & 1:
            share[m, d] += each
