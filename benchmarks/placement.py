"""What does learning gain on many machines? Every algorithm, kind of jobs and seed, against the best rules.

Rules are chosen on validation sequences of the same kind: `best composed` of all orders x placements x
disciplines, `hold` by its three numbers. Excess is the mean bounded slowdown less 1, every job counted. Each
seed is judged by itself, played as its own validation looks chose, on the same test sequences, by paired 95 %
intervals. PPO: below best composed, its excess at most 0.70 of that on the kinds of HARD, its P99 not above.
The others: below sjf+best_fit+skip. A run whose folder holds a policy is not trained again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.learning import ROOT, train
from schedrl.settings import Settings, one_of

BURSTY = ["--workload", "bursty", "--burst_gaps", "20"]
JOBS: dict[str, list[str]] = {
    "poisson-0.7": ["--load", "0.7"],
    "poisson-0.9": [],
    "bursty-0.7": [*BURSTY, "--load", "0.7"],
    "bursty-0.9": BURSTY,
    "pareto-0.9": ["--durations", "pareto"],
    "estimates-0.9": ["--estimates", "noise"],
    "two-kinds-0.9": ["--cluster", str(ROOT / "benchmarks" / "two_kinds.toml")],
}
"""Kinds of jobs -> flags; the default is Poisson arrivals, lognormal durations, load 0.9, 5 equal servers."""
LONG = ["--total_steps", "5000000", "--validate_every", "500000", "--validation_sequences", "400"]
TRAINING = {("ppo", "bursty-0.9"): LONG, ("ppo", "estimates-0.9"): LONG}
"""Flags where the preset's two million decisions were too few, and its 100 validation sequences: what chance
does to them is as large as what tells the last weights apart."""
ON_TOP = {"ppo": ["cluster-privileged"]}
"""Presets of an algorithm on top of `cluster`."""
HARD = ("poisson-0.9", "bursty-0.9", "estimates-0.9")
MOST = 0.70
SKIP, EASY, HOLD = "sjf+best_fit+skip", "sjf+best_fit+easy", "sjf+best_fit+hold"
MODES = ("greedy", "sampled")
CONTINUING_JOBS = 500


@dataclass(frozen=True)
class PlacementBenchmark(Settings):
    """Which rows to measure."""

    algorithms: tuple[str, ...] = ("ppo",)
    """Algorithms to train; each has its preset `cluster`, and those of ON_TOP."""
    jobs: tuple[str, ...] = tuple(JOBS)
    """Kinds of jobs."""
    seeds: tuple[int, ...] = (41, 42, 43)
    """Seeds of training. Those below 40 were used when settings were chosen."""
    eval_seed: int = 1
    """Seed of the test sequences."""
    decisions: int | None = None
    """Budget of each run; none = the preset's, or that of TRAINING."""
    num_sequences: int = 1000
    """Test sequences."""
    validation_sequences: int = 500
    """Sequences on which the best composed rule is chosen; hold is tuned on 50."""
    continuing: bool = False
    """Judge in steady state instead: sequences of 500 jobs cut off with their last arrival, of which those of
    the middle count; EASY stands for the best composed rule, and nothing need pass."""
    wait_limits: tuple[float, ...] = ()
    """Show each policy also under these values of wait_limit [s], as it is, not trained for them."""
    flags: str = ""
    """More flags for the launcher, as one text."""
    out: str = "results/placement"
    """Folder of the runs and of placement.json."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        for name in self.jobs:
            one_of("jobs", name, JOBS)


def run(settings: PlacementBenchmark) -> int:
    """Train what is missing, evaluate all, print the table, write it to placement.json; 1 if a row fails."""
    rows: list[dict[str, Any]] = []
    out = Path(settings.out)
    print(
        "| jobs | policy | played | excess (the other way) | best composed | hold | P99 | max wait | passes |"
    )
    print("|" + "---|" * 9, flush=True)
    for jobs in settings.jobs:
        folders = [
            (algo, seed, out / "_".join([algo, *ON_TOP.get(algo, []), jobs, f"seed{seed}"]))
            for algo in settings.algorithms
            for seed in settings.seeds
        ]
        for algo, seed, folder in folders:
            presets = ",".join(["cluster", *ON_TOP.get(algo, [])])
            flags = ["--algo", algo, "--env", "simple_cluster", "--preset", presets]
            own = [] if settings.decisions else TRAINING.get((algo, jobs), [])
            train(folder, [*flags, *JOBS[jobs], *own, *settings.flags.split()], seed, settings.decisions)
        found = measure(jobs, [(algo, seed, folder) for algo, seed, folder in folders], settings)
        rows += found
        for row in found:
            print(_line(row), flush=True)
    (out / "placement.json").write_text(json.dumps(rows, indent=1) + "\n")
    judged = [row for row in rows if row["passes"] is not None]
    passing = sum(row["passes"] for row in judged)
    print(f"{passing} of {len(judged)} rows pass; below hold: {sum(row['hold_high'] < 0 for row in judged)}")
    return int(passing < len(judged))


def measure(
    jobs: str, folders: list[tuple[str, int, Path]], settings: PlacementBenchmark
) -> list[dict[str, Any]]:
    """Return rows: the rules, then each policy as it is to be played."""
    from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
    from schedrl.evaluation.cluster.sequences import evaluate
    from schedrl.learning.numpy_policy import load_policy

    policies, options = {}, None
    for algo, seed, folder in folders:
        policies[f"{algo} {seed}"], description = load_policy(folder)
        options = SimpleClusterSettings.from_dict(description["settings"]["environment"])
    if settings.continuing:
        options = options.replace(termination="continuing", num_jobs=CONTINUING_JOBS)
    rules = _rules(jobs, options, settings)
    names = {
        name: {"hold": rules[name]} if name == HOLD else {} for name in dict.fromkeys((*rules, EASY, SKIP))
    }
    replay = evaluate(
        policies,
        options,
        num_sequences=settings.num_sequences,
        seed=settings.eval_seed,
        rules=names,
        modes=MODES,
    )
    best = next(name for name in rules if name != HOLD)
    rows = [_plain_row(jobs, entry.label, entry) for entry in replay.entries if not entry.learned]
    for name, policy in policies.items():
        rows.append(_row(jobs, name, policy.play, replay, best, settings.continuing))
    for limit in settings.wait_limits:
        for name, policy in policies.items():
            limited = evaluate(
                {name: policy},
                options.replace(wait_limit=limit),
                num_sequences=settings.num_sequences,
                seed=settings.eval_seed,
                rules=(),
                modes=[policy.play],
            )
            rows.append(_plain_row(jobs, f"{name}, wait_limit {limit:g}", limited.entries[0]))
    return rows


def _rules(jobs: str, options: Any, settings: PlacementBenchmark) -> dict[str, Any]:
    """Return the best composed rule and hold with its numbers, both chosen on validation sequences once."""
    from schedrl.evaluation.cluster import holding
    from schedrl.evaluation.cluster.composing import best_composed
    from schedrl.sim.cluster.rule import Hold

    end = "_continuing" if settings.continuing else ""
    path = Path(settings.out) / f"rules_{jobs}{end}_{settings.validation_sequences}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        best = EASY
        if not settings.continuing:
            best = best_composed(options, num_sequences=settings.validation_sequences)[0].rule
        numbers = holding.tuned([HOLD], options)[HOLD]["hold"]
        path.write_text(json.dumps({best: None, HOLD: list(numbers)}))
    found = json.loads(path.read_text())
    return found | {HOLD: Hold(*found[HOLD])}


def _plain_row(jobs: str, name: str, entry: Any) -> dict[str, Any]:
    return {"jobs": jobs, "policy": name, "passes": None} | _numbers(entry)


def _numbers(entry: Any) -> dict[str, Any]:
    measures = entry.measures
    return {
        "excess": float(entry.sums.sum() / entry.counts.sum()) - 1,
        "p99": measures["bounded_slowdown"]["p99"],
        "max_wait": measures["starvation"]["max_wait"],
        "undone": measures["unfinished"] + measures["failed"] + measures["rejected"],
    }


def _row(jobs: str, name: str, play: str, replay: Any, best: str, continuing: bool) -> dict[str, Any]:
    place = {entry.label: i for i, entry in enumerate(replay.entries)}
    mine = place[f"{name} ({play})"]
    other = replay.entries[place[f"{name} ({MODES[play == MODES[0]]})"]]
    entry, composed = replay.entries[mine], replay.entries[place[best]]
    against = {rule: replay.difference(mine, place[rule]).difference for rule in (best, HOLD, SKIP)}
    row = {"jobs": jobs, "policy": name, "play": play} | _numbers(entry)
    row |= {
        "other": _numbers(other)["excess"],
        "composed": best,
        "composed_excess": _numbers(composed)["excess"],
    }
    row |= {
        "composed_high": against[best].high,
        "hold_excess": _numbers(replay.entries[place[HOLD]])["excess"],
    }
    row |= {"hold_high": against[HOLD].high, "hold_low": against[HOLD].low, "skip_high": against[SKIP].high}
    passes = row["skip_high"] < 0 and not row["undone"]
    if name.startswith("ppo "):
        passes &= row["composed_high"] < 0 and row["p99"] <= _numbers(composed)["p99"]
        passes &= jobs not in HARD or row["excess"] <= MOST * row["composed_excess"]
    return row | {"passes": None if continuing else bool(passes)}


def _line(row: dict[str, Any]) -> str:
    tail = f"{row['p99']:.2f} | {row['max_wait']:,.0f}"
    if "play" not in row:
        return f"| {row['jobs']} | {row['policy']} | | {row['excess']:.3f} | | | {tail} | |"
    ratio = row["excess"] / row["composed_excess"]
    verdict = "" if row["passes"] is None else "yes" if row["passes"] else "NO"
    return (
        f"| {row['jobs']} | {row['policy']} | {row['play']} | {row['excess']:.3f} ({row['other']:.3f}) | "
        f"{ratio:.2f} of it, at most {row['composed_high']:+.3f} | "
        f"{row['hold_low']:+.3f} .. {row['hold_high']:+.3f} | {tail} | {verdict} |"
    )
