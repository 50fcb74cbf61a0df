"""The ``Policy`` protocol: what everything that schedules can do, learned or written by hand.

A leaf, so that evaluation, serving and every algorithm agree on it without importing one another.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

PRIVILEGED = "privileged_"
"""How the leaves of an observation begin that critics may read while they learn, and no policy ever."""
Observation = Mapping[str, Any]
"""Key -> array; always with ``action_mask`` (bool, ``[A]`` or ``[B, A]``; True = legal, no-op last)."""


@runtime_checkable
class Policy(Protocol):
    """Chooses actions; never explores on its own, learns, or touches global random state while it does."""

    representation: str
    """What ``predict`` reads: ``slots``, ``compact``, ``image`` or ``state`` (docs/deeprm.md). A policy may
    also have ``scales``, what times were measured in where it learned (``env.scales``)."""

    def predict(self, obs: Observation, deterministic: bool = True) -> Any:
        """Return the action for one observation (an int), or the actions ``[B]`` int64 for a batch.

        A batch has a leading axis on every array. ``deterministic=False`` samples from the policy's own
        generator. One that takes a third argument ``draws`` samples from that where it is given
        (``schedrl.envs.draws``): then neither the batch nor what was played before changes what is drawn.
        """
        ...


@runtime_checkable
class ScoringPolicy(Policy, Protocol):
    """A policy that can say how it ranks the actions, for displays and shadow runs."""

    def scores(self, obs: Observation) -> Any:
        """Return one score per action, ``[A]`` or ``[B, A]``; larger is better, illegal actions are -inf."""
        ...
