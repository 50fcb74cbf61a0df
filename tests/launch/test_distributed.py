"""Distributed runs as users see them: real workers that are killed, frozen, preempted, and out of disk."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]
TINY = ["--algo", "a2c", "--num_envs", "8", "--num_steps", "16", "--no_eval", "--normalise_observations"]
LONG = [*TINY, "--total_steps", "10240", "--checkpoint_every", "640"]
PATIENCE = 240
"""Seconds; only to catch hangs."""


@contextmanager
def launched(root, folder, *arguments, preexec=None):
    """Start two workers; kill what is left at the end."""
    command = [sys.executable, str(root / "launcher.py"), "--mode", "distributed", "--spawn", "2"]
    child = subprocess.Popen(
        [*command, "--model_dir", str(folder), *map(str, arguments)],
        cwd=folder.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=preexec,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def finished(child):
    shown, errors = child.communicate(timeout=PATIENCE)
    return child.returncode, shown, errors


def stat_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def workers_of(parent):
    """Return process ids of a supervisor's workers by index."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        stat = stat_of(path.name)
        if stat is None or int(stat[1]) != parent or stat[0] == "Z":
            continue
        environ = (path / "environ").read_bytes()
        if b"TF_CONFIG" in environ:
            found[int(environ.partition(b'"index": ')[2][:1])] = int(path.name)
    return found


def newest(folder):
    names = sorted(path.name for path in (folder / "checkpoints").glob("step_*.npz"))
    return names[-1] if names else ""


def after_a_checkpoint(child, folder):
    """Wait until two workers train on and have saved once more; return them."""
    before, until = newest(folder), time.monotonic() + PATIENCE
    while newest(folder) <= before:
        assert time.monotonic() < until, "no checkpoint"
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)
    return workers_of(child.pid)


def shared_memory():
    return {path.name for path in Path("/dev/shm").glob("*")} if Path("/dev/shm").exists() else set()


def equal_runs(one, other):
    with np.load(one / "policy.npz") as a, np.load(other / "policy.npz") as b:
        assert (a["weights"] == b["weights"]).all()
    for name in ("reward_history.npy", "slowdown_history.npy"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_killed_frozen_and_preempted_runs_go_on_exactly(root, tmp_path):
    folder, before, seen = tmp_path / "run", shared_memory(), []
    with launched(root, folder, *LONG, "--max_restarts", 3) as child:
        for index, number in ((1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)):
            workers = after_a_checkpoint(child, folder)
            seen += workers.values()
            os.kill(workers[index], number)
        workers = after_a_checkpoint(child, folder)
        seen += workers.values()
        os.kill(workers[1], signal.SIGTERM)
        code, shown, errors = finished(child)
    assert (code, errors) == (42, "")
    told = [line for line in shown.splitlines() if "(restart " in line]
    assert len(told) == 3
    assert "worker 1 was killed by SIGKILL; all workers go on from the checkpoint after" in told[0]
    assert "worker 0 was killed by SIGKILL" in told[1]
    assert "worker 1 does not answer any more" in told[2]
    assert "saved after" in shown
    assert f"--model_dir {folder} --resume --no_eval True --mode distributed --spawn 2" in shown
    assert len(set(seen)) == 8
    assert not [pid for pid in seen if (stat := stat_of(pid)) and stat[0] != "Z"]
    assert shared_memory() <= before
    with launched(root, folder, *LONG, "--resume") as child:
        code, _, errors = finished(child)
    assert (code, errors) == (0, "")
    assert not (folder / "cluster").exists()
    whole = tmp_path / "whole"
    with launched(root, whole, *LONG) as child:
        assert finished(child)[0] == 0
    equal_runs(folder, whole)


def test_a_full_disk_ends_the_run_with_one_message(root, tmp_path):
    # A limit on the size of files stands in for a full disk: the checkpoint is the first large one.
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    folder = tmp_path / "run"
    with launched(root, folder, *TINY, "--total_steps", 1280, preexec=limited) as child:
        code, _, errors = finished(child)
    assert code == 1
    assert errors.startswith("error: worker ")
    assert errors.count("\n") == 1
    assert "can't " in errors
    assert "File too large" in errors
    assert newest(folder) == ""
    assert not list((folder / "checkpoints").glob(".*.tmp"))


def test_one_worker_is_one_process_but_for_rounding(root, tmp_path):
    import launcher

    few = [*TINY, "--total_steps", "1280"]
    with launched(root, tmp_path / "spawned", *few, "--spawn", 1) as child:
        assert finished(child)[0] == 0
    assert launcher.main([*few, "--model_dir", str(tmp_path / "local")]) == 0
    weights = [np.load(tmp_path / name / "policy.npz")["weights"] for name in ("spawned", "local")]
    np.testing.assert_allclose(*weights, atol=1e-4)


@pytest.mark.parametrize("algorithm", ["pg", "ppo", "ddpg"])
def test_every_synchronous_algorithm_trains(algorithm, root, tmp_path):
    few = ["--num_envs", "16", "--total_steps", "6000", "--no_eval", "--checkpoint_every", "3000"]
    own = {"pg": [], "ppo": ["--num_steps", "32", "--num_epochs", "2", "--target_kl", "0.01"]}
    own["ddpg"] = ["--replay_size", "2000", "--learning_starts", "200", "--gradient_steps", "2"]
    with launched(root, tmp_path / "run", "--algo", algorithm, *few, *own[algorithm]) as child:
        code, shown, errors = finished(child)
    assert (code, errors) == (0, ""), shown
    table = np.genfromtxt(tmp_path / "run" / "metrics.csv", delimiter=",", names=True)
    assert table["decisions"][-1] >= 6000
    parts = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert parts
    assert {name.partition("_of_")[2] for name in parts if name.startswith("worker_1")} == {
        name.partition("_")[2] for name in parts if name.startswith("step_")
    }
