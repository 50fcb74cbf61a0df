"""Trained policies on an operator's jobs and machines: they decide in the environment they learned in."""

from __future__ import annotations

import csv
import math
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.draws import asking
from schedrl.envs.simple_cluster.scales import as_scales, settle
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.launch.replay.data import Data
from schedrl.launch.replay.estimating import with_own_medians
from schedrl.learning.selection import GREEDY
from schedrl.settings import UserError
from schedrl.sim.cluster.schedule import Schedule
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

MACHINES = "cluster.csv"
DECISIONS_PER_JOB = 10
"""After so many on average a replay is cut off: only a policy that never lets time pass takes them."""


class Played(NamedTuple):
    """A schedule and what it took."""

    schedule: Schedule
    seconds: float
    latency: float | None
    """Seconds in the policy for each decision."""
    invalid_actions: int


class Model(NamedTuple):
    """A trained policy and the environment of an operator's jobs and machines, which fit each other."""

    folder: str
    policy: Any
    env: Any
    settings: Any
    """Of the environment."""
    facts: tuple[str, ...]
    """Sentences on what it is shown."""
    place: tempfile.TemporaryDirectory[str]
    """Holds the list of machines, which the environment reads at every reset; goes with this object."""


def load(folder: str, data: Data) -> Model:
    """Read a trained policy and make its environment.

    Args:
        folder: of the training run.
        data: jobs and machines.

    Raises:
        UserError: the policy was trained on another environment, or on another number of machines.
    """
    from schedrl.envs.simple_cluster.environment import SimpleClusterEnv
    from schedrl.learning.numpy_policy import load_policy

    policy, run = load_policy(folder)
    if run.get("env") != "simple_cluster":
        raise UserError(f"{folder} was trained on {run.get('env')}; a replay takes models of simple_cluster")
    settings = SimpleClusterSettings.from_dict(run["settings"]["environment"])
    place = tempfile.TemporaryDirectory()
    assumed = settle(policy, settings)
    scales = as_scales(policy.scales, f"scales of {Path(folder) / 'policy.npz'}")
    settings = _settings(settings, policy, data, Path(place.name))
    env = SimpleClusterEnv(settings, workload=data.workload, scales=scales)
    _check_shapes(folder, policy, env, len(data.machines))
    obs, _ = env.reset(seed=0)
    env.step(policy.predict(obs))  # compiles where that wasn't done before
    fact = (
        f"{folder} is shown times in the scales of its training, a job every "
        f"{scales.gap_on(len(data.machines)):.3g} and {scales.mean_duration:.3g} long on average"
        + (f" ({assumed})" if assumed else "")
    )
    return Model(folder, policy, env, settings, (fact,), place)


def play(model: Model, data: Data) -> Played:
    """Play a trained policy, greedily or sampled as its training chose, on all jobs."""
    if data.own_medians:
        model = _on(model, with_own_medians(data.workload, lambda jobs, now: _finishes(model, jobs, now)))
    started = time.perf_counter()
    thinking, decisions, invalid = _play(model)
    seconds = time.perf_counter() - started
    schedule = model.env.schedule()._replace(rule=model.folder, machines=data.machines)
    return Played(schedule, seconds, thinking / decisions if decisions else None, invalid)


def _play(model: Model, until: float = math.inf) -> tuple[float, int, int]:
    """Play up to a moment; return the seconds in the policy, the decisions, and how many were illegal."""
    policy, env = model.policy, model.env
    ask, alone = asking(policy, policy.play == GREEDY, 0), np.zeros(1, np.int64)
    obs, _ = env.reset(seed=0)
    thinking, decisions, invalid, over = 0.0, 0, 0, False
    while not over:
        before = time.perf_counter()
        action = ask(obs, alone, decisions)
        thinking += time.perf_counter() - before
        obs, _, terminated, truncated, info = env.step(action)
        decisions, invalid = decisions + 1, info["illegal_actions"]
        over = terminated or truncated or info["time"] >= until
    return thinking, decisions, int(invalid)


def _on(model: Model, workload: Workload) -> Model:
    """Return the same model on the same jobs with other estimates."""
    return model._replace(env=type(model.env)(model.settings, workload=workload, scales=model.policy.scales))


def _finishes(model: Model, workload: Workload, now: float) -> np.ndarray:
    """Return when each job finished, as `estimating` wants it."""
    there = _on(model, workload)
    _play(there, now)
    return there.env.schedule().finish


def _settings(settings: SimpleClusterSettings, policy: Any, data: Data, output: Path) -> Any:
    """Return the training run's settings with these machines and a bound that lets all jobs end."""
    usual = settings.defaults()
    write_machines(data.machines, output / MACHINES)
    return settings.replace(
        cluster=str(output / MACHINES),
        num_servers=usual["num_servers"],
        server=usual["server"],
        termination="all_done",
        episode_max_decisions=DECISIONS_PER_JOB * len(data.workload) + 100,
    ).as_played(policy.representation)


def _check_shapes(folder: str, policy: Any, env: Any, machines: int) -> None:
    shown = {name: space.shape for name, space in env.observation_space.items()}
    for name, shape in policy.shapes_on(shown).items():
        asked = shown[name]
        if tuple(shape) != asked:
            raise UserError(
                f"{folder} was trained with {name} {list(shape)}, this cluster of {machines} machines shows "
                f"{list(asked)}; train on it: launcher.py --env simple_cluster --cluster FILE"
            )


def write_machines(machines: Machines, path: Path) -> None:
    """Write machines as a CSV that `schedrl.workload.cluster_file.read_cluster` reads."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "model", *(resource.name for resource in machines.resources)])
        for name, model, amounts in zip(
            machines.name, machines.model, machines.capacity.tolist(), strict=True
        ):
            writer.writerow([name, model, *map(repr, amounts)])
