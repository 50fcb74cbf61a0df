"""Ctrl-C and SIGTERM save; the resumed run is the run that was never stopped; the algorithm's own doors."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import launcher

LONG = ["--num_envs", "16", "--num_steps", "16", "--batch_size", "64", "--total_steps", "40960", "--no_eval"]


def weights(folder):
    with np.load(folder / "policy.npz") as file:
        return file["weights"]


def start(arguments, cwd, root, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.Popen([sys.executable, *arguments], cwd=cwd, env=environment, **pipes, **options)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert launcher.main([*LONG, "--model_dir", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        (signal.SIGTERM, 42),
        pytest.param(signal.SIGHUP, 42, marks=pytest.mark.slow),
    ],
)
def test_a_signal_saves_and_resuming_equals_never_stopping(number, code, uninterrupted, tmp_path, root):
    folder = tmp_path / "run"
    command = [*LONG, "--model_dir", str(folder)]
    run = start([str(root / "launcher.py"), *command], tmp_path, root)
    for line in run.stdout:
        if line.startswith("Episode"):
            run.send_signal(number)
            break
    shown, errors = run.communicate(timeout=120)
    assert run.returncode == code, errors
    assert errors == ""  # nothing of TensorFlow's, either
    assert "saved after" in shown
    assert f"--model_dir {folder} --resume" in shown
    assert (weights(folder) != weights(uninterrupted)).any(), "it was over before the signal; make it longer"
    assert launcher.main([*command, "--resume"]) == 0
    assert (weights(folder) == weights(uninterrupted)).all()
    assert (folder / "reward_history.npy").read_bytes() == (uninterrupted / "reward_history.npy").read_bytes()


@pytest.mark.parametrize("door", [pytest.param(["-m", "ppo.train"], marks=pytest.mark.slow), ["train.py"]])
def test_the_algorithms_own_doors_give_the_same_run(door, uninterrupted, tmp_path, root):
    where = root / "ppo" if door == ["train.py"] else tmp_path
    names = ["--env_name", "deeprm", "--render", "False"]
    run = start([*door, *names, *LONG, "--model_dir", str(tmp_path / "run")], where, root)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 0, errors
    assert (weights(tmp_path / "run") == weights(uninterrupted)).all()


def test_a_killed_run_leaves_a_usable_checkpoint(uninterrupted, tmp_path):
    # What SIGKILL leaves: checkpoints and half of a temporary file, no policy.
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted, folder)
    (folder / "policy.npz").unlink()
    (folder / "checkpoints" / ".step_000000099999.npz.1.tmp").write_bytes(b"half")
    assert launcher.main([*LONG, "--model_dir", str(folder), "--resume"]) == 0
    assert (weights(folder) == weights(uninterrupted)).all()
