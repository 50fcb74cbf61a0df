"""Placements: the value of each machine for one instance of a job, of which the lowest is taken.

Asked only of machines on which the instance fits now. Ties go to the lowest index: machines are gone through
in that order, and one is better only if its value is lower by more than `TIE`, so that the rounding of reals
decides nothing. For resource k: f = free, d = demand, C = the machine's capacity, X = the largest capacity of
any machine. They live here, not with the other heuristics, because they are compiled into the simulator.

* `first_fit`: the lowest index. `next_fit`: the first from the machine after the last placement's, around.
* `best_fit` sum_k w_k (f_k - d_k) / X_k, and `worst_fit` the most of it. As in the simulator of OpenB
  (github.com/hkust-adsl/kubernetes-scheduler-simulator, best_fit_score.go) w is .5 for the first resource and
  .5 for the devices where the cluster has some, others 0; else equal.
* `spread` (Kubernetes' LeastAllocated) most of mean_k (f_k - d_k) / C_k over what the machine has;
  `most_allocated` least of it. With equal machines and equal weights they are worst_fit and best_fit.
* `balanced` (NodeResourcesBalancedAllocation) least standard deviation over k of (C_k - f_k + d_k) / C_k,
  what would be allocated.
* `dot_product` sum_k (f_k / X_k) (d_k / X_k) / K, smaller is better: OpenB's dot_product_score.go, which
  avoids machines with much of what the job asks for.
* `tetris` sum_k (f_k / C_k) (d_k / C_k), larger is better: Grandl et al., "Multi-resource packing for cluster
  schedulers", SIGCOMM 2014. Its second term, eps x remaining work, is the same for every machine: it
  matters where jobs are chosen too, see `schedrl.heuristics.cluster.tetris`.
* `gpu_packing` (OpenB's gpu_packing_score.go), points of which most are best: devices in use already:
  100 - (their free per cent) / 10, at least 50; else k free devices of a machine in use: 50 - k, at least 33;
  a machine whose devices are all free: 33 - their number, or that number. 0 for a job without devices.
* `fgd`, fragmentation gradient descent: least growth of the machine's fragmentation (Weng et al., "Beware of
  Fragmentation", USENIX ATC 2023; fgd_score.go rounds it to whole points of a sigmoid, here it is not
  rounded), on the device that the instance would get if nothing were reserved. See `fragmentation`.
"""

import math

from schedrl.sim.jit import leaf

from .devices import ONE, pick

PLACEMENTS = {
    name: code
    for code, name in enumerate(
        (
            *("first_fit", "next_fit", "best_fit", "worst_fit", "spread", "most_allocated", "balanced"),
            *("dot_product", "tetris", "gpu_packing", "fgd"),
        )
    )
}
"""Name -> code, in the order of the constants below."""

FIRST_FIT, NEXT_FIT, BEST_FIT, WORST_FIT, SPREAD, MOST_ALLOCATED = range(6)
BALANCED, DOT_PRODUCT, TETRIS, GPU_PACKING, FGD = range(6, 11)

TIE = 1e-12
"""Values nearer than this are equal: sums of a few shares, whose rounding is below 1e-14."""


