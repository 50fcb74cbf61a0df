"""The result of an evaluation: measures of each run, paired comparisons, warnings, tables, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from schedrl.envs.declared import Declared, lines
from schedrl.evaluation import metrics, refusal, table
from schedrl.evaluation.jobs_csv import write_jobs
from schedrl.evaluation.statistics import Interval, Resampled, paired_prob_better, resample

if TYPE_CHECKING:
    from schedrl.evaluation.evaluate import Run

PRODUCTION_P99 = 2.0
"""Common production bar: 99 % of jobs at a slowdown of at most 2."""

SLOWDOWN = ("policy", "idle", "mask", "mean", "95 % interval", "P50", "P95", "P99")
OTHER = ("policy", "finished only", "unfinished", "dropped", "cut off", "completion", "utilisation")
PAIRED = ("policy", "against", "difference", "95 % interval", "relative", "P(better)", "verdict")


MIN_SEQUENCES = 10
"""Below this many sequences a bootstrap interval says little; no verdict is given."""


@dataclass(frozen=True)
class Comparison:
    """One run against one baseline on the same sequences; below zero, `policy` is better."""

    policy: str
    baseline: str
    difference: float
    """Pooled mean slowdown of the policy minus the baseline's."""
    interval: Interval | None
    """95 % interval of the difference; None where unequal idle limits allow no claim."""
    relative: float
    """The difference as a share of the baseline's mean."""
    relative_interval: Interval | None
    prob_better: float
    """Share of sequences on which the policy has the lower mean, ties half."""
    bound: bool = False
    """Whether the lower of the means is a lower bound only: that run left jobs unfinished or dropped."""
    few: bool = False
    """Whether too few sequences have jobs to resample: of one alone, every interval has width 0."""

    @property
    def comparable(self) -> bool:
        """Say whether both played under the same idle limit, or the policy won under the stricter one."""
        return self.interval is not None

    @property
    def verdict(self) -> str:
        """Say in a word what the interval allows to claim."""
        if self.few:
            return "too few sequences"
        if self.interval is None:
            return "other idle limit"
        if not self.interval.excludes_zero:
            return "tie"
        return ("better" if self.interval.high < 0 else "worse") + (" (bound)" if self.bound else "")


