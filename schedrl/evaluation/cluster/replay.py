"""Many policies on the same jobs: their measures, how sure the differences are, what is suspicious.

One trace is one sample, so chance is looked for inside it: its jobs, in the order of arrival, are cut into
`BLOCKS` blocks of equal numbers of jobs, blocks are resampled, the same for every policy (paired), and the
pooled mean is recomputed (Künsch, "The jackknife and the bootstrap for general stationary observations",
1989; blocks that don't overlap: Carlstein 1986). Such an interval says how much the result hangs on parts of
this trace, not what another month would bring; it is too narrow where waits last longer than a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.declared import RUN_TIMES, Declared, lines
from schedrl.evaluation.cluster import timeline
from schedrl.evaluation.cluster.fragmentation import fragmentation
from schedrl.evaluation.cluster.metrics import bounded_slowdowns, in_unit, measure
from schedrl.evaluation.cluster.timeline import Heat
from schedrl.evaluation.comparison import MIN_SEQUENCES
from schedrl.evaluation.definitions import TAU
from schedrl.evaluation.statistics import Interval, Resampled, resample
from schedrl.settings import counted
from schedrl.sim.cluster.schedule import Schedule
from schedrl.workload.estimates import Told

BLOCKS = 20
MIN_JOBS = 10 * BLOCKS
"""Below this many jobs no interval is given."""
CURVE = np.concatenate([np.linspace(0, 0.99, 400), 1 - np.geomspace(0.01, 1e-6, 200)[1:], [1.0]])
"""Shares of jobs at which a distribution is kept, dense in the tail."""
COLUMNS = 300
"""Spans of time in a heat map."""
HOT, IDLE = 0.95, 0.30
"""Shares in use that make a machine hot, or idle beside a hot one."""
HOT_TIME, HOT_SPANS = 0.5, 100
"""A machine is a hot spot if it is hot for that share of so many spans of time."""


class Entry(NamedTuple):
    """What is kept of one policy's schedule."""

    label: str
    measures: dict[str, Any]
    sums: np.ndarray  # [BLOCKS] bounded slowdowns, unfinished jobs with their bounds
    counts: np.ndarray  # [BLOCKS] jobs behind them
    curve: np.ndarray  # bounded slowdown at the shares of CURVE; empty without jobs
    heat: Heat
    warning: str  # of a hot spot; empty: none
    seconds: float  # that the run took
    learned: bool


def entry(
    label: str,
    schedule: Schedule,
    seconds: float,
    *,
    learned: bool = False,
    tau: float = TAU,
    until: float | None = None,
    **options: Any,
) -> Entry:
    """Measure a schedule and keep what a report needs; a schedule of a million jobs is large.

    Args:
        label: of the policy.
        schedule: what it did.
        seconds: that it took.
        learned: whether it is a trained policy.
        tau: of the bounded slowdown [s].
        until: where the heat map ends, the same for all policies; None: where this schedule suggests.
        **options: see `measure`.
    """
    latency = seconds / schedule.decisions if schedule.decisions else None
    measures = measure(schedule, tau=tau, **({"decision_latency": latency} | options))
    measures["fragmentation"] = fragmentation(schedule)
    values = bounded_slowdowns(schedule, in_unit(tau, schedule.workload.time_unit), bounds=True)
    blocks = [block[~np.isnan(block)] for block in np.array_split(values, BLOCKS)]
    known = np.concatenate(blocks)
    placing = timeline.heat(schedule, HOT_SPANS, timeline.last_start(schedule))
    return Entry(
        label,
        measures,
        np.array([block.sum() for block in blocks]),
        np.array([float(len(block)) for block in blocks]),
        np.quantile(known, CURVE) if known.size else known,
        timeline.heat(schedule, COLUMNS, timeline.worth_seeing(schedule) if until is None else until),
        hot_spot(placing, schedule.machines.name),
        seconds,
        learned,
    )


def hot_spot(heat: Heat, names: Sequence[str] | np.ndarray) -> str:
    """Say whether a machine is hot for at least HOT_TIME of the time while others idle; empty if not.

    A machine's share is that of its busiest resource; others idle if theirs is below IDLE on average in the
    hot spans. `heat` should end with the last start: later nothing is placed any more.
    """
    share = heat.share
    hot = share > HOT
    m = int(hot.sum(1).argmax())
    spans = hot[m]
    idle = int((share[:, spans].mean(1) < IDLE).sum()) if spans.any() else 0
    if spans.mean() < HOT_TIME or not idle:
        return ""
    return (
        f"hot spot: machine {names[m]} is above {HOT:.0%} for {spans.mean():.0%} of the time, while "
        f"{idle:,} of {len(share) - 1:,} others {'are' if idle > 1 else 'is'} under {IDLE:.0%} in it"
    )


@dataclass(frozen=True)
class Difference:
    """A policy against the first one; below 0 = better."""

    policy: str
    baseline: str
    difference: Interval
    relative: Interval
    verdict: str


