"""What `--workload NAME` and `--trace FILE` mean on a command line: which settings it takes.

A workload brings settings of its own, so it must be known before the parser can be built, as with `--algo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from schedrl.envs.declared import lines
from schedrl.learning.run_description import raw_description
from schedrl.settings import Guest, Parser, Settings, UserError, add_arguments, add_own_arguments, peek

HOLDER = "workload_settings"
"""The environment's setting that holds those of the workload."""


def guest_of(
    argv: Iterable[str] | None,
    environment: type[Settings],
    others: Iterable[type[Settings]],
    folder: str | Path | None = None,
) -> Guest | None:
    """Return the settings that the workload on the command line brings, if any.

    Args:
        argv: the command line.
        environment: class of the environment's settings.
        others: the other classes of the command line; their names stay theirs.
        folder: of the run that the command is about; its workload is the default.

    Raises:
        UserError: an unknown workload, or two of them.
    """
    if HOLDER not in environment.kinds():
        return None
    from schedrl.envs.workload_choice import TRACE, generator_settings

    usual = environment.defaults()["workload"]
    first, stored = peek(argv, workload="", trace_file=""), _stored(folder)
    if first.trace_file and first.workload not in ("", TRACE):
        raise UserError(f"--trace is a workload of its own; leave out --workload {first.workload}")
    name = first.workload or (TRACE if first.trace_file else stored.get("workload", usual))
    own = generator_settings(name)
    if own is None:
        return None
    hosts = set(environment.kinds()) - set(environment.OF_OWN)  # type: ignore[attr-defined]
    # exact_load is about a list of jobs; here there are ever more.
    flags = frozenset(own.kinds()).difference(hosts, ["exact_load"], *(cls.kinds() for cls in others))
    base = stored.get(HOLDER) if name == stored.get("workload") else None
    return Guest(own, environment, HOLDER, flags, ("workload", name), base or {})


def _stored(folder: str | Path | None) -> dict[str, Any]:
    """Return the environment of the run in a folder, if any; what is wrong with it comes later."""
    found: Any = raw_description(folder)
    for name in ("settings", "environment"):
        found = found.get(name) if isinstance(found, dict) else None
    environment = dict(found) if isinstance(found, dict) else {}
    right = isinstance(environment.get("workload", ""), str) and isinstance(
        environment.get(HOLDER) or {}, dict
    )
    return environment if right else {}


def add_workload_arguments(parser: Parser, guest: Guest | None) -> None:
    """Add the flags of a workload's own settings; to be called before the other classes are added."""
    if guest is None:
        parser.add_argument(
            "--trace", metavar="FILE", help="jobs of a trace; its options are flags then (see --help with it)"
        )
        return
    add_arguments(parser, guest.cls, presets={}, without=set(guest.cls.kinds()) - guest.flags)
    add_own_arguments(parser, guest.cls)


def filled(settings: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `changes` with the workload's settings whole: those given over those of `settings`."""
    changes = dict(changes)
    if isinstance(changes.get(HOLDER), Mapping):
        asked = {name: changes[name] for name in ("workload", HOLDER) if name in changes}
        changes[HOLDER] = getattr(settings.replace(**asked), HOLDER)
    return changes


def data_of(environment: Any) -> dict[str, str]:
    """Return path -> hash of the files that an environment's jobs come from."""
    return environment.data() if hasattr(environment, "data") else {}


def described(environment: Any) -> list[str]:
    """Say what jobs come, where they are not the environment's own, and what is known of the future.

    Raises:
        UserError: none can be had.
    """
    if HOLDER not in environment.kinds():
        return []
    return [*environment.described(), *lines(environment.declares())]
