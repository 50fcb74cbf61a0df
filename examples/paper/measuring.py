"""What the figures show, as rows: everyone plays the same unseen test sequences, every job counted.

Rules with numbers are tuned for each load on validation sequences; on the test sequences nothing is chosen.
All intervals are 95 % bootstrap intervals over sequences.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from examples.paper import plan
from examples.paper.plan import PaperSettings, Training
from examples.paper.training import CURVE, progress
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.evaluation import Evaluation, evaluate, metrics, tuned
from schedrl.evaluation.statistics import resample
from schedrl.evaluation.withholding import withholding
from schedrl.heuristics import tuning
from schedrl.learning.numpy_policy import load_policy

LABELS = {
    "packer": "Packer",
    "sjf": "SJF",
    "tetris": "Tetris",
    "sjf_hold": "SJF-hold",
    "tsl": "TSL",
    "defer": "DEFER",
    "random_legal": "random",
} | {name: contender.label for name, contender in plan.CONTENDERS.items()}
SIZES = {"small": (1, plan.SHORTEST_LONG - 1), "large": (plan.SHORTEST_LONG, 10**6)}


class Row(NamedTuple):
    """One number of one figure."""

    figure: str
    load: float
    series: str
    """Name of the rule or contender."""
    trained_for: str
    """Objective of the training, or of the tuning; empty where there is neither."""
    mode: str
    """greedy or sampled; rule for a heuristic."""
    idle_limit: str
    numbers: str
    """The rule with its tuned numbers."""
    group: str
    """Which jobs, where not all: a duration, small or large."""
    measure: str
    value: float
    low: float
    high: float
    sequences: int
    jobs: int
    unfinished: int
    """Jobs not finished or dropped: where there are any, means are lower bounds."""
    cut_off: int
    """Episodes that were stopped by the limit on their length."""


def environment(settings: PaperSettings, load: float) -> DeepRMSettings:
    """Return the physics and the jobs of a load."""
    return DeepRMSettings(load=load, idle_limit=settings.idle_limit)


class Player(NamedTuple):
    """A trained policy and the rules it was trained by, where a contender brings its own."""

    policy: Any
    physics: Mapping[str, Any]


def player(settings: PaperSettings, name: str, load: float, objective: str = "slowdown") -> Player:
    """Return a trained policy."""
    run = plan.training(settings, name, load, objective, settings.seeds[0])
    policy, description = load_policy(run.folder)
    stored = description["settings"]["environment"]
    return Player(policy, {name: stored[name] for name in ("idle_limit", "mask", "allow_reservation")})


def play_load(settings: PaperSettings, load: float) -> tuple[Evaluation, dict[str, str]]:
    """Let everyone play the test sequences of a load; return the evaluation and the rules' tuned numbers."""
    policies = {name: player(settings, name, load) for name in settings.trained_at(load)}
    rules = tuned(plan.RULES, environment(settings, load))
    evaluation = play(settings, load, policies, rules)
    return evaluation, {name: repr(rule) for name, rule in rules.items()}


def play(
    settings: PaperSettings, load: float, players: Mapping[str, Player], rules: Mapping[str, Any]
) -> Evaluation:
    """Evaluate on the test sequences of a load."""
    return evaluate(
        {name: player.policy for name, player in players.items()},
        environment(settings, load),
        num_sequences=settings.num_sequences,
        seed=settings.eval_seed,
        baselines=rules,
        overrides={name: player.physics for name, player in players.items()},
    )


def play_loads(
    settings: PaperSettings, say: Callable[[str], None]
) -> dict[float, tuple[Evaluation, dict[str, str]]]:
    """Play every load that a figure needs, a few at a time."""
    loads = sorted({*settings.loads, settings.objective_load, settings.withholding_load})
    if settings.processes == 1 or len(loads) == 1:
        return {load: play_load(settings, load) for load in loads}
    found = {}
    with ProcessPoolExecutor(min(settings.processes, len(loads)), get_context("spawn")) as pool:
        going = {load: pool.submit(play_load, settings, load) for load in loads}
        for load, future in going.items():
            found[load] = future.result()
            say(f"evaluated load {load:.0%}")
    return found


def base(figure: str, load: float, run: Any, trained_for: str, numbers: str) -> dict[str, Any]:
    """Return the columns of a row that say who played and how it went."""
    summary = metrics.summarise(run.outcome)
    return {
        "figure": figure,
        "load": load,
        "series": run.name,
        "trained_for": trained_for,
        "mode": run.mode,
        "idle_limit": "none" if run.idle_limit is None else str(run.idle_limit),
        "numbers": numbers,
        "group": "",
        "sequences": summary.episodes,
        "jobs": summary.arrived,
        "unfinished": summary.arrived - summary.finished,
        "cut_off": summary.cut_off,
    }


def goal(run: Any, objective: str = "slowdown") -> str:
    """Return what a run was trained or tuned for, if it was."""
    return objective if run.learned or run.name in tuning.TUNABLE else ""


