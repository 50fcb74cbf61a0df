"""Clocks: how the rate of arrivals changes in time.

A process whose rate varies is a process of constant rate seen on a clock that runs unevenly (time change,
Cinlar, Introduction to Stochastic Processes, 1975, section 4.7). A clock turns *even* seconds, in which jobs
come at the mean rate, into real ones; over a long time both are equally many. Apart from the generators so
that a target load can be met exactly for all of them: only the even seconds are rescaled.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from schedrl.settings import UserError

DAY = 86_400.0


class Clock(Protocol):
    """A monotone map from even to real seconds."""

    def real(self, even: np.ndarray) -> np.ndarray:
        """Turn even seconds [J], ascending, into real ones."""


class EvenClock:
    """The rate never changes."""

    def real(self, even: np.ndarray) -> np.ndarray:
        """Return them as they are."""
        return even


class DailyClock:
    """The rate repeats every day.

    Args:
        rates: [bins] rate in equal parts of the day from midnight, in any unit; above 0.
    """

    def __init__(self, rates: Sequence[float] | np.ndarray) -> None:
        share = np.asarray(rates, float) / np.sum(rates)
        self._even = np.concatenate([[0.0], np.cumsum(share)]) * DAY
        self._even[-1] = DAY
        self._real = np.linspace(0, DAY, len(self._even))

    def real(self, even: np.ndarray) -> np.ndarray:
        """Read the time of day where the share of the day's arrivals is reached."""
        midnight = even * (1 / DAY)
        np.floor(midnight, out=midnight)
        midnight *= DAY
        real = np.interp(even - midnight, self._even, self._real)
        real += midnight
        return real


class TwoStateClock:
    """The rate of a Markov-modulated Poisson process of two states, quiet and burst.

    Args:
        rng: its own stream; the history grows as far as it is asked for, always the same.
        rates: rate in the quiet state and in a burst, 1 = the mean rate.
        stays: mean seconds of a quiet time and of a burst, each exponential. It starts in the steady state.
    """

    BLOCK = 4096
    MOST = 1 << 24

    def __init__(
        self, rng: np.random.Generator, rates: tuple[float, float], stays: tuple[float, float]
    ) -> None:
        self._rng = rng
        self._rates, self._stays = np.array(rates), np.array(stays)
        starts_in_burst = rng.random() < stays[1] / sum(stays)
        self._order = np.array([1, 0] if starts_in_burst else [0, 1])
        self._even, self._real = np.zeros(1), np.zeros(1)

    def real(self, even: np.ndarray) -> np.ndarray:
        """Read the time at which the history has had so many arrivals.

        Raises:
            UserError: the history would be too long to hold.
        """
        order = np.tile(self._order, self.BLOCK // 2)
        evens, reals = [self._even], [self._real]
        while evens[-1][-1] <= even[-1]:
            if len(evens) * self.BLOCK > self.MOST:
                raise UserError(
                    f"the state changes more than {self.MOST:,} times until job {len(even):,}: jobs are too "
                    "rare beside the bursts; raise load, arrival_rate or burst_interval, or draw fewer jobs"
                )
            seconds = self._rng.standard_exponential(self.BLOCK) * self._stays[order]
            reals.append(reals[-1][-1] + np.cumsum(seconds))
            evens.append(evens[-1][-1] + np.cumsum(seconds * self._rates[order]))
        if len(evens) > 1:
            self._even, self._real = np.concatenate(evens), np.concatenate(reals)
        return np.interp(even, self._even, self._real)

    def history(self, until: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the times [S + 1] when the state changes, from 0 to past `until`, and [S] True = burst."""
        ends = int(np.searchsorted(self._real, until)) + 1
        return self._real[:ends], np.resize(self._order, ends - 1) == 1
