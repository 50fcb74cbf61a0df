"""The settings of PG, with the reason for each; presets below. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from schedrl.learning.settings import PolicyGradientSettings


@dataclass(frozen=True)
class PGSettings(PolicyGradientSettings):
    """REINFORCE (Williams, 1992) as in DeepRM: several episodes of each job sequence, their mean as baseline.

    There is no critic, so an episode that is cut off counts as ended.
    """

    actions: ClassVar[tuple[str, ...]] = ("discrete", "mixed")
    divided: ClassVar[tuple[str, ...]] = ("num_envs", "batch_size")
    critic: ClassVar[bool] = False

    total_steps: int | None = 10_000_000
    """Budget in decisions (one step of one environment, forced ones included); none = no such limit."""
    num_envs: int = 64
    """Environments stepped together; each plays one episode an update. Multiple of episodes_per_sequence."""
    episodes_per_sequence: int = 8
    """Episodes of the same job sequence that are compared with each other (the original: 20)."""
    batch_size: int | None = 512
    """Decisions per gradient step, nearly: those of an update are shuffled and cut into equal parts, each
    used once. None: one step on all of them, as the original; far fewer steps then."""
    baseline: Literal["time", "decision"] = "time"
    """What is subtracted from a return: the group's mean from the same simulated time on, or from the same
    decision's index on, as the original (whose episodes start jobs at different indexes)."""
    learning_rate: float = 3e-3
    """The optimiser's step size at the start."""
    optimiser: Literal["adam", "rmsprop"] = "adam"
    """How gradients become steps; rmsprop is what the original used."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("episodes_per_sequence", 2)
        self.in_range("batch_size", 1)
        self.check(
            self.num_envs % self.episodes_per_sequence == 0,
            f"num_envs is {self.num_envs}; it must be a multiple of episodes_per_sequence "
            f"{self.episodes_per_sequence}: each environment plays one episode",
        )


PRESETS: dict[str, dict[str, Any]] = {
    "cluster": {"normalise_observations": True},  # for simple_cluster, which adds its action job_machine
    # The paper's: 20 episodes of each sequence, its network and optimiser, returns as they are.
    "pg-paper": {
        "network": "image",
        "num_envs": 200,
        "episodes_per_sequence": 20,
        "batch_size": None,
        "baseline": "decision",
        "optimiser": "rmsprop",
        "learning_rate": 1e-3,
        "learning_rate_schedule": "constant",
        "normalise_advantages": False,
        "advantage_clip": 1e9,
        "max_grad_norm": 1e9,
        "reward_scale": 1.0,
    },
}
