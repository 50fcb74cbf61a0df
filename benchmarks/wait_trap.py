"""How often a greedy policy waits for ever: entropy bonus against gradient steps, all else equal.

No idle limit, the paper's episodes at load 130 %. Each row differs from the default settings in the two
numbers named and in nothing else, so that a difference is theirs; several seeds, since single runs differ by
more than the settings do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.learning import train
from schedrl.settings import Settings


@dataclass(frozen=True)
class WaitTrapBenchmark(Settings):
    """Which rows to measure."""

    entropy_coefs: tuple[float, ...] = (0.0, 0.003, 0.01)
    """Entropy bonuses, each going to 0 over the budget."""
    num_epochs: tuple[int, ...] = (4, 10)
    """Passes over each rollout."""
    seeds: tuple[int, ...] = (20, 21, 22, 23)
    """Seeds of training."""
    eval_seed: int = 1
    """Seed of the test sequences."""
    decisions: int = 1_000_000
    """Budget of each run."""
    num_sequences: int = 1000
    """Test sequences."""
    out: str = "results/wait_trap"
    """Folder of the runs."""


def run(settings: WaitTrapBenchmark) -> None:
    """Train what is missing; print, per row and seed, the greedy episodes cut off and both means."""
    from schedrl.envs.deeprm.settings import DeepRMSettings
    from schedrl.evaluation import evaluate
    from schedrl.learning.numpy_policy import load_policy

    print("bonus  epochs  cut off of all, by seed     greedy mean               sampled mean")
    for bonus, epochs in product(settings.entropy_coefs, settings.num_epochs):
        cut, means = [], {"greedy": [], "sampled": []}  # type: ignore[var-annotated]
        for seed in settings.seeds:
            folder = Path(settings.out) / f"bonus{bonus}_epochs{epochs}_seed{seed}"
            flags = [
                "--algo",
                "ppo",
                "--idle_limit",
                "none",
                "--entropy_coef",
                str(bonus),
                "--num_epochs",
                str(epochs),
            ]
            train(folder, flags, seed, settings.decisions)
            policy, description = load_policy(folder)
            environment = DeepRMSettings.from_dict(description["settings"]["environment"])
            options = {"num_sequences": settings.num_sequences, "seed": settings.eval_seed, "baselines": ()}
            evaluation = evaluate({"ppo": policy}, environment, **options)
            cut.append(int(evaluation.run("ppo", "greedy").outcome.cut_off.sum()))
            for mode, found in means.items():
                found.append(evaluation.summaries[evaluation.run("ppo", mode).label].mean)
        columns = ["  ".join(f"{mean:.3f}" for mean in found) for found in means.values()]
        print(f"{bonus:<6} {epochs:<7} {'  '.join(map(str, cut)):<27} {'   '.join(columns)}", flush=True)
