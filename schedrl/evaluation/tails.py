"""How sure a comparison of tails is: the paired bootstrap of percentiles, over whole sequences.

A percentile of pooled jobs is no ratio of sums, so `statistics.resample` can't give it: here each resample
counts the jobs of a sequence as often as the sequence was drawn. See `statistics` for why sequences.
"""

from __future__ import annotations

import numpy as np

from schedrl.evaluation.statistics import Interval

NUM_RESAMPLES = 2_000


def percentile_ratio(
    policy: np.ndarray,
    baseline: np.ndarray,
    percentile: float = 99.0,
    *,
    seed: int = 0,
    num_resamples: int = NUM_RESAMPLES,
    confidence: float = 0.95,
) -> Interval:
    """Return percentile(policy) / percentile(baseline) of the pooled values with its interval.

    Below 1 the policy has the shorter tail; an interval that reaches down to 1 allows no claim that it has
    the longer one.

    Args:
        policy: [X, J] values of X sequences, NaN where there is no job.
        baseline: the same sequences.
        percentile: of all values pooled.
        seed: of the resampling; NumPy's global random state is not touched.
        num_resamples: resamples of the X sequences, the same for both.
        confidence: of the interval.
    """
    one, other = _Pooled(policy), _Pooled(baseline)
    count = len(policy)
    everyone = np.ones(count, np.int64)
    rng = np.random.default_rng(seed)
    replicates = np.empty(num_resamples)
    for i in range(num_resamples):
        times = np.bincount(rng.integers(count, size=count), minlength=count)
        replicates[i] = one.percentile(times, percentile) / other.percentile(times, percentile)
    tail = 50 * (1 - confidence)
    low, high = np.percentile(replicates, [tail, 100 - tail])
    value = one.percentile(everyone, percentile) / other.percentile(everyone, percentile)
    return Interval(value, float(low), float(high))


class _Pooled:
    """All values in order, each with the sequence it is from."""

    def __init__(self, values: np.ndarray) -> None:
        rows, columns = np.nonzero(np.isfinite(values))
        found = values[rows, columns]
        order = np.argsort(found, kind="stable")
        self.values, self.sequence = found[order], rows[order]

    def percentile(self, times: np.ndarray, percentile: float) -> float:
        """Return the smallest value that at least this share of all lies at or below."""
        reached = np.cumsum(times[self.sequence])
        place = np.searchsorted(reached, percentile / 100 * reached[-1])
        return float(self.values[min(place, len(self.values) - 1)])
