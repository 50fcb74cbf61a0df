"""The laws of Lublin and Feitelson's model of rigid parallel jobs, and their published parameters.

Lublin and Feitelson, The workload on parallel supercomputers: modeling the characteristics of rigid jobs,
JPDC 63 (2003), with the parameters of the authors' program of 1999 (m_lublin99 in the Parallel Workloads
Archive):

* sizes: serial, else 2^x with x two-stage uniform in log2, often rounded to a power of two;
* run times: exp of a mix of two gammas; the larger the job, the likelier the second, longer one;
* arrivals: exp of a gamma between jobs of the rush hours, on a daily clock whose shape is a third gamma.

Apart from the generator, which draws, because here is all that can be computed without drawing. Times are
real numbers of seconds; the program cuts them to whole ones.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincinv

LONGEST_RUN, LONGEST_GAP = 12.0, 13.0
"""Logarithms of seconds; the program draws anew what is above."""

HALF_HOURS, FIRST_HALF_HOUR = 48, 11
"""The gamma of the daily cycle begins with the day's 11th half hour."""


class Gamma(NamedTuple):
    """A gamma law of a logarithm."""

    shape: float
    scale: float

    def share_below(self, limit: float) -> float:
        """Return the chance of no more than `limit`."""
        return float(gammainc(self.shape, limit / self.scale))

    def partial_mean_exp(self, limit: float) -> float:
        """Return E[exp(x); x <= limit]; exp(x) times the density is a gamma again (scales are below 1)."""
        tilted = Gamma(self.shape, self.scale / (1 - self.scale))
        return (1 - self.scale) ** -self.shape * tilted.share_below(limit)

    def redraw(self, chance: np.ndarray, limit: float) -> np.ndarray:
        """Return values of the law given that they are below `limit`, for chances uniform in 0 to 1."""
        return self.scale * gammaincinv(self.shape, chance * self.share_below(limit))


