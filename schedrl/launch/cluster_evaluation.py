"""Trained policies and rules on the cluster environment: what commands do about it, after training too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from schedrl.evaluation.cluster import holding, plots, report, sequences
from schedrl.evaluation.cluster.jobs_csv import JobsFile
from schedrl.evaluation.cluster.replay import Replay
from schedrl.sim.cluster.rule import Hold
from schedrl.sim.cluster.schedule import Schedule

SEQUENCES_PER_EPISODE = 10
"""An episode here costs as much as so many of DeepRM's; `num_eval_episodes` is divided by it."""
VALIDATION = 100


def num_sequences(num_eval_episodes: int) -> int:
    """Return how many job sequences stand for that many episodes."""
    return max(1, num_eval_episodes // SEQUENCES_PER_EPISODE)


def evaluate_into(
    folder: Path,
    policies: Mapping[str, Any],
    settings: Any,
    *,
    count: int,
    seed: int,
    rules: Mapping[str, Mapping[str, Any]],
    say: Callable[[str], None],
    draw: bool = True,
) -> tuple[Replay, list[Path], Schedule | None]:
    """Play policies and rules on test sequences, print the tables, write the table of jobs, and pictures.

    Returns:
        what was found; the files; the first schedule of a policy, where a Gantt chart can show it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first: list[Schedule] = []
    shown = {f"{name} ({policy.play})" for name, policy in policies.items()}

    with JobsFile(folder / report.JOBS, settings.slowdown_floor) as file:

        def keep(label: str, schedule: Schedule, number: int) -> None:
            file.add(label, schedule, number)
            if number == 0 and (not first or label in shown):
                first[:] = [schedule._replace(rule=label)]

        replay = sequences.evaluate(
            policies, settings, num_sequences=count, seed=seed, rules=rules, progress=say, keep=keep
        )
    say("comparing (paired bootstrap) and drawing")
    unit = first[0].workload.time_unit
    report.print_report(replay, unit)
    small = first[0] if plots.fits_gantt(first[0]) else None
    paths = report.write_evaluation(replay, folder, unit, small) if draw else []
    return replay, [*paths, folder / report.JOBS], small


def search(settings: Any, seed: int) -> dict[str, dict[str, Any]]:
    """Return rule -> its numbers, and its mean on validation sequences as a learning curve has it."""
    found = {}
    for name, numbers in holding.tuned(sequences.standard_rules(), settings, seed).items():
        schedules = sequences.simulated(name, settings, VALIDATION, seed, "validation", **numbers)
        mean = sequences.mean_of_means(schedules, settings)
        found[name] = {"numbers": numbers, "mean": mean}
    return found


def options_of(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return rule -> options of the simulator from what `search` found, also where it came as JSON."""
    return {
        name: {key: Hold._make(value) for key, value in of["numbers"].items()} for name, of in found.items()
    }