@dataclass(frozen=True)
class Evaluation:
    """Runs of several policies on the same sequences."""

    runs: tuple[Run, ...]
    baselines: tuple[str, ...] = ()
    """Names of the runs to compare with."""
    seed: int = 0
    family: str = "test"
    floor: bool = False
    """Report floored slowdowns, as the original."""
    window: tuple[int, int] | None = None
    """Count only the jobs that arrived in it."""
    declares: tuple[Declared, ...] = ()
    """What policies were shown of the future by design."""

    def run(self, name: str, mode: str | None = None) -> Run:
        """Return the first run of that name (and mode).

        Raises:
            KeyError: there is none.
        """
        for run in self.runs:
            if run.name == name and mode in (None, run.mode):
                return run
        raise KeyError(
            f"no run {name!r} in mode {mode!r}; there are {', '.join(run.label for run in self.runs)}"
        )

    @cached_property
    def summaries(self) -> dict[str, metrics.Summary]:
        """The measures of each run, by label."""
        return {run.label: metrics.summarise(run.outcome, self.floor, self.window) for run in self.runs}

    @cached_property
    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What is suspicious about each run, by label; clean runs are left out."""
        found = {run.label: refusal.detect(run.outcome, self.window).warnings for run in self.runs}
        return {label: lines for label, lines in found.items() if lines}

    @cached_property
    def means(self) -> dict[str, Interval]:
        """The mean slowdown of each run with its 95 % interval, by label."""
        return {run.label: self.resampled.mean(i) for i, run in enumerate(self.runs)}

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every run against every baseline but itself."""
        others = [i for i, run in enumerate(self.runs) if run.name in self.baselines]
        pairs = [(i, j) for i in range(len(self.runs)) for j in others if i != j]
        return tuple(self._compare(i, j) for i, j in pairs)

    def compare(self, policy: str, baseline: str) -> Comparison:
        """Compare any two runs, given by label."""
        labels = [run.label for run in self.runs]
        return self._compare(labels.index(policy), labels.index(baseline))

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        pairs = [
            metrics.sums_and_counts(metrics.slowdowns(run.outcome, self.floor, self.window))
            for run in self.runs
        ]
        return np.array([sums for sums, _ in pairs]), np.array([counts for _, counts in pairs])

    @cached_property
    def resampled(self) -> Resampled:
        """The pooled means of all runs, in their order, with their bootstrap replicates."""
        return resample(*self._sums, seed=self.seed)

    def _compare(self, policy: int, baseline: int) -> Comparison:
        one, other = self.runs[policy], self.runs[baseline]
        difference = self.resampled.difference(policy, baseline)
        relative = self.resampled.relative(policy, baseline)
        sums, counts = self._sums
        with np.errstate(invalid="ignore"):
            means = sums[[policy, baseline]] / counts[[policy, baseline]]
        comparable = may_claim(one, other, difference)
        lower = one if difference.value < 0 else other
        return Comparison(
            policy=one.label,
            baseline=other.label,
            difference=difference.value,
            interval=difference if comparable else None,
            relative=relative.value,
            relative_interval=relative if comparable else None,
            prob_better=paired_prob_better(*means),
            bound=not self.summaries[lower.label].complete,
            few=bool(np.isfinite(means).all(axis=0).sum() < MIN_SEQUENCES),
        )

    @cached_property
    def with_jobs(self) -> int:
        """Sequences in which some job counts under every run: those without are evidence of nothing."""
        return int((self._sums[1] > 0).all(axis=0).sum())

    def print(self, file: TextIO | None = None) -> None:
        """Print the measures, the comparisons and the warnings: rich on a terminal, plain text elsewhere.

        What was known of the future stands before them.
        """
        for line in lines(self.declares):
            print(f"note: {line}", file=file)
        count = len(self.runs[0].outcome.end_time) if self.runs else 0
        measure = "Floored slowdown (legacy)" if self.floor else "Slowdown"
        title = f"{measure} on {count:,} {self.family} sequences, every arrived job counted"
        table.print_table(title, SLOWDOWN, [self._slowdown_cells(run) for run in self.runs], file=file)
        print(file=file)
        table.print_table("Behind the means", OTHER, [self._other_cells(run) for run in self.runs], file=file)
        subjects = {run.label for run in self.runs if run.learned} or {run.label for run in self.runs}
        rows = [_comparison_cells(c) for c in self.comparisons if c.policy in subjects]
        if rows:
            print(file=file)
            table.print_table("Paired difference of the means, below 0 = better", PAIRED, rows, file=file)
        if self.with_jobs < MIN_SEQUENCES:
            print(f"warning: {few_line(self.with_jobs, count)}", file=file)
        for label, found in self.warnings.items():
            for line in found:
                print(f"warning: {label} {line}", file=file)

    def _slowdown_cells(self, run: Run) -> tuple[str, ...]:
        s, mean = self.summaries[run.label], self.means[run.label]
        tail = (number(s.p50), number(s.p95), number(s.p99))
        span = _span(mean) if self.with_jobs > 1 else "-"
        return run.label, _idle(run.idle_limit), run.mask, number(s.mean), span, *tail

    def _other_cells(self, run: Run) -> tuple[str, ...]:
        s = self.summaries[run.label]
        # In steady state every episode is cut off, by design.
        cut_off = str(s.cut_off) if self.window is None else "-"
        counts = (str(s.unfinished), str(s.dropped + s.rejected), cut_off)
        used = " / ".join(f"{share:.0%}" for share in s.utilisation)
        return run.label, number(s.mean_finished), *counts, number(s.completion_time), used

    def rows(self) -> list[dict]:
        """Return one flat dictionary for each run: its rules, its measures, its interval."""
        result = []
        for run in self.runs:
            measures = asdict(self.summaries[run.label])
            shares = {f"utilisation_{i}": share for i, share in enumerate(measures.pop("utilisation"))}
            rules = {
                "policy": run.name,
                "mode": run.mode,
                "idle_limit": _idle(run.idle_limit),
                "mask": run.mask,
            }
            interval = {"mean_low": self.means[run.label].low, "mean_high": self.means[run.label].high}
            warnings = {"warnings": "; ".join(self.warnings.get(run.label, ()))}
            result.append(rules | measures | interval | shares | warnings)
        return result

    def to_csv(self, path: str | Path) -> None:
        """Write one line for each run."""
        table.write_csv(path, self.rows())

    def to_json(self, path: str | Path) -> None:
        """Write the measures of all runs and all comparisons."""
        content = {
            "family": self.family,
            "seed": self.seed,
            "floored": self.floor,
            "window": self.window,
            "runs": self.rows(),
            "comparisons": [asdict(c) | {"verdict": c.verdict} for c in self.comparisons],
        }
        table.write_json(path, content)

    def jobs_to_csv(self, path: str | Path) -> int:
        """Write one line for each arrived job of each run and return their number."""
        return write_jobs(path, [(run.label, run.outcome) for run in self.runs], self.floor)


def few_line(with_jobs: int, count: int) -> str:
    """Say why there is no verdict."""
    if not with_jobs:
        return f"no job came in any of the {count:,} sequences: nothing was measured"
    return (
        f"{with_jobs:,} of {count:,} sequences have jobs, fewer than {MIN_SEQUENCES}: too few for a "
        "verdict, so no difference here is a finding"
    )


def number(value: float) -> str:
    """Format with three digits, or two decimals from 10 on; a dash where there is nothing to measure."""
    if not np.isfinite(value):
        return "-"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"


def _idle(limit: int | None) -> str:
    return "none" if limit is None else str(limit)


def _span(interval: Interval) -> str:
    return f"{number(interval.low)} .. {number(interval.high)}"


def _comparison_cells(c: Comparison) -> Sequence[str]:
    span = "not comparable" if c.interval is None else f"{c.interval.low:+.3f} .. {c.interval.high:+.3f}"
    if c.few:
        span = "-"
    if not np.isfinite(c.difference):
        return c.policy, c.baseline, "-", span, "-", "-", c.verdict
    shares = (f"{c.relative:+.1%}", "-" if c.few else f"{c.prob_better:.1%}")
    return c.policy, c.baseline, f"{c.difference:+.3f}", span, *shares, c.verdict


def may_claim(policy: Run, baseline: Run, difference: Interval) -> bool:
    """Say whether the idle limits allow a claim from an interval of mean(policy) - mean(baseline).

    They do if they are equal. Whoever wins under the stricter limit has won fairly too; a loss there may be
    the limit's.
    """
    won_with_less = _strictness(policy) < _strictness(baseline) and difference.high < 0
    return policy.idle_limit == baseline.idle_limit or won_with_less


def _strictness(run: Run) -> float:
    return float("inf") if run.idle_limit is None else run.idle_limit
