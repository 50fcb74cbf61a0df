"""A worker's share of a run: its part of what counts for all workers together, and random streams of its own.

`num_envs`, `batch_size` and the like are totals: a run of N workers learns from the same amount of experience
per update as one process, so settings chosen for one process suit N.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedrl import registry
from schedrl.launch.distributed.cluster import Cluster
from schedrl.launch.plan import Plan
from schedrl.launch.settings import LaunchSettings
from schedrl.settings import Settings, UserError

STREAM = 11
"""Spawn key of the workers' seeds."""
EVENLY = ("num_envs",)
"""Totals that must be divisible; others are rounded."""


def refuse_unfit(plan: Plan, cluster: Cluster) -> None:
    """Raise `UserError` if a plan can't be carried out by a cluster."""
    launch = plan.launch
    refuse_undivided(launch, type(plan.algorithm))
    if (launch.num_workers or 1) > 1:
        raise UserError(f"--num_workers is {launch.num_workers}, but the cluster says how many; leave it out")
    if not cluster.spawned and launch.model_dir is None:
        raise UserError("--mode distributed over hosts needs --model_dir: a folder that all of them share")
    if plan.algorithm.xla:
        raise UserError("--xla True can't be compiled with an average over workers inside; leave it out")
    if launch.profile:
        raise UserError("--profile records one process; use it with --mode local")
    for index in range(cluster.size):
        share_of(plan, index, cluster.size)


def refuse_undivided(launch: LaunchSettings, cls: type[Settings]) -> None:
    """Raise `UserError` if an algorithm is not made for averaged gradients."""
    if getattr(cls, "divided", ()):
        return
    kinds = {name: registry.get("algorithm_settings", name) for name in registry.names("algorithm")}
    able = [name for name, kind in kinds.items() if getattr(kind, "divided", ())]
    why = (
        "is asynchronous by definition: its workers never wait; use --mode local --num_workers N"
        if "num_workers" in cls.kinds()
        else "was not made for it: its settings name nothing to divide (docs/extending.md)"
    )
    raise UserError(f"--mode distributed: {launch.algo} {why}, or choose --algo {' or '.join(able)}")


def share_of(plan: Plan, index: int, workers: int) -> Plan:
    """Return what one of the workers carries out.

    Raises:
        UserError: the environments can't be divided by the number of workers.
    """
    algorithm = plan.algorithm
    changes = {}
    for name in algorithm.divided:
        total = getattr(algorithm, name)
        if total is None:
            continue
        if name in EVENLY and total % workers:
            raise UserError(
                f"{name} is {total}, which {workers} workers can't divide among them; make it a multiple of "
                f"{workers}"
            )
        changes[name] = max(1, round(total / workers))
    try:
        algorithm = algorithm.replace(**changes)
    except UserError as error:
        raise UserError(f"a worker's share of {workers}: {error}") from None
    seed = plan.launch.seed
    if index:
        drawn = np.random.SeedSequence(seed, spawn_key=(STREAM, index)).generate_state(1)[0]
        seed = int(drawn % 2**31)
    return replace(plan, algorithm=algorithm, launch=plan.launch.replace(seed=seed))
