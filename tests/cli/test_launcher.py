"""The main job's command line: runs, folders, resuming, and what it refuses."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import launcher
from schedrl import registry
from schedrl.evaluation.report import FILES

TINY = ["--num_envs", "16", "--num_steps", "16", "--batch_size", "64", "--total_steps", "1024"]
RUN_FILES = {"run.json", "metrics.csv", "policy.npz", "reward_history.npy", "slowdown_history.npy"}


def launch(*arguments):
    return launcher.main([*TINY, "--algo", "ppo", *map(str, arguments)])


def tree(folder):
    """Return every file below a folder with its content."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def weights(folder):
    with np.load(folder / "policy.npz") as file:
        return file["weights"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished tiny run."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert launch("--model_dir", folder, "--no_eval") == 0
    return folder


def test_trains_evaluates_draws_and_concludes(tmp_path, capsys):
    folder = tmp_path / "run"
    assert launch("--model_dir", folder, "--num_eval_episodes", 20) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    for name in ("ppo (greedy)", "ppo (sampled)", "sjf", "packer", "tetris", "sjf_hold", "tsl", "defer"):
        assert f"\n{name} " in shown.out
    assert "ppo (greedy) has a mean slowdown of" in shown.out
    assert "Episode " in shown.out
    assert {*RUN_FILES, *FILES, "checkpoints", "saved_model", "tensorboard"} == {
        p.name for p in folder.iterdir()
    }
    description = json.loads((folder / "run.json").read_text())
    assert (description["algo"], description["env"], description["seed"]) == ("ppo", "deeprm", 0)
    assert description["settings"]["algorithm"]["num_envs"] == 16
    assert float(list(csv.DictReader((folder / "metrics.csv").open()))[-1]["decisions"]) == 1024


def test_same_command_same_weights_other_seed_other_weights(finished, tmp_path):
    assert launch("--model_dir", tmp_path / "a", "--no_eval") == 0
    assert launch("--model_dir", tmp_path / "b", "--no_eval", "--seed", 1) == 0
    assert (weights(finished) == weights(tmp_path / "a")).all()
    assert (weights(finished) != weights(tmp_path / "b")).any()


def test_a_second_run_gets_a_folder_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert launch("--no_eval") == 0
    first = tree(tmp_path / "models" / "ppo_deeprm")
    assert launch("--no_eval") == 0
    assert "ppo_deeprm holds a run already" in capsys.readouterr().out
    assert tree(tmp_path / "models" / "ppo_deeprm") == first
    assert launch("--no_eval", "--resume", "--total_steps", 2048) == 0
    assert tree(tmp_path / "models" / "ppo_deeprm") == first
    rows = list(csv.DictReader((tmp_path / "models" / "ppo_deeprm_2" / "metrics.csv").open()))
    assert [float(row["decisions"]) for row in rows] == [256 * i for i in range(1, 9)]
    assert "total_steps was 1024, is now 2048" in capsys.readouterr().out


def test_a_killed_start_is_no_obstacle(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "metrics.csv").write_text("decisions\n1\n")
    assert launch("--model_dir", folder, "--no_eval") == 0
    assert len(list(csv.DictReader((folder / "metrics.csv").open()))) == 4


def test_episodes_as_budget(tmp_path):
    cycle = ["--num_envs", "16", "--num_steps", "64", "--batch_size", "64"]
    folder = tmp_path / "run"
    assert launcher.main([*cycle, "--num_episodes", "20", "--no_eval", "--model_dir", str(folder)]) == 0
    algorithm = json.loads((folder / "run.json").read_text())["settings"]["algorithm"]
    assert (algorithm["num_episodes"], algorithm["total_steps"]) == (20, None)
    assert len(np.load(folder / "reward_history.npy")) >= 20


def test_render_prints_the_cluster_at_every_step(tmp_path, capsys):
    assert launch("--model_dir", tmp_path / "run", "--no_eval", "--render") == 0
    shown = capsys.readouterr().out
    assert "time 1\n" in shown
    assert "time 40\n" in shown


def test_profile_writes_a_trace_and_says_how_to_see_it(tmp_path, capsys):
    assert launch("--model_dir", tmp_path / "run", "--no_eval", "--profile") == 0
    assert list((tmp_path / "run" / "profile").rglob("*.xplane.pb"))
    assert "tensorboard --logdir" in capsys.readouterr().out


def test_image_network_reads_images(tmp_path):
    assert launch("--model_dir", tmp_path / "run", "--no_eval", "--preset", "ppo-image") == 0
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert stored["environment"]["representation"] == "image"


def test_debug_mode_shows_every_step_and_keeps_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--mode", "debug", "--render", "--total_steps", "8", "--num_steps", "4"]
    assert launcher.main(arguments) == 0
    shown = capsys.readouterr().out
    for part in ("step 8\n", "sees", "may", "does", "value", "gets", "slots", "update 2", "time 0\n"):
        assert part in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("algo", registry.names("algorithm"))
def test_debug_mode_takes_every_algorithm(algo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert launcher.main(["--algo", algo, "--mode", "debug", "--sequence_length", "4"]) == 0
    shown = capsys.readouterr().out
    assert "step 1\n" in shown
    assert "update 1 learned from these steps" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [["--mode", "debug", "--num_steps", "4"], [*TINY, "--no_eval"]])
def test_a_nan_stops_with_its_name_and_exit_code_1(mode, tmp_path, capsys):
    arguments = [*mode, "--model_dir", str(tmp_path / "run"), "--learning_rate", "1e30"]
    assert launcher.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: not a number: ")
    assert "policy_loss" in error
    assert error.count("\n") == 1


SPOILT = [(algo, "learning_rate", "1e30") for algo in registry.names("algorithm")]
SPOILT += [("ddpg", "critic_learning_rate", "1e30"), ("ddpg", "reward_scale", "1e36")]


@pytest.mark.slow
@pytest.mark.parametrize(("algo", "name", "value"), SPOILT)
def test_a_run_of_no_numbers_has_failed_and_leaves_no_model(algo, name, value, tmp_path, capsys):
    flags = ["--num_envs", "16", "--total_steps", "4096", "--no_eval", "--checkpoint_every", "256"]
    flags += ["--learning_starts", "1024"] if algo == "ddpg" else []
    folder = tmp_path / "run"
    assert launcher.main(["--algo", algo, *flags, f"--{name}", value, "--model_dir", str(folder)]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: not a number: ")
    assert shown.err.count("\n") == 1
    assert "trained" not in shown.out
    assert not (folder / "policy.npz").exists()
    for path in (folder / "checkpoints").iterdir():
        with np.load(path) as file:
            assert all(np.isfinite(file[key]).all() for key in file.files if file[key].dtype.kind == "f")


BAD = [
    (["--algo", "ppoo"], "nearest: ppo"),
    (["--env", "deeprn"], "nearest: deeprm"),
    (["--preset", "ppo-mpl"], "nearest: ppo-mlp"),
    (["--clip_epsilom", "0.1"], "clip_epsilon"),
    (["--clip_epsilon", "-1"], "clip_epsilon is -1"),
    (["--gamma", "1.5"], "at most 1"),
    (["--arrival_rate", "2"], "arrival_rate is 2"),
    (["--total_steps", "many"], "whole number"),
    (["--total_steps", "0"], "at least 1"),
    (["--num_eval_episodes", "0"], "at least 1"),
    (["--seed", "-1"], "at least 0"),
    (["--network", "slots", "--representation", "compact"], "representation 'slots'"),
    (["--mode", "distributed"], "--cluster_spec"),
    (["--mode", "lokal"], "nearest: local"),
    (["--num_workers", "300"], "only num_envs 256 environments to share"),
    (["--num_workers", "0"], "num_workers is 0"),
    (["--worker_timeout", "0"], "worker_timeout is 0"),
    (["--max_restarts", "-1"], "max_restarts is -1"),
    (["--mode", "debug", "--num_workers", "2"], "leave out --num_workers"),
    (["--algo", "a3c", "--mode", "debug", "--num_workers", "2"], "leave out --num_workers"),
    (["--mode", "debug", "--num_envs", "8"], "one environment"),
    (["--mode", "debug", "--resume"], "--resume"),
    (["--exp_type", "pg_su", "--pretrain", "sfj"], "nearest: sjf"),
    (["--pretrain", "tsl"], "idle_limit is 20: set idle_limit none"),
    (["--algo", "ddpg", "--pretrain", "random"], "random, which chooses illegal actions"),
    (["--exp_type", "test"], "slow_down_cdf.py"),
    (["--unseen", "True"], "leave it out"),
    (["--config", "missing.toml"], "missing.toml"),
    (["--resume"], "no run in models/ppo_deeprm"),
    (["--resume", "--model_dir", "missing"], "missing"),
    (["--model_dir", "a_file"], "is a file"),
    (["--model_dir", "a_file/below"], "is a file"),
    (["--model_dir", "/proc/here"], "/proc"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=lambda value: " ".join(value) if value else "")
def test_bad_input_is_one_line_and_changes_nothing(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").write_text("kept")
    assert launcher.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert says in error
    assert [path.name for path in tmp_path.rglob("*")] == ["a_file"]


@pytest.mark.parametrize("door", ["launcher", "compare_algorithms"])
def test_a_teacher_that_breaks_the_rules_is_refused_before_tensorflow_is_loaded(door, tmp_path):
    root = str(Path(launcher.__file__).parent)
    code = (
        f"import sys, {door}\n"
        f"code = {door}.main(['--pretrain', 'defer'])\n"
        "print(code, [name for name in ('tensorflow', 'pandas', 'matplotlib') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": root},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "2 []\n", done.stderr
    assert "pretrain is defer, which idles beside jobs that could start" in done.stderr
    assert not list(tmp_path.iterdir())


def test_another_run_is_never_overwritten(finished, capsys):
    before = tree(finished)
    assert launch("--model_dir", finished, "--no_eval") == 2
    assert "--resume" in capsys.readouterr().err
    assert tree(finished) == before


def test_resuming_refuses_other_settings_and_lists_them_all(finished, capsys):
    before = tree(finished)
    other = ("--num_job_slots", 5, "--gamma", 0.9, "--seed", 7)
    assert launch("--model_dir", finished, "--resume", *other) == 2
    error = capsys.readouterr().err
    for part in (
        "num_job_slots = 5 (the run has 10)",
        "gamma = 0.9 (the run has 1.0)",
        "seed = 7 (the run has 0)",
    ):
        assert part in error
    assert tree(finished) == before


def truncate(folder):
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:1000])


def change_run(**changes):
    def change(folder):
        path = folder / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def reshape(folder):
    path = folder / "run.json"
    description = json.loads(path.read_text())
    description["settings"]["environment"]["num_job_slots"] = 5
    path.write_text(json.dumps(description))


def from_the_future(folder):
    path = folder / "run.json"
    description = json.loads(path.read_text())
    description["settings"]["algorithm"]["curiosity"] = 1.0
    path.write_text(json.dumps(description))


BROKEN = {
    "half a checkpoint": (truncate, "damaged"),
    "half a description": (lambda folder: (folder / "run.json").write_text('{"algo": '), "damaged"),
    "another format": (change_run(format_version=99), "version 99"),
    "an unknown setting": (from_the_future, "was changed after it was written"),
    "an unknown setting, accepted": (from_the_future, "curiosity", "--accept_changes"),
    "another shape": (reshape, "was changed after it was written"),
    "another shape, accepted": (reshape, "was made for", "--accept_changes"),
    "no description": (lambda folder: (folder / "run.json").unlink(), "run.json is missing"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_runs_are_not_resumed(what, finished, tmp_path, capsys):
    import shutil

    damage, says, *flags = BROKEN[what]
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    damage(folder)
    before = tree(folder)
    assert launcher.main(["--model_dir", str(folder), "--resume", "--no_eval", *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert says in error
    assert tree(folder) == before
