"""What `--resume` keeps of the stored run, and which differences it refuses.

A resumed run must be the run that an uninterrupted one would have been, so settings come from `run.json`. A
flag that says the same is fine (the same command line plus `--resume` works), a larger or smaller budget too;
anything else is refused with all differences listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedrl.launch.settings import LaunchSettings
from schedrl.launch.workload import filled
from schedrl.learning.run_description import told_of_code
from schedrl.settings import Resolved, Settings, UserError
from schedrl.settings.values import show

BUDGET = ("total_steps", "num_episodes")


def resumed(
    resolved: Resolved, classes: tuple[type[Settings], ...], launch: LaunchSettings, folder: Path
) -> tuple[tuple[LaunchSettings, Any, Any], tuple[str, ...]]:
    """Return the stored run's settings with the budget of the command line, and what to tell the user.

    Raises:
        UserError: the folder holds no complete run, or differences that would make it another run.
    """
    from schedrl.learning.run_folder import check_resumable

    description = check_resumable(folder, changed=launch.accept_changes)
    stored = {"algo": description["algo"], "env": description["env"], "seed": description["seed"]}
    differing = [
        _difference(name, getattr(launch, name), stored[name])
        for name in resolved.given[LaunchSettings]
        if name in stored and getattr(launch, name) != stored[name]
    ]
    chosen: list[Any] = [launch.replace(seed=description["seed"])]
    notes = told_of_code(description)
    for key, cls in zip(("environment", "algorithm"), classes[1:], strict=True):
        settings, wrong, changed = _laid_over(
            cls, description["settings"][key], resolved.changes(cls), folder
        )
        chosen.append(settings)
        differing += wrong
        notes += changed
    if differing:
        raise UserError(
            f"{folder} was trained with other settings: {'; '.join(differing)}. Leave them out to continue "
            "it, or train anew in another --model_dir"
        )
    return (chosen[0], chosen[1], chosen[2]), tuple(notes)


def _laid_over(
    cls: type[Settings], stored: Mapping[str, Any], changes: Mapping[str, Any], folder: Path
) -> tuple[Settings, list[str], list[str]]:
    """Return the settings to go on with, the differences to refuse and those to tell."""
    try:
        settings = cls.from_dict(stored)
    except UserError as error:
        raise UserError(f"{folder / 'run.json'} is not of this version ({error}); train anew") from None
    changes = filled(settings, changes)
    changes = {name: value for name, value in changes.items() if value != getattr(settings, name)}
    free = {name: value for name, value in changes.items() if name in BUDGET}
    wrong = [
        _difference(name, changes[name], getattr(settings, name)) for name in changes.keys() - free.keys()
    ]
    if "num_episodes" in free and "total_steps" not in changes:
        free["total_steps"] = None  # as for a new run: the given budget replaces the other kind
    elif "total_steps" in free and "num_episodes" not in changes:
        free["num_episodes"] = None
    told = [
        f"{name} was {show(getattr(settings, name))}, is now {show(value)}"
        for name, value in sorted(free.items())
        if value != getattr(settings, name)
    ]
    return settings.replace(**free), sorted(wrong), told


def _difference(name: str, now: Any, before: Any) -> str:
    return f"{name} = {show(now)} (the run has {show(before)})"
