"""The settings of A2C. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, ClassVar

from schedrl.learning.settings import OneStepSettings


@dataclass(frozen=True)
class A2CSettings(OneStepSettings):
    """Advantage actor-critic (Mnih et al., 2016, without the asynchrony)."""

    actions: ClassVar[tuple[str, ...]] = ("discrete", "continuous", "mixed")
    divided: ClassVar[tuple[str, ...]] = ("num_envs",)


PRESETS: dict[str, dict[str, Any]] = {"cluster": {"normalise_observations": True}}
"""For simple_cluster, which adds its action job_machine."""

PROBE_SETTINGS: dict[str, Any] = {"num_steps": 2, "learning_rate": 3e-2, "critic_learning_rate": 3e-2}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
