"""From the command line of a comparison to a checked plan; only reads from the disk.

The environment's settings are given once for all; a setting that several algorithms have is one flag and sets
all of them (`--gamma 0.999`), and `--ppo.gamma 0.999`, or the table `[ppo]` of a TOML file, sets one alone.
A preset (`--preset deeprm-70,ppo-steady`) sets the environment or the algorithm whose preset it is.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.launch.able import able_in, refuse_privileged, refuse_teacher, refuse_unable
from schedrl.launch.comparing.settings import CompareSettings
from schedrl.launch.plan import Plan
from schedrl.launch.settings import LaunchSettings
from schedrl.launch.workload import add_workload_arguments, guest_of
from schedrl.settings import (
    Guest,
    Parser,
    Resolved,
    Settings,
    UserError,
    add_arguments,
    add_own_arguments,
    check_folder_writable,
    peek,
    presets_of,
    resolve,
    section,
)

DECISIONS = 2_000_000
"""Budget of every run where none is given."""
BUDGET = ("total_steps", "num_episodes")


@dataclass(frozen=True)
class ComparisonPlan:
    """A comparison, decided: who, on what, how long, where to."""

    settings: CompareSettings
    environment: Any
    algorithms: Mapping[str, Any]
    """Name -> settings, in the order of the report."""
    representation: str | None
    """What was asked to be observed; None leaves each network its own."""
    baselines: tuple[str, ...]
    folder: Path
    command: str
    """The command line, to be typed again."""
    numbered: bool = False
    """Whether the folder is the default one, and may get a number."""

    def with_budget(self, decisions: int) -> ComparisonPlan:
        """Return the plan with one budget, in decisions, for every run."""
        changed = {
            name: settings.replace(total_steps=decisions, num_episodes=None)
            for name, settings in self.algorithms.items()
        }
        return replace(self, algorithms=changed)

    @property
    def budget(self) -> int:
        """Return the decisions of every run."""
        return next(iter(self.algorithms.values())).total_steps

    def runs(self) -> tuple[Plan, ...]:
        """Return every training run, all algorithms with the first seed before those with the second."""
        return tuple(
            self._run(algo, seed) for seed in self.settings.training_seeds for algo in self.algorithms
        )

    def _run(self, algo: str, seed: int) -> Plan:
        settings, environment = self.algorithms[algo], self.environment
        if self.representation is None and getattr(settings, "network", None) == "image":
            environment = environment.replace(representation="image")
        folder = self.folder / algo / f"seed_{seed}"
        launch = LaunchSettings(
            algo=algo, env=self.settings.env, seed=seed, model_dir=str(folder), no_eval=True
        )
        return Plan(launch, environment, settings, folder)


def read_plan(argv: Iterable[str] | None) -> ComparisonPlan:
    """Turn a command line into a plan; with `num_episodes`, its budget is still to be converted.

    Raises:
        UserError: whatever is unknown, out of range or contradictory.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    first = peek(argv, algorithms="", env="deeprm")
    env = registry.find("environment", first.env)
    algorithms = _algorithms(first.algorithms, env)
    own = {name: registry.get("algorithm_settings", name) for name in algorithms}
    environment = registry.get("environment_settings", env)
    guest = guest_of(argv, environment, (CompareSettings, *own.values()))
    args = make_parser(environment, own.values(), guest).parse_args(_checked(argv, own.values(), guest))
    if "num_jobs" in environment.kinds() and hasattr(args, "num_jobs"):
        # The environment's jobs, not runs at a time: those are --compare.num_jobs there.
        setattr(args, f"{section(environment)}.num_jobs", vars(args).pop("num_jobs"))
    classes = (CompareSettings, environment, *own.values())
    absent = {section(registry.get("algorithm_settings", name)) for name in registry.names("algorithm")}
    absent -= {section(cls) for cls in own.values()}
    presets = presets_by_class(environment, *own.values())
    resolved = resolve(classes, args, presets, ignored=absent, guest=guest)
    settings = resolved[CompareSettings].replace(env=env, algorithms=tuple(algorithms))
    _refuse_contradictions(resolved, own)
    for cls in own.values():
        refuse_teacher(resolved[environment], resolved[cls])
    given = resolved.given[environment]
    chosen = {name: _networked(resolved, environment, cls) for name, cls in own.items()}
    for name, algorithm in chosen.items():
        refuse_privileged(resolved[environment], name, algorithm)
    plan = ComparisonPlan(
        settings,
        resolved[environment],
        chosen,
        resolved[environment].representation if "representation" in given else None,
        _baselines(settings, resolved[environment], "baselines" in resolved.given[CompareSettings]),
        check_folder_writable(settings.output_dir),
        shlex.join(["python", "compare_algorithms.py", *argv]),
        "output_dir" not in resolved.given[CompareSettings],
    )
    return plan if settings.num_episodes else plan.with_budget(settings.total_steps or DECISIONS)


