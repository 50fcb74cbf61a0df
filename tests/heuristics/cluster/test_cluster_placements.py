"""Each placement on three small machines with the known choice, and values worked out by hand."""

from itertools import permutations

import numpy as np
import pytest
from small_clusters import jobs, machines, machines_of

from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.placements import PLACEMENTS, fragmentation, gradient, score

MICRO = 1_000_000
ANY = np.zeros((1, 4))


def micro(rows):
    return np.rint(np.asarray(rows, float) * MICRO).astype(np.int64)


def values(placement, machines, job, *, last=-1, typical=None):
    """Return the value of each machine; a machine is (free, capacity, free share of each device)."""
    free, capacity = (micro([m[k] for m in machines]).T for k in (0, 1))
    share, demand = micro([m[2] for m in machines]), micro([job])
    g = 2 if len(job) == 3 else -1
    typical = (
        ANY
        if typical is None
        else np.column_stack([micro([t[:-1] for t in typical]), [t[-1] for t in typical]])
    )
    largest = np.maximum(capacity.max(axis=1), 1)
    rule = PLACEMENTS[placement]
    return [
        score(rule, m, 0, free, capacity, share, demand, largest, typical, last, g)
        for m in range(len(machines))
    ]


def choice(*args, **options):
    found = values(*args, **options)
    return found.index(min(found))


# cpu, memory. After a job of (2, 4) stay free: (6, 4) of (8, 32); (2, 28) of (8, 32); (10, 28) of (16, 64)
TIGHT_MEMORY, TIGHT_CPU, BIG = ((8, 8), (8, 32), (0,)), ((4, 32), (8, 32), (0,)), ((12, 32), (16, 64), (0,))
PLAIN = (TIGHT_MEMORY, TIGHT_CPU, BIG)


@pytest.mark.parametrize(
    ("placement", "best"),
    [
        ("first_fit", 0),
        ("next_fit", 0),
        ("best_fit", 0),  # (6/16 + 4/64) / 2 = .219, (2/16 + 28/64) / 2 = .281, (10/16 + 28/64) / 2 = .531
        ("worst_fit", 2),
        ("spread", 1),  # (6/8 + 4/32) / 2 = .4375, (2/8 + 28/32) / 2 = .5625, (10/16 + 28/64) / 2 = .531
        ("most_allocated", 0),
        ("balanced", 2),  # allocated .25 and .875; .75 and .125; .375 and .5625
        ("dot_product", 1),  # x256: 8 x 2 + 8 x 4 / 16 = 18; 4 x 2 + 32 x 4 / 16 = 16; 12 x 2 + 8 = 32
        (
            "tetris",
            0,
        ),  # 1 x .25 + .25 x .125 = .281; .5 x .25 + 1 x .125 = .25; .75 x .125 + .5 x .0625 = .125
        ("gpu_packing", 0),
        ("fgd", 0),  # nothing to fragment: the lowest index
    ],
)
def test_the_known_choice_without_devices(placement, best):
    assert choice(placement, PLAIN, (2, 4)) == best


def test_no_placement_is_without_a_worked_choice():
    marks = test_the_known_choice_without_devices.pytestmark
    assert {case[0] for case in marks[0].args[1]} == set(PLACEMENTS)


def test_values_worked_by_hand():
    assert values("best_fit", PLAIN, (2, 4)) == pytest.approx([0.21875, 0.28125, 0.53125])
    assert values("spread", PLAIN, (2, 4)) == pytest.approx([-0.4375, -0.5625, -0.53125])
    assert values("balanced", PLAIN, (2, 4)) == pytest.approx([0.3125, 0.3125, 0.09375])
    assert values("dot_product", PLAIN, (2, 4)) == pytest.approx([18 / 512, 16 / 512, 32 / 512])
    assert values("tetris", PLAIN, (2, 4)) == pytest.approx([-0.28125, -0.25, -0.125])


@pytest.mark.parametrize(
    "placement", ["best_fit", "worst_fit", "spread", "most_allocated", "balanced", "tetris", "dot_product"]
)
@pytest.mark.parametrize("free", list(permutations([(0.1, 0.2, 0.3), (0.3, 0.1, 0.2), (0.2, 0.3, 0.1)])))
def test_equal_but_for_rounding_is_a_tie(placement, free):
    """Each machine has 0.1, 0.2 and 0.3 free of some resource: sums of the same reals in another order."""
    resources = ("a", "b", "c")
    filling = [(0, 50, tuple(1 - x for x in row)) for row in free]
    workload = jobs(*filling, (1, 1, (0.1, 0.1, 0.1)), resources=resources)
    schedule = simulate(workload, machines(*[(1, 1, 1)] * 3, resources=resources), f"fifo+{placement}")
    assert machines_of(schedule) == [0, 1, 2, 0]


def test_next_fit_goes_on_after_the_last_machine_and_around():
    assert [choice("next_fit", PLAIN, (1, 1), last=last) for last in (-1, 0, 1, 2)] == [0, 1, 2, 0]


def test_best_fit_weighs_cpu_and_devices_alone_where_there_are_devices():
    full_memory = ((4, 2, 1), (8, 32, 2), (1, 0))
    free_memory = ((4, 32, 1), (8, 32, 2), (0, 1))
    assert values("best_fit", (full_memory, free_memory), (2, 1, 1)) == [0.125, 0.125]
    # cpu .5 x 2/8 + gpu .5 x 1/2
    assert values("best_fit", (((4, 9, 2), (8, 32, 2), (1, 1)),), (2, 1, 1)) == [0.375]


