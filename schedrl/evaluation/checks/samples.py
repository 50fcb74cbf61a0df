"""Random worlds of the environments that there are, in every representation: what a leak test draws from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.deeprm.environment import DeepRMEnv
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.envs.simple_cluster.environment import SimpleClusterEnv
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.evaluation.checks.leaks import Make
from schedrl.evaluation.checks.worlds import World
from schedrl.workload.types import UNKNOWN, Resource, Workload

Draw = Callable[[np.random.Generator], tuple[Make, World]]
CLUSTER: tuple[dict[str, Any], ...] = (
    {},
    {"action": "job_machine"},
    {"action": "job_machine", "queue_order": "priority", "num_job_slots": 4},
    {"action": "job_machine", "queue_order": "arrival", "decide": "every_event", "allow_reject": True},
    {"action": "job_machine", "wait_limit": 60.0, "num_servers": 3},
    {"action": "machine", "wait_when_idle": True},
    {"action": "machine", "decide": "every_event", "mask": False},
    {"action": "elastic"},
    {"action": "elastic", "allow_reject": True, "reward": "operations"},
    {"reward": "balanced", "queue_order": "priority"},
)
"""Settings of the cluster environment that worlds have in turn."""
DEEPRM: tuple[dict[str, Any], ...] = (
    {},
    {"idle_limit": None, "mask": "physics", "allow_reservation": True},
    {"num_job_slots": 3, "backlog_size": 20},
    {"objective": "completion_time", "num_job_slots": 5},
    {"termination": "no_new_job"},
    {"quirks": "all", "allow_reservation": True, "mask": "physics", "max_job_duration": 15},
)
FEWEST, MOST = 24, 48
"""Jobs of a world."""
BEFORE, BEHIND = 4, 3
"""Jobs at least on either side of the moment."""


class Kind(NamedTuple):
    """An environment as it is tested."""

    env: str
    representation: str
    remark: str
    draw: Draw

    @property
    def name(self) -> str:
        """What a table calls it."""
        return " ".join(filter(None, (self.env, self.representation, self.remark)))


def cluster_world(
    rng: np.random.Generator,
    representation: str,
    estimates: bool = True,
    env: Callable[..., Any] = SimpleClusterEnv,
    **changes: Any,
) -> tuple[Make, World]:
    """Draw jobs for the cluster environment, and how it is set.

    Args:
        rng: random numbers.
        representation: of the environment.
        estimates: whether the jobs have some; they are wrong.
        env: class of the environment.
        **changes: settings that all have.
    """
    settings = SimpleClusterSettings.from_dict(
        {**CLUSTER[int(rng.integers(len(CLUSTER)))], "representation": representation, **changes}
    )
    return _maker(env, settings), _at_a_moment(cluster_jobs(rng, estimates), rng)


def cluster_jobs(rng: np.random.Generator, estimates: bool = True) -> Workload:
    """Draw jobs that crowd five servers: some gangs, priorities, deadlines, several at a time."""
    count = int(rng.integers(FEWEST, MOST + 1))
    arrival = np.cumsum(np.where(rng.random(count) < 0.2, 0.0, rng.exponential(8.0, count)))
    duration = rng.lognormal(4.0, 1.2, count)
    demand = np.column_stack(
        [rng.integers(1, 7, count), rng.integers(1, 17, count), rng.choice([0, 0, 0, 0.5, 1, 2], count)]
    ).astype(float)
    guess = duration * np.exp(rng.standard_normal(count)) if estimates else np.full(count, UNKNOWN)
    return Workload(
        arrival,
        duration,
        demand,
        [Resource(name) for name in ("cpu", "memory", "gpu")],
        "s",
        guess,
        instances=rng.choice([1, 1, 1, 1, 2, 3], count),
        priority=rng.integers(0, 4, count),
        deadline=np.where(rng.random(count) < 0.3, arrival + 300.0, UNKNOWN),
    )


def deeprm_world(
    rng: np.random.Generator, representation: str, env: Callable[..., Any] = DeepRMEnv, **changes: Any
) -> tuple[Make, World]:
    """Draw jobs for DeepRM in whole steps and units, and how it is set; see `cluster_world`."""
    variant = {**DEEPRM[int(rng.integers(len(DEEPRM)))], **changes}
    settings = DeepRMSettings.from_dict({**variant, "representation": representation})
    count = int(rng.integers(FEWEST, MOST + 1))
    jobs = Workload(
        np.cumsum(rng.choice([0, 1, 1, 2, 4], count)),
        rng.integers(1, settings.max_job_duration + 1, count),
        rng.integers(1, settings.max_job_demand + 1, (count, settings.num_resources)),
        [Resource(f"resource {number}") for number in range(settings.num_resources)],
    )
    return _maker(env, settings), _at_a_moment(jobs, rng)


def _at_a_moment(jobs: Workload, rng: np.random.Generator) -> World:
    """Choose a moment between two arrivals or at one."""
    last = int(rng.integers(BEFORE, len(jobs) - BEHIND))
    moment = float(jobs.arrival[last])
    if jobs.arrival[-1] <= moment:  # all that is left comes at once with it
        return World(jobs, float(jobs.arrival[0]))
    following = float(jobs.arrival[jobs.arrival > moment][0])
    return World(jobs, moment + float(rng.choice([0.0, 0.5])) * (following - moment))


def _maker(env: Callable[..., Any], settings: Any) -> Make:
    return lambda jobs: env(settings, workload=jobs)


KINDS: tuple[Kind, ...] = (
    *(Kind("simple_cluster", r, "", partial(cluster_world, representation=r)) for r in ("slots", "state")),
    *(
        Kind("simple_cluster", r, remark, partial(cluster_world, representation=r, **more))
        for r in ("slots", "state")
        for remark, more in (
            ("continuing", {"termination": "continuing"}),
            ("no estimates", {"estimates": False}),
        )
    ),
    *(
        Kind("deeprm", r, "", partial(deeprm_world, representation=r))
        for r in ("slots", "compact", "image", "state")
    ),
    Kind(
        "deeprm",
        "slots",
        "continuing",
        partial(deeprm_world, representation="slots", termination="continuing"),
    ),
)
"""Both environments in all representations."""
