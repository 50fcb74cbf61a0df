"""PPO where arrivals never stop, beside SJF and Tetris tuned for each load: mean and P99 over windows.

Episodes that drain reward holding long jobs back; a cluster that runs for ever does not. The policies here
are trained with the presets deeprm-steady and ppo-steady, one for each load.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.learning import train
from schedrl.settings import Settings

BASELINES = ("sjf", "tetris")
KNOWN = {(0.5, "sjf"): 3.21, (0.6, "sjf"): 5.01, (0.65, "sjf"): 7.43} | {
    (0.5, "tetris"): 3.14,
    (0.6, "tetris"): 4.58,
    (0.65, "tetris"): 5.96,
}
"""Means of an earlier, independent measurement on other jobs, to hold ours against."""


@dataclass(frozen=True)
class SteadyStateBenchmark(Settings):
    """Which loads to measure."""

    loads: tuple[float, ...] = (0.5, 0.6, 0.65)
    """Loads of the busiest resource."""
    seeds: tuple[int, ...] = (10,)
    """Seeds of training. Seed 0 was used when gamma was chosen."""
    eval_seed: int = 1
    """Seed of the test windows. Those of 0 were looked at when gamma was chosen."""
    decisions: int = 5_000_000
    """Budget of each run."""
    num_windows: int = 1000
    """Windows of 2,000 steps; jobs that arrive in steps 300 to 1,500 count."""
    out: str = "results/steady_state"
    """Folder of the runs."""


def run(settings: SteadyStateBenchmark) -> None:
    """Train what is missing, evaluate, print a table for each load."""
    from schedrl.envs.deeprm.settings import DeepRMSettings
    from schedrl.evaluation.steady_state import Windows, steady_state
    from schedrl.learning.numpy_policy import load_policy

    for load, seed in product(settings.loads, settings.seeds):
        folder = Path(settings.out) / f"load{load}_seed{seed}"
        presets = ["--preset", "deeprm-steady,ppo-steady", "--load", str(load)]
        train(folder, presets, seed, settings.decisions)
        policy, description = load_policy(folder)
        environment = DeepRMSettings.from_dict(description["settings"]["environment"])
        windows = Windows(num_windows=settings.num_windows)
        evaluation = steady_state(
            {"ppo": policy}, environment, windows, baselines=BASELINES, seed=settings.eval_seed
        )
        print(f"\nload {load:.0%}, training seed {seed}")
        evaluation.print()
        for name in BASELINES:
            if (load, name) in KNOWN:
                ratio = evaluation.summaries[name].mean / KNOWN[load, name]
                print(f"{name}: {ratio - 1:+.1%} from the {KNOWN[load, name]} measured before", flush=True)
