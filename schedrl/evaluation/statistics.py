"""How sure a comparison is: paired bootstrap over sequences, probability of being better, IQM.

The unit of chance is the sequence, not the job: jobs of one sequence share a queue. So whole sequences are
resampled, the same ones for every policy (paired), and the pooled mean over jobs is recomputed as ratio of
sums, sum of slowdowns / number of jobs. A seed fixes every number here, and NumPy's global random state is
never touched (a published library for this ignores its seed; see case 30 of the tests).

Sources: Efron & Tibshirani, An Introduction to the Bootstrap (1993), ch. 13 (percentile interval); Agarwal et
al., Deep RL at the Edge of the Statistical Precipice (2021), section 4 (IQM, probability of improvement).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NUM_RESAMPLES = 10_000
_CHUNK_CELLS = 2_000_000  # resampling weights held at a time: 16 MB


@dataclass(frozen=True)
class Interval:
    """An estimate with the limits of its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Say whether the whole interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Resampled:
    """Pooled means of P policies on the same sequences, with their bootstrap replicates."""

    means: np.ndarray
    """[P] pooled means of the sequences as they are."""
    replicates: np.ndarray
    """[P, N] pooled means of N resamples; column n is the same resample for every policy."""
    confidence: float = 0.95

    def mean(self, policy: int) -> Interval:
        """Return the pooled mean of one policy."""
        return self._interval(self.means[policy], self.replicates[policy])

    def difference(self, policy: int, baseline: int) -> Interval:
        """Return mean(policy) - mean(baseline): negative = `policy` is faster."""
        return self._interval(
            self.means[policy] - self.means[baseline], self.replicates[policy] - self.replicates[baseline]
        )

    def relative(self, policy: int, baseline: int) -> Interval:
        """Return mean(policy) / mean(baseline) - 1: -0.1 = 10 % lower."""
        return self._interval(
            self.means[policy] / self.means[baseline] - 1,
            self.replicates[policy] / self.replicates[baseline] - 1,
        )

    def _interval(self, value: float, replicates: np.ndarray) -> Interval:
        tail = 50 * (1 - self.confidence)
        valid = replicates[np.isfinite(replicates)]
        low, high = np.percentile(valid, [tail, 100 - tail]) if valid.size else (np.nan, np.nan)
        return Interval(float(value), float(low), float(high))


def resample(
    sums, counts, seed: int = 0, num_resamples: int = NUM_RESAMPLES, confidence: float = 0.95
) -> Resampled:
    """Bootstrap pooled means over sequences, the same resamples for every policy.

    Args:
        sums: [P, X] sum of the measure over the jobs of each sequence, one row for each policy.
        counts: [P, X] number of jobs behind each sum; a sequence without jobs is legal.
        seed: fixes the resamples.
        num_resamples: N.
        confidence: share of the replicates between the limits.
    """
    sums, counts = np.atleast_2d(np.asarray(sums, float)), np.atleast_2d(np.asarray(counts, float))
    rng = np.random.default_rng(seed)
    num_policies, size = sums.shape
    table = np.concatenate([sums, counts]).T
    totals = np.empty((num_resamples, 2 * num_policies))
    step = max(1, _CHUNK_CELLS // max(size, 1))
    for first in range(0, num_resamples, step):
        rows = min(step, num_resamples - first)
        picks = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
        weights = np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size)
        totals[first : first + rows] = weights.astype(float) @ table
    with np.errstate(invalid="ignore"):  # no job at all: NaN, and the percentiles leave it out
        replicates = (totals[:, :num_policies] / totals[:, num_policies:]).T
        means = sums.sum(axis=1) / counts.sum(axis=1)
    return Resampled(means, replicates, confidence)


def paired_prob_better(policy, baseline) -> float:
    """Return the share of sequences on which `policy` has the lower value, ties half; NaN pairs are left out.

    Args:
        policy: [X] mean of each sequence.
        baseline: [X] the same sequences.
    """
    policy, baseline = np.asarray(policy, float), np.asarray(baseline, float)
    valid = np.isfinite(policy) & np.isfinite(baseline)
    if not valid.any():
        return float("nan")
    return float(np.mean((policy < baseline)[valid] + 0.5 * (policy == baseline)[valid]))


def prob_improvement(x, y) -> float:
    """Return P(X > Y) over all pairs of two unpaired samples, ties half (Mann-Whitney U / (n m))."""
    x, y = np.asarray(x, float), np.sort(np.asarray(y, float))
    below, up_to = np.searchsorted(y, x, "left"), np.searchsorted(y, x, "right")
    return float((below + up_to).sum() / (2 * len(x) * len(y)))


def iqm(values) -> float:
    """Return the interquartile mean: floor(0.25 n) values dropped at each end, as SciPy's `trim_mean`."""
    ordered = np.sort(np.asarray(values, float))
    cut = len(ordered) // 4
    kept = ordered[cut : len(ordered) - cut]
    return float(kept.mean()) if len(kept) else float("nan")