@leaf
def score(placement, m, job, free, capacity, share, demand, largest, typical, last, g):
    """Return the value of machine m for one instance of a job, lowest first.

    Args:
        placement: code, see PLACEMENTS.
        m: machine on which the instance fits now.
        job: row of `demand`.
        free: [R, M] micro-units.
        capacity: [R, M] micro-units.
        share: [M, D] free micro-units of each device; 0 where the machine has no such device.
        demand: [J, R] micro-units of one instance.
        largest: [R] largest capacity of any machine, micro-units, at least 1.
        typical: [P, R + 1] demands of the typical jobs, micro-units, and how often they come; `fgd` reads it.
        last: machine of the previous placement, -1 = none; `next_fit` reads it.
        g: the resource that is made of devices, -1 = none.
    """
    if placement <= NEXT_FIT:
        return 0.0 if placement == FIRST_FIT else float((m - last - 1) % free.shape[1])
    if placement <= WORST_FIT:
        left = remaining(m, job, free, demand, largest, g)
        return left if placement == BEST_FIT else -left
    if placement <= MOST_ALLOCATED:
        left = mean_free(m, job, free, capacity, demand)
        return left if placement == MOST_ALLOCATED else -left
    if placement == BALANCED:
        return imbalance(m, job, free, capacity, demand)
    if placement == DOT_PRODUCT:
        return dot_product(m, job, free, demand, largest)
    if placement == TETRIS:
        return -alignment(m, job, free, capacity, demand)
    if g < 0:
        return 0.0
    if placement == GPU_PACKING:
        return -packing_points(m, demand[job, g], capacity[g, m] // ONE, share)
    return gradient(m, job, free, share, demand, typical, g)


@leaf
def remaining(m, job, free, demand, largest, g):
    """Sum what would stay free over the largest capacities, weighted as OpenB does."""
    num = free.shape[0]
    left = 0.0
    for k in range(num):
        weight = 1.0 / num
        if g >= 0:
            weight = (0.5 if k == 0 else 0.0) + (0.5 if k == g else 0.0)
        left += weight * (free[k, m] - demand[job, k]) / largest[k]
    return left


@leaf
def mean_free(m, job, free, capacity, demand):
    """Average over what the machine has of the fraction that would stay free."""
    left, count = 0.0, 0
    for k in range(free.shape[0]):
        if capacity[k, m] > 0:
            left += (free[k, m] - demand[job, k]) / capacity[k, m]
            count += 1
    return left / count


@leaf
def imbalance(m, job, free, capacity, demand):
    """Return the standard deviation of the fractions that would be allocated."""
    total, squares, count = 0.0, 0.0, 0
    for k in range(free.shape[0]):
        if capacity[k, m] > 0:
            total += (capacity[k, m] - free[k, m] + demand[job, k]) / capacity[k, m]
            count += 1
    mean = total / count
    for k in range(free.shape[0]):
        if capacity[k, m] > 0:
            apart = (capacity[k, m] - free[k, m] + demand[job, k]) / capacity[k, m] - mean
            squares += apart * apart
    return math.sqrt(squares / count)


@leaf
def dot_product(m, job, free, demand, largest):
    """Average free x demanded, both over the largest capacity of any machine."""
    product = 0.0
    for k in range(free.shape[0]):
        product += (free[k, m] / largest[k]) * (demand[job, k] / largest[k])
    return product / free.shape[0]


@leaf
def alignment(m, job, free, capacity, demand):
    """Sum free x demanded, both over the machine's own capacity."""
    product = 0.0
    for k in range(free.shape[0]):
        if capacity[k, m] > 0:
            product += (free[k, m] / capacity[k, m]) * (demand[job, k] / capacity[k, m])
    return product


@leaf
def packing_points(m, amount, devices, share):
    """Return OpenB's points for an amount of devices on machine m, in its whole numbers."""
    if amount == 0:
        return 0.0
    whole = 0
    for device in range(share.shape[1]):
        whole += share[m, device] == ONE
    if whole == devices:
        return float(max(33 - whole, whole))
    if amount > ONE:
        return float(max(50 - amount // ONE, 33))
    chosen, fullest = pick(share, m, amount), 0
    for device in range(share.shape[1]):
        if chosen >> device & 1:
            fullest = share[m, device]
    if fullest == ONE:
        return 49.0
    return float(max(100 - fullest * 100 // ONE // 10, 50))


@leaf
def gradient(m, job, free, share, demand, typical, g):
    """Return by how much one instance of the job would raise the machine's fragmentation, in devices."""
    chosen, grown = pick(share, m, demand[job, g]), 0.0
    for p in range(typical.shape[0]):
        for placed in range(2):
            amount = unusable(m, job, placed, chosen, p, free, share, demand, typical, g)
            grown += (2 * placed - 1) * typical[p, -1] * amount
    return grown / ONE


@leaf
def fragmentation(m, free, share, typical, g):
    """Return the machine's fragmentation: how many free devices a typical job can't use, on average.

    A typical job that could start there can't use the devices with less than it needs; one that couldn't, for
    whatever resource, or that needs no device, can't use any (frag.go, NodeGpuShareFragAmountScore).
    """
    total = 0.0
    for p in range(typical.shape[0]):
        total += typical[p, -1] * unusable(m, 0, 0, 0, p, free, share, free, typical, g)
    return total / ONE


@leaf
def unusable(m, job, placed, chosen, p, free, share, demand, typical, g):
    """Return the free micro-devices that typical job p can't use, with 0 or 1 instances of `job` placed on m.

    The instance takes the `chosen` devices, a set of bits.
    """
    starts = typical[p, g] > 0
    for k in range(free.shape[0]):
        if k != g and free[k, m] - (demand[job, k] if placed else 0) < typical[p, k]:
            starts = False
    each = min(demand[job, g], ONE) if placed else 0
    needed = min(typical[p, g], ONE)
    total = small = fitting = 0
    for device in range(share.shape[1]):
        left = share[m, device] - each * (chosen >> device & 1)
        total += left
        small += left if left < needed else 0
        fitting += ONE if left >= needed else 0
    return small if starts and fitting >= typical[p, g] else total
