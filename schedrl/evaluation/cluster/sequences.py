"""Policies and rules on the same unseen job sequences of the cluster environment.

Trained policies decide in the environment, rules in the compiled simulator, on equal jobs and machines. The
unit of chance is the sequence: whole sequences are resampled, the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from schedrl.envs.declared import DEMANDS, PREPARATION, Declared
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.evaluation.cluster import holding, timeline, window
from schedrl.evaluation.cluster.fragmentation import fragmentation
from schedrl.evaluation.cluster.metrics import bounded_slowdowns, measure, turnaround, waits
from schedrl.evaluation.cluster.replay import COLUMNS, CURVE, HOT_SPANS, Entry, Replay, hot_spot
from schedrl.evaluation.definitions import slowdown, spread
from schedrl.settings import counted
from schedrl.sim.cluster.schedule import FINISHED, Schedule
from schedrl.workload.estimates import Told
from schedrl.workload.units import SECONDS

RULES = (
    "sjf+best_fit+easy",
    "sjf+best_fit+skip",
    "saf+best_fit+easy",
    "fifo+first_fit+easy",
    "fifo+first_fit+skip",
    "hold",
)
"""Heuristics that stand in every comparison, whoever wins; the others are compared with the first."""
SUMS = frozenset(
    {
        *("nb_jobs", "finished", "unfinished", "failed", "rejected", "n", "undefined", "beyond_limit"),
        *("unfinished_past_deadline", "restarts", "jobs_restarted", "decisions", "invalid_actions"),
    }
)
LARGEST = frozenset({"max", "max_wait", "censored_max", "severity_max"})
Keep = Callable[[str, Schedule, int], None]


def known_rules(names: Sequence[str]) -> tuple[str, ...]:
    """Return the full names of rules, each once.

    Raises:
        UserError: one is unknown; the nearest names are listed.
    """
    from schedrl.sim.cluster.rule import parse

    return tuple(dict.fromkeys(parse(name).name for name in names))


def standard_rules() -> tuple[str, ...]:
    """Return the full names of RULES."""
    return known_rules(RULES)


def is_cluster(settings: Any) -> bool:
    """Say whether settings are those of the cluster environment."""
    return isinstance(settings, SimpleClusterSettings)


def evaluate(
    policies: Mapping[str, Any],
    settings: SimpleClusterSettings,
    *,
    num_sequences: int = 200,
    seed: int = 0,
    family: str = "test",
    modes: Iterable[str] = ("greedy", "sampled"),
    rules: Mapping[str, Mapping[str, Any]] | Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
    keep: Keep | None = None,
) -> Replay:
    """Play policies and rules on the same sequences, rules first.

    Args:
        policies: name -> trained policy, see `schedrl.policy`.
        settings: of the environment.
        num_sequences: X.
        seed: of the sequences and of the intervals.
        family: "test" for claims, "validation" for choices.
        modes: how to play policies, of "greedy" and "sampled".
        rules: names of rules, or name -> options of the simulator (of those that hold, numbers tuned on
            validation sequences, see `holding.tuned`); None: the standard ones.
        progress: called with a line before each.
        keep: called with label, schedule and number of each sequence, for a table of jobs.
    """
    names = standard_rules() if rules is None else rules
    options = names if isinstance(names, Mapping) else {name: {} for name in known_rules(names)}
    entries: list[Entry] = []
    notes = [window.NOTE] if settings.termination == "continuing" else []

    def add(label: str, schedules: list[Schedule], started: float, learned: bool) -> None:
        seconds = time.perf_counter() - started
        until = float(entries[0].heat.edges[-1]) if entries else None
        found = _entry(label, schedules, settings, seconds, learned=learned, keep=keep, until=until)
        entries.append(found)

    for name, own in options.items():
        label = holding.label(name, own.get("hold"))
        if holding.holds(name):
            notes.append(holding.note(name, own.get("hold"), "validation sequences"))
        _say(progress, label, num_sequences)
        simulated(name, settings, 1, seed, family, **own)  # compiles where that wasn't done before
        started = time.perf_counter()
        add(label, simulated(name, settings, num_sequences, seed, family, **own), started, False)
    for name, policy in policies.items():
        for mode in modes:
            label = f"{name} ({mode})"
            _say(progress, label, num_sequences)
            _play(policy, settings, 1, seed, family, mode)  # compiles where that wasn't done before
            started = time.perf_counter()
            add(label, _play(policy, settings, num_sequences, seed, family, mode), started, True)
    told = _told(settings, num_sequences, seed, family)
    shown = [settings.as_played(policy.representation).declares() for policy in policies.values()]
    declares = (*(each for known in shown for each in known), *known_to_rules(options))
    return Replay(tuple(entries), seed, sequences=True, notes=tuple(notes), told=told, declares=declares)


def known_to_rules(names: Iterable[str]) -> tuple[Declared, ...]:
    """Return what rules know of the jobs to come, estimates apart: those that place by typical demands."""
    if not any("fgd" in name.split("+") for name in names):
        return ()
    text = "what all jobs demand, those to come too (fgd: its typical jobs)"
    return (Declared(DEMANDS, PREPARATION, (), text),)


def _told(settings: SimpleClusterSettings, num_sequences: int, seed: int, family: str) -> Told:
    from schedrl.envs.simple_cluster.jobs import told_of, workloads_of

    return told_of(settings, workloads_of(settings, num_sequences, seed, family))


def simulated(
    rule: str, settings: SimpleClusterSettings, num_sequences: int, seed: int, family: str, **options: Any
) -> list[Schedule]:
    """Run a rule on the sequences; where arrivals never stop, each is cut with its last arrival."""
    from schedrl.envs.simple_cluster.drawing import machines_of
    from schedrl.envs.simple_cluster.jobs import workloads_of
    from schedrl.sim.cluster.run import simulate

    machines, cut = machines_of(settings), settings.termination == "continuing"
    options = {"aging_time": settings.aging_time} | options
    return [
        simulate(jobs, machines, rule, until=float(jobs.arrival[-1]) if cut else None, **options)
        for jobs in workloads_of(settings, num_sequences, seed, family)
    ]


def slowdowns_that_count(schedule: Schedule, settings: Any) -> np.ndarray:
    """Return the bounded slowdowns of the jobs of a sequence that count, unfinished ones with their bound."""
    values = bounded_slowdowns(schedule, settings.slowdown_floor, bounds=True)
    return values[window.counted(settings, len(values))]


def mean_of_means(schedules: Sequence[Schedule], settings: Any) -> float:
    """Return the mean over sequences of their mean bounded slowdown, as learning curves have it."""
    values = [slowdowns_that_count(s, settings) for s in schedules]
    means = [np.nanmean(each) for each in values if not np.isnan(each).all()]
    return float(np.mean(means)) if means else float("nan")


def conclusion(replay: Replay, label: str) -> str:
    """Say in one sentence which rules a policy beats, by how much, and which not."""
    labels = [e.label for e in replay.entries]
    i = labels.index(label)
    means = replay.resampled.means
    refused = [e.measures["rejected"] for e in replay.entries]
    more = refused[i] - min(refused)
    away = f"it turned away {counted(more, 'job')}, which its mean lacks" if more else ""
    if not np.isfinite(means[i]):
        return f"{label}: no job came in any sequence, so nothing was measured{away and '; '}{away}."
    text = f"{label} has a mean bounded slowdown of {means[i]:.3f}"
    rules = [j for j, e in enumerate(replay.entries) if not e.learned]
    if not replay.sure or not rules:
        return f"{text}; too few sequences with jobs, or no rules, for a verdict."
    words = {
        "better": "it beats",
        "can't be told apart": "it ties with",
        "worse": "it loses to",
        "other jobs": "there is no verdict, as its mean is of other jobs, on",
    }
    found: dict[str, list[str]] = {verdict: [] for verdict in words}
    for j in rules:
        d = replay.difference(i, j)
        span = f"{d.relative.value:+.1%} [{d.relative.low:+.1%} .. {d.relative.high:+.1%}]"
        found[d.verdict].append(f"{labels[j]} ({span})")
    parts = [f"{words[verdict]} {', '.join(names)}" for verdict, names in found.items() if names]
    undone = replay.entries[i].measures["unfinished"] + replay.entries[i].measures["failed"]
    left = f"; it left {counted(undone, 'job')} undone, so its mean is a lower bound" if undone else ""
    return f"{text}: {'; '.join(parts)}{left}{away and '; '}{away}."


def _play(policy: Any, settings: Any, count: int, seed: int, family: str, mode: str) -> list[Schedule]:
    from schedrl.envs.simple_cluster.episodes import play

    greedy = mode == "greedy"
    return play(policy, settings, np.arange(count), seed=seed, family=family, deterministic=greedy)


def _say(progress: Callable[[str], None] | None, label: str, count: int) -> None:
    if progress:
        progress(f"evaluating {label} on {counted(count, 'sequence')}")


def _entry(
    label: str,
    schedules: Sequence[Schedule],
    settings: Any,
    seconds: float,
    *,
    learned: bool,
    keep: Keep | None,
    until: float | None,
) -> Entry:
    """Pool the schedules of all sequences."""
    unit, tau = schedules[0].workload.time_unit, settings.slowdown_floor
    if keep:
        for number, schedule in enumerate(schedules):
            keep(label, schedule, number)
    values = [slowdowns_that_count(s, settings) for s in schedules]
    known = [v[~np.isnan(v)] for v in values]
    everything = np.concatenate(known)
    hot = [_hot(s) for s in schedules]
    found = [line for line in hot if line]
    often = len(found) > len(schedules) / 2
    return Entry(
        label,
        pooled(schedules, tau * SECONDS.get(unit, 1.0), seconds, settings) | {"rule": label},
        np.array([v.sum() for v in known]),
        np.array([float(len(v)) for v in known]),
        np.quantile(everything, CURVE) if everything.size else everything,
        timeline.heat(schedules[0], COLUMNS, timeline.worth_seeing(schedules[0]) if until is None else until),
        f"{found[0]} (the first of {len(found)} such sequences of {len(schedules)})" if often else "",
        seconds,
        learned,
    )


def _hot(schedule: Schedule) -> str:
    heat = timeline.heat(schedule, HOT_SPANS, timeline.last_start(schedule))
    return hot_spot(heat, schedule.machines.name)


def pooled(schedules: Sequence[Schedule], tau: float, seconds: float, settings: Any) -> dict[str, Any]:
    """Measure sequences together: jobs that count are pooled, counts added, figures over time averaged.

    Args:
        schedules: of the sequences.
        tau: of the bounded slowdown [s].
        seconds: that playing them took.
        settings: of the environment.
    """
    decisions = sum(s.decisions for s in schedules)
    singles = [
        measure(s, tau=tau, decision_latency=seconds / max(decisions, 1))
        | {"fragmentation": fragmentation(s)}
        for s in schedules
    ]
    found = _merged(singles)
    own_tau = found["bounded_slowdown"]["tau"]
    part = [window.counted(settings, len(s.status)) for s in schedules]
    done = [np.where(s.status == FINISHED, 1.0, np.nan) for s in schedules]
    all_jobs = {
        "wait": [waits(s) * d for s, d in zip(schedules, done, strict=True)],
        "turnaround": [turnaround(s) for s in schedules],
        "slowdown": [slowdown(turnaround(s), s.workload.duration) for s in schedules],
        "bounded_slowdown": [bounded_slowdowns(s, own_tau) for s in schedules],
    }
    columns = {name: [v[p] for v, p in zip(values, part, strict=True)] for name, values in all_jobs.items()}
    for name, parts in columns.items():
        found[name] |= spread(np.concatenate(parts))
    if settings.termination == "continuing":
        longest = [
            np.nanmax(waits(s, censored=True)[p], initial=0.0) for s, p in zip(schedules, part, strict=True)
        ]
        found["starvation"]["max_wait"] = float(max(longest))
    return found


def _merged(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add counts, take the largest of maxima, average what else is a number; None where all are None."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        values = [table[name] for table in tables if table.get(name) is not None]
        if values and isinstance(values[0], Mapping):
            merged[name] = _merged(values)
        elif not values or isinstance(values[0], str | list):
            merged[name] = values[0] if values else None
        elif name in SUMS:
            merged[name] = int(sum(values))
        else:
            merged[name] = float(max(values)) if name in LARGEST else float(np.mean(values))
    return merged
