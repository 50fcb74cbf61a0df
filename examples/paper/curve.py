"""One training run whose policy is measured on the way: the learning curve of the paper's Fig. 6.

    python -m examples.paper.curve --points 16 --sequences 100 -- --algo ppo --load 0.7 --model_dir DIR

does what `launcher.py --no_eval` does with the flags after `--`, and writes curve.csv into the run's folder.
Each point plays the same validation sequences ten times with sampled actions (the paper: twenty) and once
greedily; "best" is the mean over sequences of the best of the ten, the paper's max reward.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import main_guard, whole_number

SAMPLES = 10
SEED = 5
"""Of the validation sequences: not those that heuristics are tuned on."""


def sequences_of_curve(environment: Any, count: int) -> Any:
    """Return the validation sequences of the curve."""
    from schedrl.evaluation.evaluate import sequences_of

    return sequences_of(environment, count, SEED, "validation")


def point(policy: Any, environment: Any, sequences: Any) -> dict[str, float]:
    """Measure a policy: slowdown pooled over jobs; return averaged over episodes, mean and best of ten."""
    from schedrl.envs.deeprm.episodes import play
    from schedrl.evaluation.metrics import slowdowns

    repeated = sequences.rows(np.repeat(np.arange(sequences.count), SAMPLES))
    sampled = play(policy, environment, repeated, deterministic=False, seed=SEED)
    greedy = play(policy, environment, sequences)
    returns = sampled.ret.reshape(-1, SAMPLES)
    return {
        "slowdown": float(np.nanmean(slowdowns(sampled))),
        "slowdown_greedy": float(np.nanmean(slowdowns(greedy))),
        "mean_return": float(returns.mean()),
        "best_return": float(returns.max(axis=1).mean()),
    }


def when(total: int, points: int) -> list[float]:
    """Return after how many decisions the curve is measured: from 0.5 % of the budget to all of it."""
    return np.geomspace(total / 200, total, points).tolist() if points > 1 else [float(total)]


def train(flags: list[str], points: int, sequences: Any) -> Path:
    """Train as the launcher does, measure on the way, write the curve and return its path."""
    from schedrl import registry
    from schedrl.evaluation.table import write_csv
    from schedrl.launch.local import make_env, open_run, require_learning
    from schedrl.launch.plan import read_plan
    from schedrl.learning.budget import Budget
    from schedrl.learning.tf_setup import tensorflow

    plan = read_plan(flags)
    tensorflow(seed=plan.launch.seed)
    run = open_run(plan, Budget.of(plan.algorithm))
    played = sequences_of_curve(plan.environment, sequences)
    due, rows = when(plan.algorithm.total_steps, points), []
    learning = registry.get("algorithm", plan.launch.algo)(make_env(plan), plan.algorithm, run)
    for iteration, record in enumerate(learning, 1):
        require_learning(record)
        if due and (record["decisions"] >= due[0] or run.done):
            found = point(run.model.policy(), plan.environment, played)
            rows.append({"iteration": iteration, "decisions": record["decisions"]} | found)
            due = [later for later in due if later > record["decisions"]]
    path = Path(plan.folder) / "curve.csv"
    write_csv(path, rows)
    return path


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Read the flags, train, say where the curve is."""
    parser = argparse.ArgumentParser(description="Train one policy and record its learning curve.")
    parser.add_argument("--points", type=whole_number(1), default=16)
    parser.add_argument("--sequences", type=whole_number(1), default=100)
    parser.add_argument("flags", nargs="*", help="of launcher.py, after --")
    args = parser.parse_args(argv)
    print(f"wrote {train(args.flags, args.points, args.sequences)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
