"""`Workload` lets nothing in that is negative, non-finite or empty of meaning, and never changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload import UNKNOWN, Resource, Workload


def make(**changes):
    columns = {"arrival": [3, 0, 3], "duration": [2, 0, 5], "demand": [[1, 0], [0.5, 2], [0, 1]]}
    return Workload(**(columns | changes))


def test_sorted_by_arrival_and_stable():
    jobs = make(id=["first", "second", "third"], extra={"queue": [7, 8, 9]}, user=["a", "b", "c"])
    assert jobs.id.tolist() == ["second", "first", "third"]
    assert jobs.arrival.tolist() == [0, 3, 3]
    assert jobs.demand.tolist() == [[0.5, 2], [1, 0], [0, 1]]
    assert jobs.extra["queue"].tolist() == [8, 7, 9]
    assert jobs.extra["queue"].dtype.kind == "i"
    assert jobs.user.tolist() == ["b", "a", "c"]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_order_is_that_of_a_stable_sort(arrivals):
    jobs = Workload(arrivals, np.ones(len(arrivals)), np.ones((len(arrivals), 2)))
    expected = sorted(range(len(arrivals)), key=lambda number: arrivals[number])
    assert jobs.id.tolist() == [str(number) for number in expected]


def test_defaults():
    jobs = make()
    assert len(jobs) == 3
    assert jobs.resources == (Resource("cpu"), Resource("memory"))
    assert jobs.time_unit == "step"
    assert jobs.instances.tolist() == [1, 1, 1]
    assert jobs.instances.dtype == np.int64
    assert jobs.priority.tolist() == [0, 0, 0]
    for name in ("estimate", "deadline", "recorded_start", "recorded_finish"):
        assert np.isnan(getattr(jobs, name)).all()
    assert make(resources=["gpu", ("memory", "GiB")]).resources == (
        Resource("gpu"),
        Resource("memory", "GiB"),
    )


def test_unknown_estimate_is_the_duration_where_one_is_needed():
    jobs = make(estimate=[4, UNKNOWN, UNKNOWN])
    assert jobs.estimate_or_duration.tolist() == [0, 4, 5]


def test_ids_are_never_changed():
    ids = ["007", " 7", "j\u00f6b\0"]
    assert sorted(make(id=ids).id.tolist()) == sorted(ids)


BAD = {
    "negative arrival": {"arrival": [0, -1, 2]},
    "nan arrival": {"arrival": [0, np.nan, 2]},
    "infinite arrival": {"arrival": [0, np.inf, 2]},
    "negative duration": {"duration": [1, -1, 1]},
    "nan duration": {"duration": [1, np.nan, 1]},
    "text duration": {"duration": [1, "long", 1]},
    "negative demand": {"demand": [[1, 1], [1, -1], [1, 1]]},
    "nan demand": {"demand": [[1, 1], [np.nan, 1], [1, 1]]},
    "no demand at all": {"demand": [[1, 1], [0, 0], [1, 1]]},
    "demand without resources": {"demand": [1, 1, 1]},
    "missing rows": {"duration": [1, 1]},
    "infinite estimate": {"estimate": [1, np.inf, 1]},
    "negative estimate": {"estimate": [1, -1, 1]},
    "instances 0": {"instances": [1, 0, 1]},
    "half an instance": {"instances": [1, 1.5, 1]},
    "unknown instances": {"instances": [1, np.nan, 1]},
    "nan priority": {"priority": [1, np.nan, 1]},
    "negative deadline": {"deadline": [1, -2, 1]},
    "negative recorded_start": {"recorded_start": [1, -1, 1]},
    "finish before start": {"recorded_start": [1, 1, 1], "recorded_finish": [2, 0.5, 2]},
    "empty id": {"id": ["a", " ", "c"]},
    "repeated id": {"id": ["a", "b", "a"]},
    "number as id": {"id": ["a", 2, "c"]},
    "number as user": {"user": ["a", 2, "c"]},
    "no resources": {"resources": []},
    "same resource twice": {"resources": ["cpu", "cpu"]},
    "nameless resource": {"resources": ["cpu", ""]},
    "no time unit": {"time_unit": ""},
    "extra that hides a column": {"extra": {"arrival": [1, 2, 3]}},
    "extra that hides a method": {"extra": {"load": [1, 2, 3]}},
    "extra of another length": {"extra": {"queue": [1, 2]}},
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD.keys())
def test_refused(changes):
    with pytest.raises(UserError):
        make(**changes)


def test_message_names_job_value_and_rule():
    with pytest.raises(
        UserError, match=r"job 'b' \(number 1\): duration must be 0 or more, at most 1e\+15, got -4"
    ):
        make(duration=[1, -4, 1], id=["a", "b", "c"])
    with pytest.raises(
        UserError, match=r"job '2' \(number 2\): arrival must be 0 or more, at most 1e\+15, got"
    ):
        make(arrival=[0, 1, 1.1e15])


def test_no_jobs():
    with pytest.raises(UserError, match="no jobs"):
        Workload([], [], np.empty((0, 2)))


def test_immutable_and_independent_of_its_input():
    arrival = np.array([0.0, 1, 2])
    jobs = make(arrival=arrival)
    arrival[0] = 99
    assert jobs.arrival[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        jobs.arrival[0] = 1
    with pytest.raises(AttributeError):
        jobs.arrival = arrival
    with pytest.raises(TypeError):
        jobs.extra["queue"] = arrival


def test_take_and_same_as():
    jobs = make(id=["a", "b", "c"], estimate=[1, UNKNOWN, 3], extra={"queue": ["x", "y", "z"]})
    part = jobs.take(np.array([0, 2]))
    assert part.id.tolist() == ["b", "c"]
    assert part.extra["queue"].tolist() == ["y", "z"]
    assert jobs.take(slice(None)).same_as(jobs)
    assert not part.same_as(jobs)
    assert not jobs.same_as(make(id=["a", "b", "c"], estimate=[1, 2, 3], extra={"queue": ["x", "y", "z"]}))
    assert not jobs.same_as(make(id=["a", "b", "c"]))


def test_load():
    jobs = Workload([0, 10], [4, 6], [[1, 2], [3, 0]], instances=[2, 1])
    work = [4 * 2 * 1 + 6 * 3, 4 * 2 * 2]
    np.testing.assert_allclose(jobs.load(10, span=20), np.array(work) / 200)
    np.testing.assert_allclose(jobs.load([10, 5]), np.array(work) / 20 / [10, 5])
    with pytest.raises(UserError, match="pass span"):
        jobs.take(slice(0, 1)).load(10)
    with pytest.raises(UserError, match="capacity must be above 0"):
        jobs.load([10, 0])
