"""The first half page of the report: plain sentences, computed from the rows, on what may be claimed.

An algorithm *beats* a heuristic if the interval over seeds and sequences lies below zero and so does, for
each seed by itself, the interval over sequences. Everything weaker is said in weaker words, with its reason.
"""

from __future__ import annotations

import math

from schedrl.evaluation.comparison import MIN_SEQUENCES, few_line, number
from schedrl.evaluation.comparison_report.curves import MANY_SEEDS
from schedrl.evaluation.comparison_report.result import Result
from schedrl.evaluation.comparison_report.rows import Row, chosen

DIFFERENT_MODES = 0.1
"""Relative difference of the means of greedy and sampled play from which it is pointed out."""


def conclude(result: Result, rows: list[Row]) -> list[str]:
    """Return the conclusion, a paragraph for each text."""
    best = sorted(chosen(rows, kind="algorithm", mode="greedy"), key=lambda row: row["mean"])
    with_jobs, count = result.evaluation.with_jobs, len(result.evaluation.runs[0].outcome.end_time)
    parts = [_setting(result, rows)]
    if with_jobs < MIN_SEQUENCES:
        line = few_line(with_jobs, count)
        parts += [f"{line[0].upper()}{line[1:]}.", _unranked(best, rows) if with_jobs else ""]
    else:
        parts.append(_best(best, rows))
    if with_jobs:
        parts += [_against(row["policy"], rows) for row in best]
    return [part for part in (*parts, *caveats(result, rows)) if part]


def caveats(result: Result, rows: list[Row]) -> list[str]:
    """Return what can't be claimed, and why, one sentence or two each."""
    sure = result.evaluation.with_jobs >= MIN_SEQUENCES
    found = [_failed(result), _idle_limits(rows), _lower_bounds(rows, sure), _modes(rows) if sure else ""]
    found.append(_few_seeds(rows))
    commits = sorted({run.commit for run in result.trained})
    if len(commits) > 1:
        plus = " (+ = with changes that aren't committed)" if any(c.endswith("+") for c in commits) else ""
        listed = ", ".join(commits)
        found.append(f"The runs were trained by different versions of the program: {listed}{plus}.")
    return [text for text in found if text]


def _setting(result: Result, rows: list[Row]) -> str:
    count = len(result.evaluation.runs[0].outcome.end_time)
    names = list(result.algorithms)
    each = sorted({len(runs) for runs in result.algorithms.values()})
    seeds = _plural(each[0], "seed") if len(each) == 1 else f"{each[0]} to {each[-1]} seeds"
    unit = "windows of a cluster that never stops" if result.steady else "test sequences"
    heuristics = _plural(len(result.evaluation.baselines), "heuristic")
    return (
        f"{_plural(len(names), 'algorithm')} ({', '.join(names)}), {seeds} each, {result.origin.budget:,} "
        f"decisions per run, and {heuristics} tuned on validation sequences. All were measured on the same "
        f"{count:,} {unit}, which no training saw; every arrived job counts. Slowdown: 1 = no job ever "
        "waited, less is better. Policies play greedily unless said otherwise."
    )


def _best(best: list[Row], rows: list[Row]) -> str:
    if not best:
        return "No training run finished, so there is nothing to conclude."
    first = best[0]
    text = f"The best algorithm is {first['policy']} with a mean slowdown of {_mean(first)}."
    heuristics = sorted(chosen(rows, kind="heuristic"), key=lambda row: row["mean"])
    for other in best[1:2]:
        text += f" Next is {other['policy']} with {_mean(other)}; {_lead(first, other, rows)}."
    if len(best) > 2:
        text += " Then: " + ", ".join(f"{row['policy']} {number(row['mean'])}" for row in best[2:]) + "."
    if heuristics:
        listed = ", ".join(f"{row['policy']} {number(row['mean'])}" for row in heuristics)
        text += f" Heuristics: {listed}."
    return text


def _unranked(best: list[Row], rows: list[Row]) -> str:
    """Name the means and nobody first, where there is too little evidence for more."""
    found = sorted([*best, *chosen(rows, kind="heuristic")], key=lambda row: row["policy"])
    listed = ", ".join(f"{row['policy']} {number(row['mean'])}" for row in found)
    return (
        f"Mean slowdowns on them, in the order of the names: {listed}; too few sequences to tell them apart."
        if found
        else ""
    )


def _mean(row: Row) -> str:
    text = f"{number(row['mean'])} [{number(row['mean_low'])} .. {number(row['mean_high'])}]"
    if row["num_seeds"] > 1:
        text += f" (seeds from {number(row['lowest_seed'])} to {number(row['highest_seed'])})"
    return text


def _lead(first: Row, other: Row, rows: list[Row]) -> str:
    pairs = chosen(rows, kind="algorithm against algorithm", mode="greedy")
    names = {first["policy"], other["policy"]}
    pair = next(row for row in pairs if {row["policy"], row["against"]} == names)
    if pair["verdict"] == "too few sequences" or pair["difference_low"] is None:
        return "too few sequences to tell them apart"
    low, high = sorted((abs(pair["difference_low"]), abs(pair["difference_high"])))
    if pair["verdict"] == "tie":
        return "the difference may be chance (its interval includes zero)"
    undone = ", but it left jobs undone" if "bound" in pair["verdict"] else ""
    lead = f"{number(abs(pair['difference']))} [{number(low)} .. {number(high)}]"
    return f"the lead of {lead} excludes zero{undone}"


