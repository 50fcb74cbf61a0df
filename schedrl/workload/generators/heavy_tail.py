"""`heavy_tail`: Pareto work, few jobs are most of the load (Harchol-Balter and Downey, SIGMETRICS 1996).

The tail is truncated at `max_size`: beyond it no sample mean would settle. It lies in one of a job's two
sides; the other keeps its usual law.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .jobs import JobSettings
from .laws import Law, Pareto
from .sizes import Shares, SizeLaw


@dataclass(frozen=True)
class HeavyTailSettings(JobSettings):
    """Poisson arrivals of jobs whose duration or demand is Pareto between 1 and `max_size`."""

    arrival_rate: float = 200.0
    """Jobs per minute, on average; above 0. Most jobs are small, so it takes many: the default is a load of
    about 50 %."""

    tail: Literal["duration", "demand"] = "duration"
    """What carries the tail. "duration": a job of size x lasts x seconds, `sizes` gives its demand. "demand":
    it demands x / `max_size` of `largest_demand`, `durations` gives how long."""

    alpha: float = 1.5
    """Tail index, P(size above x) ~ x^-alpha; above 0. Below 2 the untruncated law has no variance."""

    max_size: float = 1024.0
    """Largest size; above 1."""

    largest_demand: tuple[float, ...] = (8.0, 32.0, 2.0)
    """Demand of a job of size `max_size`, of each resource (a whole server), where demand carries the
    tail."""

    def check_own(self) -> None:
        """Validate."""
        self.in_range("max_size", 1, open_low=True)
        self.in_range("alpha", 0, open_low=True)
        self.check(
            self.tail == "duration" or len(self.largest_demand) == len(self.resources),
            f"largest_demand has {len(self.largest_demand)} values for {len(self.resources)} resources; "
            "give one per resource",
        )
        self.check(
            min(self.largest_demand) >= 0 and max(self.largest_demand) > 0,
            "largest_demand must be 0 or more, and above 0 somewhere",
        )

    def duration_law(self) -> Law:
        """Return the law of the durations, in seconds."""
        return Pareto(self.alpha, 1.0, self.max_size) if self.tail == "duration" else super().duration_law()

    def size_law(self) -> SizeLaw:
        """Return the law of the demands."""
        if self.tail == "duration":
            return super().size_law()
        return Shares(Pareto(self.alpha, 1 / self.max_size, 1.0), np.array(self.largest_demand))
