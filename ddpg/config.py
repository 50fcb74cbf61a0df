"""The settings of DDPG, with the reason for each. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from schedrl.learning.schedules import scheduled
from schedrl.learning.settings import LearningSettings, Schedule

CRITIC_FIRST = 0.2
"""After imitating, the critics learn alone up to this share of the budget: young ones would undo it."""


@dataclass(frozen=True)
class DDPGSettings(LearningSettings):
    """Deep deterministic policy gradient (Lillicrap et al., 2016); discrete choices by Gumbel-softmax."""

    actions: ClassVar[tuple[str, ...]] = ("discrete", "continuous", "mixed")
    divided: ClassVar[tuple[str, ...]] = ("num_envs", "batch_size", "replay_size", "learning_starts")

    learning_rate: float = 1e-3
    """The actor's step size at the start. Slower than the critics': an actor that runs ahead of them settles
    on waiting, which looks good to a critic that has not yet seen what it costs."""
    critic_learning_rate: float = 2e-3
    """The critics' step size at the start."""
    num_steps: int = 8
    """Vector steps between updates."""
    gradient_steps: int = 8
    """Gradient steps per update; with batch_size they say how often a transition is learned from."""
    batch_size: int = 512
    """Transitions per gradient step."""
    replay_size: int = 100_000
    """Choices kept; forced decisions are not. Those of a bad early policy do harm while they are there."""
    learning_starts: int = 10_000
    """Choices collected before the first update, though no more than a tenth of the budget's decisions."""
    n_step: int = 20
    """Choices between an observation and the one its target bootstraps from."""
    tau: float = 0.05
    """Share of the way that the target networks move at each gradient step (Polyak averaging), in (0, 1]."""
    critic_hidden: tuple[int, ...] = (128, 128)
    """Widths of the critics' hidden layers; empty = those of hidden, which is the actor's. The policy is as
    good as what the critic can tell apart, and only training pays for it (docs/algorithms/ddpg.md)."""
    num_critics: int = 1
    """2 = targets take the smaller value of two critics (TD3, Fujimoto et al., 2018)."""
    temperature: float = 1.0
    """Of the Gumbel-softmax through which the critic's gradient reaches the actor; smaller = steeper."""
    gumbel_draws: int = 4
    """Draws per row of the Gumbel-softmax; more = less noise in the actor's gradient."""
    entropy_coef: float = 0.1
    """Weight of the entropy bonus at the start, against values scaled to a spread of 1."""
    entropy_coef_final: float = 0.0
    """Weight of the entropy bonus at the end of the budget."""
    entropy_schedule: Schedule = "linear"
    """How the entropy weight moves from start to end: constant, linear or cosine."""
    epsilon: float = 0.05
    """Share of choices drawn uniformly from the legal ones, at the start, in [0, 1]."""
    epsilon_final: float = 0.0
    """The same at the end of the budget."""
    noise: Literal["gaussian", "ou"] = "gaussian"
    """Exploration in continuous numbers: independent, or Ornstein-Uhlenbeck as in the DDPG paper."""
    noise_std: float = 0.1
    """Its standard deviation, as a share of half the box; the result is cut to the box."""
    priority_alpha: float = 0.0
    """How strongly replay prefers large errors (Schaul et al., 2016): 0 = uniform, 0.6 is usual, 1 = in
    proportion to them."""
    priority_beta: float = 0.4
    """How far importance weights undo that preference at the start; 1 at the end of the budget."""
    value_coef: float = 0.5
    """The actor's network also predicts V(s) = Q(s, greedy action), which policy.npz carries; weight of that
    loss."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        counts = ("num_steps", "gradient_steps", "batch_size", "learning_starts", "n_step", "gumbel_draws")
        for name in (*counts, "replay_size", "critic_hidden"):
            self.in_range(name, 1)
        for name in ("critic_learning_rate", "temperature"):
            self.in_range(name, 0, open_low=True)
        for name in ("entropy_coef", "entropy_coef_final", "noise_std", "value_coef"):
            self.in_range(name, 0)
        for name in ("epsilon", "epsilon_final", "priority_alpha", "priority_beta"):
            self.in_range(name, 0, 1)
        self.in_range("num_critics", 1, 2)
        self.in_range("tau", 0, 1, open_low=True)
        self.check(
            self.replay_size >= self.num_envs * self.num_steps,
            f"replay_size is {self.replay_size}, but an update collects num_envs x num_steps = "
            f"{self.num_envs * self.num_steps} decisions; raise replay_size",
        )

    def rates(self, progress: float) -> dict[str, float]:
        """Return what moves with the schedules, at `progress` in [0, 1] of them."""
        kind, critic = self.learning_rate_schedule, self.critic_learning_rate
        bonus = self.entropy_schedule, self.entropy_coef, self.entropy_coef_final
        still = self.pretrain is not None and progress < CRITIC_FIRST
        actor = {"learning_rate": 0.0} if still else super().rates(progress)
        return actor | {
            "entropy_coef": scheduled(*bonus, progress),
            "critic_learning_rate": scheduled(kind, critic, 0.0, progress),
            "epsilon": scheduled("linear", self.epsilon, self.epsilon_final, progress),
            "priority_beta": scheduled("linear", self.priority_beta, 1.0, progress),
        }


PRESETS: dict[str, dict[str, Any]] = {"cluster": {"normalise_observations": True}}
"""For simple_cluster, which adds its action job_machine."""

PROBE_SETTINGS: dict[str, Any] = {
    "gradient_steps": 16,
    "batch_size": 128,
    "n_step": 2,
    "learning_starts": 100,
    "critic_learning_rate": 1e-2,
    "critic_hidden": (32,),
    "tau": 0.2,
    "total_steps": 20_000,
}
"""What it needs beside the tests' common settings to learn the probe environments in seconds."""
