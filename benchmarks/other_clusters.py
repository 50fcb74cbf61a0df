"""Does one policy serve clusters of other sizes? Trained on 5, 10 and 20 servers, run on 5, 20 and 50.

Presets `cluster,cluster-sizes`: blocks of training sequences have every number of servers at every load. Test
workloads have 40 jobs a server. A row passes at load 1.2 if the policy is below SJF + first fit, strict and
skipping, and at load 0.9, where 50 servers hardly queue, if it is at most 0.02 above EASY, each by the upper
end of the paired 95 % interval. `--trained 5` shows what a policy makes of it that knows 5 servers alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.learning import train
from schedrl.settings import Settings

STRICT, SKIP, EASY = "sjf+first_fit+strict", "sjf+first_fit+skip", "sjf+best_fit+easy"
JOBS_PER_SERVER = 40
HEADER = "| servers | load | seed | played | excess | strict | skipping | EASY | P99 | max wait | passes |"
MAY_LOSE = 0.02
FULL, USUAL = 1.2, 0.9


@dataclass(frozen=True)
class OtherClustersBenchmark(Settings):
    """What to train and where to run it."""

    algorithm: str = "ppo"
    """What is trained."""
    seeds: tuple[int, ...] = (41,)
    """Seeds of training."""
    trained: int | None = None
    """Train on so many servers alone instead of on several sizes and loads; none = on several."""
    servers: tuple[int, ...] = (5, 20, 50)
    """Sizes to run on."""
    loads: tuple[float, ...] = (USUAL, FULL)
    """Loads to run at."""
    num_sequences: int = 100
    """Test sequences of each size and load."""
    eval_seed: int = 1
    """Seed of the test sequences."""
    decisions: int | None = None
    """Budget of each run; none = the preset's."""
    out: str = "results/other_clusters"
    """Folder of the runs and of other_clusters.json."""


def run(settings: OtherClustersBenchmark) -> int:
    """Train what is missing, run it everywhere, print the table, write it; 1 if a row fails."""
    from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
    from schedrl.learning.numpy_policy import load_policy

    rows: list[dict[str, Any]] = []
    print(HEADER)
    print("|" + "---|" * 11, flush=True)
    for seed in settings.seeds:
        folder = Path(settings.out) / f"{settings.algorithm}_{settings.trained or 'sizes'}_seed{seed}"
        presets = "cluster" if settings.trained else "cluster,cluster-sizes"
        flags = ["--algo", settings.algorithm, "--env", "simple_cluster", "--preset", presets]
        flags += ["--num_servers", str(settings.trained)] if settings.trained else []
        train(folder, flags, seed, settings.decisions)
        policy, description = load_policy(folder)
        options = SimpleClusterSettings.from_dict(description["settings"]["environment"])
        for servers, load in product(settings.servers, settings.loads):
            here = options.replace(
                num_servers=servers,
                train_servers=(),
                load=load,
                train_loads=(),
                num_jobs=JOBS_PER_SERVER * servers,
            )
            rows.append({"seed": seed} | _row(policy, here, settings))
            print(_line(rows[-1]), flush=True)
    (Path(settings.out) / "other_clusters.json").write_text(json.dumps(rows, indent=1) + "\n")
    judged = [row for row in rows if row["passes"] is not None]
    passing = sum(row["passes"] for row in judged)
    print(f"{passing} of {len(judged)} rows pass")
    return int(passing < len(judged))


def _row(policy: Any, here: Any, settings: OtherClustersBenchmark) -> dict[str, Any]:
    from schedrl.evaluation.cluster.sequences import evaluate

    replay = evaluate(
        {"policy": policy},
        here,
        num_sequences=settings.num_sequences,
        seed=settings.eval_seed,
        rules=[STRICT, SKIP, EASY],
        modes=[policy.play],
    )
    means, mine = replay.resampled.means - 1, len(replay.entries) - 1
    upper = {rule: replay.difference(mine, i).difference.high for i, rule in enumerate((STRICT, SKIP, EASY))}
    passes = None
    if here.load >= FULL:
        passes = bool(upper[STRICT] < 0 and upper[SKIP] < 0)
    elif here.num_servers >= max(settings.servers):
        passes = bool(upper[EASY] <= MAY_LOSE)
    measures = replay.entries[mine].measures
    return {
        "servers": here.num_servers,
        "load": here.load,
        "play": policy.play,
        "excess": float(means[mine]),
        "rules": dict(zip((STRICT, SKIP, EASY), map(float, means), strict=False)),
        "upper": upper,
        "p99": measures["bounded_slowdown"]["p99"],
        "max_wait": measures["starvation"]["max_wait"],
        "passes": passes,
    }


def _line(row: dict[str, Any]) -> str:
    verdict = "" if row["passes"] is None else "yes" if row["passes"] else "NO"
    rules = " | ".join(
        f"{row['rules'][name]:.3f} ({row['upper'][name]:+.3f})" for name in (STRICT, SKIP, EASY)
    )
    return (
        f"| {row['servers']} | {row['load']} | {row['seed']} | {row['play']} | {row['excess']:.3f} "
        f"| {rules} | "
        f"{row['p99']:.2f} | {row['max_wait']:,.0f} | {verdict} |"
    )
