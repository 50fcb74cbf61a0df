"""Placements: one compiled score per machine on which an instance fits, the lowest wins.

Ties go to the lowest machine index.
"""

from schedrl.sim.jit import leaf

PLACEMENTS = {"first_fit": 0, "best_fit": 1}
"""Name -> number that `score` knows it by."""
FIRST_FIT, BEST_FIT = 0, 1


@leaf
def score(placement, m, job, free, capacity, share, demand, largest, typical, last, g):
    """Return the score of machine m for one instance of a job.

    Args:
        placement: a value of `PLACEMENTS`.
        m: the machine.
        job: the job.
        free: [R, M] micro-units.
        capacity: [R, M] micro-units.
        share: [M, D] free micro-units of each device.
        demand: [J, R] micro-units of one instance.
        largest: [R] the largest capacity of any machine, 1 where none has any.
        typical: [P, R + 1] demands in units, and how often they occur (sum 1).
        last: the machine of the placement before, -1 if there was none.
        g: the resource that is made of devices, -1 if none is.
    """
    if placement == BEST_FIT:
        left = 0.0
        for r in range(free.shape[0]):
            left += (free[r, m] - demand[job, r]) / largest[r]
        return left
    return 0.0
