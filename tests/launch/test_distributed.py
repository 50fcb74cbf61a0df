"""Distributed runs as users see them: real workers that are killed, frozen, preempted, and out of disk."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from left_over import free, processes_of, shared_memory, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]
PG = ["--algo", "pg", "--num_envs", "16", "--total_steps", "3000", "--no_eval"]
STEADY = ["--algo", "a2c", "--num_envs", "8", "--num_steps", "16", "--no_eval", "--normalise_observations"]
STEADY += [
    "--checkpoint_every",
    "640",
    "--learning_rate_schedule",
    "constant",
    "--entropy_schedule",
    "constant",
]
"""Runs that are the same whatever their budget, so that a test need not hurry before one is spent."""
PATIENCE = 400
"""Seconds; only to catch hangs."""


@contextmanager
def launched(root, folder, *arguments, preexec=None):
    """Start two workers; when they have ended, check that nothing is left, or kill what is."""
    command = [sys.executable, str(root / "launcher.py"), "--mode", "distributed", "--spawn", "2"]
    before = shared_memory()
    child = subprocess.Popen(
        [*command, "--model_dir", str(folder), *map(str, arguments)], env={**os.environ, "RUN": str(folder)},
        cwd=folder.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=preexec,
    )  # fmt: skip
    try:
        yield child
        assert not processes_of(folder)
        wait_for(lambda: shared_memory() <= before)  # what other tests have there comes and goes
    finally:
        child.kill()
        child.communicate()


def finished(child):
    shown, errors = child.communicate(timeout=PATIENCE)
    return child.returncode, shown, errors


def config_of(pid):
    """Return what a process finds in TF_CONFIG; None where there is nothing."""
    with contextlib.suppress(OSError):
        for variable in Path(f"/proc/{pid}/environ").read_text().split("\0"):
            if variable.startswith("TF_CONFIG="):
                return json.loads(variable.partition("=")[2])
    return None


def newest(folder):
    names = sorted(path.stem for path in (folder / "checkpoints").glob("step_*.npz"))
    return int(names[-1].partition("_")[2]) if names else -1


def after_a_checkpoint(child, folder, seen):
    """Wait until two workers train on and have saved once more; return them by index.

    Args:
        child: their supervisor.
        folder: of the run.
        seen: process id -> address of all workers so far.
    """
    before = newest(folder)
    wait_for(lambda: newest(folder) > before or child.poll() is not None, PATIENCE)
    assert child.poll() is None, child.communicate()
    workers = {}
    for pid in processes_of(folder):
        if config := config_of(pid):
            index = config["task"]["index"]
            workers[index], seen[pid] = pid, config["cluster"]["worker"][index]
    assert sorted(workers) == [0, 1]
    return workers


def equal_runs(one, other):
    with np.load(one / "policy.npz") as a, np.load(other / "policy.npz") as b:
        assert (a["weights"] == b["weights"]).all()
    for name in ("reward_history.npy", "slowdown_history.npy"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_killed_frozen_and_preempted_runs_go_on_exactly(root, tmp_path):
    folder, seen = tmp_path / "run", {}
    with launched(root, folder, *STEADY, "--total_steps", 10**8, "--max_restarts", 3) as child:
        for index, number in ((1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)):
            os.kill(after_a_checkpoint(child, folder, seen)[index], number)
        os.kill(after_a_checkpoint(child, folder, seen)[1], signal.SIGTERM)
        code, shown, errors = finished(child)
    assert (code, errors) == (42, "")
    told = [line for line in shown.splitlines() if "(restart " in line]
    assert len(told) == 3
    assert "worker 1 was killed by SIGKILL; all workers go on from the checkpoint after" in told[0]
    assert "worker 0 was killed by SIGKILL" in told[1]
    assert "worker 1 does not answer any more" in told[2]
    assert "saved after" in shown
    assert f"--model_dir {folder} --resume --no_eval True --mode distributed --spawn 2" in shown
    assert len(seen) == 8
    assert not [pid for pid in seen if Path(f"/proc/{pid}").exists()], "a process or a zombie"
    for address in seen.values():
        wait_for(lambda address=address: free(address))
    budget = ["--total_steps", newest(folder) + 640]
    with launched(root, folder, *STEADY, *budget, "--resume") as child:
        code, _, errors = finished(child)
    assert (code, errors) == (0, "")
    assert not (folder / "cluster").exists()
    whole = tmp_path / "whole"
    with launched(root, whole, *STEADY, *budget) as child:
        assert finished(child)[0] == 0
    equal_runs(folder, whole)


def test_a_full_disk_ends_the_run_with_one_message(root, tmp_path):
    # A limit on the size of files stands in for a full disk: the checkpoint is the first large one.
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    folder = tmp_path / "run"
    with launched(root, folder, *PG, preexec=limited) as child:
        code, _, errors = finished(child)
    assert code == 1
    assert errors.startswith("error: worker ")
    assert errors.count("\n") == 1
    assert "can't " in errors
    assert "File too large" in errors
    assert newest(folder) == -1
    assert not list((folder / "checkpoints").glob(".*.tmp"))


def test_one_worker_is_one_process_but_for_rounding(root, tmp_path):
    import launcher

    with launched(root, tmp_path / "spawned", *PG, "--spawn", 1) as child:
        assert finished(child)[0] == 0
    assert launcher.main([*PG, "--model_dir", str(tmp_path / "local")]) == 0
    weights = [np.load(tmp_path / name / "policy.npz")["weights"] for name in ("spawned", "local")]
    np.testing.assert_allclose(*weights, atol=1e-4)


def test_ddpg_trains_with_a_replay_in_parts(root, tmp_path):
    # The other synchronous algorithms train above, and PPO in tests/deploy/test_entry_point.py.
    few = ["--algo", "ddpg", "--num_envs", "16", "--total_steps", "6000", "--checkpoint_every", "3000"]
    few += ["--replay_size", "2000", "--learning_starts", "200", "--gradient_steps", "2", "--no_eval"]
    with launched(root, tmp_path / "run", *few) as child:
        code, shown, errors = finished(child)
    assert (code, errors) == (0, ""), shown
    table = np.genfromtxt(tmp_path / "run" / "metrics.csv", delimiter=",", names=True)
    assert table["decisions"][-1] >= 6000
    parts = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert parts
    assert {name.partition("_of_")[2] for name in parts if name.startswith("worker_1")} == {
        name.partition("_")[2] for name in parts if name.startswith("step_")
    }