def rows_of_load(load: float, evaluation: Evaluation, numbers: Mapping[str, str]) -> list[Row]:
    """Fig. 4: mean slowdown of everyone, and the paired difference to Tetris as a share of Tetris' mean."""
    labels = [run.label for run in evaluation.runs]
    pairs = [metrics.sums_and_counts(metrics.slowdowns(run.outcome)) for run in evaluation.runs]
    table = resample([pair[0] for pair in pairs], [pair[1] for pair in pairs], evaluation.seed)
    rows = []
    for i, run in enumerate(evaluation.runs):
        shared = base("4", load, run, goal(run), numbers.get(run.name, ""))
        rows.append(Row(**shared, measure="slowdown", **vars(table.mean(i))))
        relative = table.relative(i, labels.index("tetris"))
        rows.append(Row(**shared, measure="relative_to_tetris", **vars(relative)))
    return rows


def rows_of_objectives(
    settings: PaperSettings, evaluation: Evaluation, numbers: Mapping[str, str]
) -> list[Row]:
    """Fig. 5: both measures, of policies trained and rules tuned for either."""
    load = settings.objective_load
    other = "completion_time"
    policies = {name: player(settings, name, load, other) for name in settings.everywhere}

    def score(outcome: Any) -> float:
        return float(np.nanmean(metrics.completion_times(outcome)))

    rules = tuning.tune_all(environment(settings, load), score=score)
    second = play(settings, load, policies, rules)
    seconds = {name: repr(rule) for name, rule in rules.items()}
    played = [(run, goal(run), numbers.get(run.name, "")) for run in evaluation.runs]
    played += [(run, goal(run, other), seconds.get(run.name, "")) for run in second.runs]
    rows = []
    for measure, values in (("slowdown", metrics.slowdowns), (other, metrics.completion_times)):
        pairs = [metrics.sums_and_counts(values(run.outcome)) for run, *_ in played]
        table = resample([pair[0] for pair in pairs], [pair[1] for pair in pairs], evaluation.seed)
        for i, (run, trained_for, text) in enumerate(played):
            rows.append(
                Row(**base("5", load, run, trained_for, text), measure=measure, **vars(table.mean(i)))
            )
    return rows


def rows_of_withholding(
    settings: PaperSettings, evaluation: Evaluation, numbers: Mapping[str, str]
) -> list[Row]:
    """Fig. 7: which jobs are withheld in how many steps, and the slowdown by duration and by size."""
    durations = np.unique(evaluation.runs[0].outcome.duration)
    groups = {str(d): (int(d), int(d)) for d in durations if d > 0} | SIZES
    rows, pairs, keys = [], [], []
    for run in evaluation.runs:
        shared = base("7", settings.withholding_load, run, goal(run), numbers.get(run.name, ""))
        found = withholding(run.outcome, environment(settings, 1).num_job_slots)
        bare = {"low": float("nan"), "high": float("nan")}
        rows.append(Row(**shared, measure="share_of_steps", value=found.share_of_steps, **bare))
        values = metrics.slowdowns(run.outcome)
        for group, (first, last) in groups.items():
            own = shared | {"group": group}
            shares = {"withheld": found.share_of_withheld, "jobs_withheld": found.share_of_jobs}
            for name, share in shares.items():
                rows.append(Row(**own, measure=f"share_of_{name}", value=share(first, last), **bare))
            jobs = (run.outcome.duration >= first) & (run.outcome.duration <= last)
            pairs.append(metrics.sums_and_counts(np.where(jobs, values, np.nan)))
            keys.append(own)
    table = resample([pair[0] for pair in pairs], [pair[1] for pair in pairs], evaluation.seed)
    return rows + [Row(**key, measure="slowdown", **vars(table.mean(i))) for i, key in enumerate(keys)]


def rows_of_rules_on_curve(settings: PaperSettings) -> list[Row]:
    """Fig. 6: slowdown and return of the rules on the sequences of the curve."""
    from examples.paper.curve import sequences_of_curve

    jobs = environment(settings, settings.curve_load)
    rules = tuned((*plan.RULES, "random_legal"), jobs)
    played = evaluate({}, jobs, sequences=sequences_of_curve(jobs, settings.curve_sequences), baselines=rules)
    rows = []
    for run in played.runs:
        shared = base("6", settings.curve_load, run, goal(run), repr(rules[run.name]))
        rows.append(Row(**shared, measure="slowdown", **vars(played.means[run.label])))
        returns = resample(run.outcome.ret, np.ones(len(run.outcome.ret))).mean(0)
        rows.append(Row(**shared, measure="mean_return", **vars(returns)))
    return rows


class Curve(NamedTuple):
    """The learning curve of one run: its columns, [points] each."""

    training: Training
    columns: Mapping[str, np.ndarray]

    def lines(self) -> list[dict[str, Any]]:
        """Return the points as rows."""
        who = {"series": self.training.contender, "load": self.training.load, "seed": self.training.seed}
        count = len(self.columns["decisions"])
        return [who | {name: column[i] for name, column in self.columns.items()} for i in range(count)]


def curves(runs: Sequence[Training]) -> list[Curve]:
    """Read the curves that were recorded."""
    found = []
    for run in runs:
        if run.curve:
            with open(run.folder / CURVE, newline="") as file:
                records = list(csv.DictReader(file))
            columns = {name: np.array([float(record[name]) for record in records]) for name in records[0]}
            spent = progress(run)
            at = np.searchsorted(spent["decisions"], columns["decisions"])
            columns |= {name: values[at] for name, values in spent.items()}
            found.append(Curve(run, columns))
    return found
