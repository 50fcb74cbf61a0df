"""Case 30, pooling, pairing, and coverage of the intervals on simulated data."""

import numpy as np
import pytest
from scipy import stats

from schedrl.evaluation.statistics import iqm, paired_prob_better, prob_improvement, resample

X, Y = [1, 2, 3, 4, 100], [2, 2, 1, 3, 3]


def test_case_30_values():
    assert iqm(X) == 3.0
    assert prob_improvement(X, Y) == pytest.approx(0.66)


def test_case_30_seed_fixes_the_interval_and_global_state_is_untouched():
    np.random.seed(99)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002  the old global generator is what is tested
    one, two = (resample(X, np.ones(5), seed=7, num_resamples=2000) for _ in range(2))
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert one.mean(0) == two.mean(0)
    np.random.seed(3)  # noqa: NPY002
    assert resample(X, np.ones(5), seed=7, num_resamples=2000).mean(0) == one.mean(0)
    assert not np.array_equal(one.replicates, resample(X, np.ones(5), 8, 2000).replicates)


def test_iqm_is_scipys_trimmed_mean():
    rng = np.random.default_rng(0)
    for size in range(1, 14):
        values = rng.exponential(size=size)
        assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25))


def test_means_are_pooled_over_jobs_not_over_sequences():
    result = resample([[10.0, 90.0]], [[10, 30]])
    assert result.means[0] == 100 / 40
    assert set(np.round(result.replicates[0], 9)) <= {1.0, 2.5, 3.0}, "ratio of resampled sums"


def test_resampling_is_paired():
    """Two policies a constant apart: sequences differ wildly, the difference doesn't."""
    rng = np.random.default_rng(1)
    sums, counts = rng.exponential(100, 200), np.full(200, 10.0)
    result = resample([sums, sums - 5], [counts, counts])
    difference = result.difference(1, 0)
    assert (difference.low, difference.high) == pytest.approx((-0.5, -0.5))
    assert difference.excludes_zero
    assert result.mean(0).high - result.mean(0).low > 1
    assert not result.difference(0, 0).excludes_zero


def test_relative_difference():
    result = resample([[8.0, 8.0], [10.0, 10.0]], [[2, 2], [2, 2]])
    relative = result.relative(0, 1)
    assert (relative.value, relative.low, relative.high) == pytest.approx((-0.2, -0.2, -0.2))


def test_coverage_of_the_paired_interval():
    """95 % intervals of the pooled difference hold the truth in about 95 % of simulated evaluations."""
    rng = np.random.default_rng(5)
    hits, trials, size = 0, 400, 120
    for trial in range(trials):
        counts = rng.integers(20, 50, size).astype(float)
        shared = rng.lognormal(1, 0.5, size)  # what both policies suffer on a busy sequence, and its jobs
        one = counts * (shared + rng.normal(0.3, 1, size) + counts / 35)
        two = counts * (shared + rng.normal(0, 1, size) + counts / 35)
        interval = resample([one, two], [counts, counts], seed=trial, num_resamples=500).difference(0, 1)
        hits += interval.low <= 0.3 <= interval.high
    assert 0.92 <= hits / trials <= 0.98


def test_sequences_without_jobs():
    result = resample([[0.0, 4.0, 6.0]], [[0, 2, 2]], num_resamples=200)
    assert result.means[0] == 2.5
    assert np.isfinite([result.mean(0).low, result.mean(0).high]).all()


def test_paired_prob_better_counts_ties_half_and_lower_is_better():
    assert paired_prob_better([1, 2, 3, np.nan], [2, 2, 1, 1]) == pytest.approx((1 + 0.5 + 0) / 3)
    assert np.isnan(paired_prob_better([np.nan], [1]))


def test_prob_improvement_matches_the_definition():
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 5, 30), rng.integers(0, 6, 20)
    pairs = np.mean([(a > b) + 0.5 * (a == b) for a in x for b in y])
    assert prob_improvement(x, y) == pytest.approx(pairs)
