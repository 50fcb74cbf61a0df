"""What `--resume` keeps of the stored run, and which differences it refuses.

A resumed run must be the run that an uninterrupted one would have been, so settings come from `run.json`. A
flag that says the same is fine (the same command line plus `--resume` works), a larger or smaller budget too;
anything else is refused with all differences listed.
"""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from schedrl.launch.settings import LaunchSettings
from schedrl.launch.workload import filled
from schedrl.learning.budget import Budget, Limits
from schedrl.learning.run_description import told_of_code
from schedrl.settings import Resolved, Settings, UserError, check_plain_file
from schedrl.settings.values import show

FREE = Limits._fields
"""Settings that may change: the budget, and over what schedules go."""


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
    former = classes[2].from_dict(description["settings"]["algorithm"])
    chosen[2], told = _scheduled(former, chosen[2], spent_in(folder), launch.keep_schedule)
    return (chosen[0], chosen[1], chosen[2]), (*notes, *told)


def _scheduled(former: Any, now: Any, spent: Spent, keep: bool) -> tuple[Any, list[str]]:
    """Return the settings with the former schedule if it is to be kept, and what another budget changes.

    Args:
        former: settings of the algorithm up to here.
        now: those with the budget that was asked for.
        spent: by the updates up to the checkpoint.
        keep: the schedule of `former`.
    """
    if Budget.of(now).limits == Budget.of(former).limits:
        return now, []
    last = _at(former, spent.before).scheduled
    if keep:
        end = _at(former, spent.all)
        step = end.scheduled - last
        share = last if end.progress >= 1.0 else min(former.schedule_share, 1.0 - step)
        own = former.schedule_steps is not None or former.schedule_episodes is not None
        steps, episodes = (
            (former.schedule_steps, former.schedule_episodes)
            if own
            else (former.total_steps, former.num_episodes)
        )
        now = now.replace(schedule_steps=steps, schedule_episodes=episodes, schedule_share=share)
    before, after = former.rates(last), now.rates(_at(now, spent.all).scheduled)
    moved = [
        f"{name} from {before[name]:.3g} to {after[name]:.3g}"
        for name in before
        if not math.isclose(before[name], after[name], rel_tol=1e-6)
    ]
    if keep:
        return now, ["the schedule of the former budget is kept" + (": " + ", ".join(moved) if moved else "")]
    if not moved:
        return now, []
    return now, [
        f"schedules span the new budget now: with the next update {', '.join(moved)}. So this will not be "
        "the run that had this budget from its start; --keep_schedule keeps the former schedule"
    ]


class Spent(NamedTuple):
    """Decisions and episodes before the last update up to a checkpoint, and with it."""

    before: tuple[int, int]
    all: tuple[int, int]


def _at(settings: Any, spent: tuple[int, int]) -> Budget:
    budget = Budget.of(settings)
    budget.spend(*spent)
    return budget


def spent_in(folder: Path) -> Spent:
    """Return what the updates of a run have spent up to its newest checkpoint, as its metrics say."""
    from schedrl.learning.run_folder import newest_checkpoint
    from schedrl.learning.shards import number_of

    newest = newest_checkpoint(folder)
    assert newest is not None
    decisions = number_of(newest)
    rows = [(0, 0), (0, 0)]
    with contextlib.suppress(OSError, ValueError, KeyError):
        check_plain_file(folder / "metrics.csv")
        for row in csv.DictReader((folder / "metrics.csv").read_text().splitlines()):
            if (at := int(float(row["decisions"]))) <= decisions:
                rows = [rows[-1], (at, int(float(row["episodes"])))]
    return Spent(rows[0], (decisions, rows[1][1]))


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
    free = {name: value for name, value in changes.items() if name in FREE}
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
