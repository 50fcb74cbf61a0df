"""The settings of A2C, with the reason for each. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, Literal

from schedrl.learning.settings import ActorCriticSettings


@dataclass(frozen=True)
class A2CSettings(ActorCriticSettings):
    """Advantage actor-critic (Mnih et al., 2016, without the asynchrony)."""

    total_steps: int | None = 8_000_000
    """Budget in decisions (one step of one environment, forced ones included); none = no such limit."""
    num_envs: int = 64
    """Environments stepped together by one call. Fewer than PPO: a rollout gives one gradient step."""
    num_steps: int = 16
    """Vector steps per rollout; one gradient step learns from num_envs x num_steps decisions."""
    critic_learning_rate: float | None = None
    """Step size of the critic's own layers; none = half of learning_rate. Follows the same schedule."""
    optimiser: Literal["adam", "rmsprop"] = "adam"
    """How gradients become steps; rmsprop is what the A3C paper used."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("critic_learning_rate", 0)

    @property
    def critic_scale(self) -> float:
        """The critic's step size as a share of the actor's."""
        return 0.5 if self.critic_learning_rate is None else self.critic_learning_rate / self.learning_rate


PRESETS: dict[str, dict[str, Any]] = {
    "a2c-steady": {"gamma": 0.999, "total_steps": 10_000_000},
}

PROBE_SETTINGS: dict[str, Any] = {"num_steps": 2, "learning_rate": 3e-2, "critic_learning_rate": 3e-2}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
