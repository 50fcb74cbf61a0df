"""Policies on numbered job sequences, played to the end: what evaluation reads."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schedrl.envs.draws import Ask, asking
from schedrl.sim.cluster.schedule import Schedule
from schedrl.sim.cluster_decisions.spec import ELASTIC

from . import job_table
from .clusters import SUMMARY, Clusters
from .jobs import Source, jobs_of
from .settings import SimpleClusterSettings

TOGETHER = 256
"""Sequences that are played side by side."""


def play(
    policy: Any,
    settings: SimpleClusterSettings,
    numbers: Sequence[int] | np.ndarray,
    *,
    seed: int = 0,
    family: str = "test",
    workload: Any = None,
    deterministic: bool = True,
) -> list[Schedule]:
    """Play a policy on job sequences and return what became of the jobs of each.

    Args:
        policy: see `schedrl.policy`; reads its own `representation`, in its own `scales` where it has some.
        settings: of the environment; its `representation` is the policy's.
        numbers: of the sequences.
        seed: of the sequences, and of what is sampled: the number of a sequence and of a decision name what
            is drawn, so that neither `numbers` nor TOGETHER changes it.
        family: "train", "validation" or "test".
        workload: jobs to use instead, see `jobs_of`.
        deterministic: False samples from a policy that can.
    """
    source = jobs_of(settings, seed, family, workload, getattr(policy, "scales", None))
    found: list[Schedule] = []
    ask = asking(policy, deterministic, seed)
    for clusters, some in _played(policy, ask, settings, source, numbers):
        found += [
            job_table.schedule(clusters, row, source.workload(int(number)), source.machines)
            for row, number in enumerate(some)
        ]
    return found


def returns(
    policy: Any,
    settings: SimpleClusterSettings,
    source: Source,
    numbers: np.ndarray,
    *,
    deterministic: bool,
    seed: int = 0,
) -> np.ndarray:
    """Play a policy as `play` does, on the sequences of a source; return the sum of rewards of each."""
    column = SUMMARY.index("r")
    played = _played(policy, asking(policy, deterministic, seed), settings, source, numbers)
    return np.concatenate([clusters.summary(clusters.everyone)[:, column] for clusters, _ in played])


def _played(
    policy: Any,
    ask: Ask,
    settings: SimpleClusterSettings,
    source: Source,
    numbers: Sequence[int] | np.ndarray,
) -> Iterator[tuple[Clusters, np.ndarray]]:
    """Yield clusters at the end of their episodes, up to TOGETHER at a time, and their sequences' numbers."""
    settings, numbers = settings.as_played(policy.representation), np.asarray(numbers)
    for first in range(0, len(numbers), TOGETHER):
        some = numbers[first : first + TOGETHER]
        clusters = Clusters(settings, len(some), source)
        clusters.load(clusters.everyone, some, source.at(some))
        _to_the_end(clusters, ask, some)
        yield clusters, some


def _to_the_end(clusters: Clusters, ask: Ask, numbers: np.ndarray) -> None:
    """Ask the policy where an episode goes on; the others get the wait, which nobody reads."""
    going, decision = clusters.everyone, 0
    elastic = clusters.spec.action == ELASTIC
    while going.size:
        chosen = ask(clusters.observe(going), numbers[going], decision)
        decision += 1
        parts = chosen if elastic else (chosen,)
        wide = []
        for part in map(np.asarray, parts):
            whole = np.zeros((len(clusters.rewards), *part.shape[1:]), part.dtype)
            whole[going] = part
            wide.append(whole)
        clusters.step(tuple(wide) if elastic else wide[0])
        going = np.flatnonzero(clusters.ended == 0)
