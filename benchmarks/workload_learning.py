"""Does it learn on the jobs people have? PPO trained on each generator and on traces, against chance.

Each row must pass by itself: on test sequences, every job counted, greedy, PPO's mean slowdown is below that
of RandomLegal and of its own untrained self, greedy and sampled, by the whole paired 95 % interval. SJF and
the best Tetris stand beside it. All have the default settings but the load, and a backlog so large that
nothing is dropped. On a trace as many test sequences are played as fit into its test part without overlap, so
that the interval is not narrower than what was seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.learning import train
from schedrl.settings import Settings, UserError

CHANCE = ("random_legal", "untrained (greedy)", "untrained (sampled)")
RULES = ("sjf", "tetris")
SHOWN = {
    "untrained (greedy)": ("untrained, greedy", "s", "#BBBBBB"),
    "untrained (sampled)": ("untrained, sampled", "D", "#777777"),
    "random_legal": ("RandomLegal", "x", "#000000"),
    "tetris": ("best Tetris", "^", "#E69F00"),
    "sjf": ("SJF", "v", "#0072B2"),
    "ppo (greedy)": ("PPO", "o", "#009E73"),
}
"""Label of a run -> name, marker, colour."""
TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200)


@dataclass(frozen=True)
class WorkloadLearningBenchmark(Settings):
    """Which workloads to learn on."""

    workloads: tuple[str, ...] = (
        "poisson",
        "heavy_tail",
        "bursty",
        "diurnal",
        "correlated",
        "lublin",
        "uniform",
    )
    """Generators."""
    traces: tuple[str, ...] = ()
    """Files of traces."""
    load: float = 0.9
    """Load of the busiest resource, after rounding."""
    backlog_size: int = 1000
    """Jobs that may wait beyond the visible ones: at the peak of a day hundreds do."""
    trace_sequence_length: int = 20
    """Steps of a sequence of a trace: short, so that many fit into the test part."""
    seeds: tuple[int, ...] = (10, 11)
    """Seeds of training."""
    eval_seed: int = 1
    """Seed of the test sequences."""
    decisions: int = 1_000_000
    """Budget of each run."""
    num_sequences: int = 1000
    """Test sequences of a generator."""
    out: str = "results/workload_learning"
    """Folder of the runs, of workload_learning.json and .png."""


def run(settings: WorkloadLearningBenchmark) -> int:
    """Train what is missing, evaluate all, print the table, draw it; 1 if a row fails."""
    rows: list[dict[str, Any]] = []
    names = " | ".join(name for name, *_ in SHOWN.values())
    print(f"| jobs | seed | sequences | {names} | PPO and the best of the first three | and SJF | passes |")
    print("|---" * (6 + len(SHOWN)) + "|", flush=True)
    common = ["--algo", "ppo", "--load", str(settings.load), "--backlog_size", str(settings.backlog_size)]
    steps = ["--sequence_length", str(settings.trace_sequence_length)]
    jobs = [(name, ["--workload", name]) for name in settings.workloads]
    jobs += [(Path(path).name, ["--trace", path, *steps]) for path in settings.traces]
    for name, flags in jobs:
        for seed in settings.seeds:
            folder = Path(settings.out) / f"{name}_seed{seed}"
            train(folder, [*common, *flags], seed, settings.decisions)
            rows.append({"jobs": name, "seed": seed, **measure(folder, seed, settings)})
            print(_line(rows[-1]), flush=True)
    (Path(settings.out) / "workload_learning.json").write_text(json.dumps(rows, indent=1) + "\n")
    draw(rows, Path(settings.out) / "workload_learning.png")
    passing = sum(row["passes"] for row in rows)
    print(f"\n{passing} of {len(rows)} rows pass")
    return int(passing < len(rows))


def measure(folder: Path, seed: int, settings: WorkloadLearningBenchmark) -> dict[str, Any]:
    """Return means and paired intervals of the trained policy, its untrained self and the rules."""
    from schedrl.envs.deeprm.settings import DeepRMSettings
    from schedrl.evaluation import evaluate, tuned
    from schedrl.heuristics import RandomLegal
    from schedrl.learning.numpy_policy import load_policy

    policy, description = load_policy(folder)
    environment = DeepRMSettings.from_dict(description["settings"]["environment"])
    count = _without_overlap(environment) or settings.num_sequences
    evaluation = evaluate(
        {"ppo": policy, "untrained": untrained(environment, description["settings"]["algorithm"], seed)},
        environment,
        num_sequences=count,
        seed=settings.eval_seed,
        baselines={**tuned(RULES, environment, 0), "random_legal": RandomLegal()},
    )
    against = {label: evaluation.compare("ppo (greedy)", label) for label in (*CHANCE, *RULES)}
    return {
        "sequences": count,
        "means": {label: (found.value, found.low, found.high) for label, found in evaluation.means.items()},
        "against": {
            label: (found.relative, found.relative_interval.low, found.relative_interval.high)
            for label, found in against.items()
            if found.relative_interval is not None
        },
        "passes": all(against[label].verdict == "better" for label in CHANCE),
    }


def untrained(environment: Any, algorithm: dict[str, Any], seed: int) -> Any:
    """Return the policy that a training run of PPO begins with."""
    from ppo.config import PPOSettings
    from schedrl.envs.deeprm.vector import DeepRMVectorEnv
    from schedrl.learning.actor_critic import actor_critic_for

    return actor_critic_for(DeepRMVectorEnv(environment, 1), PPOSettings.from_dict(algorithm), seed).policy()


def _without_overlap(environment: Any) -> int | None:
    """Return how many sequences fit into the test part of a trace; None for generators."""
    from schedrl.envs.deeprm.placed import jobs_only
    from schedrl.envs.deeprm.traced import part_of, state_of
    from schedrl.envs.workload_choice import TRACE

    if environment.workload != TRACE:
        return None
    jobs = jobs_only(environment)
    steps = part_of(jobs, state_of(jobs), "test", jobs.load).steps
    if steps < 10 * jobs.sequence_length:
        raise UserError(
            f"the test part has {steps} steps, fewer than 10 sequences of {jobs.sequence_length}; lower "
            "trace_sequence_length or take a longer trace"
        )
    return steps // jobs.sequence_length


def _line(row: dict[str, Any]) -> str:
    def span(found: tuple[float, float, float]) -> str:
        return f"{found[0]:+.1%} [{found[1]:+.1%} .. {found[2]:+.1%}]"

    against = row["against"]
    nearest = max((against[label] for label in CHANCE), key=lambda found: found[2])
    cells = [row["jobs"], row["seed"], row["sequences"]]
    cells += [f"{row['means'][label][0]:.3f}" for label in SHOWN]
    cells += [span(nearest), span(against["sjf"]), "yes" if row["passes"] else "NO"]
    return f"| {' | '.join(map(str, cells))} |"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the mean slowdowns with their intervals, one line for each workload, a seed below another."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["jobs"] for row in rows))
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    figure, axes = plt.subplots(figsize=(7.6, 0.4 * len(names) + 1.3), layout="constrained")
    for number, row in enumerate(rows):
        height = -names.index(row["jobs"]) - 0.3 * (seeds.index(row["seed"]) - (len(seeds) - 1) / 2)
        for label, (name, marker, colour) in SHOWN.items():
            value, low, high = row["means"][label]
            axes.errorbar(
                value, height, xerr=[[value - low], [high - value]], fmt=marker, color=colour, ms=5,
                label=None if number else name, zorder=3 if marker == "o" else 2, capsize=2,
            )  # fmt: skip
    axes.set_yticks([-place for place in range(len(names))], [name[:18] for name in names])
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("mean slowdown on unseen sequences (log scale, 95 % intervals)")
    axes.grid(axis="x", alpha=0.3)
    options = {"ncols": 6, "frameon": False, "columnspacing": 0.9, "handletextpad": 0.2, "fontsize": 8.5}
    figure.legend(loc="outside upper center", **options)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
