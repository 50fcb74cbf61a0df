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

import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning import shards
from schedrl.learning.budget import Budget, Limits
from schedrl.learning.checkpoint import atomic_write, check_shapes, load_arrays, unflatten_state
from schedrl.learning.kept_logs import HISTORIES, Kept, kept_logs, require_unchanged
from schedrl.learning.logger import Logger, Record
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.learning.rollout import NumericsError
from schedrl.learning.run_description import SCALES, describe_run, read_description
from schedrl.learning.schema import fault
from schedrl.learning.selection import GREEDY, Selection
from schedrl.settings import UserError
from schedrl.settings.claims import SameFolder

FILES = (
    "run.json", "metrics.csv", "validation.csv", "policy.npz", "reward_history.npy", "slowdown_history.npy",
)  # fmt: skip
FOLDERS = ("checkpoints", "saved_model", "tensorboard")
FREE = Limits._fields
"""Settings that a resumed run may have others of: the budget, and what learning rates are planned over."""


LOGGED = {
    **{f"length/{key}": int for key in HISTORIES},
    **{f"digest/{key}?": str for key in HISTORIES},
    **{"metrics/bytes?": int, "metrics/digest?": str},
}
"""What a checkpoint says of the logs."""


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
        accept_changes: resume although files of the folder are not as they were written.
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
        accept_changes: bool = False,
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
        self._settings, self._accept_changes = settings or {}, accept_changes
        self.description: dict[str, Any] = {}
        if self.folder is not None and self.is_chief:
            self._open_folder(self.folder, overwrite)
        self.logger = Logger(self.folder if self.is_chief else None, callback, tensorboard)
        self._same = SameFolder(self.folder) if self.folder is not None and self.is_chief else None

    def _open_folder(self, folder: Path, overwrite: bool) -> None:
        if self.resume:
            stored = check_resumable(folder, changed=self._accept_changes, whole=False)
            refuse_other_settings(folder, stored, self._settings)
            self.description = describe_run(self._settings, self.seed, stored)
            return  # nothing is written before all is read: `restore`
        if newest_checkpoint(folder) is not None and not overwrite:
            raise UserError(
                f"{folder} already holds a run; give --resume to continue it, or another --model_dir"
            )
        self.description = describe_run(self._settings, self.seed)
        try:
            remove_leftovers(folder)
            if overwrite:
                clear(folder)
            (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._write_description(folder)
        except OSError as error:
            raise UserError(
                f"cannot write into {folder} ({error.strerror}); choose another --model_dir"
            ) from error

    def _write_description(self, folder: Path) -> None:
        content = json.dumps(self.description, indent=2, sort_keys=True).encode() + b"\n"
        path = folder / "run.json"
        if not path.exists() or path.read_bytes() != content:
            with atomic_write(path) as file:
                file.write(content)

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
        state, header = shards.load(self.folder, self.replicas)
        try:
            for name, part in parts.items():
                part.load_state(state[name])
            self.budget.load_state(state["budget"])
            if self.selection is not None and "selection" in state:
                self.selection.load_state(state["selection"])
            kept = kept_logs(self.folder, state["logger"], self.budget.decisions) if self.is_chief else Kept()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"the newest checkpoint of {self.folder} can't be used ({type(error).__name__}: {error}); "
                f"{older_checkpoint(self.folder)}or train anew"
            ) from None
        if self.is_chief:
            if not self._accept_changes:
                decisions, older = self.budget.decisions, older_checkpoint(self.folder)
                require_unchanged(self.folder, kept, decisions, older)
            self._take_over(self.folder, kept)
        self._last_checkpoint = self.budget.decisions
        self._seconds_before, self._started = header.get("seconds", 0.0), time.perf_counter()

    def _take_over(self, folder: Path, kept: Kept) -> None:
        """Write what a resumed run changes in its folder, now that all has been read."""
        for name, reason in kept.changed.items():
            self.say(f"{name} is not as it was at the checkpoint ({reason}): set aside and begun anew")
        try:
            remove_leftovers(folder)
            self._write_description(folder)
            self.logger.load_state(kept, self.budget.decisions)
        except OSError as error:
            raise UserError(
                f"can't write into {folder} ({error.strerror}); make it writable, then --resume"
            ) from error

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
        self._require_numbers(parts["model"])
        self.logger.flush()
        states = {name: part.state() for name, part in parts.items()}
        states |= {"budget": self.budget.state(), "logger": self.logger.state()}
        if self.selection is not None:
            states["selection"] = self.selection.state()
        run_id = self.description.get("run_id")
        shards.save(self.folder, self.budget.decisions, states, self.seconds, self.replicas, run_id)
        self._last_checkpoint = self.budget.decisions

    def _require_folder(self) -> None:
        """Raise `FolderLost` if the folder was removed: a save would make it anew, without what it held."""
        if self._same is not None:
            self._same.require()

    def _require_numbers(self, model: Any) -> None:
        """Raise `NumericsError` if weights or statistics are no finite numbers: nothing of it is kept."""
        for name, values in model.state().items():
            if isinstance(values, np.ndarray) and not np.isfinite(values).all():
                raise NumericsError(
                    f"{name} of the model are no finite numbers any more after {self.budget.decisions:,} "
                    "decisions, and are not saved; --check_numerics True names the first such tensor, a "
                    "lower --learning_rate often helps"
                )

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
        self._require_numbers(model)
        if self.selection is not None:
            # The checkpoint has the last weights, the policy the best; who was asked to stop stops now.
            self.selection.conclude(model, self.budget.decisions, look=not self.stop_requested)
        if self.folder is not None and self.is_chief:
            about = {"decisions": self.budget.decisions, "seed": self.seed, "play": self.play}
            about |= {SCALES: self.scales} if self.scales else {}
            about |= {"run_id": self.description["run_id"]}
            model.save_policy(self.folder / "policy.npz", **about)
            if export:
                model.export(self.folder / "saved_model")
            if self.selection is not None:
                self.selection.write(self.folder)
        self.logger.close()
        self._require_folder()


