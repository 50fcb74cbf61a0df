"""`bursty`: a Markov-modulated Poisson process of two states (Fischer and Meier-Hellstern, 1993)."""

from dataclasses import dataclass

import numpy as np

from .clocks import TwoStateClock
from .jobs import JobSettings


@dataclass(frozen=True)
class BurstySettings(JobSettings):
    """Quiet times and bursts in turn, each of random length; Poisson arrivals within each.

    "Rate x4 for 20 % of the time, a burst lasts 20 mean gaps" is `burst_factor=4, burst_gaps=20` beside the
    default interval and duration, whose ratio is 20 %.
    """

    burst_interval: float = 300.0
    """Mean seconds from the start of a burst to the start of the next; above `burst_duration`."""

    burst_duration: float = 60.0
    """Mean seconds that a burst lasts; above 0. The share of time in bursts is this over `burst_interval`."""

    burst_factor: float = 4.0
    """Rate in a burst over the rate in a quiet time; at least 1. The mean of both stays `arrival_rate`."""

    burst_gaps: float | None = None
    """Length of a burst in mean gaps between arrivals; above 0. Stretches both times above, whatever the rate
    is, and keeps their ratio. None: they are seconds as given."""

    def check_own(self) -> None:
        """Validate."""
        self.in_range("burst_duration", 0, open_low=True)
        self.in_range("burst_factor", 1)
        self.in_range("burst_gaps", 0, open_low=True)
        self.check(
            self.burst_interval > self.burst_duration,
            f"burst_interval {self.burst_interval:g} must be above burst_duration {self.burst_duration:g}: "
            "it is the time from the start of a burst to the next start",
        )
        self.in_range("burst_interval")

    def stays(self) -> tuple[float, float]:
        """Return the mean seconds of a quiet time and of a burst."""
        stretch = 1.0 if self.burst_gaps is None else self.burst_gaps / (self.rate() * self.burst_duration)
        return (self.burst_interval - self.burst_duration) * stretch, self.burst_duration * stretch

    def state_rates(self) -> tuple[float, float]:
        """Return the rates of a quiet time and of a burst, 1 = the mean rate."""
        share = self.burst_duration / self.burst_interval
        quiet = 1 / (1 - share + share * self.burst_factor)
        return quiet, quiet * self.burst_factor

    def clock(self, rng: np.random.Generator) -> TwoStateClock:
        """Return a history of quiet times and bursts."""
        return TwoStateClock(rng, self.state_rates(), self.stays())
