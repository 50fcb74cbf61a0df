"""Workloads in steps and units: by hand, and rules that hold for any workload."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedrl.workload import Workload
from schedrl.workload.slots import NO_DEMAND, TOO_LARGE, TOO_LONG, Rounding, amounts_of, make_grid


def workload(arrival, duration, demand, **more):
    demand = np.array(demand, float).reshape(len(arrival), -1)
    return Workload(arrival, duration, demand, [f"r{i}" for i in range(demand.shape[1])], "s", **more)


def grid_of(jobs, capacity, max_duration, time_step=None, amounts=None, **more):
    amounts = amounts_of(jobs) if amounts is None else np.array(amounts, float)
    return make_grid(jobs, amounts, capacity, max_duration, time_step, **more)


def test_arrivals_down_durations_and_demands_up():
    jobs = workload([0, 9.9, 10, 25], [1, 10, 10.1, 0], [[1, 0], [2, 4], [4, 1], [0, 0.1]])
    grid = grid_of(jobs, (10, 5), 15, time_step=10, amounts=(20, 10))
    placed, rounding = grid.place(jobs)
    assert placed.arrival.tolist() == [0, 0, 1, 2]
    assert placed.duration.tolist() == [1, 1, 2, 1]
    assert placed.demand.tolist() == [[1, 0], [1, 2], [2, 1], [0, 1]]
    assert (rounding.given, rounding.kept, rounding.clipped, rounding.sharing) == (4, 4, 0, 1)
    assert rounding.exact == pytest.approx(0.1 * 0.05 + 0.5 + 1.01 * 0.3)
    assert rounding.whole_steps == pytest.approx(0.05 + 0.5 + 2 * 0.3 + 0.01)
    assert rounding.final == rounding.whole_units == pytest.approx(0.1 + 0.5 + 2 * 0.4 + 0.2)
    assert grid.work(placed).tolist() == pytest.approx([(1 + 1 + 4) / 10, (2 + 2 + 1) / 5])


def test_a_hair_more_is_no_further_step_or_unit():
    jobs = workload([0], [0.1 * 3], [0.3 * 7])
    placed, _ = grid_of(jobs, (10,), 15, time_step=0.1, amounts=(3.0,)).place(jobs)
    assert (placed.duration[0], placed.demand[0, 0]) == (3, 7)


def test_gangs_become_one_job_and_what_cannot_run_is_rejected_and_counted():
    jobs = workload([0, 1, 2, 3], [5, 5, 5, 99], [[2, 0], [2, 0], [0, 1], [1, 0]], instances=[5, 6, 1, 1])
    grid = grid_of(jobs, (10,), 8, 1, (10, 10), reject_long=True)
    placed, rounding = grid.place(jobs)
    assert grid.columns == (0,)
    assert (placed.demand.tolist(), placed.arrival.tolist()) == ([[10]], [0])
    assert rounding.rejected == {TOO_LARGE: 1, NO_DEMAND: 1, TOO_LONG: 1}
    cut, counted = grid_of(jobs, (10,), 8, 1, (10, 10)).place(jobs)
    assert (cut.duration.tolist(), counted.clipped, counted.kept) == ([5, 8], 1, 2)


def test_the_busiest_resources_in_their_own_order_and_a_rest_that_nothing_demands():
    jobs = workload([0, 1], [10, 10], [[1, 9, 5], [1, 0, 5]])
    grid = grid_of(jobs, (10, 10), 15, 1, (10, 10, 10))
    assert grid.columns == (1, 2)
    wide = grid_of(jobs, (10,) * 4, 15, 1, (10, 10, 10))
    assert wide.columns == (0, 1, 2)
    assert (wide.place(jobs)[0].demand[:, 3] == 0).all()


def test_amounts_are_the_clusters_or_the_largest_jobs():
    jobs = workload([0, 1], [10, 10], [[1, 2], [4, 8]], capacity=[16, np.nan])
    assert grid_of(jobs, (8, 8), 15, 1).amounts == (16, 8)
    assert grid_of(jobs, (8, 8), 15, 1, (32, 64)).amounts == (32, 64)
    assert amounts_of(workload([0], [1], [[2, 0]], instances=[3])).tolist() == [6, 1]


def test_the_step_lets_nine_in_ten_fit():
    jobs = workload(np.arange(1000), np.arange(1, 1001), np.ones(1000))
    grid = grid_of(jobs, (10,), 15, amounts=(10,))
    assert grid.time_step == 61  # 900.1 / 15, rounded up to two digits
    placed, rounding = grid.place(jobs)
    assert placed.duration.max() == 15
    assert rounding.clipped == (np.arange(1, 1001) > 15 * 61).sum()
    none = workload([0, 1], [0, 0], [1, 1])
    placed, rounding = grid_of(none, (10,), 15).place(none)
    assert placed.duration.tolist() == [1, 1]
    assert "rounding adds all of work in durations" in rounding.lines()[1]


def test_a_start_and_a_stretch():
    jobs = workload([10, 20, 31], [1, 1, 1], [1, 1, 1])
    grid = grid_of(jobs, (4,), 15, 2, (4,))
    assert grid.place(jobs, start=10)[0].arrival.tolist() == [0, 5, 10]
    assert grid.place(jobs, start=10, stretch=0.5)[0].arrival.tolist() == [0, 2, 5]


def test_what_became_of_two_parts_adds_up_and_is_said():
    both = Rounding({TOO_LARGE: 1}, 2, 1, 1, 1, 2, 3, 2.7) + Rounding({TOO_LARGE: 2, TOO_LONG: 1}, 3)
    assert (both.given, both.rejected[TOO_LARGE]) == (9, 3)
    text = "\n".join(both.lines())
    for part in (
        "5 of 9 jobs kept, 3 rejected (demands more",
        "100.0% of work in durations and 50.0% in demands (a",
        "; cutting 1 long jobs takes 10.0% of it",
        "20% of the jobs arrive",
    ):
        assert part in text
    assert Rounding({TOO_LARGE: 1}).lines() == [f"0 of 1 jobs kept, 1 rejected ({TOO_LARGE})"]


@st.composite
def anything(draw):
    """Draw a workload with numbers of any size, and a cluster."""
    count, resources = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = 10.0 ** draw(st.integers(-6, 9))
    demand = rng.exponential(1.0, (count, resources)) * rng.integers(0, 2, (count, resources)) * size
    demand[~demand.any(axis=1), 0] = size
    duration = rng.exponential(1.0, count) ** 3 * 10.0 ** draw(st.integers(-3, 6)) * rng.integers(0, 3, count)
    jobs = workload(
        rng.exponential(1e4, count), duration, demand, instances=rng.integers(1, 4, count),
        capacity=np.where(rng.random(resources) < 0.5, np.nan, 2 * size),
    )  # fmt: skip
    capacity = tuple(draw(st.lists(st.integers(1, 70), min_size=1, max_size=4)))
    step = draw(st.sampled_from([None, 0.01, 1.0, 3600.0]))
    return jobs, grid_of(jobs, capacity, draw(st.integers(1, 20)), step, reject_long=draw(st.booleans()))


@given(anything())
def test_rules_that_hold_for_any_workload(drawn):
    jobs, grid = drawn
    placed, rounding = grid.place(jobs)
    assert rounding.given == len(jobs)
    assert rounding.kept == len(placed.arrival) == len(placed.duration) == len(placed.demand)
    assert rounding.exact <= rounding.whole_steps * (1 + 1e-6) <= rounding.whole_units * (1 + 1e-5)
    assert rounding.final <= rounding.whole_units
    assert rounding.clipped or rounding.final == rounding.whole_units
    assert grid.work(placed).sum() == pytest.approx(rounding.final)
    assert (placed.demand >= 0).all()
    assert (placed.demand <= grid.capacity).all()
    assert placed.demand.any(axis=1).all()
    assert (placed.duration >= 1).all()
    assert (placed.duration <= grid.max_duration).all()
    assert (np.diff(placed.arrival) >= 0).all()
    assert (placed.arrival * grid.time_step <= jobs.arrival[-1] * (1 + 1e-9)).all()