def test_a_resource_that_a_machine_has_not_is_left_out():
    without = ((4, 16, 0), (8, 32, 0), (0, 0))
    assert values("spread", (without,), (2, 8, 0)) == [-0.25]
    assert values("balanced", (without,), (4, 0, 0)) == [0.25]  # 1 and .5
    assert values("tetris", (without,), (2, 8, 0)) == [-0.25]


CPU, GIB = 8, 32


def gpus(*share, cpu=CPU):
    return ((cpu, GIB, sum(share)), (CPU, GIB, len(share)), share)


@pytest.mark.parametrize(
    ("machine", "amount", "points"),
    [
        (gpus(0.5, 1), 0.5, 95),  # in use already: 100 - 50 / 10
        (gpus(0.25, 0.5, 1), 0.2, 98),  # the fullest that fits: 100 - 25 / 10, in whole points
        (gpus(0.25, 1), 0.5, 49),  # only a free one fits, on a machine in use
        (gpus(0.25, 1), 1, 49),
        (gpus(0, 1, 1, 1), 3, 47),  # three free ones of a machine in use
        (gpus(*[0] + [1] * 19), 19, 33),
        (gpus(1, 1), 0.5, 31),  # a machine whose two devices are all free
        (gpus(*[1] * 20), 1, 20),
        (gpus(0.5, 1), 0, 0),
    ],
)
def test_gpu_packing_has_three_cases(machine, amount, points):
    assert values("gpu_packing", (machine,), (1, 1, amount)) == [-points]


def test_gpu_packing_prefers_devices_in_use_then_machines_in_use():
    free, in_use, shared = gpus(1, 1), gpus(0, 1), gpus(0.6, 1)
    assert choice("gpu_packing", (free, in_use, shared), (1, 1, 0.5)) == 2
    assert choice("gpu_packing", (free, in_use, shared), (1, 1, 1)) == 1


def fragmented(cpu, devices, typical):
    free, share = micro([[cpu], [sum(devices)]]), micro([devices])
    rows = np.column_stack([micro([t[:-1] for t in typical]), [t[-1] for t in typical]])
    return fragmentation(0, free, share, rows, 1)


def test_fragmentation_is_the_published_value():
    """frag_test.go of hkust-adsl/kubernetes-scheduler-simulator: 251.91 thousandths of a GPU."""
    found = fragmented(1.0, (0.2, 1, 1, 0.5), [(6.0, 0.465, 0.0933)])
    assert 1000 * found == pytest.approx(251.91, abs=1e-9)
    # no processor is left, so that no pod can use any of the four devices
    assert 1000 * fragmented(0.0, (1, 1, 1, 1, 0, 0, 0, 0), [(1.0, 0.5, 0.7), (2.0, 0, 0.3)]) == 4000


@pytest.mark.parametrize(
    ("typical", "unusable"),
    [
        ((1, 0.5), 0.2),  # the job could start: only the device with too little is lost
        ((1, 0.1), 0.0),
        ((1, 2), 0.7),  # two whole devices: the two in use are lost
        ((1, 3), 2.7),  # there are no three
        ((9, 0.5), 2.7),  # not enough of another resource
        ((1, 0), 2.7),  # needs no device at all
    ],
)
def test_fragmentation_counts_what_a_typical_job_cannot_use(typical, unusable):
    assert fragmented(8.0, (0.2, 1, 1, 0.5), [(*typical, 1.0)]) == pytest.approx(unusable)


def test_fgd_leaves_whole_devices_to_those_who_need_them():
    """Half a device, while jobs of whole ones are typical: it goes where one is broken already."""
    typical = [(1, 1, 1, 0.5), (1, 1, 0.5, 0.5)]
    whole, broken = gpus(1, 1), gpus(0.5, 1)
    # whole: the half left over is lost to jobs of one device: +.25. broken: no longer lost to them: -.25
    assert values("fgd", (whole, broken), (1, 1, 0.5), typical=typical) == pytest.approx([0.25, -0.25])


def test_fgd_keeps_processors_beside_free_devices():
    """The last processors of a machine with a free device strand it."""
    typical = [(4, 1, 1, 1.0)]
    poor, rich = gpus(1, cpu=4), gpus(1, cpu=8)
    assert values("fgd", (poor, rich), (4, 1, 0), typical=typical) == [1.0, 0.0]


def test_the_gradient_is_the_difference_of_two_fragmentations():
    rng = np.random.default_rng(0)
    for _ in range(100):
        share = rng.integers(0, 11, 4) / 10
        cpu, amount = rng.integers(4, 9), rng.integers(1, 11) / 10
        if (share < amount).all():
            continue
        typical = [
            (rng.integers(1, 5), rng.choice([0, 0.3, 0.5, 1, 2]), weight) for weight in (0.2, 0.3, 0.5)
        ]
        after = share.copy()
        fitting = np.flatnonzero(share >= amount)
        after[fitting[np.argmin(share[fitting])]] -= amount
        rows = np.column_stack([micro([t[:-1] for t in typical]), [t[-1] for t in typical]])
        free = micro([[cpu], [share.sum()]])
        found = gradient(0, 0, free, micro([share]), micro([(2, amount)]), rows, 1)
        worked = fragmented(cpu - 2, after, typical) - fragmented(cpu, share, typical)
        assert found == pytest.approx(worked, abs=1e-9)
