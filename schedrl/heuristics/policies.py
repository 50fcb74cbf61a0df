"""The heuristics as policies: a rule, its parameters, and the two ways of running it."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from schedrl.envs.deeprm.clusters import Clusters
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.settings import UserError
from schedrl.sim.deeprm.outcome import Outcome
from schedrl.sim.deeprm.sequences import Sequences

from . import rules
from .fused import fuse, play_rule

LONG = 10  # steps from which a job of the bimodal workload is a long one
LEAVES = ("startable", "duration", "demand", "arrival", "free", "scalars")


class Heuristic:
    """A rule as a `Policy` (reads representation "state"), and as whole compiled episodes.

    A subclass names itself, its rule and its parameters; see docs/extending.md.
    """

    name: ClassVar[str]
    rule: ClassVar[Callable] = staticmethod(rules.built_in)
    representation: ClassVar[str] = "state"
    idles: ClassVar[bool] = False
    """Whether the rule is defined by idling beside startable jobs: it then plays with idle_limit None."""
    legal: ClassVar[bool] = True
    """Whether it keeps to legal actions."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads, float64."""
        return np.zeros(rules.NUM_PARAMETERS)

    def reseed(self, seed: int) -> None:
        """Start the policy's own random stream."""
        self._rng = np.random.default_rng(seed)

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True, draws: Any = None) -> Any:
        """Return the action for one observation, or the actions [B] for a batch.

        Random rules draw from `draws` (`schedrl.envs.draws.Draws`) or, without, from their own generator.
        """
        single = np.ndim(obs["duration"]) == 1
        leaves = [np.asarray(obs[name]) for name in LEAVES]
        if single:
            leaves = [leaf[None] for leaf in leaves]
        actions = np.zeros(len(leaves[0]), np.int64)
        random = (self._rng if draws is None else draws).random(len(actions))
        fuse(type(self).rule)[1](*leaves, random, self.parameters(), actions)
        return int(actions[0]) if single else actions

    def run(self, settings: DeepRMSettings, sequences: Sequences, seed: int = 0) -> Outcome:
        """Play one episode per sequence and return what became of the jobs."""
        clusters = Clusters(
            self.rules_of_play(settings), sequences.count, sequences.arrival.shape[1], sequences.steps
        )
        clusters.load(clusters.everyone, clusters.everyone, sequences)
        play_rule(type(self).rule, clusters, self.parameters(), seed, sequences.names)
        return clusters.outcome()

    def rules_of_play(self, settings: DeepRMSettings) -> DeepRMSettings:
        """Return the settings this heuristic plays by."""
        return settings.replace(idle_limit=None) if self.idles else settings

    def __repr__(self) -> str:
        """Name the heuristic with its tuned numbers."""
        numbers = ", ".join(
            f"{key}={value:g}" for key, value in vars(self).items() if not key.startswith("_")
        )
        return f"{self.name}({numbers})"


class FIFO(Heuristic):
    """Start the job that arrived first among those that fit."""

    name = "fifo"

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads."""
        return _parameters(AGE=1)


class SJF(Heuristic):
    """Start the shortest job that fits."""

    name = "sjf"


class Packer(Heuristic):
    """Start the job that lines up best with what is free (the original's "Tetris")."""

    name = "packer"

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads."""
        return _parameters(KNOB=1)


class Tetris(Heuristic):
    """Mix alignment and shortness: knob * alignment + (1 - knob) / duration."""

    name = "tetris"

    def __init__(self, knob: float = 1e-4) -> None:
        super().__init__()
        if not 0 <= knob <= 1:
            raise UserError(f"knob must lie between 0 (SJF) and 1 (Packer), got {knob}")
        self.knob = knob

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads."""
        return _parameters(KNOB=self.knob)


class _Holding(Heuristic):
    """SJF that holds jobs of `long_from` steps and more back, by one of three conditions."""

    condition: ClassVar[str]

    def __init__(self, threshold: float, long_from: int = LONG) -> None:
        super().__init__()
        if threshold < 0 or long_from < 1:
            raise UserError(
                f"{self.name} needs threshold >= 0 and long_from >= 1, got {threshold:g} and {long_from}"
            )
        self.threshold, self.long_from = threshold, long_from

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads."""
        return _parameters(LONG_FROM=self.long_from, **{self.condition: self.threshold})


class SJFHold(_Holding):
    """SJF, but a long job starts only if `threshold` units of each resource stay free, or nothing runs."""

    name, condition = "sjf_hold", "KEEP_FREE"

    def __init__(self, threshold: float = 5, long_from: int = LONG) -> None:
        super().__init__(threshold, long_from)


class TSL(_Holding):
    """SJF, but a long job starts only when no job has arrived for `threshold` steps; idles if need be."""

    name, condition, idles = "tsl", "QUIET", True

    def __init__(self, threshold: float = 5, long_from: int = LONG) -> None:
        super().__init__(threshold, long_from)


class Defer(_Holding):
    """SJF, but a long job starts only from step `threshold` on; idles if need be."""

    name, condition, idles = "defer", "CLOCK", True

    def __init__(self, threshold: float = 48, long_from: int = LONG) -> None:
        super().__init__(threshold, long_from)


class Random(Heuristic):
    """Draw any action, legal or not (the original's random agent)."""

    name, legal = "random", False

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads."""
        return _parameters(KIND=rules.AT_RANDOM)


class RandomLegal(Heuristic):
    """Draw one of the jobs that can start now, or the no-op where it is legal."""

    name = "random_legal"

    def parameters(self) -> np.ndarray:
        """Return the numbers that the rule reads."""
        return _parameters(KIND=rules.AT_RANDOM_LEGAL)


def _parameters(**values: float) -> np.ndarray:
    parameters = np.zeros(rules.NUM_PARAMETERS)
    for name, value in values.items():
        parameters[getattr(rules, name)] = value
    return parameters
