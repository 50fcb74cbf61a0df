"""Measure all finished runs of a comparison and the heuristics on the same test sequences."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.evaluation import Evaluation, evaluate, tuned
from schedrl.evaluation.comparison_report import Failure, Origin, Result, Trained
from schedrl.evaluation.comparison_report.curves import read_curve
from schedrl.evaluation.comparison_report.result import run_name
from schedrl.evaluation.evaluate import sequences_of
from schedrl.evaluation.metrics import slowdowns
from schedrl.evaluation.steady_state import Windows, continuing
from schedrl.launch.after_training import SEQUENCES_PER_WINDOW
from schedrl.launch.comparing.plan import ComparisonPlan
from schedrl.launch.comparing.reuse import State
from schedrl.launch.plan import Plan
from schedrl.launch.yardsticks import SEED
from schedrl.learning.numpy_policy import load_policy
from schedrl.learning.run_description import git_commit, read_description

VALIDATION_EPISODES = 500


def measure(
    plan: ComparisonPlan,
    runs: Sequence[Plan],
    states: Mapping[Path, State],
    failures: tuple[Failure, ...],
    facts: Mapping[str, str],
    say: Callable[[str], None],
) -> Result:
    """Play every run's policy, greedy and sampled, and the tuned heuristics; return what is reported on."""
    environment, window, count = plan.environment, None, plan.settings.num_eval_episodes
    if environment.termination == "continuing":
        windows = Windows(num_windows=max(1, count // SEQUENCES_PER_WINDOW))
        count, window = windows.num_windows, (windows.first, windows.last)
        environment = continuing(environment, windows)
    rules: dict[str, Any] = {}
    if plan.baselines:
        say("tuning the heuristics on validation sequences")
        rules = tuned(plan.baselines, environment, SEED, window)
    unit = "windows" if window else "test sequences"
    say(
        f"measuring {len(runs)} policies, greedy and sampled, and {len(rules)} heuristics on {count:,} {unit}"
    )
    sequences = sequences_of(environment, count, SEED, "test")
    policies = {run_name(run.launch.algo, run.launch.seed): load_policy(_folder(run))[0] for run in runs}
    options: dict[str, Any] = {"sequences": sequences, "seed": SEED, "baselines": rules, "window": window}
    evaluation = evaluate(policies, environment, **options)
    facts = {**facts, "Test sequences": f"{count:,}, SHA-256 {fingerprint(sequences)}"} | machine()
    return Result(
        evaluation,
        tuple(_trained(run, states[_folder(run)] == "finished") for run in runs),
        levels(plan.environment, rules),
        origin(plan, facts),
        failures,
        {name: repr(rule) for name, rule in rules.items()},
    )


def levels(environment: Any, rules: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return heuristic -> mean slowdown and return on validation episodes, as a learning curve has them.

    That is, the mean over episodes of their mean slowdown, under the rules of training: without the windows
    in which a steady state is measured.
    """
    if not rules:
        return {}
    options: dict[str, Any] = {"family": "validation", "baselines": rules}
    played: Evaluation = evaluate({}, environment, num_sequences=VALIDATION_EPISODES, seed=SEED, **options)
    found = {}
    for run in played.runs:
        with np.errstate(invalid="ignore"):
            values = slowdowns(run.outcome)
            means = np.nansum(values, axis=1) / np.isfinite(values).sum(axis=1)
        found[run.name] = (float(np.nanmean(means)), float(run.outcome.ret.mean()))
    return found


def origin(plan: ComparisonPlan, facts: Mapping[str, str]) -> Origin:
    """Return how the comparison came about."""
    return Origin(
        command=plan.command,
        environment_name=plan.settings.env,
        environment=plan.environment.to_dict(),
        environment_summary=plan.environment.summary(),
        environment_defaults=type(plan.environment)().to_dict(),
        algorithms={name: settings.to_dict() for name, settings in plan.algorithms.items()},
        budget=plan.budget,
        facts=facts,
    )


def machine() -> dict[str, str]:
    """Return date, version of the program and its packages, and the machine."""
    from joblib import cpu_count

    from schedrl.learning.run_description import versions

    return {
        "Made": time.strftime("%Y-%m-%d %H:%M %Z"),
        "Git commit": _commit(git_commit()),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        "Machine": f"{platform.platform()}, {cpu_count()} processors",
    }


def fingerprint(sequences: Any) -> str:
    """Return a hash of job sequences: equal hashes, equal jobs."""
    digest = hashlib.sha256()
    for part in sequences[:4]:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def _trained(run: Plan, reused: bool) -> Trained:
    folder = _folder(run)
    description = read_description(folder)
    curve = read_curve(folder / "metrics.csv")
    decisions, seconds = _spent(folder / "metrics.csv")
    names = (run.launch.algo, run.launch.seed)
    return Trained(
        *names, curve, decisions, seconds, description["run_id"], _commit(description["git"]), reused
    )


def _spent(path: Path) -> tuple[int, float]:
    """Return decisions and seconds of a whole run, from the last row of its metrics."""
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    last = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    return int(float(last["decisions"])), float(last["seconds"])


def _commit(git: Mapping[str, Any]) -> str:
    if not git.get("commit"):
        return "unknown"
    return git["commit"][:12] + ("+" if git.get("dirty") else "")


def _folder(run: Plan) -> Path:
    assert run.folder is not None
    return run.folder
