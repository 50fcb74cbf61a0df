"""The reproduction of the paper and the clairvoyant optimum: what is planned, refused, measured and drawn.

The whole thing runs once, with tiny budgets, in the test marked slow.
"""

import csv
import json
import re
import sys

import numpy as np
import pytest
from fences import ROOT

from examples import clairvoyant_optimum, reproduce_deeprm
from examples.paper import plan, training
from examples.paper.curve import when
from examples.paper.optimum import Jobs
from schedrl.launch.plan import read_plan
from schedrl.learning.run_description import FORMAT_VERSION, git_commit, run_id_of
from schedrl.settings import UserError

ONE = ["--contenders", "ppo", "--loads", "0.7", "--objective_load", "0.7", "--withholding_load", "0.7"]
ONE += ["--seeds", "30", "--decisions", "16384", "--num_sequences", "40"]
ONE += ["--curve_points", "1", "--curve_sequences", "10"]


def settings_of(*arguments):
    return reproduce_deeprm.read_settings(reproduce_deeprm.make_parser().parse_args(arguments))


# ---- What is planned and refused ---------------------------------------------------------------------------


def test_make_paper_runs_it():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^paper: install .*\n\t\$\(BIN\)/python examples/reproduce_deeprm\.py$", makefile, re.M)


def test_every_policy_is_trained_once_by_valid_flags(tmp_path):
    settings = settings_of("--contenders", "ppo", "--out", str(tmp_path))
    runs = plan.trainings(settings)
    assert len(runs) == len({run.folder for run in runs}) == len(settings.loads) + 1 + 2
    assert {run.load for run in runs} == set(settings.loads)
    assert [run.seed for run in runs if run.curve] == [30, 31, 32]
    assert [run.load for run in runs if run.objective == "completion_time"] == [1.3]
    for run in runs:
        made = read_plan(run.flags)
        assert made.environment.load == run.load
        assert made.environment.objective == run.objective
        assert made.environment.idle_limit == 20
        assert made.launch.seed == run.seed >= 30


def test_a_contender_can_be_kept_to_the_learning_curve(tmp_path):
    runs = plan.trainings(settings_of("--every_load", "ppo", "--out", str(tmp_path)))
    others = [run for run in runs if run.contender != "ppo"]
    assert all(run.curve and run.load == 0.7 for run in others)
    assert [run.seed for run in others] == [30, 31, 32] * 2


