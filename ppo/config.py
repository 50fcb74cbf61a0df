"""The settings of PPO, with the reason for each; presets below. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, ClassVar

from schedrl.learning.settings import ActorCriticSettings


@dataclass(frozen=True)
class PPOSettings(ActorCriticSettings):
    """Proximal policy optimisation (Schulman et al., 2017)."""

    actions: ClassVar[tuple[str, ...]] = ("discrete", "continuous", "mixed")
    divided: ClassVar[tuple[str, ...]] = ("num_envs", "batch_size")

    num_epochs: int = 10
    """Passes over each rollout."""
    batch_size: int = 512
    """Decisions per gradient step, nearly: what is learned from is cut into equal parts."""
    clip_epsilon: float = 0.2
    """Probability ratios are clipped to 1 +- this (PPO paper, equation 7)."""
    value_clip: float | None = None
    """Clip the value's change to +- this, in scaled rewards; none = off (it rarely helps)."""
    target_kl: float | None = None
    """Stop the update once a minibatch's approximate KL divergence exceeds this; none = off."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in ("num_epochs", "batch_size"):
            self.in_range(name, 1)
        for name in ("clip_epsilon", "value_clip", "target_kl"):
            self.in_range(name, 0, open_low=True)
        self.check(
            self.value_clip is None or not self.num_quantiles,
            f"value_clip is {self.value_clip}, but a critic of {self.num_quantiles} quantiles has no single "
            "value to clip; set num_quantiles 0 or leave value_clip out",
        )
        rollout = self.num_envs * self.num_steps
        self.check(
            self.batch_size <= rollout,
            f"batch_size is {self.batch_size}, but num_envs x num_steps is only {rollout}; lower batch_size",
        )


PRESETS: dict[str, dict[str, Any]] = {
    # The flat network needs a shorter horizon than the slot-shared one (docs/algorithms/ppo.md).
    "ppo-mlp": {"network": "mlp", "gamma": 0.97, "gae_lambda": 0.9},
    "ppo-image": {"network": "image", "gamma": 0.97, "gae_lambda": 0.9},
    # With less discounting the cost of a job held back for hundreds of steps is in sight
    # (docs/algorithms/ppo.md).
    "ppo-steady": {"gamma": 0.999, "total_steps": 8_000_000},
    # For simple_cluster, which adds its action job_machine (docs/choosing.md). Without normalised inputs
    # the one run that was tried learned half as fast, and its early greedy play waited for ever.
    "cluster": {
        "normalise_observations": True,
        "gae_lambda": 0.97,
        "learning_rate": 1e-3,
        "entropy_coef": 0.005,
        "num_epochs": 3,
        "batch_size": 2048,
        "total_steps": 2_000_000,
    },
    # On top of it: with so much less noise in the advantages, rollouts of half the size are enough.
    "cluster-privileged": {"num_envs": 128, "batch_size": 1024},
    # On top of it, for simple_cluster's preset of this name: its long, full episodes cost ten times as much.
    "cluster-sizes": {"reward_scale": 0.002, "validation_sequences": 30, "total_steps": 3_000_000},
}

PROBE_SETTINGS: dict[str, Any] = {"num_steps": 8, "batch_size": 128, "num_epochs": 4}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
