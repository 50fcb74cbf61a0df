"""The settings that algorithms share; each algorithm adds its own. No heavy imports.

`LearningSettings` is for all. `PolicyGradientSettings` adds what every policy gradient has, and
`ActorCriticSettings` what comes with a critic that learns from rollouts of fixed length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from schedrl.learning.schedules import scheduled
from schedrl.settings import Settings

Schedule = Literal["constant", "linear", "cosine"]
MOST_ENVS = 1_000_000
"""Environments that are stepped together at most: each takes some kilobytes, before anything is learned."""


@dataclass(frozen=True)
class LearningSettings(Settings):
    """Budget, network, optimiser and numeric guards."""

    actions: ClassVar[tuple[str, ...]] = ("discrete",)
    """Kinds of action space the algorithm can act in: discrete, continuous, mixed."""
    critic: ClassVar[bool] = True
    """Whether the algorithm learns values."""
    divided: ClassVar[tuple[str, ...]] = ()
    """Settings that count for all workers of a distributed run together; empty: it was not made for one."""

    total_steps: int | None = 2_000_000
    """Budget in decisions (one step of one environment, forced ones included); none = no such limit."""
    num_episodes: int | None = None
    """Budget in finished episodes; none = no such limit."""
    num_envs: int = 256
    """Environments stepped together by one call."""
    gamma: float = 1.0
    """Discount per decision, in [0, 1]. 1 suits episodes that end. In steady state 0.98 and 0.99 were
    measured to hold long jobs back for ever; 0.999 works best (preset ppo-steady)."""
    learning_rate: float = 2e-3
    """The optimiser's step size at the start."""
    learning_rate_schedule: Schedule = "linear"
    """How the step size goes to 0 over the budget: constant, linear or cosine."""
    schedule_steps: int | None = None
    """Decisions over which schedules go from start to end (with schedule_episodes: what is over first); none
    = the whole budget."""
    schedule_episodes: int | None = None
    """Finished episodes over which schedules go from start to end; none = the whole budget."""
    schedule_share: float = 1.0
    """Part of the schedules that is gone through, in [0, 1]; where it ends they stay."""
    max_grad_norm: float = 0.5
    """Global norm to which a gradient is scaled down."""
    reward_scale: float = 0.02
    """Rewards are multiplied by this before learning (logs show them unscaled). Returns should come to a few
    units: larger ones make the critic's gradient fill max_grad_norm and starve the policy."""
    normalise_observations: bool = False
    """Scale observations by running mean and variance, saved with the model and frozen in evaluation."""
    network: Literal["slots", "mlp", "image", "pair_scorer"] = "slots"
    """slots = weights shared over job slots, mlp = flat, image = the paper's (20 hidden units), pair_scorer =
    weights shared over jobs and machines (simple_cluster)."""
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; empty = the network's default (slots 32,32; mlp 128,128; image 20;
    pair_scorer 32,32,64,64: two of the scorer, then the critic's own)."""
    layer_norm: bool = False
    """Normalise what each hidden layer puts out, before the relu (Ba et al., 2016)."""
    prior: float = 0.0
    """Strength of an EASY-like prior in the logits of pair_scorer: starting jobs, the first of the queue
    before others, but none that delays the first job that can't start. 0 = none."""
    pretrain: str | None = None
    """Before learning, imitate this heuristic (sjf, tetris, ...), as the original's pg_su; none = don't."""
    pretrain_episodes: int = 500
    """Episodes that the heuristic plays to be imitated; a fifth of them is kept to validate."""
    pretrain_epochs: int = 30
    """Most passes over the imitated decisions; the weights of the best validation accuracy are kept."""
    validate_every: int | None = None
    """Decisions between two looks at validation workloads, greedy and sampled; the weights of the best look
    are kept. 0 = keep the last ones. none = the environment's choice: a twentieth of the budget on
    simple_cluster, 0 on deeprm."""
    validation_sequences: int = 100
    """Job sequences of such a look."""
    use_tf_function: bool = True
    """Compile acting and learning with tf.function; False runs the same code eagerly, for debugging."""
    xla: bool = False
    """Compile with XLA too. It helps tiny batches of the mlp and slows image networks on a CPU."""
    precision: Literal["float32", "mixed_bfloat16"] = "float32"
    """mixed_bfloat16 computes networks in 16 bits while learning: for large ones, on GPUs made for it.
    Weights, losses and acting stay in 32 bits. Slower on a CPU."""
    check_numerics: bool = False
    """Stop at the first NaN or infinity and name the tensor (slower; the debug mode sets it)."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.check(
            self.total_steps is not None or self.num_episodes is not None,
            "a run needs a budget: give total_steps (decisions) or num_episodes",
        )
        self.in_range("validate_every", 0)
        self.in_range("num_envs", 1, MOST_ENVS)
        for name in (
            "total_steps", "num_episodes", "schedule_steps", "schedule_episodes", "hidden",
            "pretrain_epochs", "validation_sequences",
        ):  # fmt: skip
            self.in_range(name, 1)
        for name in ("learning_rate", "max_grad_norm", "reward_scale"):
            self.in_range(name, 0, open_low=True)
        self.in_range("gamma", 0, 1)
        self.in_range("schedule_share", 0, 1)
        self.in_range("prior", 0)
        self.in_range("pretrain_episodes", 5)
        if self.pretrain is not None:
            from schedrl import registry

            object.__setattr__(self, "pretrain", registry.find("heuristic", self.pretrain))

    def rates(self, progress: float) -> dict[str, float]:
        """Return what moves with the schedules, at `progress` in [0, 1] of them."""
        return {"learning_rate": scheduled(self.learning_rate_schedule, self.learning_rate, 0.0, progress)}


@dataclass(frozen=True)
class PolicyGradientSettings(LearningSettings):
    """What every policy gradient has: advantages and an entropy bonus."""

    entropy_coef: float = 0.0
    """Weight of the entropy bonus (over legal actions only, nats) at the start. PPO needs none on
    DeepRM (see the wait trap in docs/algorithms/ppo.md), A2C and A3C a little."""
    entropy_coef_final: float = 0.0
    """Weight of the entropy bonus at the end of the budget."""
    entropy_schedule: Schedule = "linear"
    """How the entropy weight moves from start to end: constant, linear or cosine."""
    normalise_advantages: bool = True
    """Scale the advantages of each batch to mean 0 and standard deviation 1."""
    advantage_clip: float = 10.0
    """Advantages are cut to +- this (after normalising)."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in ("entropy_coef", "entropy_coef_final"):
            self.in_range(name, 0)
        self.in_range("advantage_clip", 0, open_low=True)

    def rates(self, progress: float) -> dict[str, float]:
        """Return what moves with the schedules, at `progress` in [0, 1] of them."""
        bonus = self.entropy_schedule, self.entropy_coef, self.entropy_coef_final
        return super().rates(progress) | {"entropy_coef": scheduled(*bonus, progress)}


