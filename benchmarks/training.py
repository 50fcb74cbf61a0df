"""Training speed, end to end: our PPO against MaskablePPO of sb3-contrib on our own environment.

Both learn from the same rollouts (16,384 decisions, 4 epochs, minibatches of 2,048, one thread) on the
default DeepRM cluster. The peer has its flat network of two layers of 128 (ReLU) and is taken at its best of
several numbers of environments in its process. Ours runs with that network and with the slot-shared one, and
each also without passing over forced decisions (`skip_forced`), which the peer cannot do: that part of the
gain is the method's, the rest the program's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.paired import Side, interleaved, per_second, ratio, repeat, verdict
from schedrl.envs.deeprm import DeepRMEnv, DeepRMSettings, DeepRMVectorEnv
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings, UserError

ROLLOUT, EPOCHS, MINIBATCH, WIDTHS = 16_384, 4, 2048, (128, 128)
BOUNDS = {"mlp": 12.0, "slots": 7.0}
"""What our network must reach against the peer's flat one."""


@dataclass(frozen=True)
class TrainingBenchmark(Settings):
    """What to measure, and how long."""

    rounds: int = 5
    """Times that every side is run; the median of the rounds' ratios counts."""
    seconds: float = 1.0
    """Processor seconds of each run, rounded up to whole updates."""
    peer_envs: tuple[int, ...] = (1, 16, 64)
    """Numbers of environments in the peer's process; its best counts."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("rounds", 1)
        self.in_range("seconds", 0, open_low=True)
        self.in_range("peer_envs", 1, ROLLOUT)


def run(settings: TrainingBenchmark) -> None:
    """Measure all sides in turn and print their rates and ratios.

    Raises:
        UserError: the peer is not installed.
    """
    ours: dict[str, Side] = {}
    for network in BOUNDS:
        for skip in (True, False):
            ours[_name(network, skip)] = _side(_our_update(network, skip))
    peers = {f"MaskablePPO, {n} envs": _side(_peer_update(n)) for n in settings.peer_envs}
    rates = interleaved({**ours, **peers}, settings.rounds, settings.seconds)
    best = max(peers, key=lambda name: sorted(rates[name])[settings.rounds // 2])
    rows = []
    for network, bound in BOUNDS.items():
        for skip in (True, False):
            name = _name(network, skip)
            against = ratio(rates, name, best)
            rate = per_second(sorted(rates[name])[settings.rounds // 2])
            rows.append((name, rate, str(against), verdict(against.median, bound) if skip else ""))
    rows += [(name, per_second(sorted(rates[name])[settings.rounds // 2]), "", "") for name in peers]
    print_table(
        f"Training, decisions per processor second; ratios against {best} (quartiles)",
        ("side", "rate", "ratio", "bound"),
        rows,
    )


def _name(network: str, skip: bool) -> str:
    return f"ours, {network}" + ("" if skip else ", learning from forced decisions too")


def _side(update: Callable[[], int]) -> Side:
    update()  # compiles and traces
    return lambda seconds: repeat(update, seconds)


def _our_update(network: str, skip_forced: bool) -> Callable[[], int]:
    from ppo.config import PPOSettings
    from ppo.train import train
    from schedrl.learning.budget import Budget
    from schedrl.learning.run_folder import Run

    algorithm = PPOSettings(
        network=network,
        hidden=WIDTHS if network == "mlp" else (),
        num_envs=256,
        num_steps=ROLLOUT // 256,
        num_epochs=EPOCHS,
        batch_size=MINIBATCH,
        skip_forced=skip_forced,
        total_steps=10**9,
    )
    env = DeepRMVectorEnv(DeepRMSettings(), algorithm.num_envs, copy=False)
    updates = train(env, algorithm, Run(Budget(algorithm.total_steps), tensorboard=False))

    def update() -> int:
        next(updates)
        return ROLLOUT

    return update


def _peer_update(num_envs: int) -> Callable[[], int]:
    try:
        import torch
        from sb3_contrib import MaskablePPO
        from stable_baselines3.common.vec_env import DummyVecEnv
    except ImportError as error:
        raise UserError(f"{error.name} is not installed; pip install -r requirements-peer.txt") from None
    from schedrl.envs.flatten import FlattenObservations

    torch.set_num_threads(1)
    envs = DummyVecEnv([lambda: FlattenObservations(DeepRMEnv()) for _ in range(num_envs)])
    network = {"net_arch": list(WIDTHS), "activation_fn": torch.nn.ReLU}
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=ROLLOUT // num_envs,
        batch_size=MINIBATCH,
        n_epochs=EPOCHS,
        policy_kwargs=network,
        device="cpu",
    )

    def update() -> int:
        model.learn(ROLLOUT, reset_num_timesteps=False)
        return ROLLOUT

    return update
