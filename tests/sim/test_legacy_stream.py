"""Same seed, same jobs as the original program."""

import numpy as np
import pytest
import replay

from schedrl.workload import DeepRMJobs, legacy_sequences


def assert_reproduced(data):
    for rate in data["rates"]:
        jobs = DeepRMJobs(arrival_rate=rate["new_job_rate"])
        durations, demands = legacy_sequences(jobs, len(rate["seq_len"]), seed=42)
        np.testing.assert_array_equal(durations, rate["seq_len"])
        np.testing.assert_array_equal(demands, rate["seq_size"])


def test_jobs_of_seed_42(golden):
    assert_reproduced(golden)


def test_all_jobs_of_seed_42(full_reference):
    assert_reproduced(replay.load("deeprm_simu50_seed42", full_reference))


def test_longer_sequences():
    case = next(c for c in replay.load("deeprm_observations")["cases"] if c["simu_len"] == 200)
    jobs = DeepRMJobs(arrival_rate=case["new_job_rate"], sequence_length=200)
    durations, demands = legacy_sequences(jobs, case["ex"] + 1, case["seed"])
    np.testing.assert_array_equal(durations[case["ex"]], case["seq_len"])
    np.testing.assert_array_equal(demands[case["ex"]], case["seq_size"])


def test_load_is_that_of_the_original(full_reference):
    data = replay.load("deeprm_simu50_seed42", full_reference)
    for rate in data["rates"]:
        durations, demands = legacy_sequences(DeepRMJobs(arrival_rate=rate["new_job_rate"]), 10)
        load = (durations[:, :, None] * demands).sum((0, 1)) / 10 / durations.size
        np.testing.assert_allclose(load, rate["load"], atol=1e-12)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    legacy_sequences(DeepRMJobs(), 1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("seed", [42, 314159])
def test_uniform_follows_the_draws_of_normal_dist(seed):
    durations, demands = legacy_sequences(DeepRMJobs(distribution="uniform", arrival_rate=0.5), 2, seed)
    rng = np.random.RandomState(seed)  # noqa: NPY002
    for duration, demand in zip(durations.ravel(), demands.reshape(-1, 2), strict=True):
        if rng.rand() < 0.5:
            assert duration == rng.randint(1, 16)
            assert demand.tolist() == [rng.randint(1, 11), rng.randint(1, 11)]
        else:
            assert duration == 0
            assert demand.tolist() == [0, 0]