@dataclass(frozen=True)
class Replay:
    """Policies on the same jobs, the first of them the one that others are compared with."""

    entries: tuple[Entry, ...]
    seed: int = 0
    sequences: bool = False
    """Whether the blocks are independent job sequences, not parts of one trace."""
    notes: tuple[str, ...] = ()
    """Sentences on how the rules got their numbers."""
    told: Told | None = None
    """What the jobs tell a scheduler of run times."""
    declares: tuple[Declared, ...] = ()
    """What else some of the policies are shown of the future by design."""

    @property
    def first_lines(self) -> tuple[str, ...]:
        """Sentences without which no figure should be read."""
        told = () if self.told is None else self.told.lines()
        return (*told, *lines(each for each in self.declares if each.what != RUN_TIMES))

    @cached_property
    def sure(self) -> bool:
        """Whether there are blocks and jobs enough for intervals."""
        if self.sequences:
            return self.with_jobs >= MIN_SEQUENCES
        return bool(min(e.counts.sum() for e in self.entries) >= MIN_JOBS)

    @cached_property
    def with_jobs(self) -> int:
        """Blocks in which some job counts under every policy: empty ones are evidence of nothing."""
        return int((np.array([e.counts for e in self.entries]) > 0).all(axis=0).sum())

    @property
    def units(self) -> str:
        """What is resampled, in words."""
        blocks = len(self.entries[0].counts)
        return f"{blocks:,} job sequences" if self.sequences else f"{blocks} blocks of consecutive jobs"

    @cached_property
    def resampled(self) -> Resampled:
        """The pooled means of all policies, with their bootstrap replicates over blocks."""
        sums, counts = (np.array([getattr(e, name) for e in self.entries]) for name in ("sums", "counts"))
        return resample(sums, counts, seed=self.seed)

    @property
    def nobody_waits(self) -> bool:
        """Whether jobs came and none of them waited under any policy."""
        return self.with_jobs > 0 and not any(e.measures["starvation"]["max_wait"] for e in self.entries)

    @cached_property
    def uncounted(self) -> list[int]:
        """Jobs of each policy that had not even come when its run was cut off: no mean has them."""
        return [e.measures["nb_jobs"] - e.measures["rejected"] - int(e.counts.sum()) for e in self.entries]

    def ranked(self) -> list[int]:
        """Return the numbers of the policies, best mean first; those that saw fewer jobs stand behind."""
        means, least = self.resampled.means, min(self.uncounted)
        return sorted(
            range(len(self.entries)),
            key=lambda i: (bool(np.isnan(means[i])), self.uncounted[i] > least, means[i]),
        )

    def differences(self) -> list[Difference]:
        """Compare every policy with the first, on the same blocks."""
        return [self.difference(i, 0) for i in range(1, len(self.entries))] if self.sure else []

    def difference(self, i: int, j: int) -> Difference:
        """Compare two policies by number, on the same blocks."""
        difference = self.resampled.difference(i, j)
        verdict = "can't be told apart"
        if self.entries[i].counts.sum() != self.entries[j].counts.sum():
            verdict = "other jobs"
        elif difference.excludes_zero:
            verdict = "better" if difference.high < 0 else "worse"
        names = self.entries[i].label, self.entries[j].label
        return Difference(*names, difference, self.resampled.relative(i, j), verdict)

    def warnings(self) -> Iterator[str]:
        """Yield what a reader must know before believing the table."""
        if self.nobody_waits:
            yield (
                "nobody ever waits, under any policy: this run can't tell policies apart by slowdown or "
                "wait; give a smaller cluster (--num_machines), or raise the load (--load) where jobs arrive "
                "at different times"
            )
        if not self.with_jobs:
            yield "no job counts that every policy was given: nothing was measured"
        elif not self.sure:
            enough = f"{MIN_SEQUENCES} sequences with jobs" if self.sequences else f"{MIN_JOBS} jobs"
            yield f"fewer than {enough}: too few for intervals, so no difference here is a finding"
        least = min(e.measures["rejected"] for e in self.entries)
        for found, missing in zip(self.entries, self.uncounted, strict=True):
            counts = found.measures
            if counts["rejected"] > least:
                yield (
                    f"{found.label}: turned away {counted(counts['rejected'] - least, 'job')} that others "
                    "took; its mean lacks them and is of other jobs"
                )
            if missing > min(self.uncounted):
                yield (
                    f"{found.label}: its runs were cut off before {counted(missing, 'job')} came; its mean "
                    "lacks them and says nothing"
                )
            elif counts["unfinished"] + counts["failed"]:
                yield (
                    f"{found.label}: {counts['unfinished']:,} unfinished and {counts['failed']:,} failed "
                    "jobs; its mean is a lower bound"
                )
        hot = [e for e in self.entries if e.warning]
        for found in hot[:1]:
            others = ", ".join(e.label for e in hot[1:])
            others = "all the others" if len(hot) == len(self.entries) > 2 else others
            yield f"{found.label}: {found.warning}" + (f"; hot spots under {others} too" if others else "")
        if late := self._longer_than_a_block():
            yield f"intervals are too narrow for {', '.join(late)}: waits are longer than a block of jobs"

    def _longer_than_a_block(self) -> list[str]:
        first, last = self.entries[0].measures["window"]
        block = (last - first) / BLOCKS
        if self.sequences or not self.sure:
            return []
        return [e.label for e in self.entries if (e.measures["wait"]["p95"] or 0) > block]

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dictionary for each policy: every figure."""
        return [self._row(i) for i in range(len(self.entries))]

    def _row(self, i: int) -> dict[str, Any]:
        found = self.entries[i]
        mean = self.resampled.mean(i)
        row: dict[str, Any] = {"policy": found.label, **({} if self.told is None else self.told.figures())}
        row["mean"] = mean.value
        row |= {"mean_low": mean.low, "mean_high": mean.high} if self.sure else {}
        left_out = ("rule", "window", "reject_reasons")
        measures = {k: v for k, v in found.measures.items() if k not in left_out}
        measures["fairness"] = {k: v for k, v in measures["fairness"].items() if k != "user_mean_bsld"}
        row |= dict(_flat("", measures))
        return row | {"seconds": found.seconds, "warning": found.warning}


def _flat(prefix: str, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value