def test_quick_and_idle_limit_are_understood():
    assert settings_of("--quick").decisions < 100_000
    settings = settings_of("--quick", "--idle_limit", "none", "--decisions", "5")
    assert (settings.idle_limit, settings.decisions) == (None, 5)
    assert "none" in plan.trainings(settings)[0].flags


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--contenders", "ppi"], "ppo"),
        (["--contenders", "ppo", "--every_load", "pg"], "every_load"),
        (["--loads", "2.5"], "1.845"),
        (["--processes", "0"], "processes"),
        (["--load", "0.7"], "--loads"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert reproduce_deeprm.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert words in error
    assert not list(tmp_path.iterdir())


def test_a_contender_whose_algorithm_is_not_here_is_refused(monkeypatch):
    monkeypatch.setitem(plan.CONTENDERS, "other", plan.Contender("Other", "nowhere"))
    assert "other" not in settings_of().chosen
    with pytest.raises(UserError, match="nowhere"):
        settings_of("--contenders", "other")


def test_a_run_of_other_settings_in_the_way_is_refused(tmp_path):
    (run,) = [one for one in plan.trainings(settings_of(*ONE, "--out", str(tmp_path))) if one.curve]
    made = read_plan(run.flags)
    stored = json.loads(json.dumps({"settings": made.described, "seed": 31, "algo": "ppo", "env": "deeprm"}))
    stored["settings"]["algorithm"]["total_steps"] = 77
    stored |= {"format_version": FORMAT_VERSION, "git": git_commit(), "versions": {}}
    stored["run_id"] = run_id_of(stored)
    run.folder.mkdir(parents=True)
    (run.folder / "run.json").write_text(json.dumps(stored))
    with pytest.raises(UserError, match=r"seed is 30, there 31; total_steps is 16384, there 77"):
        training.refuse_another(run)


def test_points_of_the_curve_end_at_the_budget():
    assert when(1000, 1) == [1000]
    found = when(1000, 4)
    assert len(found) == 4
    assert found[-1] == pytest.approx(1000)
    assert np.allclose(np.diff(np.log(found)), np.log(200) / 3)


# ---- The whole thing ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_tiny_run_measures_draws_and_is_used_again(tmp_path, capsys):
    from matplotlib.image import imread

    out = tmp_path / "paper"
    assert reproduce_deeprm.main([*ONE, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert all(f"Fig. {number}" in shown.out for number in (4, 5, 6, 7))
    assert "22 hours" in shown.out
    assert shown.out.strip() == (out / "tables.txt").read_text().strip()
    with open(out / "numbers.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["figure"] for row in rows} == {"4", "5", "6", "7"}
    everyone = {"ppo", *plan.RULES}
    assert {row["series"] for row in rows if row["figure"] == "4"} == everyone
    for row in rows:
        if row["low"]:  # empty: no number
            assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
    # Fig. 7's small and large jobs make up Fig. 4's: means weighted by jobs lie between them.
    mean = {
        row["series"]: float(row["value"])
        for row in rows
        if (row["figure"], row["measure"]) == ("4", "slowdown")
    }
    for name in plan.RULES:
        parts = [
            float(row["value"])
            for row in rows
            if (row["figure"], row["series"], row["measure"]) == ("7", name, "slowdown")
            and row["group"] in ("small", "large")
        ]
        assert min(parts) <= mean[name] <= max(parts)
    with open(out / "curves.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert int(float(line["decisions"])) == 16384
    assert float(line["best_return"]) > float(line["mean_return"])
    for name in ("fig4_load", "fig5_objectives", "fig6_learning", "fig7_withholding"):
        image = imread(out / f"{name}.png")
        assert min(image.shape[:2]) > 400
        assert len(np.unique(image.reshape(-1, image.shape[2]), axis=0)) > 20
    assert (out / "figures.pdf").read_bytes().startswith(b"%PDF")

    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/policy.npz")}
    assert len(before) == 2
    assert reproduce_deeprm.main([*ONE, "--out", str(out)]) == 0
    assert "training 0" in capsys.readouterr().err
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("runs/*/policy.npz")}
    assert reproduce_deeprm.main([*ONE, "--decisions", "32768", "--out", str(out)]) == 2
    assert "total_steps is 32768, there 16384" in capsys.readouterr().err


# ---- The clairvoyant optimum -------------------------------------------------------------------------------


def test_without_ortools_the_remedy_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    assert clairvoyant_optimum.main(["--output", str(tmp_path / "x" / "optimum.csv")]) == 2
    assert "pip install" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def small_jobs(seed, count=5):
    """Jobs few and short enough to try every schedule."""
    rng = np.random.default_rng(seed)
    arrival, duration = np.sort(rng.integers(0, 4, count)), rng.integers(1, 5, count)
    return Jobs(arrival, duration, rng.integers(1, 7, (count, 2)), np.array([8, 6]))


def best_by_trying(jobs):
    """Return the least cost over all orders, each job as early as it fits; one of them is best."""
    from itertools import permutations

    least = None
    for order in permutations(range(len(jobs.arrival))):
        used = np.zeros((60, 2), int)
        start = np.zeros(len(order), int)
        for job in order:
            span = jobs.duration[job]
            start[job] = next(
                t
                for t in range(jobs.arrival[job], 60)
                if (used[t : t + span] + jobs.demand[job] <= jobs.capacity).all()
            )
            used[start[job] : start[job] + span] += jobs.demand[job]
        cost = jobs.cost(start)
        least = cost if least is None else min(least, cost)
    return least


def test_what_large_jobs_may_take_is_implied_by_the_resources():
    jobs = Jobs(np.zeros(3, int), np.ones(3, int), np.array([[4, 3], [5, 3], [3, 4]]), np.array([8, 6]))
    (first, room, large, two), limits = (*jobs.limits()[0], *jobs.limits()[1]), jobs.limits()
    assert (first.tolist(), room) == ([4, 5, 3], 8)
    assert (large.tolist(), two) == ([1, 2, 0], 2)
    assert limits[3][0].tolist() == [1, 1, 2]


def test_the_optimum_of_small_instances_is_that_of_trying_all():
    pytest.importorskip("ortools", reason="OR-tools is optional: pip install ortools")
    from examples.paper.optimum import solve, with_choices, with_intervals

    for seed in range(6):
        jobs = small_jobs(seed)
        least = best_by_trying(jobs)
        start = jobs.arrival.max() + np.cumsum(jobs.duration) - jobs.duration
        for model in (with_intervals, with_choices):
            found, bound = model(jobs, start, 30, 1)
            assert jobs.cost(found) == bound == least
        solved = solve(jobs, seconds=30)
        assert solved.optimal
        assert solved.found == pytest.approx(len(jobs.arrival) + least / jobs.unit)


def test_nobody_beats_the_optimum_and_the_file_is_used_again(tmp_path, capsys):
    pytest.importorskip("ortools", reason="OR-tools is optional: pip install ortools")
    output = tmp_path / "optimum.csv"
    two = ["--load", "0.3", "--num_sequences", "2", "--output", str(output)]
    assert clairvoyant_optimum.main(two) == 0
    means = [float(mean) for mean in re.findall(r"  (\d+\.\d{3})  ", capsys.readouterr().out)]
    assert len(means) == 2 + len(clairvoyant_optimum.BASELINES)
    assert means[0] == means[1] <= min(means[2:])
    before = output.read_bytes()
    assert clairvoyant_optimum.main(two) == 0
    assert output.read_bytes() == before
    assert clairvoyant_optimum.main([*two, "--load", "0.5"]) == 2
    assert "another load" in capsys.readouterr().err
