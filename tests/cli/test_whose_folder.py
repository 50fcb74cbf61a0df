"""Commands in a folder that another one holds: one line, exit code 2, nothing changed; or another folder."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compare_algorithms
import job_distribution
import launcher
from schedrl.settings.claims import claim, claim_file

TINY = ["--num_envs", "16", "--num_steps", "16", "--batch_size", "64", "--total_steps", "1024", "--no_eval"]


def refused(main, arguments, capsys):
    assert main([*map(str, arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: "), shown.err
    assert shown.err.count("\n") == 1
    assert f"process {os.getpid()}" in shown.err
    return shown.err


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "jobs.csv"
    asked = ["generate", "--distribution", "poisson", "--num_jobs", "50", "--out", str(path)]
    assert job_distribution.main(asked) == 0
    return path


def test_launcher_and_comparison(tmp_path, capsys):
    with claim(tmp_path / "run"):
        text = refused(launcher.main, [*TINY, "--model_dir", tmp_path / "run"], capsys)
        assert "choose another --model_dir" in text
        refused(compare_algorithms.main, ["--algorithms", "ppo", "--output_dir", tmp_path / "run"], capsys)
        assert [path.name for path in (tmp_path / "run").iterdir()] == [".in_use"]


def test_replay_takes_a_number_where_none_is_named(trace, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["--trace", trace, "--policies", "fifo+first_fit+skip"]
    with claim(tmp_path / "results" / "replay"):
        refused(compare_algorithms.main, [*command, "--output_dir", "results/replay"], capsys)
        assert compare_algorithms.main([*map(str, command)]) == 0
    assert "this goes to results/replay_2" in capsys.readouterr().out
    assert (tmp_path / "results" / "replay_2" / "replay_report.html").exists()
    assert not (tmp_path / "results" / "replay").exists()


def test_two_writers_of_one_file(trace, tmp_path, capsys):
    before = trace.read_bytes()
    with claim_file(trace):
        refused(job_distribution.main, ["generate", "--num_jobs", 20, "--out", trace], capsys)
    assert trace.read_bytes() == before


def started(arguments, cwd, root, count):
    environment = os.environ | {"PYTHONPATH": str(root)}
    return [
        subprocess.Popen(
            [sys.executable, str(root / arguments[0]), *map(str, arguments[1:]), *own],
            cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for own in count
    ]  # fmt: skip


def ended(processes):
    for process in processes:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors


@pytest.mark.slow
def test_ten_at_once_of_each_command(trace, tmp_path, root, capsys):
    """Ten folders, ten right results."""
    ended(started(["launcher.py", *TINY], tmp_path, root, [["--seed", str(seed)] for seed in range(10)]))
    runs = sorted((tmp_path / "models").iterdir())
    assert len(runs) == 10
    seeds = {}
    for folder in runs:
        with np.load(folder / "policy.npz") as file:
            seeds[launcher_seed(folder)] = file["weights"]
    assert sorted(seeds) == list(range(10))
    assert launcher.main([*TINY, "--seed", "7", "--model_dir", str(tmp_path / "alone")]) == 0
    with np.load(tmp_path / "alone" / "policy.npz") as file:
        assert (file["weights"] == seeds[7]).all()
    with claim(tmp_path / "alone"):
        refused(launcher.main, [*TINY, "--model_dir", tmp_path / "alone", "--resume"], capsys)

    evaluation = [
        "slow_down_cdf.py",
        "--model_dir",
        tmp_path / "alone",
        "--num_eval_episodes",
        5,
        "--tune",
        "False",
    ]
    ended(started([*evaluation, "--baselines", "sjf"], tmp_path, root, [[]] * 10))
    tables = {path.read_bytes() for path in (tmp_path / "alone").rglob("job_completion_time.csv")}
    assert len(list((tmp_path / "alone").rglob("slowdown_cdf.png"))) == 10
    assert len(tables) == 1

    replay = ["compare_algorithms.py", "--trace", trace, "--policies", "fifo+first_fit+skip"]
    ended(started([*replay, "--output_dir", "first"], tmp_path, root, [[]]))  # compiles, for all others
    ended(started(replay, tmp_path, root, [[]] * 10))
    reports = sorted((tmp_path / "results").glob("replay*/replay_report.csv"))
    assert len(reports) == 10

    generate = ["job_distribution.py", "generate", "--num_jobs", 500]
    ended(started(generate, tmp_path, root, [["--seed", str(n), "--out", f"{n}.csv"] for n in range(10)]))
    assert len({(tmp_path / f"{n}.csv").read_bytes() for n in range(10)}) == 10


@pytest.mark.slow
def test_ten_comparisons_at_once(tmp_path, root):
    """Ten folders, and in each the run and the numbers that its seed has where nobody else runs."""
    tiny = ["--ppo.num_steps", "16", "--ppo.batch_size", "64", "--num_envs", "16", "--total_steps", "512"]
    measured = ["--num_eval_episodes", "12", "--baselines", "sjf", "--num_jobs", "1"]
    command = ["compare_algorithms.py", "--algorithms", "ppo", *tiny, *measured]
    ended(started(command, tmp_path, root, [["--seed", str(seed)] for seed in range(10)]))
    ended(started(command, tmp_path, root, [["--seed", "7", "--output_dir", "alone"]]))
    found = {}
    for folder in tmp_path.glob("results*"):
        (run,) = (folder / "ppo").iterdir()
        assert len({path.suffix for path in folder.glob("comparison_report.*")}) == 3
        found[launcher_seed(run)] = folder
    assert sorted(found) == list(range(10))
    history = Path("ppo", "seed_7", "reward_history.npy")
    assert (found[7] / history).read_bytes() == (tmp_path / "alone" / history).read_bytes()
    assert report_of(found[7]) == report_of(tmp_path / "alone")
    assert not list(tmp_path.rglob(".in_use"))


def report_of(folder):
    """Return the rows of a comparison's report without what the clock says."""
    with open(folder / "comparison_report.csv", newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if "second" not in k} for row in csv.DictReader(file)]


def launcher_seed(folder):
    from schedrl.learning.run_folder import read_description

    return read_description(folder)["seed"]
