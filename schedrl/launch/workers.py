"""How many processes step the environments, and why: the rule of the default, and what is refused.

A3C's workers learn, each by itself, and results depend on their timing: 1, so that a run repeats and resumes
bit for bit. Those of the others step their share of `num_envs`, and only the time changes: 1, or where the
environment's settings say `costly_steps`, a core less than there are.
"""

from __future__ import annotations

import os
from typing import Any

from schedrl.launch.settings import LaunchSettings
from schedrl.settings import Settings, UserError


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def of_its_own(algorithm: Settings | type[Settings]) -> bool:
    """Tell whether the algorithm is made of workers itself."""
    return "num_workers" in algorithm.kinds()


def chosen(launch: LaunchSettings, environment: Settings, algorithm: Any) -> tuple[int, str]:
    """Return the number of workers and the reason for it.

    Raises:
        UserError: more workers than there is work for.
    """
    if launch.mode == "debug" and (launch.num_workers or 1) > 1:
        raise UserError("--mode debug plays one environment in one process; leave out --num_workers")
    here = f"here are {cores()} cores" if cores() > 1 else "here is one core"
    if of_its_own(algorithm):
        count = algorithm.num_workers
        if count > 1:
            return count, f"as many processes ({here}); results depend on their timing{_crowded(count)}"
        return 1, (
            "this process alone, so that the run repeats and resumes bit for bit; with many cores more "
            f"workers learn in less time ({here})"
        )
    if launch.num_workers is None:
        return _usual(launch.env, environment, here)
    if launch.num_workers > algorithm.num_envs:
        raise UserError(
            f"--num_workers is {launch.num_workers}, but there are only num_envs {algorithm.num_envs} "
            "environments to share; lower it"
        )
    if launch.num_workers == 1:
        return 1, "this process steps the environments itself"
    count = launch.num_workers
    return count, (
        f"as many processes step the environments ({here}); only the time changes{_crowded(count)}"
    )


def _crowded(count: int) -> str:
    """Return a warning where processes outnumber the cores."""
    if count <= cores():
        return ""
    return (
        f". Warning: {count / cores():,.0f} processes share a core, which saves no time, and each takes "
        f"seconds to start and memory of its own; --num_workers {cores()} uses all cores"
    )


def _usual(env: str, environment: Settings, here: str) -> tuple[int, str]:
    if not getattr(environment, "costly_steps", False):
        return 1, (
            f"{env} is stepped by compiled code, a small part of a run, of which more processes could save "
            f"little ({here})"
        )
    count = max(1, cores() - 1)
    if count == 1:
        return 1, f"one core is for learning, and {here}"
    return count, f"{env} is costly to step, and one core is for learning ({here}); only the time changes"


def split(env: Any, launch: LaunchSettings, algorithm: Settings) -> Any:
    """Return the batch of environments, split over processes where several step it."""
    if launch.num_workers in (None, 1) or of_its_own(algorithm):
        return env
    from schedrl.learning.split_env import SplitVectorEnv

    return SplitVectorEnv(
        env,
        launch.num_workers,
        seed=launch.seed,
        timeout=launch.worker_timeout,
        max_restarts=launch.max_restarts,
        copy=False,
    )
