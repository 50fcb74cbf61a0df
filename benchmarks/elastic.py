"""Do elastic shares pay? A policy trained to give shares, against itself held at full shares.

Action `elastic`: the head of the queue gets a machine and shares of the cpu and memory that it asks for, and
runs slower with less. The same policy plays the same test sequences twice, the second time with every share
set to 1. A row passes if the first is below the second by the whole paired 95 % interval, and no share given
was outside its bounds. EASY stands beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning import train
from schedrl.settings import Settings

EASY, SKIP = "sjf+best_fit+easy", "sjf+best_fit+skip"
OUTSIDE = 1e-6  # shares are whole micro-units


@dataclass(frozen=True)
class ElasticBenchmark(Settings):
    """What to train and on what."""

    algorithms: tuple[str, ...] = ("ppo", "ddpg")
    """Algorithms that choose numbers."""
    seeds: tuple[int, ...] = (41,)
    """Seeds of training."""
    load: float = 0.9
    """Load of the busiest resource at full shares."""
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

    def predict(self, obs: Any, deterministic: bool = True) -> Any:
        """Return the choices with shares of 1."""
        choice, device, shares = self._policy.predict(obs, deterministic)
        return choice, device, np.ones_like(shares)


def run(settings: ElasticBenchmark) -> int:
    """Train what is missing, play both ways, print the table, write it; 1 if a row fails."""
    rows: list[dict[str, Any]] = []
    print(
        "| policy | played | excess | at full shares | difference, 95 % | mean share | EASY | P99 | passes |"
    )
    print("|" + "---|" * 9, flush=True)
    for algo in settings.algorithms:
        for seed in settings.seeds:
            folder = Path(settings.out) / f"{algo}_seed{seed}"
            flags = ["--algo", algo, "--env", "simple_cluster", "--preset", "cluster", "--action", "elastic"]
            train(folder, [*flags, "--load", str(settings.load)], seed, settings.decisions)
            rows.append({"policy": f"{algo} {seed}"} | measure(folder, settings))
            print(_line(rows[-1]), flush=True)
    (Path(settings.out) / "elastic.json").write_text(json.dumps(rows, indent=1) + "\n")
    passing = sum(row["passes"] for row in rows)
    print(f"{passing} of {len(rows)} rows pass")
    return int(passing < len(rows))


def measure(folder: Path, settings: ElasticBenchmark) -> dict[str, Any]:
    """Play a trained policy as it is and at full shares; return a row."""
    from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
    from schedrl.evaluation.cluster.sequences import evaluate
    from schedrl.learning.numpy_policy import load_policy

    policy, description = load_policy(folder)
    options = SimpleClusterSettings.from_dict(description["settings"]["environment"])
    given: list[np.ndarray] = []
    replay = evaluate(
        {"as it is": policy, "full": FullShares(policy)},
        options,
        num_sequences=settings.num_sequences,
        seed=settings.eval_seed,
        rules=[EASY, SKIP],
        modes=[policy.play],
        keep=lambda label, schedule, number: given.append(_shares(schedule)) if "as it is" in label else None,
    )
    shares = np.concatenate(given)
    means, difference = replay.resampled.means - 1, replay.difference(2, 3).difference
    inside = shares.min() >= options.min_share - OUTSIDE and shares.max() <= 1
    return {
        "play": policy.play,
        "excess": float(means[2]),
        "full": float(means[3]),
        "low": difference.low,
        "high": difference.high,
        "mean_share": float(shares.mean()),
        "easy": float(means[0]),
        "p99": replay.entries[2].measures["bounded_slowdown"]["p99"],
        "passes": bool(difference.high < 0 and inside),
    }


def _shares(schedule: Any) -> np.ndarray:
    """Return the shares of cpu and memory that jobs were given, of those that asked for any."""
    asked = np.asarray(schedule.workload.demand)[:, :2]
    granted = np.asarray(schedule.demand)[:, :2]
    return (granted / np.maximum(asked, OUTSIDE))[asked > 0]


def _line(row: dict[str, Any]) -> str:
    return (
        f"| {row['policy']} | {row['play']} | {row['excess']:.3f} | {row['full']:.3f} | "
        f"{row['low']:+.3f} .. {row['high']:+.3f} | {row['mean_share']:.2f} | {row['easy']:.3f} | "
        f"{row['p99']:.2f} | {'yes' if row['passes'] else 'NO'} |"
    )