VERDICTS = (
    ("beats", "beats"),
    ("some", "is better on average, but not with every seed, than"),
    ("better (bound)", "looks better, but left jobs undone, than"),
    ("tie", "can't be told from"),
    ("worse", "loses to"),
    ("worse (bound)", "looks worse than these, which left jobs undone:"),
    ("too few sequences", "played too few sequences for a verdict on"),
)


def _against(algorithm: str, rows: list[Row]) -> str:
    """Say whom an algorithm beats, by how much, over how many seeds, and whom not."""
    found = chosen(rows, kind="algorithm against heuristic", mode="greedy", policy=algorithm)
    parts = []
    for verdict, words in VERDICTS:
        group = [row for row in found if _grade(row) == verdict]
        if group:
            seeds = _in_seeds(group[0]["num_seeds"]) if verdict == "beats" else ""
            parts.append(f"{words} " + ", ".join(map(_by_how_much, group)) + seeds)
    return f"{algorithm} {'; it '.join(parts)}." if parts else ""


def _grade(row: Row) -> str:
    if row["verdict"] == "better":
        return "beats" if row["seeds_better"] == row["num_seeds"] else "some"
    return row["verdict"]


def _in_seeds(count: int) -> str:
    return f" (each of {count} seeds by itself too)" if count > 1 else ""


def _by_how_much(row: Row) -> str:
    name = row["against"]
    if row["verdict"] == "too few sequences":
        return name
    if row["verdict"] == "tie":
        return f"{name} ({row['relative']:+.1%}, {row['relative_low']:+.1%} .. {row['relative_high']:+.1%})"
    low, high = sorted((abs(row["relative_low"]), abs(row["relative_high"])))
    some = f"; {row['seeds_better']} of {row['num_seeds']} seeds" if _grade(row) == "some" else ""
    return f"{name} by {abs(row['relative']):.1%} [{low:.1%} .. {high:.1%}{some}]"


def _failed(result: Result) -> str:
    groups: dict[tuple[str, str], list[str]] = {}
    for failure in result.failures:
        groups.setdefault((failure.algorithm, failure.error), []).append(str(failure.seed))
    parts = [
        f"{algorithm} seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)} ({error})"
        for (algorithm, error), seeds in groups.items()
    ]
    return f"Failed and left out: {'; '.join(parts)}." if parts else ""


def _idle_limits(rows: list[Row]) -> str:
    found = chosen(rows, kind="algorithm against heuristic", mode="greedy", verdict="other idle limit")
    if not found:
        return ""
    groups: dict[str, list[str]] = {}
    for row in found:
        groups.setdefault(row["policy"], []).append(row["against"])
    own = {row["idle_limit"] for row in chosen(rows, kind="algorithm")}
    names = sorted({row["against"] for row in found})
    limits = {row["idle_limit"] for row in chosen(rows, kind="heuristic") if row["policy"] in names}
    alike = len({tuple(others) for others in groups.values()}) == 1
    algorithms = {row["policy"] for row in chosen(rows, kind="algorithm")}
    who = {"every algorithm": names} if alike and groups.keys() == algorithms else groups
    pairs = "; ".join(f"{policy} against {', '.join(others)}" for policy, others in who.items())
    return (
        f"Not claimable, as idle limits differ ({_or(own)} for the algorithms, {_or(limits)} for "
        f"{', '.join(names)}): {pairs}. Who wins under the stricter limit has won; who loses may have lost "
        "to the limit."
    )


def _or(limits: set[str]) -> str:
    return " or ".join(sorted(limits))


def _lower_bounds(rows: list[Row], sure: bool) -> str:
    found = [
        row
        for row in chosen(rows, kind="algorithm") + chosen(rows, kind="heuristic")
        if row["finished"] < row["arrived"]
    ]
    if not found and not sure:  # of too few jobs nothing is called exact
        return ""
    if not found:
        return "No job was left unfinished or dropped by anyone, so all means are exact."
    listed = ", ".join(
        f"{row['policy']}{'' if row['kind'] == 'heuristic' else ' ' + row['mode']} "
        f"{row['arrived'] - row['finished']:,} of {row['arrived']:,}"
        for row in found
    )
    return f"Lower bounds only, as jobs were left unfinished or dropped, are the means of: {listed}."


def _modes(rows: list[Row]) -> str:
    found = []
    greedy = {row["policy"]: row for row in chosen(rows, kind="algorithm", mode="greedy")}
    sampled = {row["policy"]: row for row in chosen(rows, kind="algorithm", mode="sampled")}
    for name in greedy.keys() & sampled.keys():
        pair = [number(mode[name]["mean"]) for mode in (greedy, sampled)]
        if not all(math.isfinite(mode[name]["mean"]) for mode in (greedy, sampled)):
            continue
        if abs(math.log(sampled[name]["mean"] / greedy[name]["mean"])) > DIFFERENT_MODES:
            found.append(f"{name} {pair[0]} greedy, {pair[1]} sampled")
    if not found:
        return ""
    text = f"Greedy and sampled play differ much: {'; '.join(sorted(found))}."
    best = min(sampled.values(), key=lambda row: row["mean"])
    if best["mean"] < min(row["mean"] for row in greedy.values()):
        text += f" The lowest mean of all is {best['policy']}'s sampled: {_mean(best)}."
    return text


def _few_seeds(rows: list[Row]) -> str:
    counts = {row["num_seeds"] for row in chosen(rows, kind="algorithm")}
    if not counts or min(counts) >= MANY_SEEDS:
        return ""
    if min(counts) == 1:
        return "With one seed nothing is known of how much another seed would change."
    return (
        f"Intervals over {min(counts)} seeds are rough. Each is a 95 % interval by itself, not corrected for "
        "how many there are."
    )


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
