"""Checkpoints: whole or absent, no pickle, refusals that say what to do."""

import json
from pathlib import Path

import numpy as np
import pytest

from schedrl.learning import checkpoint
from schedrl.learning.checkpoint import RandomState, check_shapes, load_arrays, save_arrays
from schedrl.settings import UserError

ARRAYS = {"weights": np.arange(5, dtype=np.float32), "flag": np.array(True)}


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "run" / "step.npz"
    save_arrays(path, ARRAYS, {"kind": "checkpoint", "note": "x"})
    return path


def test_round_trip(saved):
    arrays, header = load_arrays(saved, kind="checkpoint")
    np.testing.assert_array_equal(arrays["weights"], ARRAYS["weights"])
    assert header["note"] == "x"
    assert list(saved.parent.iterdir()) == [saved]  # no temporary file is left


def test_an_interrupted_write_leaves_the_old_file(saved):
    before = saved.read_bytes()

    def interrupted():
        with checkpoint.atomic_write(saved) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_half_written_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(UserError, match="damaged"):
        load_arrays(saved)


def test_missing_other_version_other_kind(saved, tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        load_arrays(tmp_path / "nothing.npz")
    with pytest.raises(UserError, match="not a 'policy' file"):
        load_arrays(saved, kind="policy")
    header = json.dumps({"format_version": 99}).encode()
    np.savez(saved, **{checkpoint.HEADER: np.frombuffer(header, np.uint8)})
    with pytest.raises(UserError, match="version 99"):
        load_arrays(saved)


def test_pickled_arrays_are_neither_written_nor_read(tmp_path):
    with pytest.raises(TypeError, match="objects"):
        save_arrays(tmp_path / "a.npz", {"x": np.array([None])}, {})
    np.savez(tmp_path / "b.npz", x=np.array([{}], dtype=object))
    with pytest.raises(UserError):
        load_arrays(tmp_path / "b.npz")


def test_other_shapes_are_named():
    check_shapes({"queue": [10, 8]}, {"queue": (10, 8)}, "the model")
    with pytest.raises(UserError, match=r"queue = \[10, 8\], this run has \[5, 8\]"):
        check_shapes({"queue": [10, 8]}, {"queue": (5, 8)}, "the model")


def test_generators_continue_exactly():
    one, two = RandomState(3, 1), RandomState(0)
    one.generator.random(7)
    two.load_state(json.loads(json.dumps(one.state())))
    np.testing.assert_array_equal(one.generator.permutation(50), two.generator.permutation(50))
