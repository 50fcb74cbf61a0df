"""Which folder a training run gets, and that it gets it alone: chosen from the command line, then claimed."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schedrl.launch.distributed.cluster import cluster_of
from schedrl.launch.settings import LaunchSettings
from schedrl.settings import UserError, check_folder_writable
from schedrl.settings.claims import LOCK, Claim, claim, claim_first, series

if TYPE_CHECKING:
    from schedrl.launch.comparing.plan import ComparisonPlan
    from schedrl.launch.plan import Plan
    from schedrl.launch.replay.request import Request

    Asked = TypeVar("Asked", ComparisonPlan, Request)


def holds_run(folder: Path) -> bool:
    """Tell whether a folder holds a run that could be resumed (one killed before its first save can't)."""
    return any((folder / "checkpoints").glob("step_*.npz"))


def numbered(default: Path) -> list[Path]:
    """Return `default` and its followers `default_2`, ... that exist, oldest first; at least `default`."""
    pattern = re.compile(re.escape(default.name) + r"_(\d+)")
    numbers = [int(m[1]) for path in default.parent.glob("*") if (m := pattern.fullmatch(path.name))]
    return [default, *(default.with_name(f"{default.name}_{n}") for n in sorted(numbers) if n > 1)]


def chosen_folder(launch: LaunchSettings) -> tuple[Path | None, tuple[str, ...]]:
    """Choose the run's folder: a run that is there is continued or left alone, never overwritten.

    Raises:
        UserError: it can't be written, or holds what is in the way.
    """
    if launch.model_dir is None and launch.mode == "debug":
        return None, ()
    if launch.model_dir is not None:
        folder = check_folder_writable(launch.model_dir, "--model_dir")
        if not launch.resume:
            _refuse_run(folder)
        return folder, ()
    default = _default(launch)
    runs = numbered(default)
    taken = [folder for folder in runs if holds_run(folder)]
    if launch.resume:
        if not taken:
            raise UserError(
                f"there is no run in {default} to resume; leave out --resume, or give --model_dir"
            )
        return check_folder_writable(taken[-1], "--model_dir"), ()
    free = next(folder for folder in series(default, _number(default, runs[-1])) if folder not in taken)
    note = f"{taken[-1]} holds a run already and stays as it is (--resume continues it)" if taken else ""
    return check_folder_writable(free), (note,) if note else ()


@contextmanager
def claimed(plan: Plan) -> Iterator[Plan]:
    """Hold the plan's folder; yield the plan with the folder that it got and what is to be said of it.

    Raises:
        UserError: another process holds the folder, or a run has come into it since the plan was made.
    """
    if plan.folder is None:
        yield plan
        return
    held, passed = _claim(plan)
    with held:
        notes = (*plan.notes, *passed, *filter(None, [held.note]))
        yield dataclasses.replace(plan, folder=held.place, claim=held, notes=notes)


def _claim(plan: Plan) -> tuple[Claim, list[str]]:
    launch, folder = plan.launch, plan.folder
    assert folder is not None
    if launch.mode == "distributed" and not (cluster := cluster_of(launch, os.environ)).spawned:
        # Hosts share the folder, with a lock for each. A pod that comes again may meet that of a lost host.
        part = f"{LOCK}_{cluster.own[0]}" if cluster.own[0] else LOCK
        wait = launch.start_timeout
        return claim(
            folder, "--model_dir", name=part, wait=wait, tell=lambda text: print(text, flush=True)
        ), []
    if launch.resume or launch.model_dir is not None:
        held = claim(folder, "--model_dir")
        try:
            if not launch.resume:
                _refuse_run(folder)
        except UserError:
            held.release()
            raise
        return held, []
    default = _default(launch)
    return claim_first(series(default, _number(default, folder)), lambda found: not holds_run(found))


@contextmanager
def claimed_output(asked: Asked, usable: Callable[[Path], bool] = lambda at: True) -> Iterator[Asked]:
    """Hold the folder of a comparison or a replay; say where others, or an earlier report, are in the way.

    Args:
        asked: what the command line asks for; `numbered` where its folder is the default one, which may get
            a number.
        usable: tells whether what is in a folder is not in the way.

    Raises:
        UserError: another process holds the folder that was asked for.
    """
    passed: list[str] = []
    if asked.numbered:
        held, passed = claim_first(series(asked.folder), usable)
    else:
        held = claim(asked.folder)
    with held:
        more: dict[str, Any] = {}
        if held.place != asked.folder:
            named = f"--output_dir {shlex.quote(str(held.place))}"
            passed.append(f"{asked.folder} is not free; this goes to {held.place} ({named} names it again)")
            more = {"folder": held.place, "command": f"{asked.command} {named}"}
        for line in filter(None, [*passed, held.note]):
            print(line, flush=True)
        yield dataclasses.replace(asked, **more)


def _number(default: Path, folder: Path) -> int:
    return 1 if folder == default else int(folder.name.rpartition("_")[2])


def _refuse_run(folder: Path) -> None:
    if holds_run(folder):
        raise UserError(f"{folder} already holds a run; give --resume to continue it, or another --model_dir")


def _default(launch: LaunchSettings) -> Path:
    return Path("models") / f"{launch.algo}_{launch.env}"
