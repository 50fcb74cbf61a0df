"""`--num_workers`: the rule and its reason; the same run with any number of them, whatever befalls them."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import launcher
from schedrl import registry
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.launch import workers
from schedrl.launch.local import resume_command
from schedrl.launch.plan import read_plan

ENVS = ["--num_envs", "16", "--sequence_length", "12", "--no_eval"]
SMALL = {
    "pg": ["--episodes_per_sequence", "4", "--num_episodes", "48"],
    "a2c": ["--num_steps", "8", "--total_steps", "512", "--normalise_observations", "True"],
    "ppo": ["--num_steps", "16", "--batch_size", "64", "--total_steps", "1024"],
    "ddpg": ["--num_steps", "4", "--learning_starts", "64", "--total_steps", "512", "--batch_size", "32"],
}
CLUSTER = [
    "--algo", "ppo", "--env", "simple_cluster", "--num_jobs", "12", "--num_envs", "16", "--num_steps", "16",
    "--batch_size", "64", "--total_steps", "512", "--validate_every", "256", "--validation_sequences", "4",
    "--normalise_observations", "True", "--no_eval",
]  # fmt: skip
in_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def weights(folder):
    with np.load(folder / "policy.npz") as file:
        return file["weights"]


# -- the rule ------------------------------------------------------------------------------------------------


def note(*arguments):
    return next(line for line in read_plan(list(arguments)).notes if line.startswith("num_workers"))


def test_the_default_is_printed_with_its_reason(monkeypatch):
    monkeypatch.setattr(workers, "cores", lambda: 2)
    assert note() == (
        "num_workers 1: deeprm is stepped by compiled code, a small part of a run, of which more processes "
        "could save little (here are 2 cores)"
    )
    assert note("--num_workers", "3").startswith("num_workers 3: as many processes step the environments")
    assert note("--algo", "a3c").startswith("num_workers 1: this process alone, so that the run repeats")


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (2, 1), (3, 2), (8, 7)])
def test_a_costly_environment_gets_a_worker_per_core_but_one(cores, count, monkeypatch):
    monkeypatch.setattr(workers, "cores", lambda: cores)
    monkeypatch.setattr(DeepRMSettings, "costly_steps", True, raising=False)
    assert note().startswith(f"num_workers {count}: ")
    plan = read_plan([])
    assert plan.launch.num_workers == count
    assert ("--num_workers" in resume_command(plan)) == (count > 1)


# -- the same run --------------------------------------------------------------------------------------------


QUICK = ("pg", "ppo")  # the others collect as these do, or almost


@pytest.mark.parametrize(
    "algo", [pytest.param(a, marks=() if a in QUICK else pytest.mark.slow) for a in SMALL]
)
def test_workers_change_nothing_but_the_time(algo, tmp_path):
    for count in (1, 2):
        more = ["--num_workers", str(count), "--model_dir", str(tmp_path / str(count))]
        assert launcher.main(["--algo", algo, *ENVS, *SMALL[algo], *more]) == 0
    assert (weights(tmp_path / "1") == weights(tmp_path / "2")).all()
    for name in ("reward_history.npy", "slowdown_history.npy"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.slow
def test_on_a_cluster_with_normaliser_validation_and_another_number_of_workers_on_resume(tmp_path, capsys):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert launcher.main([*CLUSTER, "--model_dir", str(whole)]) == 0
    first = [*CLUSTER, "--total_steps", "256", "--num_workers", "2", "--learning_rate_schedule", "constant"]
    assert launcher.main([*first, "--model_dir", str(parts)]) == 0
    assert "reward per decision so far" in capsys.readouterr().out
    shutil.rmtree(whole)
    constant = [*CLUSTER, "--learning_rate_schedule", "constant"]
    assert launcher.main([*constant, "--model_dir", str(whole)]) == 0
    more = ["--resume", "--num_workers", "3", "--total_steps", "512", "--model_dir", str(parts)]
    assert launcher.main([*constant, *more]) == 0
    assert (weights(whole) == weights(parts)).all()
    assert (whole / "validation.csv").read_text() == (parts / "validation.csv").read_text()


@pytest.mark.slow
def test_a_teacher_plays_before_workers_learn(tmp_path):
    imitate = ["--pretrain", "sjf", "--pretrain_episodes", "20", "--pretrain_epochs", "1"]
    for count in (1, 2):
        more = ["--num_workers", str(count), "--model_dir", str(tmp_path / str(count))]
        assert launcher.main(["--algo", "a2c", *ENVS, *SMALL["a2c"], *imitate, *more]) == 0
    assert (weights(tmp_path / "1") == weights(tmp_path / "2")).all()


# -- when something fails ------------------------------------------------------------------------------------

LONG = ["--algo", "ppo", *ENVS, "--num_steps", "16", "--batch_size", "64", "--total_steps", "20480"]


def begin(folder, root, *more, **options):
    command = [sys.executable, str(root / "launcher.py"), *LONG, "--model_dir", str(folder), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"PYTHONPATH": str(root)}
    # A session of its own, so that a signal to the group is what Ctrl-C is in a terminal.
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes, **options)


def wait_for_learning(run):
    for line in run.stdout:
        if line.startswith("Episode"):
            return
    pytest.fail(run.stderr.read())


def session(leader):
    """Return the living processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(sid) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def workers_below(pid):
    """Return the processes that a process has spawned to work."""
    children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [child for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


def require_nothing_left(leader, before):
    deadline = time.monotonic() + 120
    while session(leader) or not shared_files() <= before:  # other tests' files come and go
        assert time.monotonic() < deadline, "processes or shared memory outlived the run"
        time.sleep(0.05)


def shared_files():
    folder = Path("/dev/shm")
    return {p.name for p in folder.iterdir() if p.name[:4] in ("pym-", "psm_")} if folder.is_dir() else set()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert launcher.main([*LONG, "--model_dir", str(folder)]) == 0
    return folder


@in_proc
@pytest.mark.slow
def test_a_run_that_loses_workers_is_the_run_that_lost_none(uninterrupted, tmp_path, root):
    before = shared_files()
    run = begin(tmp_path / "run", root, "--num_workers", "2", "--worker_timeout", "20")
    wait_for_learning(run)
    frozen, killed = workers_below(run.pid)
    os.kill(frozen, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    _, errors = run.communicate(timeout=180)
    assert run.returncode == 0, errors
    reasons = [(1, killed, "killed by SIGKILL"), (0, frozen, "no sign of life for 20 s")]
    assert errors.splitlines() == [
        f"worker {worker} (process {pid}) was lost: {reason}; a new one takes its place ({i} of at most 10)"
        for i, (worker, pid, reason) in enumerate(reasons, 1)
    ]
    assert (weights(tmp_path / "run") == weights(uninterrupted)).all()
    require_nothing_left(run.pid, before)


@in_proc
@pytest.mark.slow
def test_ctrl_c_saves_and_resuming_is_exact_even_after_a_full_disk(uninterrupted, tmp_path, root):
    before, folder = shared_files(), tmp_path / "run"
    run = begin(folder, root, "--num_workers", "2")
    wait_for_learning(run)
    os.killpg(run.pid, signal.SIGINT)
    shown, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (130, "")
    assert f"--model_dir {folder} --resume --no_eval True --num_workers 2" in shown
    require_nothing_left(run.pid, before)
    assert (weights(folder) != weights(uninterrupted)).any(), "it was over before the signal; make it longer"

    # No file may grow so large: a checkpoint would, or TensorBoard's.
    limit = (resource.RLIMIT_FSIZE, (60_000, 60_000))
    run = begin(folder, root, "--resume", preexec_fn=lambda: resource.setrlimit(*limit))
    _, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (
        1,
        f"error: can't write to {folder}: File too large; no half-written checkpoint is left. Make room, "
        f"then go on from the last checkpoint: python launcher.py --algo ppo --model_dir {folder} --resume "
        "--no_eval True\n",
    )
    assert len(list((folder / "checkpoints").iterdir())) == 1
    assert launcher.main([*LONG, "--model_dir", str(folder), "--resume"]) == 0
    assert (weights(folder) == weights(uninterrupted)).all()


@in_proc
@pytest.mark.slow
def test_a_killed_parent_takes_even_a_frozen_worker_along(tmp_path, root):
    before = shared_files()
    run = begin(tmp_path / "run", root, "--num_workers", "2")
    wait_for_learning(run)
    os.kill(workers_below(run.pid)[0], signal.SIGSTOP)
    run.kill()
    run.communicate()
    require_nothing_left(run.pid, before)


def test_every_algorithm_is_covered():
    assert set(SMALL) | {"a3c"} == set(registry.names("algorithm"))
