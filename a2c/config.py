"""The settings of A2C. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any

from schedrl.learning.settings import OneStepSettings


@dataclass(frozen=True)
class A2CSettings(OneStepSettings):
    """Advantage actor-critic (Mnih et al., 2016, without the asynchrony)."""

    total_steps: int | None = 3_000_000
    """Budget in decisions (one step of one environment, forced ones included); none = no such limit."""


PROBE_SETTINGS: dict[str, Any] = {"num_steps": 2, "learning_rate": 3e-2, "critic_learning_rate": 3e-2}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
