"""What may start when the queue's first job can't: disciplines on worked examples, and EASY's promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import jobs, machines, machines_of

from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.rule import DISCIPLINES as ALL

DISCIPLINES = ("strict", "skip", "easy", "conservative")


def test_no_discipline_is_without_a_worked_choice():
    assert {*DISCIPLINES, "hold"} == set(ALL), "hold has a file of its own, test_hold.py"


def starts(workload, cluster, rule):
    return simulate(workload, cluster, rule).start.tolist()


# Four processors. The first job takes three until 10, the second wants all four: it is reserved 10 to 20.
RUNNING, HEAD = (0, 10, 3), (1, 10, 4)


@pytest.mark.parametrize(
    ("third", "discipline", "start", "head"),
    [
        ((2, 8, 1), "strict", 20, 10),
        ((2, 8, 1), "skip", 2, 10),
        ((2, 8, 1), "easy", 2, 10),  # ends by 10
        ((2, 8, 1), "conservative", 2, 10),
        ((2, 9, 1), "skip", 2, 11),  # the head pays for it
        ((2, 9, 1), "easy", 20, 10),
        ((2, 9, 1), "conservative", 20, 10),
    ],
)
def test_a_later_job_starts_where_it_ends_before_the_reservation(third, discipline, start, head):
    found = starts(jobs(RUNNING, HEAD, third), machines(4), f"fifo+{discipline}")
    assert found == [0, head, start]


@pytest.mark.parametrize(
    ("procs", "start"),
    [
        (1, 2),  # the head leaves one processor over at 10: the extra node, for as long as one likes
        (2, 20),  # more than what is left over
    ],
)
@pytest.mark.parametrize("discipline", ["easy", "conservative"])
def test_a_later_job_may_run_on_what_the_head_leaves_over(discipline, procs, start):
    running, head = (0, 10, 2), (1, 10, 3)
    found = starts(jobs(running, head, (2, 1000, procs)), machines(4), f"fifo+{discipline}")
    assert found == [0, 10, start]


def test_the_extra_nodes_are_used_up():
    """Two jobs that fit beside the head one by one, but not together."""
    found = starts(jobs((0, 10, 4), (1, 10, 5), (2, 50, 2), (2, 50, 2)), machines(8), "fifo+easy")
    assert found == [0, 10, 2, 20]


def test_reservations_are_made_from_estimates_not_from_run_times():
    """The first job says 20 and takes 10: a job that ends by 20 goes ahead, and the head waits for it."""
    workload = jobs(RUNNING, HEAD, (2, 15, 1), estimate=[20, 10, 15])
    assert starts(workload, machines(4), "fifo+easy") == [0, 17, 2]
    # and the true run time of a job that asks for too long does not help it
    workload = jobs(RUNNING, HEAD, (2, 5, 1), estimate=[10, 10, 9])
    assert starts(workload, machines(4), "fifo+easy") == [0, 10, 20]


def test_conservative_also_keeps_the_second_in_line():
    """The last job delays the second in line (wants 3 from 20 on), not the first."""
    workload = jobs((0, 10, 2), (1, 10, 3), (2, 10, 4), (3, 30, 1))
    assert starts(workload, machines(4), "fifo+easy") == [0, 10, 33, 3]
    assert starts(workload, machines(4), "fifo+conservative") == [0, 10, 20, 30]


def test_the_order_says_who_the_head_is():
    workload = jobs(RUNNING, (1, 30, 4), (2, 10, 4), (3, 20, 4))
    assert starts(workload, machines(4), "fifo+easy") == [0, 10, 40, 50]
    assert starts(workload, machines(4), "sjf+easy") == [0, 40, 10, 20]


def test_feasibility_is_per_machine_never_from_totals():
    """Two processors are free, one on each machine: a job of two waits, and so does a gang of one machine."""
    workload = jobs((0, 10, 3), (0, 20, 3), (1, 5, 2))
    for discipline in DISCIPLINES:
        schedule = simulate(workload, machines(4, 4), f"fifo+{discipline}")
        assert schedule.start.tolist() == [0, 0, 10]
        assert machines_of(schedule) == [0, 1, 0]


def test_a_gang_starts_whole():
    workload = jobs((0, 10, 3), (0, 20, 2), (1, 5, 2), instances=[1, 1, 2])
    for discipline in DISCIPLINES:
        schedule = simulate(workload, machines(4, 4), f"fifo+{discipline}")
        assert schedule.start.tolist() == [0, 0, 10]
        assert schedule.placed.machine.tolist() == [0, 1, 0, 0]


def test_a_backfill_takes_another_device_where_the_fullest_is_reserved():
    """Devices of 0.6 and 0.2 free; at 10 the head takes the first whole, and nothing the second one.

    The fullest on which 0.2 fits is the second, free for as long as one likes. For 0.3 only the first has
    room, and it is reserved.
    """
    gpu = ("cpu", "gpu")
    running = [(0, 10, (1, 0.4)), (0, 100, (1, 0.8))]
    for amount, length, start in ((0.2, 90, 2), (0.3, 8, 2), (0.3, 9, 15)):
        workload = jobs(*running, (1, 5, (1, 1)), (2, length, (1, amount)), resources=gpu)
        for discipline in ("easy", "conservative"):
            found = simulate(workload, machines((9, 2), resources=gpu), f"fifo+{discipline}").start.tolist()
            assert found == [0, 0, 10, start], (amount, length, discipline)
    # At 2 the first has 0.3 free and the second 0.5: the first is the fullest, but reserved from 10 on.
    workload = jobs(
        *((0, 10, (1, 0.7)), (0, 100, (1, 0.5)), (1, 20, (1, 1)), (2, 50, (1, 0.3))), resources=gpu
    )
    schedule = simulate(workload, machines((9, 2), resources=gpu), "fifo+easy")
    assert schedule.start.tolist() == [0, 0, 10, 2]
    assert schedule.placed.devices.tolist() == [1, 2, 1, 2]


def reserved(schedule, job):
    """Return when a job should start at the latest, by the estimates known when it became the head; FIFO."""
    workload, capacity = schedule.workload, schedule.machines.capacity[:, 0]
    estimate, procs = workload.estimate_or_duration, workload.demand[:, 0]
    machine = schedule.placed.machine
    head_at = max([workload.arrival[job], *schedule.start[:job]])
    runs = [  # one of no length that starts now is believed by its estimate
        j
        for j in range(len(procs))
        if schedule.start[j] < head_at < schedule.finish[j] or (j < job and schedule.start[j] == head_at)
    ]
    for when in sorted([head_at, *(schedule.start[j] + estimate[j] for j in runs)]):
        left = capacity.copy()
        for j in runs:
            if schedule.start[j] + estimate[j] > when:
                left[machine[j]] -= procs[j]
        if when >= head_at and (left >= procs[job]).any():
            return when
    raise AssertionError("never fits")


ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 15), st.integers(1, 4), st.integers(0, 10)),
    min_size=2,
    max_size=12,
)
"""Arrival, duration, processors, how much too long the estimate is. No job of length 0: it has gone when the
moment is over, but the reservation of that moment was made while it ran."""


@settings(max_examples=150, deadline=None)
@given(
    ROWS, st.sampled_from(["first_fit", "best_fit", "worst_fit"]), st.sampled_from(["easy", "conservative"])
)
def test_no_head_starts_after_its_reservation_when_estimates_are_upper_bounds(rows, placement, discipline):
    rows = sorted(rows, key=lambda row: row[0])
    workload = jobs(*(row[:3] for row in rows), estimate=[row[1] + row[3] for row in rows])
    schedule = simulate(workload, machines(4, 5), f"fifo+{placement}+{discipline}")
    for job in range(len(rows)):
        assert schedule.start[job] <= reserved(schedule, job)


def test_skip_does_delay_the_head():
    """The property above is no matter of course."""
    workload = jobs(RUNNING, HEAD, (2, 9, 1))
    assert simulate(workload, machines(4), "fifo+skip").start[1] > reserved(
        simulate(workload, machines(4), "fifo+skip"), 1
    )
    assert np.isfinite(reserved(simulate(workload, machines(4), "fifo+easy"), 1))
