"""What several seeds of one algorithm say together: intervals over training seeds and over test sequences.

Two things are left to chance: which seed a policy was trained with, and which sequences it was tested on.
Every replicate draws both anew: the sequences as in `statistics.resample` (one draw for all policies, so that
differences stay paired), and for each algorithm on its own S - 1 of its S seeds with replacement. S - 1
rather than S because the variance of S draws from S values is too small by (S - 1) / S, half for two seeds
(Rao & Wu, 1988, Resampling inference with complex survey data, section 2). With few seeds such an interval is
rough all the same, which is why every seed also stands by itself. The value of an algorithm is the plain mean
over its seeds of their pooled mean slowdowns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from schedrl.evaluation.comparison import Comparison, Evaluation, may_claim
from schedrl.evaluation.evaluate import MODES
from schedrl.evaluation.statistics import Interval, Resampled, iqm

MIN_SEEDS_IQM = 4
"""Below so many seeds the interquartile mean drops none and is the mean."""


@dataclass(frozen=True)
class OverSeeds:
    """One algorithm in one mode, over its seeds."""

    algorithm: str
    mode: str
    runs: tuple[int, ...]
    """Its runs in the evaluation, by position."""
    mean: Interval
    """Mean over seeds, with its 95 % interval over seeds and sequences."""
    seed_means: tuple[float, ...]
    """Pooled mean slowdown of each seed."""
    iqm: float
    """Interquartile mean over the seeds; NaN below `MIN_SEEDS_IQM`."""

    @property
    def label(self) -> str:
        """Return the name to show."""
        return f"{self.algorithm} ({self.mode})"


@dataclass(frozen=True)
class SeedsAgainst:
    """One algorithm against a heuristic or another algorithm, over seeds and sequences."""

    comparison: Comparison
    better: int | None
    """Seeds whose own paired interval lies below zero; None against another algorithm."""
    worse: int | None
    num_seeds: int


def over_seeds(evaluation: Evaluation, algorithms: dict[str, tuple[str, ...]]) -> list[OverSeeds]:
    """Return the means over seeds of every algorithm (-> names of its runs), in every mode."""
    found = []
    together = _together(evaluation, algorithms)
    for row, (algorithm, mode, runs) in enumerate(_groups(evaluation, algorithms)):
        means = tuple(float(evaluation.resampled.means[i]) for i in runs)
        middle = iqm(means) if len(means) >= MIN_SEEDS_IQM else float("nan")
        found.append(OverSeeds(algorithm, mode, runs, together.mean(row), means, middle))
    return found


def against_heuristics(evaluation: Evaluation, algorithms: dict[str, tuple[str, ...]]) -> list[SeedsAgainst]:
    """Compare every algorithm in every mode with every heuristic."""
    together, found = _together(evaluation, algorithms), []
    groups = list(_groups(evaluation, algorithms))
    for row, (algorithm, mode, runs) in enumerate(groups):
        for name in evaluation.baselines:
            other = evaluation.runs.index(evaluation.run(name))
            verdicts = [evaluation.compare(evaluation.runs[i].label, name).verdict for i in runs]
            sides = (f"{algorithm} ({mode})", row, runs), (name, len(groups) + other, (other,))
            better, worse = (sum(v.startswith(word) for v in verdicts) for word in ("better", "worse"))
            pair = _compare(evaluation, together, *sides)
            found.append(SeedsAgainst(pair, better, worse, len(runs)))
    return found


def against_each_other(evaluation: Evaluation, algorithms: dict[str, tuple[str, ...]]) -> list[SeedsAgainst]:
    """Compare every pair of algorithms, greedy with greedy and sampled with sampled."""
    together, found = _together(evaluation, algorithms), []
    groups = list(enumerate(_groups(evaluation, algorithms)))
    for row, (algorithm, mode, runs) in groups:
        for other_row, (other, other_mode, other_runs) in groups:
            if other_mode == mode and other != algorithm and other_row > row:
                pair = _compare(
                    evaluation,
                    together,
                    (f"{algorithm} ({mode})", row, runs),
                    (f"{other} ({mode})", other_row, other_runs),
                )
                found.append(SeedsAgainst(pair, None, None, min(len(runs), len(other_runs))))
    return found


def _groups(
    evaluation: Evaluation, algorithms: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield (algorithm, mode, positions of its runs), the modes of an algorithm one after the other."""
    for algorithm, names in algorithms.items():
        for mode in MODES:
            runs = tuple(i for i, run in enumerate(evaluation.runs) if run.name in names and run.mode == mode)
            if runs:
                yield algorithm, mode, runs


def _together(evaluation: Evaluation, algorithms: dict[str, tuple[str, ...]]) -> Resampled:
    """Return means and replicates of each group over its seeds, followed by those of each single run."""
    one = evaluation.resampled
    means, replicates = [], []
    drawn: dict[str, np.ndarray] = {}
    for algorithm, _, runs in _groups(evaluation, algorithms):
        if algorithm not in drawn:  # greedy and sampled: the same policies
            rng = np.random.default_rng([evaluation.seed, len(drawn)])
            shape = (max(1, len(runs) - 1), one.replicates.shape[1])
            drawn[algorithm] = rng.integers(len(runs), size=shape)
        rows = one.replicates[list(runs)]
        means.append(one.means[list(runs)].mean())
        replicates.append(np.take_along_axis(rows, drawn[algorithm], axis=0).mean(axis=0))
    return replace(
        one, means=np.append(means, one.means), replicates=np.concatenate([replicates, one.replicates])
    )


Side = tuple[str, int, tuple[int, ...]]
"""A name, its row in `_together`, the runs behind it."""


def _compare(evaluation: Evaluation, together: Resampled, policy: Side, baseline: Side) -> Comparison:
    difference = together.difference(policy[1], baseline[1])
    relative = together.relative(policy[1], baseline[1])
    pairs = [(i, j) for i in policy[2] for j in baseline[2]]
    singles = [evaluation.compare(evaluation.runs[i].label, evaluation.runs[j].label) for i, j in pairs]
    lower = policy if difference.value < 0 else baseline
    fair = all(may_claim(evaluation.runs[i], evaluation.runs[j], difference) for i, j in pairs)
    return Comparison(
        policy=policy[0],
        baseline=baseline[0],
        difference=difference.value,
        interval=difference if fair else None,
        relative=relative.value,
        relative_interval=relative if fair else None,
        prob_better=float(np.mean([single.prob_better for single in singles])),
        bound=not all(evaluation.summaries[evaluation.runs[i].label].complete for i in lower[2]),
        few=singles[0].few,
    )
