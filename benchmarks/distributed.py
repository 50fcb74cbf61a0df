"""Does it matter how many distributed workers train? Quality and speed of PPO, paired by seed.

Each seed trains once in one process and once with every number of workers, with the same total budget. All
policies play the same test sequences, every job counted. What must hold: averaged over the seeds, the mean
slowdown of the greedy policies differs from one process by at most BOUND. A run whose folder holds a policy
is not trained again. Speed is the median of the decisions/s that runs logged after their first update; it
is measured again with steps that count in Python for COSTLY of one process' time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.burning import COSTLY, TURNS, turns_per_second
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
    decisions: int = 2_000_000
    """Budget of each run, all workers together."""
    costly_decisions: int = 40_000
    """The same for the runs with costly steps, of one seed; 0 = none."""
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
        self.in_range("costly_decisions", 0)


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
    if settings.costly_decisions:
        print_costly(sides, float(np.median(base["rate"])), settings)
    (Path(settings.out) / "distributed.json").write_text(json.dumps(found, indent=2) + "\n")
    print("the bound holds" if not code else f"a side differs by more than {BOUND:.0%}")
    return code


def print_costly(sides: dict[str, list[str]], rate: float, settings: DistributedBenchmark) -> None:
    """Train with costly steps, print the rates; `rate` is that of one process with steps as they are."""
    turns = round(turns_per_second() * COSTLY / (1.0 - COSTLY) / rate)
    paths = [str(ROOT), str(ROOT / "benchmarks" / "costly"), os.environ.get("PYTHONPATH", "")]
    variables = {TURNS: str(turns), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    flags = ["--num_envs", "64", "--seed", str(settings.seeds[0])]
    rates = []
    for name, own in sides.items():
        folder = Path(settings.out) / f"{name.replace(' ', '_')}_costly"
        train(folder, [*own, *flags], settings, settings.costly_decisions, variables)
        rates.append(rate_of(folder))
    print_table(
        f"The same with steps that count to {turns:,}",
        ["side", "decisions/s", "ratio"],
        [[name, f"{r:,.0f}", f"{r / rates[0]:.2f}x"] for name, r in zip(sides, rates, strict=True)],
    )


def train(
    folder: Path,
    flags: list[str],
    settings: DistributedBenchmark,
    decisions: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run launcher.py unless the folder holds a policy already."""
    if (folder / "policy.npz").exists():
        return
    common = ["--algo", "ppo", "--no_eval", "--arrival_rate", str(settings.arrival_rate)]
    budget = ["--total_steps", str(decisions or settings.decisions), "--model_dir", str(folder)]
    command = [sys.executable, str(ROOT / "launcher.py"), *common, *budget, *flags]
    print(f"training {folder.name}", flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **(variables or {})})


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
