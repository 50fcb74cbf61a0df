"""Chains of kills: a run that is killed at random moments, and resumed each time, is the run that never was.

Each chain draws algorithm, signals and moments from its number. CHAINS=38 in the environment plays more of
them than CI does.
"""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import launcher

pytestmark = pytest.mark.slow
CHAINS = int(os.environ.get("CHAINS", "5"))
ALGORITHMS = ("a3c", "ppo", "a2c", "ddpg", "pg")
STEPS, EVERY = 16_384, 1_024
COMMON = ["--num_envs", "16", "--no_eval", "--total_steps", str(STEPS), "--checkpoint_every", str(EVERY)]
OWN = {"ddpg": ["--learning_starts", "256"]}
TIMES = {"seconds", "decisions_per_second"}
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def arguments(algorithm, folder):
    return ["--algo", algorithm, *COMMON, *OWN.get(algorithm, []), "--model_dir", str(folder)]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Return the folder of each algorithm's whole run, made when it is asked for."""
    folder = tmp_path_factory.mktemp("whole")

    def made(algorithm):
        if not (folder / algorithm / "policy.npz").exists():
            assert launcher.main(arguments(algorithm, folder / algorithm)) == 0
        return folder / algorithm

    return made


def saved(folder):
    """Return the decisions at the newest checkpoint, -1 before the first."""
    return max((int(path.stem[5:]) for path in (folder / "checkpoints").glob("step_*.npz")), default=-1)


def killed(command, folder, number, after, delay, root):
    """Start a command and send it the signal once so many more decisions are saved; return its exit code."""
    goal = saved(folder) + after
    run = subprocess.Popen(
        [sys.executable, str(root / "launcher.py"), *command],
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while saved(folder) < goal and run.poll() is None:
        time.sleep(0.005)
    time.sleep(delay)
    run.send_signal(number)
    _, errors = run.communicate(timeout=120)
    assert "Traceback" not in errors
    return run.returncode


def rows(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]


@pytest.mark.parametrize("chain", range(CHAINS))
def test_a_chain_of_kills_changes_nothing(chain, uninterrupted, tmp_path, root):
    random = np.random.default_rng(np.random.SeedSequence(25, spawn_key=(chain,)))
    algorithm, folder = ALGORITHMS[chain % len(ALGORITHMS)], tmp_path / "run"
    command = arguments(algorithm, folder)
    for _ in range(random.integers(1, 3)):
        number = random.choice(SIGNALS)
        after, delay = int(random.integers(1, STEPS // 2)), float(random.uniform(0, 0.3))
        resumed = [*command, "--resume"] if saved(folder) >= 0 else command
        code = killed(resumed, folder, number, after, delay, root)
        assert code in (0, 42, 130, -signal.SIGKILL)
    assert launcher.main([*command, "--resume"]) == 0
    whole = uninterrupted(algorithm)
    assert rows(folder) == rows(whole)
    for name in ("reward_history.npy", "slowdown_history.npy"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    with np.load(folder / "policy.npz") as ours, np.load(whole / "policy.npz") as theirs:
        assert (ours["weights"] == theirs["weights"]).all()
    assert not list(folder.rglob(".*")), "a kill has left something"
