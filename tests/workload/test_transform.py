"""Windows, samples, loads, units, parts, clusters: each on jobs small enough to check by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_distribution import UNKNOWN, Workload, transform
from schedrl.settings import UserError

JOBS = Workload(
    arrival=[0, 10, 10, 30],
    duration=[5, 2, 0, 4],
    demand=[[1, 2], [2, 8], [4, 1], [8, 0]],
    time_unit="s",
    instances=[1, 2, 1, 1],
    deadline=[20, UNKNOWN, 12, 50],
    recorded_start=[1, 11, UNKNOWN, 30],
    id=["a", "b", "c", "d"],
    capacity=[8, 16],
)


def test_window_rebases_every_time_and_keeps_ids():
    kept = transform.window(JOBS, 10, 30)
    assert kept.id.tolist() == ["b", "c"]
    assert kept.arrival.tolist() == [0, 0]
    assert kept.recorded_start[0] == 1
    assert kept.deadline[1] == 2
    assert transform.window(JOBS, 10, 30, rebase=False).arrival.tolist() == [10, 10]
    with pytest.raises(UserError, match="no jobs arrive from 40 to 50; they do from 0 to 30"):
        transform.window(JOBS, 40, 50)


def test_sample_keeps_order_and_repeats_by_seed():
    kept = transform.sample(JOBS, 3, seed=1)
    assert len(kept) == 3
    assert (np.diff(kept.arrival) >= 0).all()
    assert kept.same_as(transform.sample(JOBS, 3, seed=1))
    assert len({tuple(transform.sample(JOBS, 2, seed=n).id) for n in range(50)}) == 6
    with pytest.raises(UserError, match="num_jobs is 9; it must be from 1 to 4"):
        transform.sample(JOBS, 9)


@given(load=st.floats(0.01, 50))
def test_the_load_is_met_exactly_and_sizes_stay(load):
    scaled = transform.scaled_to_load(JOBS, load)
    assert scaled.load().max() == pytest.approx(load, rel=1e-9)
    assert (scaled.demand == JOBS.demand).all()
    assert (scaled.duration == JOBS.duration).all()
    known = ~np.isnan(JOBS.deadline)
    np.testing.assert_allclose(
        (scaled.deadline - scaled.arrival)[known], (JOBS.deadline - JOBS.arrival)[known]
    )
    assert np.isnan(scaled.recorded_start).all()


def test_a_load_needs_a_capacity_and_gaps():
    blind = Workload([0, 1], [1, 1], [[1], [1]], ["cpu"])
    with pytest.raises(UserError, match="no capacity is known; give that of cpu"):
        transform.scaled_to_load(blind, 0.5)
    assert transform.scaled_to_load(blind, 0.5, 2.0).load(2.0) == pytest.approx([0.5])
    with pytest.raises(UserError, match="one moment"):
        transform.scaled_to_load(Workload([1, 1], [1, 1], [[1], [1]], ["cpu"]), 0.5, 2.0)


@pytest.mark.parametrize("load", [0, -1, np.nan, np.inf, 1e300, 1001, 1e-7, 1e-300])
def test_a_load_out_of_range_is_refused(load):
    with pytest.raises(UserError, match=r"load is .*; it must be from 1e-06 to 1000"):
        transform.scaled_to_load(JOBS, load)


def test_jobs_that_take_no_time_are_no_load():
    with pytest.raises(UserError, match="none of them takes time"):
        transform.scaled_to_load(Workload([0, 1], [0, 0], [[1], [1]], ["cpu"]), 0.5, 2.0)


def test_units_change_numbers_and_not_jobs():
    other = transform.in_units(JOBS, time=(1 / 60, "min"), resources={"memory": (1024, "MiB")})
    assert other.time_unit == "min"
    assert other.resources[1] == ("memory", "MiB")
    assert other.demand[0].tolist() == [1, 2048]
    assert other.capacity.tolist() == [8, 16384]
    np.testing.assert_allclose(other.duration, JOBS.duration / 60)
    np.testing.assert_allclose(other.load(), JOBS.load())
    with pytest.raises(UserError, match="memory"):
        transform.in_units(JOBS, resources={"memroy": (1, "GB")})


@given(share=st.floats(0.3, 0.9), count=st.integers(2, 40), seed=st.integers(0, 9))
def test_no_job_is_in_both_parts_and_training_comes_first(share, count, seed):
    arrival = np.sort(np.random.default_rng(seed).integers(0, 1000, count))
    arrival[-1] = 1001
    jobs = Workload(arrival, np.ones(count), np.ones((count, 1)), ["cpu"])
    train, evaluation = transform.split(jobs, share)
    assert sorted(train.id.tolist() + evaluation.id.tolist()) == sorted(jobs.id.tolist())
    boundary = arrival[jobs.id.tolist().index(evaluation.id[0])]
    assert train.arrival[-1] < boundary
    np.testing.assert_allclose(evaluation.arrival + boundary, arrival[len(train) :])


def test_jobs_that_arrive_together_are_not_split():
    with pytest.raises(UserError, match="too many arrive together"):
        transform.split(Workload([3, 3], [1, 1], [[1], [1]], ["cpu"]), 0.5)


def test_jobs_that_do_not_fit_are_listed_with_what_they_ask_for():
    kept, rejected = transform.fitted(JOBS, [8, 10])
    assert kept.id.tolist() == ["a", "c", "d"]  # b is a gang of 2 x 8 memory
    (row,) = rejected
    assert (row.line, row.reason, row.id, row.detail) == (2, "too_large", "b", "memory 16 of 10")
    assert transform.fitted(JOBS, 100)[0].same_as(JOBS)
    with pytest.raises(UserError, match="no jobs fit"):
        transform.fitted(JOBS, 0.5)


def test_clipped_jobs_fit_and_are_counted():
    kept, rejected = transform.fitted(JOBS, [4, 10], "clip")
    assert kept.id.tolist() == ["a", "b", "c", "d"]
    assert kept.demand.tolist() == [[1, 2], [2, 5], [4, 1], [4, 0]]
    assert sum(rejected.adjusted.values()) == 2
    assert not len(rejected)
