"""Checkpoints: arrays and plain numbers in one `.npz`, without pickle; a half-written file is never read.

A file is written under a temporary name beside its place, flushed to the disk and renamed, which is atomic.
Loading checks the format version, a hash of all that was written and, on request, shapes; whatever is wrong
is a `UserError` that says what to do.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning.run_description import FORMAT_VERSION
from schedrl.learning.schema import Shape, fault
from schedrl.settings import UserError
from schedrl.settings.values import shown

HEADER = "header.json"
DIGEST = "digest"
"""Of a header: the hash of the rest of it and of all arrays. Files of earlier versions have none."""
POLICY_SHAPE = {
    "spec": {
        "network": str,
        "hidden": [int],
        "leaves": {"*": [(list, str)]},
        "num_actions": int,
        "num_values?": int,
        "layer_norm?": bool,
        "prior?": float,
        "actions?": {"sizes": [int], "low": [float], "high": [float], "in_tuple": bool},
        "gaussian?": bool,
        "normalised": [str],
        "representation": str,
    },
    "decisions?": int,
    "play?": str,
    "run_id?": str,
}
SHAPES: dict[str | None, Shape] = {
    None: {},
    "policy": POLICY_SHAPE,
    "checkpoint": {"plain?": dict, "seconds?": float, "workers?": int, "run_id?": str},
}
"""Kind of file -> what its header must look like."""


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Any]:
    """Open a binary file that appears at `path` whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def save_arrays(path: Path | str, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON header (`format_version`, `digest` are added) to `path`, atomically."""
    members: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in members.items():
        if array.dtype == object:
            raise TypeError(
                f"{name} holds Python objects; a checkpoint takes arrays of numbers, bools and text only"
            )
    whole = json.loads(json.dumps({"format_version": FORMAT_VERSION, **header}))
    text = json.dumps(whole | {DIGEST: digest_of(members, whole)}, sort_keys=True)
    members[HEADER] = np.frombuffer(text.encode(), np.uint8)
    with atomic_write(path) as file:
        np.savez(file, **members)


def load_arrays(path: Path | str, kind: str | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `save_arrays` wrote; return the arrays and the header.

    Args:
        path: the file.
        kind: when given, the `kind` that the header must name ("checkpoint", "policy").

    Raises:
        UserError: missing, damaged, of another kind or from another format version.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path} does not exist; give the folder of a finished or interrupted run")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop(HEADER).tobytes())
    except Exception as error:  # a damaged archive raises whatever zipfile, zlib and NumPy stumble over
        raise UserError(
            f"{path} is damaged or was not written by this program ({error}); {_remedy(path)}"
        ) from None
    if wrong := fault(header, {"format_version": int}):
        raise UserError(f"{path} is damaged or was not written by this program ({wrong}); {_remedy(path)}")
    version = header["format_version"]
    if version != FORMAT_VERSION:
        raise UserError(
            f"{path} has format version {shown(version)}, this program reads {FORMAT_VERSION}; train again"
        )
    if kind is not None and header.get("kind") != kind:
        raise UserError(f"{path} is a {shown(header.get('kind'))!r} file, not a {kind!r} file")
    if "run_id" in header and DIGEST not in header:
        raise UserError(f"{path} has no hash of its content, which it was written with; {_remedy(path)}")
    if DIGEST in header and header[DIGEST] != digest_of(arrays, header):
        raise UserError(f"{path} is damaged or was changed after it was written; {_remedy(path)}")
    if wrong := fault(header, SHAPES.get(kind, {})):
        raise UserError(f"the header of {path} is damaged ({wrong}); {_remedy(path)}")
    return arrays, header


def _remedy(path: Path) -> str:
    """Return what to do where a file can't be used."""
    if path.parent.name == "checkpoints":
        steps = sorted(path.parent.glob("step_*.npz"))
        if path in steps[1:]:
            older = steps[steps.index(path) - 1].name
            return f"remove it, and --resume goes on from the older checkpoint {older}"
        return "there is no older checkpoint; put back the file that was written, or train anew"
    return (
        "put back the file that was written; of a run, launcher.py --model_dir DIR --resume writes it again"
    )


def digest_of(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> str:
    """Return the hash of arrays and of a header without its digest."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    rest = {key: value for key, value in header.items() if key != DIGEST}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    return digest.hexdigest()


def check_shapes(found: Mapping[str, Any], expected: Mapping[str, Any], what: str) -> None:
    """Raise `UserError` unless both mappings have the same names and the same shapes (or values)."""
    for name in sorted(set(found) | set(expected)):
        a, b = found.get(name), expected.get(name)
        if _plain(a) != _plain(b):
            raise UserError(
                f"{what} was made for {name} = {_plain(a)}, this run has {_plain(b)}; "
                "use the same environment and network settings, or train a new model"
            )


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


# -- nested state --------------------------------------------------------------------------------------------


def flatten_state(parts: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Split `{part: {name: value}}` into arrays named `part/name` and a JSON-able rest."""
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, Any] = {}
    for part, state in parts.items():
        for name, value in state.items():
            (arrays if isinstance(value, np.ndarray) else plain)[f"{part}/{name}"] = value
    return arrays, plain


def unflatten_state(arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Undo `flatten_state`."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in [*arrays.items(), *plain.items()]:
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = value
    return parts


class RandomState:
    """A NumPy generator that a checkpoint can carry (its state is plain numbers)."""

    def __init__(self, seed: int, *spawn_key: int):
        self.generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=spawn_key))

    def state(self) -> dict[str, Any]:
        """Return the bit generator's state."""
        return {"bit_generator": self.generator.bit_generator.state}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue where `state()` was taken."""
        self.generator.bit_generator.state = state["bit_generator"]
