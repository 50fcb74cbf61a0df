"""Ctrl-C saves a checkpoint that can be resumed; workers end when their parent is killed; nothing is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = ["--algo", "a3c", "--num_workers", "2", "--num_envs", "8", "--num_steps", "8", "--no_eval"]
pytestmark = [
    pytest.mark.slow,  # six times TensorFlow is imported
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]


def begin(folder: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, str(ROOT / "launcher.py"), *COMMAND, "--model_dir", str(folder), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    # A session of its own, so that a signal to the group is what Ctrl-C is in a terminal.
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)


def wait_for_learning(run: subprocess.Popen) -> None:
    for line in run.stdout:
        if line.startswith("Episode"):
            return
    pytest.fail(run.stderr.read())


def below(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def shared_files() -> set[str]:
    """Return what multiprocessing would leave in /dev/shm."""
    folder = Path("/dev/shm")
    return {p.name for p in folder.iterdir() if p.name[:4] in ("pym-", "psm_")} if folder.is_dir() else set()


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 120
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, "workers outlived their parent"
        time.sleep(0.05)


def test_ctrl_c_saves_and_a_killed_parent_takes_its_workers_along(tmp_path):
    before, folder = shared_files(), tmp_path / "run"
    run = begin(folder, "--total_steps", "10000000")
    wait_for_learning(run)
    workers = below(run.pid)
    assert len(workers) >= 2
    os.killpg(run.pid, signal.SIGINT)
    shown, errors = run.communicate(timeout=120)
    assert run.returncode == 130, errors
    assert errors == "", "workers must leave Ctrl-C to their parent"
    assert "saved after" in shown
    wait_until_gone(workers)

    # What was saved can be continued, with the workers it had.
    run = begin(folder, "--total_steps", "10000000", "--resume")
    wait_for_learning(run)
    workers = below(run.pid)
    assert len(workers) >= 2
    run.kill()
    run.communicate()
    wait_until_gone(workers)
    deadline = time.monotonic() + 120
    while not shared_files() <= before:  # what other tests have there comes and goes
        assert time.monotonic() < deadline, "shared memory is left"
        time.sleep(0.05)
    assert list((folder / "checkpoints").glob("step_*.npz"))
