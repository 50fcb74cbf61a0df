"""Does it matter how many distributed workers train? Quality and speed of PPO, paired by seed.

Each seed trains once in one process and once with every number of workers, with the same total budget. All
policies play the same test sequences, every job counted. What must hold: averaged over the seeds, the mean
slowdown of the greedy policies differs from one process by at most BOUND. A run whose folder holds a policy
is not trained again. Speed is the median of the decisions/s that runs logged after their first update.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.evaluation.table import print_table
from schedrl.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
BOUND = 0.03


@dataclass(frozen=True)
class DistributedBenchmark(Settings):
    """What to train."""

    num_workers: tuple[int, ...] = (2,)
    """Numbers of distributed workers, each compared with one process."""
    seeds: tuple[int, ...] = (30, 31, 32)
    """Seeds of training."""
    decisions: int = 1_000_000
    """Budget of each run, all workers together."""
    arrival_rate: float = 0.7
    """0.7 is load 130 %."""
    num_sequences: int = 2000
    """Test sequences."""
    out: str = "results/distributed"
    """Folder of the runs and of distributed.json."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_workers", 1)
        for name in ("decisions", "num_sequences"):
            self.in_range(name, 1)


def run(settings: DistributedBenchmark) -> int:
    """Train what is missing, print both tables, write distributed.json; 1 if the bound is broken."""
    sides = {"one process": ["--mode", "local", "--num_workers", "1"]}
    for count in settings.num_workers:
        sides[f"{count} workers"] = ["--mode", "distributed", "--spawn", str(count)]
    found: dict[str, dict[str, list[float]]] = {name: {"slowdown": [], "rate": []} for name in sides}
    for seed in settings.seeds:
        for name, flags in sides.items():
            folder = Path(settings.out) / f"{name.replace(' ', '_')}_seed{seed}"
            train(folder, [*flags, "--seed", str(seed)], settings)
            found[name]["slowdown"].append(mean_slowdown(folder, settings))
            found[name]["rate"].append(rate_of(folder))
    base = found["one process"]
    rows, code = [], 0
    for name, values in found.items():
        slowdown, rate = np.array(values["slowdown"]), np.array(values["rate"])
        change = slowdown.mean() / np.mean(base["slowdown"]) - 1.0
        code |= int(abs(change) > BOUND)
        seeds = ", ".join(f"{value:.3f}" for value in slowdown)
        speed = np.median(rate / np.array(base["rate"]))
        rows.append(
            [
                name,
                f"{slowdown.mean():.3f}",
                seeds,
                f"{change:+.1%}",
                f"{np.median(rate):,.0f}",
                f"{speed:.2f}x",
            ]
        )
    print_table(
        f"PPO, {settings.decisions:,} decisions in all, greedy, mean slowdown",
        ["side", "mean", "by seed", "against one process", "decisions/s", "ratio"],
        rows,
    )
    (Path(settings.out) / "distributed.json").write_text(json.dumps(found, indent=2) + "\n")
    print("the bound holds" if not code else f"a side differs by more than {BOUND:.0%}")
    return code


def train(folder: Path, flags: list[str], settings: DistributedBenchmark) -> None:
    """Run launcher.py unless the folder holds a policy already."""
    if (folder / "policy.npz").exists():
        return
    common = ["--algo", "ppo", "--no_eval", "--arrival_rate", str(settings.arrival_rate)]
    budget = ["--total_steps", str(settings.decisions), "--model_dir", str(folder)]
    command = [sys.executable, str(ROOT / "launcher.py"), *common, *budget, *flags]
    print(f"training {folder.name}", flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def mean_slowdown(folder: Path, settings: DistributedBenchmark) -> float:
    """Return the mean slowdown of the greedy policy on test sequences."""
    from schedrl import registry
    from schedrl.evaluation import evaluate
    from schedrl.learning.numpy_policy import load_policy

    policy, description = load_policy(folder)
    cls: Any = registry.get("environment_settings", description["env"])
    environment = cls.from_dict(description["settings"]["environment"])
    options: dict[str, Any] = {"num_sequences": settings.num_sequences, "modes": ["greedy"], "baselines": ()}
    evaluation = evaluate({"ppo": policy}, environment, seed=1, **options)
    return float(evaluation.summaries[evaluation.run("ppo", "greedy").label].mean)


def rate_of(folder: Path) -> float:
    """Return the median of the logged decisions/s, the first update (which compiles) left out."""
    table = np.genfromtxt(folder / "metrics.csv", delimiter=",", names=True)
    return float(np.median(np.atleast_1d(table["decisions_per_second"])[1:]))
