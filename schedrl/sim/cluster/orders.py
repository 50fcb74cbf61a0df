"""Orders of the queue: one compiled score per waiting job, the lowest first.

Ties go to the earlier arrival, then to the order of the file; the simulator sees to that.
"""

from schedrl.sim.jit import leaf

ORDERS = {"fifo": 0, "sjf": 1}
"""Name -> number that `score` knows it by."""
STATIC = frozenset({"fifo", "sjf"})
"""Those whose score doesn't change while a job waits."""
FIFO, SJF = 0, 1


@leaf
def score(order, now, arrival, estimate, procs, priority, share, aging_time):
    """Return the score of a waiting job.

    Args:
        order: a value of `ORDERS`.
        now: the time, as arrival and estimate.
        arrival: when the job came.
        estimate: how long it is expected to run.
        procs: its instances x demand of the first resource, in the unit of that.
        priority: as the workload has it, larger = more important.
        share: dominant share of the job's user at this moment.
        aging_time: wait after which the urgency of a job has doubled.
    """
    if order == SJF:
        return estimate
    return arrival
