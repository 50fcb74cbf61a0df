"""The settings that every learning algorithm shares; each algorithm adds its own. No heavy imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schedrl.settings import Settings

Schedule = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class LearningSettings(Settings):
    """Budget, network, optimiser and numeric guards."""

    total_steps: int | None = 2_000_000
    """Budget in decisions (one step of one environment, forced ones included); none = no such limit."""
    num_episodes: int | None = None
    """Budget in finished episodes; none = no such limit."""
    num_envs: int = 256
    """Environments stepped together by one call."""
    gamma: float = 1.0
    """Discount per decision, in [0, 1]. 1 suits episodes that end. In steady state 0.98 and 0.99
    were measured to hold long jobs back for ever; 0.998 works (preset ppo-steady)."""
    learning_rate: float = 2e-3
    """Adam's step size at the start."""
    learning_rate_schedule: Schedule = "linear"
    """How the step size goes to 0 over the budget: constant, linear or cosine."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus (over legal actions only, nats) at the start. Beside an idle machine a step
    of waiting costs less than a bonus of 0.01 pays, so the policy waits for ever (docs/algorithms/ppo.md)."""
    entropy_coef_final: float = 0.0
    """Weight of the entropy bonus at the end of the budget."""
    entropy_schedule: Schedule = "linear"
    """How the entropy weight moves from start to end: constant, linear or cosine."""
    max_grad_norm: float = 0.5
    """Global norm to which a gradient is scaled down."""
    reward_scale: float = 0.02
    """Rewards are multiplied by this before learning (logs show them unscaled). Returns should come to a few
    units: larger ones make the critic's gradient fill max_grad_norm and starve the policy."""
    normalise_advantages: bool = True
    """Scale the advantages of each batch to mean 0 and standard deviation 1."""
    advantage_clip: float = 10.0
    """Advantages are cut to +- this (after normalising)."""
    normalise_observations: bool = False
    """Scale observations by running mean and variance, saved with the model and frozen in evaluation."""
    network: Literal["slots", "mlp", "image"] = "slots"
    """slots = weights shared over job slots, mlp = flat, image = the paper's (20 hidden units)."""
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; empty = the network's default (slots 32,32; mlp 128,128; image 20)."""
    use_tf_function: bool = True
    """Compile acting and learning with tf.function; False runs the same code eagerly, for debugging."""
    xla: bool = False
    """Compile with XLA too. It helps tiny batches of the mlp and slows image networks on a CPU."""
    check_numerics: bool = False
    """Stop at the first NaN or infinity and name the tensor (slower; the debug mode sets it)."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.check(
            self.total_steps is not None or self.num_episodes is not None,
            "a run needs a budget: give total_steps (decisions) or num_episodes",
        )
        for name in ("total_steps", "num_episodes", "num_envs", "hidden"):
            self.in_range(name, 1)
        for name in ("learning_rate", "max_grad_norm", "reward_scale", "advantage_clip"):
            self.in_range(name, 0, open_low=True)
        for name in ("entropy_coef", "entropy_coef_final"):
            self.in_range(name, 0)
        self.in_range("gamma", 0, 1)
