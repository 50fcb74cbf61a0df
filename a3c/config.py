"""The settings of A3C, with the reason for each; presets below. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, Literal

from schedrl.learning.settings import ActorCriticSettings


@dataclass(frozen=True)
class A3CSettings(ActorCriticSettings):
    """Asynchronous advantage actor-critic (Mnih et al., 2016)."""

    num_workers: int = 1
    """Processes that learn at the same time. 1 = this process alone: repeats and resumes bit for bit."""
    num_envs: int = 64
    """Environments of each worker, stepped together by one call."""
    num_steps: int = 16
    """Vector steps per gradient; a worker's gradient learns from num_envs x num_steps decisions."""
    learning_rate: float = 3e-3
    """The optimiser's step size at the start."""
    optimiser: Literal["adam", "rmsprop"] = "adam"
    """Whose moments the workers share: adam, or rmsprop as in the paper."""
    updates_per_record: int = 16
    """Gradients applied, by all workers together, between two records of metrics."""
    max_restarts: int = 10
    """Workers that died and were replaced before the run gives up."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_workers", 1)
        self.in_range("updates_per_record", 1)
        self.in_range("max_restarts", 0)


PRESETS: dict[str, dict[str, Any]] = {
    "a3c-mlp": {"network": "mlp", "gamma": 0.97, "gae_lambda": 0.9},
}
