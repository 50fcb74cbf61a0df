"""Where arrivals never stop: one policy for all loads, beside SJF and Tetris tuned for each load.

Episodes that drain reward holding long jobs back; a cluster that runs for ever does not. Each policy here
learns from sequences of all the loads in turn (presets deeprm-steady and ppo-steady). A row passes if the
policy's mean is at most 2 % above tuned Tetris by the upper end of the paired 95 % interval, and its P99 is
not provably above: the lower end of the paired ratio is at most 1. `--drained DIR` adds a policy that was
trained on episodes that drain, to show what becomes of it here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.learning import train
from schedrl.settings import Settings

BASELINES = ("sjf", "tetris")
MAY_LOSE = 0.02
KNOWN = {(0.5, "sjf"): 3.21, (0.6, "sjf"): 5.01, (0.65, "sjf"): 7.43} | {
    (0.5, "tetris"): 3.14,
    (0.6, "tetris"): 4.58,
    (0.65, "tetris"): 5.96,
}
"""Means of an earlier, independent measurement on other jobs, to hold ours against."""


@dataclass(frozen=True)
class SteadyStateBenchmark(Settings):
    """Which loads to measure."""

    algorithm: str = "ppo"
    """What is trained, with the preset ALGORITHM-steady."""
    loads: tuple[float, ...] = (0.5, 0.6, 0.65)
    """Loads of the busiest resource to measure at; the preset says which ones are learned."""
    seeds: tuple[int, ...] = (10, 11, 12)
    """Seeds of training. 0 was used when gamma was chosen, 40 when the rest was."""
    family: str = "test"
    """Which windows: test for claims, validation for choices."""
    eval_seed: int = 1
    """Seed of the windows. Those of 0 were looked at when gamma was chosen."""
    decisions: int | None = None
    """Budget of each run; none = the preset's."""
    num_windows: int = 1000
    """Windows of 2,000 steps; jobs that arrive in steps 300 to 1,500 count."""
    drained: str | None = None
    """Folder of a policy trained on episodes that drain, to measure beside."""
    out: str = "results/steady_state"
    """Folder of the runs and of steady_state.json."""


def run(settings: SteadyStateBenchmark) -> int:
    """Train what is missing, evaluate, print a row for each load, seed and mode; 1 if a row fails."""
    rows = []
    for seed in settings.seeds:
        presets = ["--algo", settings.algorithm, "--preset", f"deeprm-steady,{settings.algorithm}-steady"]
        train(_folder(settings, seed), presets, seed, settings.decisions)
    folders = {f"seed {seed}": _folder(settings, seed) for seed in settings.seeds}
    if settings.drained is not None:
        folders["drained"] = Path(settings.drained)
    for load in settings.loads:
        found = measure(folders, load, settings)
        _show(found, load)
        rows += found
    (Path(settings.out) / "steady_state.json").write_text(json.dumps(rows, indent=1) + "\n")
    judged = [row for row in rows if row["policy"] != "drained"]
    passing = sum(row["passes"] for row in judged)
    print(f"{passing} of {len(judged)} rows pass")
    return int(passing < len(judged))


def _folder(settings: SteadyStateBenchmark, seed: int) -> Path:
    return Path(settings.out) / f"{settings.algorithm}_seed{seed}"


def measure(folders: dict[str, Path], load: float, settings: SteadyStateBenchmark) -> list[dict[str, Any]]:
    """Return a row for each policy and mode at one load; rules are tuned for the load."""
    from schedrl.envs.deeprm.settings import DeepRMSettings
    from schedrl.evaluation.steady_state import Windows, steady_state
    from schedrl.learning.numpy_policy import load_policy

    policies = {name: load_policy(folder)[0] for name, folder in folders.items()}
    _, description = load_policy(next(iter(folders.values())))
    environment = DeepRMSettings.from_dict(description["settings"]["environment"]).replace(load=load)
    windows = Windows(num_windows=settings.num_windows)
    options = {"baselines": BASELINES, "seed": settings.eval_seed, "family": settings.family}
    evaluation = steady_state(policies, environment, windows, **options)
    modes = product(policies, ("greedy", "sampled"))
    return [{"load": load, **_row(evaluation, name, mode)} for name, mode in modes]


def _row(evaluation: Any, name: str, mode: str) -> dict[str, Any]:
    from schedrl.evaluation.metrics import slowdowns
    from schedrl.evaluation.tails import percentile_ratio

    run, tetris = evaluation.run(name, mode), evaluation.run("tetris")
    found = {key: evaluation.summaries[key] for key in (run.label, *BASELINES)}
    relative = evaluation.compare(run.label, tetris.label).relative_interval
    values = [slowdowns(r.outcome, window=evaluation.window) for r in (run, tetris)]
    tail = percentile_ratio(*values, seed=evaluation.seed)
    # Where the idle limits differ there is no interval, and nothing to pass.
    passes = relative is not None and relative.high <= MAY_LOSE and tail.low <= 1.0
    row: dict[str, Any] = {"policy": name, "mode": mode, "passes": bool(passes)}
    for key, label in {"own": run.label, "sjf": "sjf", "tetris": "tetris"}.items():
        s = found[label]
        row |= {f"{key}_mean": s.mean, f"{key}_p99": s.p99, f"{key}_unfinished": s.unfinished}
    if relative is not None:
        row |= {"low": relative.low, "high": relative.high}
    return row | {"p99_ratio": tail.value, "p99_low": tail.low, "p99_high": tail.high}


def _show(rows: list[dict[str, Any]], load: float) -> None:
    first = rows[0]
    print(f"\nload {load:.0%}   mean (P99, unfinished)")
    for name in BASELINES:
        note = f"{first[f'{name}_mean'] / KNOWN[load, name] - 1:+.1%} from an earlier measurement"
        shown = f"({first[f'{name}_p99']:.1f}, {first[f'{name}_unfinished']})"
        print(f"  {name:<16} {first[f'{name}_mean']:7.3f} {shown:16} {note if (load, name) in KNOWN else ''}")
    for row in rows:
        shown = f"({row['own_p99']:.1f}, {row['own_unfinished']})"
        span = f"{row['low']:+.1%} .. {row['high']:+.1%}" if "low" in row else "not comparable"
        tail = f"P99 x {row['p99_ratio']:.2f} [{row['p99_low']:.2f} .. {row['p99_high']:.2f}]"
        print(
            f"  {row['policy'] + ' ' + row['mode']:<16} {row['own_mean']:7.3f} {shown:16} "
            f"against Tetris {span}, {tail}  {'passes' if row['passes'] else 'FAILS'}",
            flush=True,
        )
