"""`diurnal`: a daily cycle, the rate proportional to exp(k cos(time to the peak)), so always positive.

As a density of the time of day this is von Mises's law; its peak over its mean is exp(k) / I0(k).
"""

from dataclasses import dataclass

import numpy as np

from .clocks import DailyClock
from .jobs import JobSettings

BINS = 8640
"""Parts of a day in which the rate is constant: 10 seconds."""


@dataclass(frozen=True)
class DiurnalSettings(JobSettings):
    """Poisson arrivals with a daily cycle; time 0 is midnight."""

    peak_hour: float = 14.0
    """Hour of the day at which most jobs come, from 0 to below 24."""

    amplitude: float = 3.0
    """Rate at the peak over the mean rate; 1 (no cycle) to 20."""

    def check_own(self) -> None:
        """Validate."""
        self.in_range("peak_hour", 0, 24, open_high=True)
        self.in_range("amplitude", 1, 20)

    def concentration(self) -> float:
        """Return k, so that exp(k) / I0(k) is `amplitude`."""
        from scipy.optimize import brentq
        from scipy.special import i0e

        return float(brentq(lambda k: 1 / i0e(k) - self.amplitude, 0, 1e4, xtol=1e-12))

    def clock(self, rng: np.random.Generator) -> DailyClock:
        """Return the clock of the cycle."""
        hours = (np.arange(BINS) + 0.5) * 24 / BINS
        return DailyClock(np.exp(self.concentration() * (np.cos((hours - self.peak_hour) * np.pi / 12) - 1)))
