"""Does PPO learn? Every load, idle limit and seed trained by the launcher, held against the strong rules.

    python -m benchmarks learning --out results/learning --loads 0.38,0.7 --idle_limits 0,none --seeds 0,1,2

Each row must pass by itself: on the same 2,000 test sequences, every job counted, greedy and sampled, by the
upper end of the paired 95 % interval. With idle_limit 0: at most 2 % above SJF-hold, below SJF and the best
Tetris. With idling allowed: below SJF-hold, no episode cut off. A row whose folder holds a policy is not
trained again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BASELINES = ("sjf", "tetris", "sjf_hold", "tsl", "defer")
MAY_LOSE = 0.02  # of SJF-hold's mean, where the machine may not idle


def main(argv: list[str]) -> int:
    """Train what is missing, evaluate all, print the table; exit 1 where a row fails."""
    args = _parser().parse_args(argv)
    rows = []
    for rate in args.loads.split(","):
        for limit in args.idle_limits.split(","):
            for seed in args.seeds.split(","):
                folder = Path(args.out) / f"rate{rate}_idle{limit}_seed{seed}"
                train(folder, rate, limit, seed, args)
                found = measure(folder, args.num_sequences)
                rows += [{"rate": rate, "idle_limit": limit, "seed": seed, **row} for row in found]
                _show(rows[-2:], header=len(rows) == 2)
    (Path(args.out) / "learning.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["passes"] for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks learning", description=__doc__)
    parser.add_argument("--out", default="results/learning", help="folder of the runs and of learning.json")
    parser.add_argument(
        "--loads", default="0.38,0.7", help="arrival rates: 0.38 is load 70 %%, 0.7 is 130 %%"
    )
    parser.add_argument("--idle_limits", default="0,none", help="as the setting idle_limit")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--total_steps", type=int, default=3_000_000, help="decisions of each run")
    parser.add_argument("--num_sequences", type=int, default=2000, help="test sequences")
    return parser


def train(folder: Path, rate: str, limit: str, seed: str, args: argparse.Namespace) -> None:
    """Run the launcher, unless the folder holds a trained policy."""
    if (folder / "policy.npz").exists():
        return
    command = [
        sys.executable,
        str(ROOT / "launcher.py"),
        "--algo",
        "ppo",
        "--no_eval",
        "--model_dir",
        str(folder),
    ]
    command += ["--arrival_rate", rate, "--idle_limit", limit, "--seed", seed]
    subprocess.run([*command, "--total_steps", str(args.total_steps)], check=True, stdout=subprocess.DEVNULL)


def measure(folder: Path, num_sequences: int) -> list[dict[str, Any]]:
    """Return a row for the greedy and one for the sampled policy."""
    from schedrl.envs.deeprm.settings import DeepRMSettings
    from schedrl.evaluation import evaluate, tuned
    from schedrl.learning.numpy_policy import load_policy

    policy, run = load_policy(folder)
    settings = DeepRMSettings.from_dict(run["settings"]["environment"])
    rules = tuned(BASELINES, settings, 0)
    evaluation = evaluate({"ppo": policy}, settings, num_sequences=num_sequences, baselines=rules)
    return [_row(evaluation, mode, settings.idle_limit) for mode in ("greedy", "sampled")]


def _row(evaluation: Any, mode: str, limit: int | None) -> dict[str, Any]:
    run = evaluation.run("ppo", mode)
    against = {c.baseline: c for c in evaluation.comparisons if c.policy == run.label}
    means = {name: evaluation.summaries[name].mean for name in BASELINES}
    upper = {name: c.interval.high / means[name] for name, c in against.items() if c.interval is not None}
    cut_off = int(run.outcome.cut_off.sum())
    if limit == 0:
        passes = upper["sjf_hold"] <= MAY_LOSE and upper["sjf"] < 0 and upper["tetris"] < 0
    else:
        passes = upper["sjf_hold"] < 0 and cut_off == 0
    mean = evaluation.summaries[run.label].mean
    return {"mode": mode, "mean": mean, **means, "upper": upper, "cut_off": cut_off, "passes": bool(passes)}


def _show(rows: list[dict[str, Any]], header: bool) -> None:
    if header:
        names = " ".join(f"{name:>8}" for name in BASELINES)
        print(f"rate  idle seed mode       mean {names}  of hold  upper end  cut off")
    for row in rows:
        means = " ".join(f"{row[name]:8.3f}" for name in BASELINES)
        print(
            f"{row['rate']:<5} {row['idle_limit']:<4} {row['seed']:<4} {row['mode']:<8} "
            f"{row['mean']:6.3f} {means} "
            f"{row['mean'] / row['sjf_hold']:8.3f} {row['upper']['sjf_hold']:+10.1%} {row['cut_off']:8d}  "
            f"{'passes' if row['passes'] else 'FAILS'}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
