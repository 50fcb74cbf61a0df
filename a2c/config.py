"""The settings of A2C. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, ClassVar

from schedrl.learning.settings import OneStepSettings


@dataclass(frozen=True)
class A2CSettings(OneStepSettings):
    """Advantage actor-critic (Mnih et al., 2016, without the asynchrony)."""

    actions: ClassVar[tuple[str, ...]] = ("discrete", "continuous", "mixed")

    learning_rate: float = 2e-3
    """The optimiser's step size at the start. With 3e-3 and no entropy bonus two seeds of three stayed with
    SJF's way of playing (docs/algorithms/a2c.md)."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus (over legal actions only, nats) at the start; goes to 0 over the budget."""


PROBE_SETTINGS: dict[str, Any] = {"num_steps": 2, "learning_rate": 3e-2, "critic_learning_rate": 3e-2}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
