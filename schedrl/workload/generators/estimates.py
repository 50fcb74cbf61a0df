"""What users say their jobs will take: exact, or the classical models of wrong estimates.

Apart from the durations because every generator takes every model. Sources: `factor` is the f-model of
Feitelson and Mu'alem Weil, Utilization and predictability in scheduling the IBM SP2 with backfilling
(IPPS/SPDP 1998), kept in Mu'alem and Feitelson (IEEE TPDS 12, 2001); `round` follows Tsafrir, Etsion and
Feitelson, Modeling user runtime estimates (JSSPP 2005): about 20 round values make up nearly all estimates,
and none is too short, because jobs are killed at it.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schedrl.settings import UserError

from .laws import parse


class Estimates(Protocol):
    """A model of users."""

    def draw(self, rng: np.random.Generator, duration: np.ndarray) -> np.ndarray:
        """Return the estimate [J] of jobs that last `duration` [J] seconds."""


@dataclass(frozen=True)
class Exact:
    """The estimate is the duration."""

    def draw(self, rng: np.random.Generator, duration: np.ndarray) -> np.ndarray:
        """Repeat the duration."""
        return duration


@dataclass(frozen=True)
class Unknown:
    """Nobody says anything."""

    def draw(self, rng: np.random.Generator, duration: np.ndarray) -> np.ndarray:
        """Return unknown for every job."""
        return np.full(len(duration), np.nan)


@dataclass(frozen=True)
class Factor:
    """Uniform between the duration and f + 1 times the duration."""

    f: float = 4.0

    def __post_init__(self) -> None:
        """Validate."""
        if not 0 <= self.f < np.inf:
            raise UserError(f"estimates factor: f {self.f:g} must be finite and 0 or more")

    def draw(self, rng: np.random.Generator, duration: np.ndarray) -> np.ndarray:
        """Draw the factors."""
        return duration * (1 + self.f * rng.random(len(duration)))


@dataclass(frozen=True)
class Noise:
    """The duration times lognormal(0, sigma): too short as often as too long."""

    sigma: float = 1.0

    def __post_init__(self) -> None:
        """Validate."""
        if not 0 <= self.sigma <= 10:
            raise UserError(f"estimates noise: sigma {self.sigma:g} must be 0 to 10")

    def draw(self, rng: np.random.Generator, duration: np.ndarray) -> np.ndarray:
        """Draw the factors."""
        return duration * np.exp(self.sigma * rng.standard_normal(len(duration)))


MINUTES = np.array([1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 360, 480, 720, 1080, 1440])
POPULAR = 60.0 * MINUTES
"""[20] the round values, in seconds."""
BY_RANK = (60, 30, 15, 120, 10, 5, 240, 180, 300, 720, 1440, 1080, 360, 20, 480, 90, 45, 2, 3, 1)
"""The same in minutes, the most popular first."""
CELLS = 4096
"""Cells of the table of chances; none holds more than one bound between values."""
RANK_DECAY = 0.85
"""Popularity falls by this from rank to rank, so the first 10 have about 80 %."""


@dataclass(frozen=True)
class Round:
    """One of 20 round values that is no less than the duration; longer jobs say the next whole hour.

    Simpler than the paper's model, which fits the values and their popularity to a log.
    """

    def draw(self, rng: np.random.Generator, duration: np.ndarray) -> np.ndarray:
        """Draw from the popular values, given that the job fits."""
        weight = np.empty(len(POPULAR))
        weight[np.searchsorted(MINUTES, BY_RANK)] = RANK_DECAY ** np.arange(len(POPULAR))
        below = np.append(0.0, np.cumsum(weight / weight.sum()))
        minutes = np.ceil(duration / 60)
        # Tables instead of searches: the first value that is long enough, by minutes; where a chance falls,
        # at most one value too low.
        first_by_minutes = np.searchsorted(MINUTES, np.arange(MINUTES[-1] + 2))
        guess = np.searchsorted(below, np.arange(CELLS + 1) / CELLS, side="right") - 1
        first = first_by_minutes[np.minimum(minutes, MINUTES[-1] + 1).astype(np.int64)]
        chance = below[first]
        chance += (1 - chance) * rng.random(len(duration))
        chosen = guess[(chance * CELLS).astype(np.int64)]
        chosen += chance >= below[1:].take(chosen, mode="clip")
        chosen = np.clip(chosen, first, len(POPULAR) - 1, out=chosen)
        return np.where(first < len(POPULAR), POPULAR[chosen], np.ceil(minutes / 60) * 3600)


ESTIMATES: dict[str, type] = {
    "exact": Exact,
    "unknown": Unknown,
    "factor": Factor,
    "round": Round,
    "noise": Noise,
}
"""Name in the setting `estimates` -> model."""


def estimate_model(text: str) -> Estimates:
    """Return the model that the setting `estimates` describes.

    Raises:
        UserError: unknown or refused.
    """
    return parse("estimates", text, ESTIMATES)
