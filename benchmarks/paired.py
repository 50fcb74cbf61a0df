"""Rates of several programs measured in turn, so that what slows the machine slows all of them.

Absolute rates on a shared machine mean little, and neither do two runs after one another. So every side runs
for a short while, then the next, round after round, and each round gives a ratio; the median counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

Side = Callable[[float], tuple[int, float]]
"""Runs for about so many seconds; returns what it did (a count) and the seconds that took."""
Rates = Mapping[str, np.ndarray]


class Ratio(NamedTuple):
    """Median of the rounds' ratios, and their quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        """Show as `71.3x (69.8 .. 73.0)`."""
        return f"{self.median:.1f}x ({self.low:.1f} .. {self.high:.1f})"


def interleaved(sides: Mapping[str, Side], rounds: int, seconds: float) -> dict[str, np.ndarray]:
    """Return the rates [rounds] of each side, one run of about `seconds` per side and round."""
    rates = {name: np.zeros(rounds) for name in sides}
    for i in range(rounds):
        for name, side in sides.items():
            count, spent = side(seconds)
            rates[name][i] = count / spent
    return rates


def ratio(rates: Rates, side: str, base: str) -> Ratio:
    """Compare two sides round by round."""
    low, median, high = np.percentile(rates[side] / rates[base], [25, 50, 75])
    return Ratio(float(median), float(low), float(high))


def repeat(work: Callable[[], int], seconds: float) -> tuple[int, float]:
    """Call `work`, which returns what it did, until `seconds` are over: a `Side` made of one piece of work.

    Seconds are those of the processor, so that waiting for a busy one is not counted.
    """
    count, start = 0, time.process_time()
    while True:
        count += work()
        spent = time.process_time() - start
        if spent >= seconds:
            return count, spent


def per_second(rate: float) -> str:
    """Show a rate with three digits: `2.31 M/s`."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}/s"
    return f"{rate:.3g} /s"


def verdict(value: float, bound: float) -> str:
    """Say whether a bound is met, and by how much it is missed."""
    return f"met ({bound:g}x)" if value >= bound else f"MISSED by {1 - value / bound:.0%} ({bound:g}x)"
