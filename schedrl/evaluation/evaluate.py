"""Play any mix of policies and heuristics on the same unseen job sequences.

Evaluation never explores in greedy mode, never updates a normaliser and never touches global random state;
what it plays on is a pure function of (settings, seed, family). Each run states the rules it played by: how
long it may keep the machine idle (`idle_limit`), its action mask, its mode. See docs/design.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedrl.evaluation.comparison import Evaluation
from schedrl.evaluation.metrics import slowdowns
from schedrl.settings import UserError
from schedrl.sim.deeprm.outcome import Outcome

BASELINES = ("sjf", "packer", "tetris", "sjf_hold", "tsl", "defer")
"""Heuristics that stand in every comparison, whoever wins."""
MODES = ("greedy", "sampled")
RULE = "rule"
"""The mode of a heuristic: it has no distribution to sample from."""


@dataclass(frozen=True)
class Run:
    """One policy, in one mode, on all sequences."""

    name: str
    mode: str
    """"greedy" or "sampled" for a learned policy, "rule" for a heuristic."""
    idle_limit: int | None
    mask: str
    outcome: Outcome

    @property
    def learned(self) -> bool:
        """Say whether this is a learned policy."""
        return self.mode != RULE

    @property
    def label(self) -> str:
        """Return the name to show."""
        return f"{self.name} ({self.mode})" if self.learned else self.name


def evaluate(
    policies: Mapping[str, Any],
    settings,
    *,
    num_sequences: int = 2000,
    seed: int = 0,
    family: str = "test",
    modes: Iterable[str] = MODES,
    baselines: Iterable[str] | Mapping[str, Any] = BASELINES,
    sequences=None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    floor: bool = False,
    window: tuple[int, int] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Evaluation:
    """Play `policies` and `baselines` on the same sequences and compare them.

    Args:
        policies: name -> policy (see `schedrl.policy`) or heuristic (an object with `run`).
        settings: `DeepRMSettings` of the workload and the physics.
        num_sequences: X, how many sequences.
        seed: of the sequences, of sampled actions and of the intervals.
        family: "test" for claims, "validation" for choices.
        modes: how to play learned policies, of "greedy" and "sampled".
        baselines: heuristics to add, by names or as name -> heuristic (tuned ones).
        sequences: given `Sequences` instead of generated ones.
        overrides: name -> settings that differ for this policy, such as {"ppo": {"idle_limit": None}}.
        floor: report the original's floored slowdown.
        window: count only jobs with window[0] <= arrival < window[1] (see `steady_state`).
        progress: called with a line before each run.

    Raises:
        UserError: nothing to play, or an unknown mode, family or heuristic.
    """
    modes = tuple(modes)
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise UserError(f"modes must be some of {', '.join(MODES)}, got {', '.join(unknown) or 'none'}")
    if num_sequences < 1:
        raise UserError(f"num_sequences must be at least 1, got {num_sequences}")
    rules = _heuristics(baselines)
    everyone = {**policies, **{name: rule for name, rule in rules.items() if name not in policies}}
    if not everyone:
        raise UserError("nothing to evaluate: give at least one policy or baseline")
    sequences = sequences_of(settings, num_sequences, seed, family) if sequences is None else sequences
    runs, declares = [], []
    for name, policy in everyone.items():
        own = _own_settings(policy, settings, (overrides or {}).get(name, {}))
        for mode in (RULE,) if hasattr(policy, "run") else modes:
            if progress:
                progress(f"evaluating {name} ({mode}) on {sequences.count} sequences")
            runs.append(Run(name, mode, own.idle_limit, own.mask, _play(policy, own, sequences, mode, seed)))
        declares += own.as_played("state" if hasattr(policy, "run") else policy.representation).declares()
    options: dict[str, Any] = {"floor": floor, "window": window, "declares": tuple(dict.fromkeys(declares))}
    return Evaluation(tuple(runs), tuple(rules), seed=seed, family=family, **options)


def sequences_of(settings, num_sequences: int, seed: int = 0, family: str = "test"):
    """Return the first `num_sequences` job sequences of a family, as `Sequences`."""
    from schedrl.envs.deeprm import jobs

    return jobs.sequences_of(settings, num_sequences, seed, family)


def tuned(
    names: Iterable[str], settings, seed: int = 0, window: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Return heuristics by name, the numbers of the tunable ones searched on validation sequences.

    `settings`, `seed` and `window` are those of the evaluation that they are for.
    """
    from schedrl import heuristics
    from schedrl.heuristics import tuning

    def score(outcome: Outcome) -> float:
        return float(np.nanmean(slowdowns(outcome, window=window)))

    names = list(names)
    fixed = {name: heuristics.get(name) for name in names if name not in tuning.TUNABLE}
    chosen = tuning.tune_all(settings, set(names) - set(fixed), seed=seed, score=score)
    return {name: {**fixed, **chosen}[name] for name in names}


def _heuristics(baselines) -> dict[str, Any]:
    if isinstance(baselines, Mapping):
        return dict(baselines)
    names = list(baselines)
    if not names:
        return {}
    from schedrl import heuristics

    return {name: heuristics.get(name) for name in names}


def _own_settings(policy, settings, overrides: Mapping[str, Any]):
    own = settings.replace(**overrides) if overrides else settings
    # TSL and DEFER are defined by idling and play without a limit, whatever the others play by.
    return policy.rules_of_play(own) if hasattr(policy, "rules_of_play") else own


def _play(policy, settings, sequences, mode: str, seed: int) -> Outcome:
    if mode == RULE:
        return policy.run(settings, sequences, seed)
    from schedrl.envs.deeprm.episodes import play

    return play(policy, settings, sequences, deterministic=mode == "greedy", seed=seed)
