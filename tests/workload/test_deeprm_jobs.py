"""DeepRM's distributions are what their settings and their docstrings say."""

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload import DeepRMJobs


def draw(count=400, seed=0, **settings):
    """Draw `count` sequences of 50 steps; return durations [steps], demands [steps, R] of all steps."""
    jobs = DeepRMJobs(**settings)
    durations, demands = jobs.draw(np.random.default_rng(seed), count)
    assert durations.shape == (count, jobs.sequence_length)
    assert demands.shape == (count, jobs.sequence_length, jobs.num_resources)
    assert durations.dtype == demands.dtype == np.int32
    return durations.ravel(), demands.reshape(-1, jobs.num_resources)


def assert_mean(values, expected):
    """Within 4 standard errors: a seeded test, so it never flickers."""
    assert abs(np.mean(values) - expected) <= 4 * np.std(values) / np.sqrt(len(values))


def test_bimodal():
    durations, demands = draw(arrival_rate=0.7)
    present = durations > 0
    assert_mean(present, 0.7)
    durations, demands = durations[present], demands[present]
    assert_mean(durations, 4.1)
    assert set(durations) == {1, 2, 3, 10, 11, 12, 13, 14, 15}
    assert_mean(durations <= 3, 0.8)
    for duration in (1, 2, 3):
        assert_mean(durations == duration, 0.8 / 3)
    for duration in range(10, 16):
        assert_mean(durations == duration, 0.2 / 6)
    dominant, other = demands.max(axis=1), demands.min(axis=1)
    assert set(dominant) == set(range(5, 11))
    assert set(other) == {1, 2}
    assert_mean(dominant, 7.5)
    assert_mean(other, 1.5)
    assert_mean(demands[:, 0] > demands[:, 1], 0.5)
    assert abs(np.corrcoef(durations, dominant)[0, 1]) < 4 / np.sqrt(len(durations))


def test_uniform():
    durations, demands = draw(distribution="uniform", arrival_rate=0.5)
    present = durations > 0
    assert_mean(present, 0.5)
    durations, demands = durations[present], demands[present]
    assert set(durations) == set(range(1, 16))
    assert_mean(durations, 8)
    for resource in range(2):
        assert set(demands[:, resource]) == set(range(1, 11))
        assert_mean(demands[:, resource], 5.5)


def test_steps_without_arrival_are_0():
    durations, demands = draw(arrival_rate=0.3)
    assert (demands[durations == 0] == 0).all()
    assert (demands[durations > 0] > 0).all()


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_extreme_rates(rate):
    durations, _ = draw(10, arrival_rate=rate)
    assert ((durations > 0) == bool(rate)).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"load": 1.3},
        {"load": 0.5, "distribution": "uniform"},
        {"load": 0.7, "num_resources": 3, "capacity": (10, 20, 40)},
        {"load": 0.2, "num_resources": 1, "max_job_duration": 30},
        {"load": 0.2, "max_job_duration": 4, "max_job_demand": 4},
        {"arrival_rate": 0.7},
    ],
    ids=str,
)
def test_load_is_met_within_three_standard_errors(settings):
    jobs = DeepRMJobs(**settings)
    durations, demands = draw(1000, **settings)
    work = durations[:, None] * demands / np.array(jobs.capacities)
    error = 3 * work.std(axis=0) / np.sqrt(len(work))
    assert (np.abs(work.mean(axis=0) - jobs.expected_load()) <= error).all()
    if jobs.load is not None:
        assert jobs.expected_load().max() == pytest.approx(jobs.load)


@pytest.mark.parametrize(("rate", "load"), [(0.1, 0.1845), (0.7, 1.2915), (1.0, 1.845)])
def test_loads_of_the_original(rate, load):
    np.testing.assert_allclose(DeepRMJobs(arrival_rate=rate).expected_load(), [load, load])
    assert DeepRMJobs(load=load).rate() == pytest.approx(rate)


def test_sizes_scale_with_the_settings():
    """The original builds its distribution before it reads these options."""
    durations, demands = draw(max_job_duration=30, max_job_demand=20, capacity=20, num_resources=3)
    durations, demands = durations[durations > 0], demands[durations > 0]
    assert durations.max() == 30
    assert set(durations[durations < 20]) == {1, 2, 3, 4, 5, 6}
    assert demands.max() == 20
    assert ((demands >= 10).sum(axis=1) == 1).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_tiny_sizes(size):
    durations, demands = draw(50, max_job_duration=size, max_job_demand=size, arrival_rate=1)
    assert durations.min() == demands.min() == 1
    assert durations.max() == demands.max() == size


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"distribution": "normal"}, "distribution"),
        ({"arrival_rate": 1.1}, "arrival_rate"),
        ({"arrival_rate": float("nan")}, "arrival_rate"),
        ({"load": 0}, "load"),
        ({"load": 2}, "at most 1.84"),
        ({"num_sequences": -1}, "num_sequences"),
        ({"sequence_length": 0}, "sequence_length"),
        ({"num_resources": 0}, "num_resources"),
        ({"num_resources": 3, "capacity": (10, 10)}, "capacity has 2 values for num_resources 3"),
        ({"capacity": 0}, "capacity"),
        ({"capacity": (10, 5)}, "max_job_demand 10 exceeds capacity 5"),
        ({"max_job_duration": 0}, "max_job_duration"),
        ({"max_job_demand": 0}, "max_job_demand"),
    ],
    ids=str,
)
def test_refused(settings, message):
    with pytest.raises(UserError, match=message):
        DeepRMJobs(**settings)
