"""The settings of A3C, with the reason for each. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, ClassVar

from schedrl.learning.settings import OneStepSettings


@dataclass(frozen=True)
class A3CSettings(OneStepSettings):
    """Asynchronous advantage actor-critic (Mnih et al., 2016)."""

    actions: ClassVar[tuple[str, ...]] = ("discrete", "continuous", "mixed")

    num_workers: int = 1
    """Processes that learn at the same time. 1 = this process alone: repeats and resumes bit for bit."""
    num_envs: int = 64
    """Environments of each worker, stepped together by one call; more workers make no gradient smaller."""
    total_steps: int | None = 2_000_000
    """Budget in decisions of all workers together, forced ones included; none = no such limit."""
    updates_per_record: int = 16
    """Gradients applied, by all workers together, between two records of metrics."""
    max_restarts: int = 10
    """Workers that were lost and replaced before the run gives up."""
    worker_timeout: float = 60.0
    """Seconds that a worker may take for one update before it is replaced; five times as long to start."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_workers", 1)
        self.in_range("updates_per_record", 1)
        self.in_range("max_restarts", 0)
        self.in_range("worker_timeout", 0, open_low=True)


PRESETS: dict[str, dict[str, Any]] = {"cluster": {"normalise_observations": True}}
"""For simple_cluster, which adds its action job_machine."""

PROBE_SETTINGS: dict[str, Any] = {
    "num_steps": 2,
    "learning_rate": 3e-2,
    "critic_learning_rate": 3e-2,
    "updates_per_record": 1,
}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
