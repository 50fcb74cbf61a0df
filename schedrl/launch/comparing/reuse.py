"""What of a comparison is in the results folder already: finished, begun, or another comparison's.

A run is used again only if every setting agrees, its budget included; else the differences are listed and
nothing is touched. (`--resume` of launcher.py may extend a budget; here that would compare unequal ones.)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from schedrl.launch.plan import Plan
from schedrl.launch.workload import data_of
from schedrl.settings import UserError
from schedrl.settings.values import show

State = Literal["new", "begun", "finished"]
REMEDY = "give another --output_dir, or --retrain to replace them"
SHOWN = 8  # settings listed by name in a refusal


def states(runs: Iterable[Plan], retrain: bool = False) -> dict[Path, State]:
    """Return folder -> state of each planned run; all are new if what is there is to be replaced.

    Raises:
        UserError: runs with other settings are in the way (all differences are listed), or damaged ones.
    """
    found: dict[Path, State] = {}
    differences: dict[str, list[Path]] = {}
    for run in runs:
        assert run.folder is not None
        found[run.folder] = "new" if retrain else _state(run, run.folder)
        if found[run.folder] != "new":
            for text in _differences(run, run.folder):
                differences.setdefault(text, []).append(run.folder)
    if differences:
        folders = sorted({str(folder) for group in differences.values() for folder in group})
        listed = list(differences)[:SHOWN]
        more = f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        raise UserError(
            f"{', '.join(folders)}: trained with other settings: {'; '.join(listed)}{more}. To compare, "
            f"{REMEDY}"
        )
    return found


def told_of(folders: Iterable[Path | None]) -> list[str]:
    """Say of runs that are used again where the code is, or may be, another than that of this comparison."""
    from schedrl.learning.run_description import read_description, told_of_code

    found: dict[str, list[str]] = {}
    for folder in filter(None, folders):
        for text in told_of_code(read_description(folder)):
            found.setdefault(text, []).append(str(folder))
    return [f"{', '.join(named)}: {text}" for text, named in found.items()]


def _state(run: Plan, folder: Path) -> State:
    from schedrl.learning.checkpoint import load_arrays
    from schedrl.learning.run_folder import check_resumable, newest_checkpoint

    if newest_checkpoint(folder) is None:
        return "new"
    if not (folder / "policy.npz").exists():
        return "begun"
    try:
        _, header = load_arrays(folder / "policy.npz", kind="policy")
        check_resumable(folder)  # its curve is drawn from metrics.csv
    except UserError as error:
        raise UserError(f"{error}; or, {REMEDY}") from None
    return "finished" if header["decisions"] >= run.algorithm.total_steps else "begun"


def _differences(run: Plan, folder: Path) -> list[str]:
    """Return what the stored run was trained with that this one isn't, as text."""
    from schedrl.learning.run_description import read_description

    try:
        description = read_description(folder)
        stored = {
            "environment": type(run.environment).from_dict(description["settings"]["environment"]),
            "algorithm": type(run.algorithm).from_dict(description["settings"]["algorithm"]),
        }
    except (UserError, KeyError) as error:
        raise UserError(f"{folder} can't be used again ({error}); {REMEDY}") from None
    texts = [
        _difference(name, description[name], getattr(run.launch, name))
        for name in ("algo", "env", "seed")
        if description[name] != getattr(run.launch, name)
    ]
    for own, old in ((run.algorithm, stored["algorithm"]), (run.environment, stored["environment"])):
        for name in own.kinds():
            if getattr(old, name) != getattr(own, name):
                texts.append(_difference(name, getattr(old, name), getattr(own, name)))
    if description["settings"].get("data", {}) != (found := data_of(run.environment)):
        texts.append(f"the content of {', '.join(found) or 'a trace'}")
    return texts


def _difference(name: str, stored: Any, asked: Any) -> str:
    return f"{name} = {show(stored)} (asked for {show(asked)})"