def refuse_other_settings(folder: Path, stored: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise `UserError` if a run to be resumed had other settings; only those in FREE may change."""
    old = stored["settings"]
    for section, values in json.loads(json.dumps(settings)).items():
        if section == SCALES:  # follow from the settings; another processor may round them otherwise
            continue
        if isinstance(values, dict) and isinstance(old.get(section), dict):
            before, now = ({k: v for k, v in d.items() if k not in FREE} for d in (old[section], values))
            check_shapes(before, now, f"the run in {folder}")


def check_resumable(folder: Path, *, changed: bool = False, whole: bool = True) -> dict[str, Any]:
    """Return the description of a run that can be resumed, all of which was read; changes nothing on disk.

    Args:
        folder: of the run.
        changed: take it although run.json or the logs are not as they were written.
        whole: see `read_description`.

    Raises:
        UserError: there is no such run, no checkpoint, one that is damaged, of another version or of another
            run, or logs that are not those that it goes with.
    """
    newest = newest_checkpoint(folder)
    if newest is None and not (folder / "run.json").exists():
        raise UserError(f"{folder} has no checkpoint to resume; start without --resume")
    description = read_description(folder, changed=changed, whole=whole)
    if newest is None:
        raise UserError(f"{folder} has no checkpoint to resume; start without --resume")
    arrays, header = load_arrays(newest, kind="checkpoint")
    older, before = older_checkpoint(folder), description.get("before", [])
    made_by = header.get("run_id", description["run_id"])
    if changed:
        return description | {"before": [*before, made_by]}
    decisions = shards.number_of(newest)
    if made_by not in (description["run_id"], *before):
        raise UserError(
            f"{newest} was made by another run than {folder / 'run.json'} describes; put back the file that "
            f"goes with it, {older}or give --accept_changes True to go on with the settings there"
        )
    state = unflatten_state({}, header.get("plain", {})).get("logger", {})
    if wrong := fault(state, LOGGED):
        raise UserError(f"{newest} is damaged ({wrong}); {older}or train anew")
    require_unchanged(folder, kept_logs(folder, state, decisions), decisions, older)
    return description


def older_checkpoint(folder: Path) -> str:
    """Return what to do to go on from the checkpoint before the newest and a comma, or nothing."""
    steps = shards.committed(Path(folder))
    if len(steps) < 2:
        return ""
    return f"remove {steps[-1]} to go on from the older one after {shards.number_of(steps[-2]):,} decisions, "


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
