"""`run.json`: what a run is, with which code, and whether the file is as it was written.

The run id is a hash of all else in the file. A reader computes it again: whoever changes a setting by hand
changes the run, and is told how to say that it is meant. Imports nothing heavy, for command lines.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.learning.schema import fault
from schedrl.settings import UserError, read_plain
from schedrl.settings.values import shown

FORMAT_VERSION = 1
FILE = "run.json"
MOST = 16_000_000  # bytes of it; real ones have thousands
NAMES = ("algo", "env")
SCALES = "scales"
"""Of what is kept beside settings: what times are measured in (`schedrl.envs.simple_cluster.scales`)."""
PACKAGES = ("tensorflow", "keras", "numpy", "numba", "scipy", "gymnasium")
FRONT_DOORS = (
    "parameters",
    "environment",
    "job_distribution",
    "launcher",
    "slow_down_cdf",
    "compare_algorithms",
)
SHAPE = {
    "seed": int,
    "format_version": int,
    "run_id": str,
    "settings": dict,
    "git": {"commit": (str, type(None)), "dirty": (bool, type(None))},
    "versions": {"*": (str, type(None))},
    "code?": str,
    "before?": [str],
}
"""`code`: see `code_hash`, absent in files of earlier versions. `before`: run ids under which this run was
begun and continued."""
NAMED = {
    **{"algo": str, "env": str},
    "settings": {"environment": dict, "algorithm": dict, "data?": {"*": str}},
}
"""What a run of a command line has beside."""


def raw_description(folder: Path | str | None) -> dict[str, Any]:
    """Return the content of a run's `run.json`, empty where there is none or it is no table.

    For command lines that must know algorithm and environment before they can say what is wrong.
    """
    try:
        found = json.loads(read_plain(Path(folder) / FILE, MOST)) if folder else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def named_in(folder: Path | str | None) -> dict[str, str]:
    """Return algorithm and environment of the run in a folder, as far as they are known."""
    found = raw_description(folder)
    return {name: found[name] for name in NAMES if isinstance(found.get(name), str)}


def read_description(folder: Path | str, *, changed: bool = False, whole: bool = True) -> dict[str, Any]:
    """Return the content of a run's `run.json`: `algo`, `env`, `seed`, `settings` by section, and more.

    Args:
        folder: of the run.
        changed: take it although it is not what was written.
        whole: refuse one that doesn't name algorithm, environment and the settings of both; a run started
            from Python may have none.

    Raises:
        UserError: it is missing, damaged, from another version of this program, or was changed.
    """
    path = Path(folder) / FILE
    try:
        found = json.loads(read_plain(path, MOST))
    except FileNotFoundError:
        raise UserError(f"{folder} holds no run ({path} is missing); give the folder of a run") from None
    except OSError as error:
        raise UserError(f"can't read {path} ({error.strerror}); give the folder of a run") from None
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}); put back the file that was written") from None
    if wrong := fault(found, {"format_version": int}):
        raise UserError(
            f"{path} is damaged or not of this program ({wrong}); put back the file that was written"
        )
    if found["format_version"] != FORMAT_VERSION:
        version = shown(found["format_version"])
        raise UserError(
            f"{path} has format version {version}, this program reads {FORMAT_VERSION}; train anew"
        )
    if wrong := fault(found, SHAPE | (NAMED if whole else {})):
        raise UserError(f"{path} is damaged ({wrong}); put back the file that was written")
    try:
        own = run_id_of(found)
    except RecursionError:
        raise UserError(f"{path} is damaged (nested too deep); put back the file that was written") from None
    if found["run_id"] != own and not changed:
        raise UserError(
            f"{path} was changed after it was written (its content has the run id {own}, it says "
            f"{found['run_id'][:40]}); put back the former file or, if the change is meant, set run_id in it "
            f"to {own}"
        )
    return found


def run_id_of(description: Mapping[str, Any]) -> str:
    """Return the hash of all of a description but its `run_id`."""
    rest = {key: value for key, value in description.items() if key != "run_id"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()[:16]


def describe_run(
    settings: Mapping[str, Any], seed: int, continued: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the content of `run.json`; `run_id` is the hash of the rest.

    Args:
        settings: by section; beside them `algo` and `env`.
        seed: of the run.
        continued: the description of the run that goes on.
    """
    description: dict[str, Any] = {
        **{key: value for key, value in settings.items() if key in NAMES},
        "format_version": FORMAT_VERSION,
        "settings": {key: value for key, value in settings.items() if key not in NAMES},
        "seed": seed,
        "git": git_commit(),
        "code": code_hash(),
        "versions": versions(),
    }
    description = json.loads(json.dumps(description, sort_keys=True, default=str))
    if continued is not None:
        before = list(continued.get("before", []))
        same = {**description, "before": before} if before else description
        if run_id_of(same) == continued["run_id"]:
            return dict(continued)
        description["before"] = [*before, continued["run_id"]]
    return description | {"run_id": run_id_of(description)}


def told_of_code(description: Mapping[str, Any]) -> list[str]:
    """Say whether the code is another than the one that a run was trained with."""
    now = code_hash()
    if "code" not in description:
        return [
            "its run.json has no hash of the code that it was trained with (written by an earlier version): "
            "whether the code has changed since isn't known"
        ]
    if description["code"] == now:
        return []
    return [
        f"the code has changed since it was trained (its hash was {description['code'][:16]}, is now {now})"
    ]


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that results may depend on."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def code_hash(root: Path = registry.ROOT) -> str:
    """Return a hash of the sources as they lie on the disk.

    Of the library, the front doors and the algorithms' folders: committed or not, tracked or not, in a clone
    or installed. So two states of the code never look alike, whatever git says of them.
    """
    digest = hashlib.sha256()
    for path in _sources(root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _sources(root: Path) -> Iterator[Path]:
    for name in FRONT_DOORS:
        if (path := root / f"{name}.py").is_file():
            yield path
    for folder in ("schedrl", *registry.algorithms(root)):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".pyo") and not path.name.startswith("."):
                yield path


def git_commit() -> dict[str, Any]:
    """Return the commit this code ran from and whether files differed; Nones outside a repository."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "--no-optional-locks", *arguments],  # on a full disk, status would leave its lock
                cwd=Path(__file__).parent,
                capture_output=True,
                text=True,
                timeout=10,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}
