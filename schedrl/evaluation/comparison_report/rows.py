"""Every number of the report, once: the rows of comparison_report.csv, from which tables and text are made.

One wide table; `kind` says what a row is about and so which columns are filled:

- `seed`: one trained policy in one mode (greedy, sampled), on the test sequences;
- `algorithm`: the mean over its seeds (counts: the sum), in one mode;
- `heuristic`: one heuristic;
- `seed against heuristic`: the paired difference of one trained policy, interval over sequences;
- `algorithm against heuristic`, `algorithm against algorithm`: interval over seeds and sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedrl.evaluation.comparison import Comparison, Evaluation
from schedrl.evaluation.comparison_report import seeds
from schedrl.evaluation.comparison_report.curves import EPISODES
from schedrl.evaluation.comparison_report.result import Result, Trained
from schedrl.evaluation.comparison_report.seeds import OverSeeds, SeedsAgainst

Row = dict[str, Any]

LEVEL = "sjf"
"""The heuristic whose level a learning curve has to pass."""
MEANS = ("p50", "p95", "p99", "max", "mean_finished", "completion_time", "idle_share", "mean_return")
COUNTS = ("arrived", "finished", "unfinished", "dropped", "rejected", "episodes", "cut_off")
DIFFERENCE = (
    "difference", "difference_low", "difference_high", "relative", "relative_low", "relative_high",
    "prob_better", "seeds_better", "seeds_worse", "verdict",
)  # fmt: skip
TRAINING = (
    "decisions", "seconds", "decisions_per_second", f"decisions_to_beat_{LEVEL}", f"seconds_to_beat_{LEVEL}",
    f"seeds_that_beat_{LEVEL}", "enough_episodes", "run_id", "commit", "reused",
)  # fmt: skip
COLUMNS = (
    "kind", "policy", "seed", "num_seeds", "mode", "against", "idle_limit", "mask",
    "mean", "mean_low", "mean_high", "lowest_seed", "highest_seed", "iqm_of_seeds",
    *MEANS, "utilisation", *COUNTS, *TRAINING, *DIFFERENCE, "numbers", "warnings",
)  # fmt: skip


def all_rows(result: Result) -> list[Row]:
    """Return every row of the report, each with all `COLUMNS` (None = does not apply)."""
    names = {algorithm: tuple(run.name for run in runs) for algorithm, runs in result.algorithms.items()}
    evaluation = result.evaluation
    found: list[Row] = []
    single = list(_measured(result))
    for group in seeds.over_seeds(evaluation, names):
        found.append(_algorithm_row(result, group, [single[i] for i in group.runs]))
    found += [row for row in single if row["kind"] == "heuristic"]
    found += [row for row in single if row["kind"] == "seed"]
    for pair in seeds.against_heuristics(evaluation, names):
        found.append(_pair_row("algorithm against heuristic", pair))
    for pair in seeds.against_each_other(evaluation, names):
        found.append(_pair_row("algorithm against algorithm", pair))
    found += _seed_pairs(result)
    return [{column: row.get(column) for column in COLUMNS} for row in found]


def _measured(result: Result) -> Iterator[Row]:
    """Yield one row for each run of the evaluation, in its order."""
    evaluation, trained = result.evaluation, {run.name: run for run in result.trained}
    for run in evaluation.runs:
        row: Row = {"mode": run.mode, "idle_limit": _limit(run.idle_limit), "mask": run.mask}
        row |= _measures(evaluation, run.label)
        row["warnings"] = "; ".join(evaluation.warnings.get(run.label, ())) or None
        if run.name in trained:
            own = trained[run.name]
            row |= {"kind": "seed", "policy": own.algorithm, "seed": own.seed, "num_seeds": 1}
            row |= _training(own, result)
        else:
            row |= {"kind": "heuristic", "policy": run.name, "numbers": result.heuristics.get(run.name)}
        yield row


def _measures(evaluation: Evaluation, label: str) -> Row:
    summary, mean = evaluation.summaries[label], evaluation.means[label]
    row: Row = {name: getattr(summary, name) for name in (*MEANS, *COUNTS)}
    row |= {"mean": mean.value, "mean_low": mean.low, "mean_high": mean.high}
    return row | {"utilisation": float(np.mean(summary.utilisation))}


def _training(run: Trained, result: Result) -> Row:
    row: Row = {"decisions": run.decisions, "seconds": run.seconds, "decisions_per_second": run.speed}
    row |= {"run_id": run.run_id, "commit": run.commit, "reused": run.reused}
    row["enough_episodes"] = run.curve.episodes >= EPISODES and LEVEL in result.levels
    if LEVEL in result.levels:
        passed = run.curve.passes(result.levels[LEVEL][0])
        row[f"decisions_to_beat_{LEVEL}"], row[f"seconds_to_beat_{LEVEL}"] = passed or (None, None)
        row[f"seeds_that_beat_{LEVEL}"] = int(passed is not None)
    return row


def _algorithm_row(result: Result, group: OverSeeds, rows: list[Row]) -> Row:
    row: Row = {"kind": "algorithm", "policy": group.algorithm, "mode": group.mode, "num_seeds": len(rows)}
    row |= {name: rows[0][name] for name in ("idle_limit", "mask")}
    row |= {"mean": group.mean.value, "mean_low": group.mean.low, "mean_high": group.mean.high}
    row |= {"lowest_seed": min(group.seed_means), "highest_seed": max(group.seed_means)}
    row |= {"iqm_of_seeds": None if math.isnan(group.iqm) else group.iqm}
    row |= {name: float(np.mean([own[name] for own in rows])) for name in (*MEANS, "utilisation")}
    row |= {name: sum(own[name] for own in rows) for name in COUNTS}
    for name in ("decisions", "seconds", "decisions_per_second"):
        row[name] = float(np.mean([own[name] for own in rows]))
    if LEVEL in result.levels:
        row[f"seeds_that_beat_{LEVEL}"] = sum(own[f"seeds_that_beat_{LEVEL}"] for own in rows)
        for unit in ("decisions", "seconds"):
            values = [own[f"{unit}_to_beat_{LEVEL}"] for own in rows]
            done = [value for value in values if value is not None]
            # The mean of those that did would flatter an algorithm that often doesn't.
            row[f"{unit}_to_beat_{LEVEL}"] = float(np.mean(done)) if len(done) == len(rows) else None
    return row


def _pair_row(kind: str, pair: SeedsAgainst) -> Row:
    policy, mode = _split(pair.comparison.policy)
    row: Row = {"kind": kind, "policy": policy, "mode": mode, "num_seeds": pair.num_seeds}
    row |= {"against": _split(pair.comparison.baseline)[0]}
    return row | _difference(pair.comparison) | {"seeds_better": pair.better, "seeds_worse": pair.worse}


def _seed_pairs(result: Result) -> Iterator[Row]:
    for run in result.trained:
        for mode in ("greedy", "sampled"):
            for name in result.evaluation.baselines:
                row: Row = {"kind": "seed against heuristic", "policy": run.algorithm, "seed": run.seed}
                row |= {"num_seeds": 1, "mode": mode, "against": name}
                yield row | _difference(result.evaluation.compare(f"{run.name} ({mode})", name))


def _difference(c: Comparison) -> Row:
    row: Row = {"difference": c.difference, "relative": c.relative, "prob_better": c.prob_better}
    if c.interval is not None and c.relative_interval is not None:
        row |= {"difference_low": c.interval.low, "difference_high": c.interval.high}
        row |= {"relative_low": c.relative_interval.low, "relative_high": c.relative_interval.high}
    return row | {"verdict": c.verdict}


def _split(label: str) -> tuple[str, str | None]:
    """Split `ppo (greedy)` into name and mode."""
    name, _, mode = label.partition(" (")
    return name, mode.removesuffix(")") or None


def _limit(limit: int | None) -> str:
    return "none" if limit is None else str(limit)


def chosen(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose columns have the wanted values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def as_csv(rows: list[Row]) -> list[Mapping[str, Any]]:
    """Return the rows as they are written: without NaN, which spreadsheets take for text."""
    return [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in rows
    ]
