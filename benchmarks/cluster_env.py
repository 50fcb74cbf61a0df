"""The cluster environment against its plain-Python specification: decisions with observation and mask.

Both sides play the same rule (the first legal choice) on the same default cluster and the same jobs, and look
at every state; the batch has `num_envs` environments and draws its next jobs itself, the plain one is given
jobs that were drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.paired import interleaved, per_second, ratio, repeat, verdict
from schedrl.envs.simple_cluster import SimpleClusterVectorEnv
from schedrl.envs.simple_cluster.clusters import Clusters
from schedrl.envs.simple_cluster.jobs import jobs_of
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.settings import Settings
from schedrl.sim.cluster_decisions.reference import ReferenceCluster
from schedrl.sim.cluster_decisions.reference_views import slots

BOUND, GOAL = 15.0, 40.0
STEPS = 20


@dataclass(frozen=True)
class ClusterEnvBenchmark(Settings):
    """How long to measure what."""

    num_envs: int = 256
    """Environments of the batch, at least 1."""
    rounds: int = 7
    """Ratios of which the median counts, at least 1."""
    seconds: float = 1.0
    """Processor time of each side in a round; above 0."""
    action: str = "machine"
    """The environment's action: machine or job_machine."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.in_range("num_envs", 1)
        self.in_range("rounds", 1)
        self.in_range("seconds", 0, open_low=True)


def batched(settings: SimpleClusterSettings, num_envs: int):  # noqa: ANN201 - a Side
    """Return the batch as a side."""
    env = SimpleClusterVectorEnv(settings, num_envs, copy=False)
    state = {"obs": env.reset(seed=0)[0]}

    def work() -> int:
        for _ in range(STEPS):
            state["obs"] = env.step(state["obs"]["action_mask"].argmax(axis=1))[0]
        return STEPS * num_envs

    work()
    return lambda seconds: repeat(work, seconds)


def plain(settings: SimpleClusterSettings):  # noqa: ANN201 - a Side
    """Return the plain-Python cluster as a side."""
    source = jobs_of(settings, 0, "train")
    spec = Clusters(settings, 1, source).spec
    cluster = ReferenceCluster(spec, source.problem.capacity, source.problem.g)
    state = {"number": 0}

    def begin() -> None:
        _, columns, demands, instances, *_ = source.at(np.array([state["number"] % 200]))
        state["number"] += 1
        cluster.reset(columns[0], demands[0], instances[0])

    def work() -> int:
        for _ in range(STEPS):
            if cluster.over():
                begin()
            cluster.step(cluster.mask().index(True))
            slots(cluster)
        return STEPS

    begin()
    return lambda seconds: repeat(work, seconds)


def run(settings: ClusterEnvBenchmark) -> int:
    """Measure and print; 1 if the bound is missed."""
    options = SimpleClusterSettings(action=settings.action)
    sides = {"batch": batched(options, settings.num_envs), "plain": plain(options)}
    rates = interleaved(sides, settings.rounds, settings.seconds)
    found = ratio(rates, "batch", "plain")
    print(f"{options.summary()}; {settings.num_envs} environments")
    for name in sides:
        print(f"  {name:6} {per_second(float(np.median(rates[name])))} of one core, observation and mask")
    print(f"  {found}  {verdict(found.median, BOUND)}, goal {verdict(found.median, GOAL)}")
    return int(found.median < BOUND)