@dataclass(frozen=True)
class ActorCriticSettings(PolicyGradientSettings):
    """A critic, and rollouts of fixed length that it completes."""

    num_steps: int = 64
    """Vector steps per rollout; one update learns from num_envs x num_steps decisions."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation, in [0, 1]; 1 = n-step returns over the whole rollout."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    dropout: float = 0.0
    """Share of the units in front of the value head that are dropped in value losses, in [0, 1). The policy
    never drops: its log-probabilities would no longer be those that acted."""
    num_quantiles: int = 0
    """Let the critic predict that many quantiles of the return instead of its mean (Dabney et al., 2018);
    `policy.quantiles(obs)` reads them. 0 = the mean."""
    skip_forced: bool = True
    """Don't learn from decisions with a single legal action: they have no policy gradient, and more than half
    are such. Time passes over them with lambda 1, and the critic is asked only where there is a choice."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_steps", 1)
        self.in_range("gae_lambda", 0, 1)
        self.in_range("value_coef", 0)
        self.in_range("dropout", 0, 1, open_high=True)
        self.in_range("num_quantiles", 0)


@dataclass(frozen=True)
class OneStepSettings(ActorCriticSettings):
    """An actor-critic that takes one gradient step per rollout (A2C, A3C)."""

    num_envs: int = 64
    """Environments stepped together by one call. Fewer than PPO: a rollout gives one gradient step."""
    num_steps: int = 16
    """Vector steps per rollout; one gradient step learns from num_envs x num_steps decisions."""
    learning_rate: float = 2e-3
    """The optimiser's step size at the start. With 3e-3 and no entropy bonus two seeds of three stayed with
    SJF's way of playing (docs/algorithms/a2c.md)."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus (over legal actions only, nats) at the start; goes to 0 over the budget."""
    gamma: float = 0.99
    """Discount per decision, in [0, 1]. With 1 a policy that waits for ever has no finite value: the short
    rollouts bootstrap it ever lower, and some seeds don't recover (docs/algorithms/a3c.md)."""
    gae_lambda: float = 1.0
    """Lambda of generalised advantage estimation, in [0, 1]; 1 = n-step returns, as in the paper."""
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
