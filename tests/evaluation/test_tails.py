"""Percentiles of pooled jobs, resampled by sequence."""

import numpy as np
import pytest

from schedrl.evaluation.tails import percentile_ratio


def test_the_ratio_is_that_of_the_pooled_percentiles():
    values = np.arange(1.0, 101.0).reshape(10, 10)
    values[3, 4] = np.nan
    found = percentile_ratio(2 * values, values, 90, num_resamples=50)
    assert found.value == 2.0
    # Paired: every resample draws the same sequences for both.
    assert (found.low, found.high) == (2.0, 2.0)


def test_each_resample_counts_whole_sequences():
    one, other = np.array([[1.0, 1.0], [8.0, 8.0]]), np.ones((2, 2))
    rng = np.random.default_rng(4)
    drawn = [np.bincount(rng.integers(2, size=2), minlength=2) for _ in range(400)]
    # The 40th percentile is 8 unless the first sequence has its share.
    expected = [8.0 if times[0] == 0 else 1.0 for times in drawn]
    found = percentile_ratio(one, other, 40, seed=4, num_resamples=400, confidence=0.5)
    np.testing.assert_allclose((found.low, found.high), np.percentile(expected, [25, 75]))


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    covered = 0
    for trial in range(60):
        rng = np.random.default_rng(trial)
        one, other = rng.exponential(1.5, (80, 20)), rng.exponential(1.0, (80, 20))
        found = percentile_ratio(one, other, 95, seed=trial, num_resamples=200)
        covered += found.low <= 1.5 <= found.high
    assert covered >= 51


def test_a_seed_fixes_it_and_global_state_is_left_alone():
    values = np.random.default_rng(0).exponential(size=(60, 20))
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is checked
    found = [percentile_ratio(values**2, values, seed=s, num_resamples=60) for s in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0] != found[2]
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    squares = np.percentile(values**2, 99)
    assert found[0].value == pytest.approx(squares / np.percentile(values, 99), rel=0.05)
