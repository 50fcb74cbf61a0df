"""Orders of the waiting jobs: each a formula, of which the lowest value comes first.

Symbols: w = now - arrival, r = estimate, n = processors (instances x demand of the first resource), s =
arrival since the epoch, which is the trace's first arrival unless `simulate(epoch=...)` says otherwise. Ties
go to the earlier arrival, then to the file's order. They live here, not with the other heuristics, because
they are compiled into the simulator's loop. A time of 0 is read as `TINY` where a formula divides by it or
takes its logarithm (as RLScheduler does).

* `fifo` s. `sjf` r, `ljf` -r. `smallest` n, `largest` -n. `saf` (smallest area) r n, `laf` -r n.
* `xf` -(w + r) / r: the expansion factor, also called highest response ratio next (Brinch Hansen 1971).
* `wfp3` -(w / r)^3 n and `unicep` -w / (log2(n) r): Tang, Lan, Desai and Buettner, "Fault-aware,
  utility-based job scheduling on Blue Gene/P systems", Cluster 2009, in the form of RLScheduler, SC 2020.
  UNICEP is not defined at one processor, where log2(n) = 0; here n below 2 counts as 2.
* `f1` log10(r) n + 870 log10(s), `f2` sqrt(r) n + 25600 log10(s), `f3` r n + 6860000 log10(s), `f4` r sqrt(n)
  + 530000 log10(s): Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation
  and machine learning", SC 2017. They were fitted with times in seconds and s from the start of a simulated
  workload, so they depend on the epoch and on the unit of time.
* `drf` the dominant share of the job's user: max over resources of what the user's running jobs hold, over
  what the cluster has (Ghodsi et al., "Dominant resource fairness", NSDI 2011). Jobs without a user share
  one.
* `priority` -urgency (1 + w / aging_time), with urgency = priority, at least 1: urgent jobs come first and
  waiting makes any job more urgent. (Formulas that subtract the wait starve those who wait.)
"""

import math

from schedrl.sim.jit import leaf

ORDERS = {
    name: code
    for code, name in enumerate(
        (
            *("fifo", "sjf", "ljf", "saf", "laf", "smallest", "largest", "f1", "f2", "f3", "f4"),
            *("xf", "wfp3", "unicep", "drf", "priority"),
        )
    )
}
"""Name -> code, in the order of the constants below."""

FIFO, SJF, LJF, SAF, LAF, SMALLEST, LARGEST, F1, F2, F3, F4, XF, WFP3, UNICEP, DRF, PRIORITY = range(16)

STATIC = frozenset(name for name, code in ORDERS.items() if code <= F4)
"""Orders whose values never change while a job waits."""

TINY = 0.1
"""What a time of 0 counts as in quotients and logarithms, in the unit of time."""


@leaf
def score(order, now, arrival, estimate, procs, priority, share, aging_time, epoch):
    """Return the value of a job under an order, lowest first.

    Args:
        order: code, see ORDERS.
        now: time.
        arrival: of the job.
        estimate: run time asked for; the duration where none was.
        procs: instances x demand of the first resource, in its unit.
        priority: of the job, larger = more important; below 1 counts as 1.
        share: dominant share of the job's user at this moment, 0 to 1.
        aging_time: wait after which a job's urgency has doubled.
        epoch: time from which F1 to F4 count arrivals.
    """
    if order <= LARGEST:
        return plain(order, arrival, estimate, procs)
    if order <= F4:
        return fitted(order, max(arrival - epoch, TINY), max(estimate, TINY), procs)
    if order == DRF:
        return share
    return aged(order, now - arrival, max(estimate, TINY), procs, max(priority, 1.0), aging_time)


@leaf
def plain(order, arrival, estimate, procs):
    """FIFO, and the orders by run time, processors and their product."""
    if order == SJF:
        return estimate
    if order == LJF:
        return -estimate
    if order == SAF:
        return estimate * procs
    if order == LAF:
        return -estimate * procs
    if order == SMALLEST:
        return procs
    if order == LARGEST:
        return -procs
    return arrival


@leaf
def fitted(order, s, r, n):
    """F1 to F4."""
    if order == F1:
        return math.log10(r) * n + 870.0 * math.log10(s)
    if order == F2:
        return math.sqrt(r) * n + 25600.0 * math.log10(s)
    if order == F3:
        return r * n + 6860000.0 * math.log10(s)
    return r * math.sqrt(n) + 530000.0 * math.log10(s)


@leaf
def aged(order, w, r, n, urgency, aging_time):
    """Compare by orders that let a job's wait count."""
    if order == XF:
        return -(w + r) / r
    if order == WFP3:
        ratio = w / r
        return -(ratio * ratio * ratio) * n
    if order == UNICEP:
        return -w / (math.log2(max(n, 2.0)) * r)
    return -urgency * (1.0 + w / aging_time)