class JobClass(NamedTuple):
    """Parameters of one class of jobs; names as in the paper's tables."""

    serial: float
    """Chance of one processor."""
    power_of_two: float
    """Chance of a power of two, above 1."""
    low: float
    """log2 of the smallest parallel job."""
    below_high: tuple[float, float]
    """How far the middle and the high end of the two-stage uniform lie below log2 of the machine's size."""
    first_stage: float
    """Chance of the lower stage."""
    short: Gamma
    long: Gamma
    slope: float
    """Chance of the short run time = `intercept` + `slope` x processors, kept within 0 and 1."""
    intercept: float
    gap: Gamma
    """Of the rush hours; `gap_factor` makes it that of the whole day."""
    gap_factor: float
    cycle: Gamma

    def stages(self, num_nodes: int) -> tuple[float, float, float]:
        """Return low, middle and high end of the two-stage uniform."""
        return self.low, *(math.log2(num_nodes) - below for below in self.below_high)  # type: ignore[return-value]

    def short_chance(self, nodes: np.ndarray) -> np.ndarray:
        """Return the chance of a short run time of jobs of `nodes` processors."""
        return np.clip(self.intercept + self.slope * nodes, 0, 1)

    def day_gap(self) -> Gamma:
        """Return the law of the logarithm of an even gap."""
        return Gamma(self.gap.shape * self.gap_factor, self.gap.scale)

    def mean_gap(self) -> float:
        """Return the mean seconds between jobs."""
        law = self.day_gap()
        return law.partial_mean_exp(LONGEST_GAP) / law.share_below(LONGEST_GAP)

    def daily_rates(self) -> np.ndarray:
        """Return [48] the rate in each half hour from midnight."""
        edges = np.arange(HALF_HOURS + 1) + FIRST_HALF_HOUR - 0.5
        rates = np.diff(gammainc(self.cycle.shape, edges / self.cycle.scale))
        return np.roll(rates, FIRST_HALF_HOUR - 1)

    def size_chances(self, num_nodes: int) -> np.ndarray:
        """Return [num_nodes + 1] the chance of each number of processors."""
        low, middle, high = self.stages(num_nodes)

        def below(x: np.ndarray) -> np.ndarray:
            return np.interp(x, [low, middle, high], [0, self.first_stage, 1])

        chances = np.zeros(num_nodes + 1)
        chances[1] = self.serial
        exponents = np.arange(math.floor(math.log2(num_nodes)) + 1)
        ends = np.where(exponents == exponents[-1], np.inf, exponents + 0.5)
        chances[2**exponents] += self.power_of_two * (below(ends) - below(exponents - 0.5))
        nodes = np.arange(1, num_nodes + 1)
        inside = below(np.log2(nodes + 0.5)) - below(np.log2(nodes - 0.5))
        chances[1:] += (1 - self.serial - self.power_of_two) * inside
        return chances

    def draw_sizes(self, num_nodes: int, count: int, streams: Sequence[np.random.Generator]) -> np.ndarray:
        """Draw numbers of processors [count]; from 2 streams, so that more jobs begin with the same."""
        low, middle, high = self.stages(num_nodes)
        kind, place = (own.random(count) for own in streams)
        steep = (middle - low) / self.first_stage, (high - middle) / (1 - self.first_stage)
        # The inverse of the two-stage uniform is two lines. Arithmetic, because random branches are slow.
        bend = np.maximum if steep[0] < steep[1] else np.minimum
        exponent = bend(low + steep[0] * place, high - steep[1] * (1 - place))
        rounded = np.minimum(np.rint(exponent), math.floor(math.log2(num_nodes)))
        exponent += (rounded - exponent) * (kind < self.serial + self.power_of_two)
        exponent *= kind >= self.serial
        return np.rint(np.exp2(exponent))

    def draw_durations(self, nodes: np.ndarray, streams: Sequence[np.random.Generator]) -> np.ndarray:
        """Draw the run times [jobs] of jobs of so many processors, in seconds; from 3 streams."""
        of_kind, of_gamma, of_redraw = streams
        chance = self.short_chance(nodes)
        short = of_kind.random(len(nodes)) < chance
        shape, scale = (long + (law - long) * short for law, long in zip(self.short, self.long, strict=True))
        log_seconds = of_gamma.standard_gamma(shape)
        log_seconds *= scale
        anew = np.flatnonzero(log_seconds > LONGEST_RUN)
        if len(anew):
            kinds, places = of_redraw.random((len(anew), 2)).T
            kept = chance[anew] * self.short.share_below(LONGEST_RUN)
            kept_long = (1 - chance[anew]) * self.long.share_below(LONGEST_RUN)
            log_seconds[anew] = np.where(
                kinds * (kept + kept_long) < kept,
                self.short.redraw(places, LONGEST_RUN),
                self.long.redraw(places, LONGEST_RUN),
            )
        return np.exp(log_seconds)

    def mean_duration(self, nodes: np.ndarray) -> np.ndarray:
        """Return the mean run time of jobs of `nodes` processors, in seconds."""
        chance = self.short_chance(nodes)
        mean, kept = (
            chance * f(self.short) + (1 - chance) * f(self.long)
            for f in (
                lambda law: law.partial_mean_exp(LONGEST_RUN),
                lambda law: law.share_below(LONGEST_RUN),
            )
        )
        return mean / kept

    def mean_work(self, num_nodes: int) -> float:
        """Return the mean of processors x run time, in processor seconds."""
        nodes = np.arange(num_nodes + 1)
        return float(self.size_chances(num_nodes) @ (nodes * self.mean_duration(nodes)))


INTERACTIVE = JobClass(
    serial=0.1541,
    power_of_two=0.625,
    low=1.0,
    below_high=(4.0, 1.5),
    first_stage=0.705,
    short=Gamma(3.8351, 0.6605),
    long=Gamma(7.073, 0.6856),
    slope=-0.0118,
    intercept=0.9156,
    gap=Gamma(6.5510, 0.6621),
    gap_factor=0.9797,
    cycle=Gamma(8.9186, 3.6680),
)
BATCH = JobClass(
    serial=0.2927,
    power_of_two=0.6686,
    low=1.2,
    below_high=(2.0, 0.0),
    first_stage=0.875,
    short=Gamma(6.57, 0.823),
    long=Gamma(639.1, 0.0156),
    slope=-0.003,
    intercept=0.6986,
    gap=Gamma(6.0415, 0.8531),
    gap_factor=1.0519,
    cycle=Gamma(6.1271, 5.2740),
)
ALL = JobClass(
    serial=0.244,
    power_of_two=0.576,
    low=0.8,
    below_high=(2.5, 0.0),
    first_stage=0.86,
    short=Gamma(4.2, 0.94),
    long=Gamma(312.0, 0.03),
    slope=-0.0054,
    intercept=0.78,
    gap=Gamma(10.2303, 0.4871),
    gap_factor=1.0225,
    cycle=Gamma(8.1737, 3.9631),
)

CLASSES = {"both": (INTERACTIVE, BATCH), "interactive": (INTERACTIVE,), "batch": (BATCH,), "all": (ALL,)}
"""Setting `job_classes` -> the classes whose jobs come side by side."""
