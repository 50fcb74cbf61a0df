"""A checkpoint of several replicas: a part for each, of which the chief's is written last and makes it count.

checkpoints/
    step_000000500000.npz             the chief's part; while it is missing the others don't count
    worker_1_of_000000500000.npz      the part of worker 1

All replicas learn of a part that could not be written, so that they stop together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning.checkpoint import flatten_state, load_arrays, save_arrays, unflatten_state
from schedrl.learning.replicas import Replicas
from schedrl.settings import UserError

KEPT = 2
"""Checkpoints that stay."""


def committed(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a run's folder, oldest first."""
    # Half-written files are named .*.tmp and so never match.
    return sorted((folder / "checkpoints").glob("step_*.npz"))


def save(
    folder: Path,
    number: int,
    states: Mapping[str, Mapping[str, Any]],
    seconds: float,
    replicas: Replicas,
    run_id: str | None = None,
) -> None:
    """Write the checkpoint after `number` decisions, and remove old ones; `run_id` is that of `run.json`.

    Raises:
        OSError: this part could not be written; the checkpoints before are as they were.
        OthersFailed: another one could not.
    """
    arrays, plain = flatten_state(states)
    header = {"kind": "checkpoint", "plain": plain, "seconds": seconds, "workers": replicas.count}
    header |= {"run_id": run_id} if run_id is not None else {}
    path = part_of(folder, number, replicas.index)
    for turn in (False, True):  # first all others, then the chief
        failure: OSError | None = None
        if (replicas.index == 0) == turn:
            try:
                save_arrays(path, arrays, header)
            except OSError as error:
                failure = error
        if not replicas.all(failure is None):
            raise failure or OthersFailed(f"another worker could not save its part in {path.parent}")
    if replicas.index == 0:
        for old in committed(folder)[:-KEPT]:
            old.unlink(missing_ok=True)
        return
    kept = {part_of(folder, number_of(step), replicas.index) for step in committed(folder)[-KEPT:]}
    for old in path.parent.glob(f"worker_{replicas.index}_of_*.npz"):
        if old not in kept and old != path:
            old.unlink(missing_ok=True)


def load(folder: Path, replicas: Replicas) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the states of this replica in the newest checkpoint, and its header.

    Raises:
        UserError: a part is missing or damaged, or it was saved by another number of workers.
    """
    steps = committed(folder)
    newest = number_of(steps[-1]) if steps and replicas.index == 0 else -1
    # The chief's word counts: a file system of several hosts may show each something else for a while.
    number = int(replicas.gather(np.array([newest]))[0, 0])
    arrays, header = load_arrays(part_of(folder, number, replicas.index), kind="checkpoint")
    saved_by = header.get("workers", 1)
    if saved_by != replicas.count:
        how = f"--mode distributed with {saved_by} workers" if saved_by > 1 else "--mode local"
        raise UserError(
            f"{folder} was trained by {saved_by} worker{'s' * (saved_by > 1)}, here are {replicas.count}; "
            f"continue it in {how}"
        )
    return unflatten_state(arrays, header.get("plain", {})), header


def part_of(folder: Path, number: int, index: int) -> Path:
    """Return the file of one replica's part."""
    name = f"worker_{index}_of_{number:012d}.npz" if index else f"step_{number:012d}.npz"
    return folder / "checkpoints" / name


def number_of(step: Path) -> int:
    """Return the decisions after which a checkpoint was made."""
    return int(step.stem.rpartition("_")[2])


class OthersFailed(Exception):
    """Another replica failed; it says why."""