def _networked(resolved: Resolved, environment: type[Settings], cls: type[Settings]) -> Any:
    """Return the settings of an algorithm with the network that the environment asks for by default."""
    usual = getattr(environment, "network", None)
    if usual is None or "network" not in cls.kinds() or "network" in resolved.given[cls]:
        return resolved[cls]
    return resolved[cls].replace(network=usual)


def make_parser(
    environment: type[Settings], algorithms: Iterable[type[Settings]] = (), guest: Guest | None = None
) -> Parser:
    """Return the parser for one environment, some algorithms and one workload."""
    algorithms = tuple(algorithms)
    parser = Parser(
        prog="compare_algorithms.py",
        description="Train several algorithms on the same jobs and budget, or use finished runs again; "
        "measure all on the same unseen jobs; write comparison_report.pdf, .html and .csv.",
        epilog="A flag sets every algorithm that has the setting; --ppo.gamma 0.99 sets PPO's alone. "
        f"Algorithms: {', '.join(registry.names('algorithm'))}. Exit codes: 0 ok, 1 a run failed (the "
        "others are reported), 2 bad input, 42 or 130 interrupted (finished runs are kept, the same "
        "command goes on).",
    )
    add_workload_arguments(parser, guest)
    add_arguments(parser, CompareSettings, environment, *algorithms, presets=_named(environment, *algorithms))
    for cls in algorithms:
        add_own_arguments(parser, cls, without=BUDGET)
    add_own_arguments(parser, CompareSettings, without=set(CompareSettings.kinds()) - {"num_jobs"})
    return parser


def presets_by_class(*classes: type[Settings]) -> dict[str, dict[str, Any]]:
    """Return preset -> class's table -> values: the presets of an algorithm are not for the others."""
    found: dict[str, dict[str, Any]] = {}
    for cls in classes:
        for name, values in presets_of(cls).items():
            own = {key: value for key, value in values.items() if key in cls.kinds()}
            rest = {key: value for key, value in values.items() if key not in own}
            found[name] = found.get(name, {}) | rest | {section(cls): own}
    return found


def _named(*classes: type[Settings]) -> dict[str, dict[str, Any]]:
    return {name: {} for name in presets_by_class(*classes)}


def _algorithms(text: str, env: str) -> list[str]:
    """Return our names of the algorithms asked for, in that order, or of all; each once."""
    asked = [name for name in re.split(r"[,\s\[\]'\"]+", text) if name and name.lower() != "none"]
    names = list(dict.fromkeys(registry.find("algorithm", name) for name in asked)) or able_in(env)
    refuse_unable(names, env)
    return names


def _checked(argv: list[str], classes: Iterable[type[Settings]], guest: Guest | None) -> list[str]:
    """Return `argv`, refused with a better word than "unknown option" where a flag names one algorithm."""
    here = {section(cls) for cls in classes}
    workload = "" if guest is None else section(guest.cls)
    for argument in argv:
        table, dot, name = argument.removeprefix("--").partition("=")[0].partition(".")
        if not argument.startswith("--") or not dot or table.lower() in (workload, section(CompareSettings)):
            continue
        known = registry.find("algorithm", table)
        if table.lower() not in here:
            raise UserError(f"{argument} sets {known}, which isn't compared; add it to --algorithms")
        if name.replace("-", "_") in (*BUDGET, "episodes"):
            raise UserError(f"{argument}: the budget is the same for all; give --{name}")
    return argv


def _baselines(settings: CompareSettings, environment: Any, asked: bool) -> tuple[str, ...]:
    """Return our names of the heuristics that can play."""
    if settings.env == "simple_cluster":
        from schedrl.evaluation.cluster.sequences import known_rules, standard_rules  # late: NumPy, Numba

        return known_rules(settings.baselines) if asked else standard_rules()
    names = tuple(dict.fromkeys(registry.find("heuristic", name) for name in settings.baselines))
    if environment.termination != "continuing" or "defer" not in names:
        return names
    if asked:
        raise UserError("defer, of baselines, waits for arrivals to end, which they don't here; leave it out")
    return tuple(name for name in names if name != "defer")


def _refuse_contradictions(resolved: Resolved, own: Mapping[str, type[Settings]]) -> None:
    given = resolved.given[CompareSettings]
    if "seed" in given and "seeds" in given:
        raise UserError("seed and seeds are both given; keep one of them")
    for name, cls in own.items():
        for key in BUDGET:
            asked = getattr(resolved[CompareSettings], key)
            source = resolved.given[cls].get(key, "preset")
            if not source.startswith("preset") and getattr(resolved[cls], key) != asked:
                raise UserError(f"{source}: {key} of {name}: the budget is the same for all; give it once")
