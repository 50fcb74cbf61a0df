"""From a command line to a checked plan.

What a user can get wrong is refused here, before anything is written or anything slow is imported.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from schedrl import registry
from schedrl.launch import resuming, workers
from schedrl.launch.able import refuse_privileged, refuse_teacher, refuse_unable
from schedrl.launch.distributed.cluster import cluster_of
from schedrl.launch.folders import chosen_folder
from schedrl.launch.settings import LaunchSettings
from schedrl.launch.workload import add_workload_arguments, data_of, guest_of
from schedrl.learning.run_description import named_in
from schedrl.settings import (
    Guest,
    Parser,
    Resolved,
    Settings,
    UserError,
    add_arguments,
    peek,
    resolve,
)
from schedrl.settings.claims import Claim

DEBUG = {
    "num_envs": "1",
    "pretrain_episodes": "5",
    "pretrain_epochs": "1",
    "num_steps": "16",
    "n_step": "2",
    "learning_starts": "1",
    "total_steps": "48",
    "use_tf_function": "False",
    "check_numerics": "True",
    "validate_every": "0",
}
"""What debug mode sets: a run that can be read, one environment, no graph, every number checked."""


@dataclass(frozen=True)
class Plan:
    """One training run, decided: what, with which settings, where to."""

    launch: LaunchSettings
    environment: Any
    algorithm: Any
    folder: Path | None
    """None: nothing is kept (debug mode without --model_dir)."""
    notes: tuple[str, ...] = ()
    """What the user should know about how this was decided."""
    claim: Claim | None = None
    """That nobody else writes into the folder, while the plan is carried out."""

    @property
    def described(self) -> dict[str, Any]:
        """Return what `run.json` keeps, in JSON's types."""
        names = {"algo": self.launch.algo, "env": self.launch.env}
        data = {"data": files} if (files := data_of(self.environment)) else {}
        settings = {"environment": self.environment.to_dict(), "algorithm": self.algorithm.to_dict()}
        return names | settings | data

    @property
    def recorded(self) -> dict[str, Any]:
        """Return `described` and what was worked out from it, which a policy needs wherever it plays."""
        scales = self.environment.scales() if hasattr(self.environment, "scales") else {}
        return self.described | ({"scales": scales} if scales else {})


def read_plan(argv: Iterable[str] | None) -> Plan:
    """Turn a command line into a plan; only reads from the disk.

    Raises:
        UserError: whatever is unknown, out of range, missing, damaged or in the way.
    """
    argv = None if argv is None else list(argv)
    first = peek(argv, algo="", env="", model_dir="", mode="")
    stored = named_in(first.model_dir)
    algo = registry.find("algorithm", first.algo or stored.get("algo", "ppo"))
    env = registry.find("environment", first.env or stored.get("env", "deeprm"))
    refuse_unable([algo], env)
    classes = (
        LaunchSettings,
        registry.get("environment_settings", env),
        registry.get("algorithm_settings", algo),
    )
    guest = guest_of(argv, classes[1], (LaunchSettings, classes[2]), first.model_dir)
    args = make_parser(classes, guest).parse_args(argv)
    if first.mode == "debug":
        _shrink(args, classes[2])
    resolved = resolve(classes, args, guest=guest)
    launch = resolved[LaunchSettings].replace(algo=algo, env=env)
    if launch.mode == "distributed":
        cluster_of(launch, os.environ)
    _refuse_resumed_debugging(launch)
    folder, notes = chosen_folder(launch)
    if launch.resume:
        assert folder is not None
        chosen, more = resuming.resumed(resolved, classes, launch, folder)
        notes += more
    else:
        chosen = (launch, *_own_choices(resolved, classes))
        refuse_teacher(*chosen[1:])
        refuse_privileged(chosen[1], algo, chosen[2])
    if launch.mode == "distributed":
        from schedrl.launch.distributed.shares import refuse_unfit  # NumPy takes a moment

        plan = Plan(*chosen, folder, notes)
        refuse_unfit(plan, cluster_of(launch, os.environ))
        return plan
    count, reason = workers.chosen(*chosen)
    launch = chosen[0].replace(num_workers=count)
    return Plan(launch, *chosen[1:], folder, (*notes, f"num_workers {count}: {reason}"))


def make_parser(classes: Iterable[type[Settings]], guest: Guest | None = None) -> Parser:
    """Return the launcher's parser for the settings of one environment, one algorithm and one workload."""
    parser = Parser(
        prog="launcher.py",
        description="Train one algorithm on one environment, compare it with heuristics on unseen jobs, draw "
        "the result. The flags below are those of the chosen --algo, --env and --workload.",
        epilog=f"Algorithms: {', '.join(registry.names('algorithm'))}. "
        f"Environments: {', '.join(registry.names('environment'))}. Exit codes: 0 ok, 1 failure, 2 bad "
        "input, 42 preempted (saved, run again with --resume), 130 interrupted (saved).",
    )
    add_workload_arguments(parser, guest)
    add_arguments(parser, *classes)
    return parser


def _refuse_resumed_debugging(launch: LaunchSettings) -> None:
    for name in ("keep_schedule", "accept_changes"):
        if getattr(launch, name) and not launch.resume:
            raise UserError(f"{name} is about a run that goes on; give --resume too, or leave it out")
    if launch.mode == "debug" and launch.resume:
        raise UserError("--mode debug starts afresh; leave out --resume, or use --mode local")


def _shrink(args: argparse.Namespace, algorithm: type[Settings]) -> None:
    """Fill in debug mode's settings as if typed, below those that were."""
    if getattr(args, "num_envs", "1") != "1":
        raise UserError("--mode debug plays one environment; leave out --num_envs")
    # A rollout that was given a length is one batch; a budget of episodes is not to be cut short.
    values = DEBUG | {"batch_size": getattr(args, "num_steps", DEBUG["num_steps"])}
    if "episodes_per_sequence" in algorithm.kinds():  # the smallest group; the first of the two is shown
        values |= {"num_envs": "2", "episodes_per_sequence": "2"}
    if hasattr(args, "num_episodes"):
        del values["total_steps"]
    for name, value in values.items():
        if name in algorithm.kinds() and not hasattr(args, name):
            setattr(args, name, value)


def _own_choices(resolved: Resolved, classes: tuple[type[Settings], ...]) -> tuple[Any, Any]:
    """Return the settings of environment and algorithm with the defaults that follow from what was given."""
    environment, algorithm = resolved[classes[1]], resolved[classes[2]]
    if "num_episodes" in resolved.given[classes[2]] and "total_steps" not in resolved.given[classes[2]]:
        algorithm = algorithm.replace(total_steps=None)  # the default must not cut a given budget short
    usual = getattr(environment, "network", None)
    if usual is not None and "network" in algorithm.kinds() and "network" not in resolved.given[classes[2]]:
        algorithm = algorithm.replace(network=usual)
    pictured = getattr(algorithm, "network", None) == "image" and "image" in get_args(
        environment.kinds().get("representation")
    )
    if pictured and "representation" not in resolved.given[classes[1]]:
        environment = environment.replace(representation="image")
    return environment, algorithm
