"""Find the numbers of the tunable heuristics on validation sequences, never on those of a claim."""

from collections.abc import Callable, Iterable

import numpy as np

from schedrl.envs.deeprm.jobs import sequences_of
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.settings import UserError
from schedrl.sim.deeprm.outcome import Outcome
from schedrl.sim.deeprm.sequences import Sequences

from .policies import TSL, Defer, Heuristic, SJFHold, Tetris

MIN_SEQUENCES = 500
VALUES_PER_DECADE = 4
KNOBS = np.logspace(-5, 0, 5 * VALUES_PER_DECADE + 1)
"""Tetris' knob: alignment is up to 200 and 1/duration at most 1, so what matters lies near 1e-4 to 1e-2."""


def candidates(name: str, settings: DeepRMSettings) -> list[Heuristic]:
    """Return the heuristics to choose from, the simplest first: ties go to it."""
    if name == "tetris":
        return [Tetris(knob) for knob in KNOBS]
    if name == "sjf_hold":
        return [SJFHold(keep) for keep in range(min(settings.capacities) + 1)]
    if name == "tsl":
        return [TSL(quiet) for quiet in (*range(16), 20, 30)]
    if name == "defer":
        return [Defer(step) for step in range(0, settings.sequence_length + 6)]
    raise UserError(f"{name} has nothing to tune; tunable: tetris, sjf_hold, tsl, defer")


TUNABLE = ("tetris", "sjf_hold", "tsl", "defer")


def tune(
    name: str,
    settings: DeepRMSettings,
    num_sequences: int = MIN_SEQUENCES,
    seed: int = 0,
    score: Callable[[Outcome], float] | None = None,
    sequences: Sequences | None = None,
) -> Heuristic:
    """Return the heuristic with the best mean slowdown over the validation sequences, every job counted.

    Args:
        name: one of TUNABLE.
        settings: workload and physics to tune for.
        num_sequences: at least MIN_SEQUENCES, unless `sequences` are given.
        seed: of the validation sequences.
        score: what to minimise, from an outcome; default the pooled mean slowdown.
        sequences: validation sequences to use instead.

    Raises:
        UserError: too few sequences, no job in any of them, or nothing to tune.
    """
    sequences = sequences or _validation(settings, num_sequences, seed)
    score = score or mean_slowdown
    best, best_score = None, np.inf
    for candidate in candidates(name, settings):
        value = score(candidate.run(settings, sequences))
        if value < best_score - 1e-12:
            best, best_score = candidate, value
    if best is None:
        raise UserError(
            f"{name} can't be tuned: no candidate has a mean on the {sequences.count} validation "
            "sequences, as no job comes in them; raise the load or make them longer (sequence_length)"
        )
    return best


def tune_all(settings: DeepRMSettings, names: Iterable[str] = TUNABLE, **how: object) -> dict[str, Heuristic]:
    """Tune several heuristics on the same validation sequences; `how` is that of `tune`."""
    names = list(names)
    if names and how.get("sequences") is None:  # drawn once
        size = {name: how.pop(name) for name in ("num_sequences", "seed") if name in how}
        how["sequences"] = _validation(settings, **size)  # type: ignore[arg-type]
    return {name: tune(name, settings, **how) for name in names}  # type: ignore[arg-type]


def _validation(settings: DeepRMSettings, num_sequences: int = MIN_SEQUENCES, seed: int = 0) -> Sequences:
    if num_sequences < MIN_SEQUENCES:
        raise UserError(f"tuning needs at least {MIN_SEQUENCES} validation sequences, got {num_sequences}")
    return sequences_of(settings, num_sequences, seed, "validation")


def mean_slowdown(outcome: Outcome) -> float:
    """Pool all arrived jobs; an unfinished or dropped one counts with its time up to the episode's end."""
    end = outcome.end_time[:, None]
    done = (outcome.finish >= 0) & (outcome.finish <= end)
    until = np.where(done, outcome.finish, end)
    slowdown = (until - outcome.arrival) / np.maximum(1, outcome.duration)
    return float(slowdown[outcome.arrived].mean()) if outcome.arrived.any() else float("nan")
