"""One training run and its folder: who it is, its budget, its files, stopping and resuming.

models/ppo_deeprm/
    run.json              resolved settings, seed, git commit, package versions; run id = hash of these
    metrics.csv           one row per update
    tensorboard/          the same for TensorBoard
    reward_history.npy    one value per finished episode; slowdown_history.npy likewise
    checkpoints/          everything that `--resume` needs (see `shards`)
    validation.csv        means on validation workloads at each look, where weights are chosen by them
    policy.npz            weights and normaliser, read with NumPy alone
    saved_model/          TensorFlow SavedModel with named signatures
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning import shards
from schedrl.learning.budget import Budget
from schedrl.learning.checkpoint import (
    FORMAT_VERSION,
    atomic_write,
    check_shapes,
    load_arrays,
)
from schedrl.learning.logger import Logger, Record
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.learning.selection import GREEDY, Selection
from schedrl.settings import UserError
from schedrl.settings.claims import SameFolder

FILES = (
    "run.json", "metrics.csv", "validation.csv", "policy.npz", "reward_history.npy", "slowdown_history.npy",
)  # fmt: skip
FOLDERS = ("checkpoints", "saved_model", "tensorboard")
NAMES = ("algo", "env")
SCALES = "scales"
"""Of what is kept beside settings: what times are measured in (`schedrl.envs.simple_cluster.scales`)."""
PACKAGES = ("tensorflow", "keras", "numpy", "numba", "scipy", "gymnasium")


class Run:
    """What an algorithm's `train(env, settings, run)` is given beside environment and settings.

    Args:
        budget: decisions or episodes.
        seed: of everything random in the run.
        folder: where files go; None keeps nothing on disk (tests, notebooks).
        settings: resolved settings by section, for `run.json`: `{"algorithm": ..., "environment": ...}`;
            beside them the names `algo` and `env`, and what follows from them: `scales`.
        resume: continue from the newest checkpoint in `folder`.
        overwrite: start afresh where `folder` holds a finished or interrupted run; refused otherwise.
        checkpoint_every: decisions between checkpoints; a last one is always written.
        callback: called with each record.
        say: called with a line of text where something else than an update is going on.
        tensorboard: write TensorBoard events.
        selection: chooses the weights that are kept; None keeps the last.
        replicas: that train together. Each has a `Run` with a seed of its own; the chief's (index 0) writes
            the folder, which all can read.
    """

    def __init__(
        self,
        budget: Budget,
        seed: int = 0,
        folder: Path | str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        checkpoint_every: int = 500_000,
        callback: Callable[[Record], None] | None = None,
        say: Callable[[str], None] | None = None,
        tensorboard: bool = True,
        selection: Selection | None = None,
        replicas: Replicas = ALONE,
    ):
        self.say = say or (lambda text: None)
        self.budget, self.seed, self.resume = budget, seed, resume
        self.scales = (settings or {}).get(SCALES)
        self.folder = None if folder is None else Path(folder)
        self.checkpoint_every, self.selection = checkpoint_every, selection
        self.replicas, self.is_chief = replicas, replicas.index == 0
        self.stop_requested = self.stopped = False
        self.model: Any = None
        self._last_checkpoint: int | None = None
        self._seconds_before, self._started = 0.0, time.perf_counter()
        if self.folder is not None and self.is_chief:
            self._open_folder(self.folder, settings or {}, overwrite)
        self.logger = Logger(self.folder if self.is_chief else None, callback, tensorboard)
        self._same = SameFolder(self.folder) if self.folder is not None and self.is_chief else None

    def _open_folder(self, folder: Path, settings: Mapping[str, Any], overwrite: bool) -> None:
        old = newest_checkpoint(folder)
        if self.resume and old is None:
            raise UserError(f"{folder} has no checkpoint to resume; start without --resume")
        if not self.resume and old is not None and not overwrite:
            raise UserError(
                f"{folder} already holds a run; give --resume to continue it, or another --model_dir"
            )
        if self.resume:
            refuse_other_settings(folder / "run.json", settings)
        try:
            remove_leftovers(folder)
            if overwrite and not self.resume:
                clear(folder)
            (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            description = describe_run(settings, self.seed)
            with atomic_write(folder / "run.json") as file:
                file.write(json.dumps(description, indent=2, sort_keys=True).encode() + b"\n")
        except OSError as error:
            raise UserError(
                f"cannot write into {folder} ({error.strerror}); choose another --model_dir"
            ) from error

    # -- the loop's conditions -------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Ask the loop to save and end after the present update (safe from a signal handler)."""
        self.stop_requested = True

    @property
    def done(self) -> bool:
        """Whether the loop should end: the budget is spent or any replica was asked to stop.

        To be asked once for each update: here all replicas decide alike.
        """
        if self.replicas.any(self.stop_requested):
            self.stop_requested = self.stopped = True
        return self.stopped or self.budget.done

    @property
    def seconds(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self._seconds_before + time.perf_counter() - self._started

    @property
    def play(self) -> str:
        """How the policy is best played: greedy, or sampled where validation workloads said so."""
        return GREEDY if self.selection is None else self.selection.play

    # -- saving ----------------------------------------------------------------------------------------------

    def restore(self, **parts: Any) -> None:
        """When resuming, load the newest checkpoint into `parts` (objects with `load_state`).

        Otherwise give all replicas the chief's `model`.
        """
        if not self.resume or self.folder is None:
            self.replicas.start_alike(parts["model"])
            return
        state, seconds = shards.load(self.folder, self.replicas)
        for name, part in parts.items():
            part.load_state(state[name])
        self.budget.load_state(state["budget"])
        self.logger.load_state(state["logger"], self.budget.decisions)
        if self.selection is not None and "selection" in state:
            self.selection.load_state(state["selection"])
        self._last_checkpoint = self.budget.decisions
        self._seconds_before, self._started = seconds, time.perf_counter()

    def checkpoint(self, **parts: Any) -> None:
        """Look at the model among `parts` and save them (objects with `state`), each where it is due."""
        if self.selection is not None and self.selection.due(self.budget.decisions):
            self.selection.look(parts["model"], self.budget.decisions)
        if self.budget.decisions - (self._last_checkpoint or 0) >= self.checkpoint_every:
            self._save(parts)

    def _save(self, parts: Mapping[str, Any]) -> None:
        if self.folder is None:
            return
        self._require_folder()
        self.logger.flush()
        states = {name: part.state() for name, part in parts.items()}
        states |= {"budget": self.budget.state(), "logger": self.logger.state()}
        if self.selection is not None:
            states["selection"] = self.selection.state()
        shards.save(self.folder, self.budget.decisions, states, self.seconds, self.replicas)
        self._last_checkpoint = self.budget.decisions

    def _require_folder(self) -> None:
        """Raise `FolderLost` if the folder was removed: a save would make it anew, without what it held."""
        if self._same is not None:
            self._same.require()

    def log(
        self, decisions: int, seconds: float, episodes: Mapping[str, np.ndarray], **metrics: float
    ) -> Record:
        """Spend the budget, write one record and return it; it is of all replicas.

        Args:
            decisions: taken in this update.
            seconds: that this update took (collecting and learning).
            episodes: of those that ended: return `r`, `slowdown`.
            metrics: the algorithm's own numbers.
        """
        self._require_folder()
        decisions, means, episodes = self.replicas.joined(decisions, metrics, episodes)
        self.budget.spend(decisions, len(episodes.get("r", ())))
        record = {
            "decisions": float(self.budget.decisions),
            "episodes": float(self.budget.episodes),
            "seconds": self.seconds,
            "decisions_per_second": decisions / max(seconds, 1e-9),
            "episode_return": _mean(episodes, "r"),
            "slowdown": _mean(episodes, "slowdown"),
            "episode_length": _mean(episodes, "l"),
            **{name: float(value) for name, value in means.items()},
        }
        self.logger.log(record, episodes)
        return record

    def finish(self, export: bool = True, **parts: Any) -> None:
        """Save a last checkpoint, the policy and (with `export`) the SavedModel; close the logs.

        `parts` are those of `checkpoint`; the one named `model` is exported.
        """
        if self.folder is not None and self.budget.decisions != self._last_checkpoint:
            self._save(parts)
        model = parts["model"]
        self._require_folder()
        if self.selection is not None:
            # The checkpoint has the last weights, the policy the best; who was asked to stop stops now.
            self.selection.conclude(model, self.budget.decisions, look=not self.stop_requested)
        if self.folder is not None and self.is_chief:
            about = {"decisions": self.budget.decisions, "seed": self.seed, "play": self.play}
            about |= {SCALES: self.scales} if self.scales else {}
            model.save_policy(self.folder / "policy.npz", **about)
            if export:
                model.export(self.folder / "saved_model")
            if self.selection is not None:
                self.selection.write(self.folder)
        self.logger.close()
        self._require_folder()


def refuse_other_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Raise `UserError` if a run to be resumed had other settings; only the budget may change."""
    try:
        old = json.loads(path.read_bytes())["settings"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is missing or damaged ({error}); start a new run") from error
    budget = {"total_steps", "num_episodes"}
    for section, values in json.loads(json.dumps(settings)).items():
        if section == SCALES:  # follow from the settings; another processor may round them otherwise
            continue
        if isinstance(values, dict) and isinstance(old.get(section), dict):
            before, now = ({k: v for k, v in d.items() if k not in budget} for d in (old[section], values))
            check_shapes(before, now, f"the run in {path.parent}")


def read_description(folder: Path | str) -> dict[str, Any]:
    """Return the content of a run's `run.json`: `algo`, `env`, `seed`, `settings` by section, and more.

    Raises:
        UserError: it is missing, damaged or from another version of this program.
    """
    path = Path(folder) / "run.json"
    try:
        description = json.loads(path.read_bytes())
        found = [description[key] for key in ("settings", "seed", *NAMES)] and description["format_version"]
    except FileNotFoundError:
        raise UserError(f"{folder} holds no run ({path} is missing); give the folder of a run") from None
    except OSError as error:
        raise UserError(f"can't read {path} ({error.strerror}); give the folder of a run") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged or not of this program ({error!r}); train anew") from None
    if found != FORMAT_VERSION:
        raise UserError(f"{path} has format version {found}, this program reads {FORMAT_VERSION}; train anew")
    return description


def check_resumable(folder: Path) -> dict[str, Any]:
    """Return the description of a run whose newest checkpoint can be read whole; changes nothing on disk.

    Raises:
        UserError: there is no such run, no checkpoint, or one that is damaged or of another version.
    """
    description = read_description(folder)
    newest = newest_checkpoint(folder)
    if newest is None:
        raise UserError(f"{folder} has no checkpoint to resume; start without --resume")
    load_arrays(newest, kind="checkpoint")
    return description


def clear(folder: Path) -> None:
    """Remove the files that a run writes from `folder`, and nothing else."""
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed while it saved has left half-written."""
    for name in (*FILES, "pretraining.csv"):
        for path in folder.glob(f".{name}.*.tmp"):
            path.unlink(missing_ok=True)
    for path in (folder / "checkpoints").glob(".*.tmp"):
        path.unlink(missing_ok=True)


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run folder, if there is one."""
    found = shards.committed(Path(folder))
    return found[-1] if found else None


def _mean(episodes: Mapping[str, np.ndarray], key: str) -> float:
    values = episodes.get(key, ())
    return float(np.mean(values)) if len(values) else float("nan")


def describe_run(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the content of `run.json`; `run_id` is the hash of the rest."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    names = {key: value for key, value in settings.items() if key in NAMES}
    description = {
        **names,
        "format_version": FORMAT_VERSION,
        "settings": {key: value for key, value in settings.items() if key not in NAMES},
        "seed": seed,
        "git": git_commit(),
        "versions": versions,
    }
    text = json.dumps(description, sort_keys=True, default=str)
    return json.loads(text) | {"run_id": hashlib.sha256(text.encode()).hexdigest()[:16]}


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
