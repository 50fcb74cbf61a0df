"""Do elastic shares pay? A policy trained to give shares, against itself held at full shares.

Action `elastic`: the head of the queue gets a machine and shares of the cpu and memory that it asks for, and
runs slower with less. The same policy plays the same test sequences twice, the second time with every share
set to 1 (which the environment still cuts to what is free). A row passes if its cost, minus the reward of a
job that it was trained for, is below the other's by the whole paired 95 % interval, and no share given was
outside its bounds. The mean bounded slowdown less 1, which full shares make smaller, stands beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning import train
from schedrl.settings import Settings

HEADER = (
    "| policy | played | cost | at full shares | difference | excess | at full | mean, least share | ok |"
)
OUTSIDE = 1e-6  # shares are whole micro-units


@dataclass(frozen=True)
class ElasticBenchmark(Settings):
    """What to train and on what."""

    algorithms: tuple[str, ...] = ("ppo", "ddpg")
    """Algorithms that choose numbers."""
    seeds: tuple[int, ...] = (41,)
    """Seeds of training."""
    server: str = "8,32,8"
    """Cores, GB and GPUs of each server. GPUs are plenty here: a job at half speed holds its GPUs (it
    always gets all of them) twice as long, and where they are scarce shares only cost."""
    queue_order: str = "arrival"
    """Order of the queue, whose head alone may start. In the order of arrival long jobs block short ones."""
    load: float = 1.2
    """Load of the busiest resource at full shares."""
    reward: str = "slowdown"
    """What is rewarded: a preset or weights."""
    decisions: int | None = 800_000
    """Budget of each run; none = the preset's."""
    num_sequences: int = 300
    """Test sequences."""
    eval_seed: int = 1
    """Seed of the test sequences."""
    out: str = "results/elastic"
    """Folder of the runs and of elastic.json."""


class FullShares:
    """A policy that chooses as another one does, and gives everyone all that is asked for."""

    def __init__(self, policy: Any) -> None:
        self._policy, self.representation = policy, policy.representation

    def reseed(self, seed: int) -> None:
        """Restart the generator behind sampled play."""
        self._policy.reseed(seed)

    def predict(self, obs: Any, deterministic: bool = True, draws: Any = None) -> Any:
        """Return the choices with shares of 1."""
        choice, device, shares = self._policy.predict(obs, deterministic, draws)
        return choice, device, np.ones_like(shares)


def run(settings: ElasticBenchmark) -> int:
    """Train what is missing, play both ways, print the table, write it; 1 if a row fails."""
    rows: list[dict[str, Any]] = []
    print(HEADER)
    print("|" + "---|" * 9, flush=True)
    for algo in settings.algorithms:
        for seed in settings.seeds:
            folder = Path(settings.out) / f"{algo}_seed{seed}"
            flags = ["--algo", algo, "--env", "simple_cluster", "--preset", "cluster", "--action", "elastic"]
            flags += ["--server", settings.server, "--queue_order", settings.queue_order]
            flags += ["--load", str(settings.load), "--reward", settings.reward]
            train(folder, flags, seed, settings.decisions)
            rows.append({"policy": f"{algo} {seed}"} | measure(folder, settings))
            print(_line(rows[-1]), flush=True)
    (Path(settings.out) / "elastic.json").write_text(json.dumps(rows, indent=1) + "\n")
    passing = sum(row["passes"] for row in rows)
    print(f"{passing} of {len(rows)} rows pass")
    return int(passing < len(rows))


def measure(folder: Path, settings: ElasticBenchmark) -> dict[str, Any]:
    """Play a trained policy as it is and at full shares; return a row."""
    from schedrl.envs.simple_cluster.episodes import play, returns
    from schedrl.envs.simple_cluster.jobs import jobs_of
    from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
    from schedrl.evaluation.cluster.sequences import mean_of_means
    from schedrl.evaluation.statistics import resample
    from schedrl.learning.numpy_policy import load_policy

    policy, description = load_policy(folder)
    options = SimpleClusterSettings.from_dict(description["settings"]["environment"])
    source, numbers = jobs_of(options, settings.eval_seed, "test"), np.arange(settings.num_sequences)
    players = {"given": policy, "full": FullShares(policy)}
    costs, excess, given = [], [], np.zeros(0)
    for name, player in players.items():
        player.reseed(settings.eval_seed)
        greedy = policy.play == "greedy"
        costs.append(
            -returns(player, options, source, numbers, deterministic=greedy, seed=settings.eval_seed)
        )
        player.reseed(settings.eval_seed)
        played = play(player, options, numbers, seed=settings.eval_seed, deterministic=greedy)
        excess.append(mean_of_means(played, options) - 1)
        given = np.concatenate([_shares(schedule) for schedule in played]) if name == "given" else given
    jobs = np.full((2, len(numbers)), float(options.num_jobs))
    found = resample(np.array(costs), jobs, seed=settings.eval_seed)
    difference = found.difference(0, 1)
    inside = given.min() >= options.min_share - OUTSIDE and given.max() <= 1
    return {
        "play": policy.play,
        "cost": float(found.means[0]),
        "full_cost": float(found.means[1]),
        "low": difference.low,
        "high": difference.high,
        "excess": excess[0],
        "full_excess": excess[1],
        "mean_share": float(given.mean()),
        "least_share": float(given.min()),
        "passes": bool(difference.high < 0 and inside),
    }


def _shares(schedule: Any) -> np.ndarray:
    """Return the shares of cpu and memory that jobs were given, of those that asked for any."""
    asked = np.asarray(schedule.workload.demand)[:, :2]
    granted = np.asarray(schedule.demand)[:, :2]
    return (granted / np.maximum(asked, OUTSIDE))[asked > 0]


def _line(row: dict[str, Any]) -> str:
    return (
        f"| {row['policy']} | {row['play']} | {row['cost']:.3f} | {row['full_cost']:.3f} | "
        f"{row['low']:+.3f} .. {row['high']:+.3f} | {row['excess']:.3f} | {row['full_excess']:.3f} | "
        f"{row['mean_share']:.2f}, {row['least_share']:.2f} | {'yes' if row['passes'] else 'NO'} |"
    )
