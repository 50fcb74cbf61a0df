"""What a comparison reports on: the evaluation, the training runs behind it, and how it all came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from schedrl.evaluation.comparison import Evaluation
from schedrl.evaluation.comparison_report.curves import Curve


def run_name(algorithm: str, seed: int) -> str:
    """Return the name under which one trained policy stands in the evaluation."""
    return f"{algorithm} seed {seed}"


@dataclass(frozen=True)
class Trained:
    """One finished training run."""

    algorithm: str
    seed: int
    curve: Curve
    decisions: int
    seconds: float
    """Of training alone, as its processor was shared."""
    run_id: str
    commit: str
    """The git commit that it ran from ("+" = with changes), as its run.json says."""
    reused: bool
    """Whether it was there before."""

    @property
    def name(self) -> str:
        """Return its name in the evaluation."""
        return run_name(self.algorithm, self.seed)

    @property
    def speed(self) -> float:
        """Return training decisions per second."""
        return self.decisions / self.seconds if self.seconds > 0 else float("nan")


@dataclass(frozen=True)
class Failure:
    """A run that ended in an error, and so is nowhere in the report but in its list of failures."""

    algorithm: str
    seed: int
    error: str


@dataclass(frozen=True)
class Origin:
    """How the comparison came about: what it takes to make it again."""

    command: str
    environment_name: str
    environment: Mapping[str, Any]
    """Resolved settings, by name."""
    environment_summary: str
    environment_defaults: Mapping[str, Any]
    algorithms: Mapping[str, Mapping[str, Any]]
    """Algorithm -> resolved settings."""
    budget: int
    """Decisions of every run."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What else should be known: versions, commit, machine, rules that were used; title -> text."""


@dataclass(frozen=True)
class Result:
    """Everything that the report is computed from."""

    evaluation: Evaluation
    """On test sequences; learned runs are named by `run_name`, greedy and sampled."""
    trained: tuple[Trained, ...]
    levels: Mapping[str, tuple[float, float]]
    """Heuristic -> its mean slowdown and return on validation episodes, measured as in training."""
    origin: Origin
    failures: tuple[Failure, ...] = ()
    heuristics: Mapping[str, str] = field(default_factory=dict)
    """Heuristic -> its tuned form, as text."""

    @cached_property
    def algorithms(self) -> dict[str, tuple[Trained, ...]]:
        """Algorithm -> its finished runs, in the order of the command."""
        names = dict.fromkeys(run.algorithm for run in self.trained)
        return {name: tuple(run for run in self.trained if run.algorithm == name) for name in names}

    @property
    def steady(self) -> bool:
        """Say whether windows of a cluster that never stops were measured."""
        return self.evaluation.window is not None
