"""Laws of one number, a duration or a demand, written as text: `lognormal:60:1.2:1:7200`.

Apart from the generators because any of them takes any law. A text is a name and values in the order of the
fields, parted by colons, or `name=value`; what is left out keeps its default. Every law knows its mean, so
that a target load becomes a rate, and turns normal numbers into its own, so that a Gaussian copula can join
laws.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from schedrl.settings import UserError, one_of

PHI = NormalDist().cdf


@dataclass(frozen=True)
class Law(ABC):
    """A law of numbers of 0 or more."""

    def __post_init__(self) -> None:
        """Refuse what is no number; subclasses refuse what makes no sense."""
        for name, value in self.values().items():
            self.check(math.isfinite(value) and value >= 0, f"{name} {value:g} must be finite and 0 or more")

    def values(self) -> dict[str, float]:
        """Return parameter -> value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self, condition: bool, message: str) -> None:
        """Raise ``UserError`` unless ``condition``, naming the law."""
        if not condition:
            raise UserError(f"law {type(self).__name__.lower()}: {message}")

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw [size] values."""
        return self.at(rng.random(size))

    def from_normal(self, normal: np.ndarray) -> np.ndarray:
        """Turn standard normal numbers into values of the law, larger into larger."""
        from scipy.special import ndtr

        return self.at(ndtr(normal))

    @abstractmethod
    def at(self, chance: np.ndarray) -> np.ndarray:
        """Return the values below which a share ``chance`` of the law lies, 0 to 1."""

    @abstractmethod
    def mean(self) -> float:
        """Return the expected value."""


@dataclass(frozen=True)
class Lognormal(Law):
    """exp(normal); what falls outside low to high is set to the bound."""

    median: float = 60.0
    sigma: float = 1.2
    low: float = 1.0
    high: float = 7200.0

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.check(self.median > 0, f"median {self.median:g} must be above 0")
        self.check(self.low <= self.high, f"low {self.low:g} exceeds high {self.high:g}")

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw [size] values."""
        return self.from_normal(rng.standard_normal(size))

    def from_normal(self, normal: np.ndarray) -> np.ndarray:
        """Turn standard normal numbers into values of the law."""
        values = self.sigma * normal
        np.exp(values, out=values)
        values *= self.median
        return np.clip(values, self.low, self.high, out=values)

    def at(self, chance: np.ndarray) -> np.ndarray:
        """Invert the distribution function."""
        from scipy.special import ndtri

        return self.from_normal(ndtri(chance))

    def mean(self) -> float:
        """Return the expected value of the clipped law."""
        if self.sigma == 0:
            return min(max(self.median, self.low), self.high)
        low, high = (
            math.log(bound / self.median) / self.sigma if bound else -math.inf
            for bound in (self.low, self.high)
        )
        inside = PHI(high - self.sigma) - PHI(low - self.sigma)
        whole = self.median * math.exp(self.sigma**2 / 2)
        return self.low * PHI(low) + whole * inside + self.high * (1 - PHI(high))


@dataclass(frozen=True)
class Pareto(Law):
    """P(above x) ~ x^-alpha between low and high, nothing outside (truncated, no heap at the bound)."""

    alpha: float = 1.1
    low: float = 10.0
    high: float = 20_000.0

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.check(self.alpha > 0, f"alpha {self.alpha:g} must be above 0")
        self.check(0 < self.low < self.high, f"low {self.low:g} and high {self.high:g} need 0 < low < high")

    def at(self, chance: np.ndarray) -> np.ndarray:
        """Invert the distribution function."""
        kept = 1 - (self.low / self.high) ** self.alpha
        return np.minimum(self.low * (1 - kept * chance) ** (-1 / self.alpha), self.high)

    def mean(self) -> float:
        """Return the expected value."""
        ratio, alpha = self.high / self.low, self.alpha
        share = alpha / (1 - ratio**-alpha)
        if abs(alpha - 1) < 1e-9:
            return self.low * share * math.log(ratio)
        return self.low * share * (1 - ratio ** (1 - alpha)) / (alpha - 1)


@dataclass(frozen=True)
class Exponential(Law):
    """Exponential; what is above high is set to it."""

    average: float = 60.0
    high: float = 7200.0

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.check(self.average > 0, f"average {self.average:g} must be above 0")
        self.check(self.high > 0, f"high {self.high:g} must be above 0")

    def at(self, chance: np.ndarray) -> np.ndarray:
        """Invert the distribution function."""
        with np.errstate(divide="ignore"):
            return np.minimum(-self.average * np.log1p(-chance), self.high)

    def mean(self) -> float:
        """Return the expected value of the clipped law."""
        return self.average * -math.expm1(-self.high / self.average)


@dataclass(frozen=True)
class Uniform(Law):
    """Uniform from low to high."""

    low: float = 1.0
    high: float = 120.0

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.check(self.low <= self.high, f"low {self.low:g} exceeds high {self.high:g}")

    def at(self, chance: np.ndarray) -> np.ndarray:
        """Invert the distribution function."""
        return self.low + (self.high - self.low) * chance

    def mean(self) -> float:
        """Return the expected value."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Whole(Uniform):
    """Whole numbers from low to high, both included, each as likely."""

    low: float = 1.0
    high: float = 8.0

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        for name, value in self.values().items():
            self.check(value == int(value), f"{name} {value:g} must be a whole number")

    def at(self, chance: np.ndarray) -> np.ndarray:
        """Invert the distribution function."""
        return np.minimum(np.floor(self.low + (self.high - self.low + 1) * chance), self.high)


@dataclass(frozen=True)
class Constant(Law):
    """Always the same."""

    value: float = 60.0

    def at(self, chance: np.ndarray) -> np.ndarray:
        """Repeat the value."""
        return np.full(np.shape(chance), self.value)

    def mean(self) -> float:
        """Return the value."""
        return self.value


LAWS: dict[str, type[Law]] = {
    "lognormal": Lognormal,
    "pareto": Pareto,
    "exponential": Exponential,
    "uniform": Uniform,
    "whole": Whole,
    "constant": Constant,
}
"""Name in a text -> law."""

T = TypeVar("T")


def parse(setting: str, text: str, table: Mapping[str, type[T]]) -> T:
    """Return what a text such as `pareto:1.5:high=1024` stands for among the dataclasses of `table`.

    Raises:
        UserError: an unknown name, a parameter that is unknown, given twice or no number, or one refused.
    """
    name, *parts = (part.strip() for part in text.split(":"))
    cls = table[one_of(setting, name, table)]
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    given: dict[str, float] = {}
    for number, part in enumerate(parts):
        key, equals, value = part.rpartition("=")
        own = key.strip() if equals else known[number] if number < len(known) else ""
        form = ":".join([name, *known])
        if own not in known or own in given:
            raise UserError(f"{setting} {text!r}: {part!r} is not understood; write {form}, or name=value")
        try:
            given[own] = float(value)
        except ValueError:
            raise UserError(f"{setting} {text!r}: {value!r} is no number; write {form}") from None
    return cls(**given)
