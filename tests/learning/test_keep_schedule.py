"""Another budget on --resume: what it changes is said, and --keep_schedule keeps what was planned."""

import csv

import pytest
from run_folders import copied, learn, start

from schedrl.launch.plan import read_plan
from schedrl.learning.budget import Budget
from schedrl.learning.run_folder import Run
from schedrl.settings import UserError

LAST = 70 / 80
"""Share of the budget before the last update of `run_folders.learn`: 80 decisions, 10 in an update."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    learn(*start(folder))
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return copied(finished, tmp_path / "run")


def plan_of(folder, *flags):
    return read_plan(["--model_dir", str(folder), "--resume", *flags])


def test_what_a_larger_budget_changes_is_said(folder):
    plan = plan_of(folder, "--total_steps", "160")
    told = next(note for note in plan.notes if "schedules span" in note)
    rate = plan.algorithm.learning_rate
    assert f"learning_rate from {rate * (1 - LAST):.3g} to {rate * 0.5:.3g}" in told
    assert "--keep_schedule" in told
    assert "total_steps was 80, is now 160" in plan.notes


@pytest.mark.parametrize("flags", [(), ("--keep_schedule",), ("--total_steps", "80")])
def test_nothing_is_said_where_nothing_changes(folder, flags):
    plan = plan_of(folder, *flags)
    assert not any("schedule" in note for note in plan.notes)
    assert Budget.of(plan.algorithm).limits[2:] == (None, None, 1.0)


def test_the_schedule_that_is_kept_stays_where_its_last_update_had_it(folder):
    algorithm = plan_of(folder, "--total_steps", "160", "--keep_schedule").algorithm
    budget = Budget.of(algorithm)
    for decisions in (80, 120, 159):
        budget.decisions = decisions
        assert budget.scheduled == LAST
        assert algorithm.rates(budget.scheduled)["learning_rate"] == algorithm.learning_rate * (1 - LAST)
    budget.decisions = 40
    assert budget.scheduled == 0.5


def test_it_is_kept_when_the_run_goes_on_again(folder):
    plan = plan_of(folder, "--total_steps", "160", "--keep_schedule")
    options = {"settings": plan.described, "resume": True, "checkpoint_every": 20}
    run = Run(Budget.of(plan.algorithm), 0, folder, **options)
    from run_folders import Model, leaves_of

    model = Model(leaves_of(plan.environment))
    run.restore(model=model)
    learn(run, model, updates=3, die=True)
    again = plan_of(folder)
    assert Budget.of(again.algorithm).limits == Budget.of(plan.algorithm).limits
    more = plan_of(folder, "--total_steps", "320", "--keep_schedule")
    assert Budget.of(more.algorithm).limits == (320, None, 80, None, LAST)


def test_before_its_end_the_former_schedule_goes_on_and_then_stays(folder):
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    newest.unlink()  # at 60 of 80 decisions
    budget = Budget.of(plan_of(folder, "--total_steps", "160", "--keep_schedule").algorithm)
    shares = []
    for decisions in (60, 70, 80, 150):
        budget.decisions = decisions
        shares.append(budget.scheduled)
    assert shares == [60 / 80, LAST, LAST, LAST]


@pytest.mark.parametrize("flag", ["--keep_schedule", "--accept_changes"])
def test_flags_of_a_resumed_run_are_refused_without_one(tmp_path, flag):
    with pytest.raises(UserError, match="give --resume too"):
        read_plan(["--model_dir", str(tmp_path / "new"), flag])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "a3c", "ddpg"])
def test_rates_of_real_runs(tmp_path, algorithm):
    import launcher

    command = ["--algo", algorithm, "--num_envs", "8", "--num_steps", "4", "--no_eval", "--model_dir"]
    command += [
        str(tmp_path / "run"),
        *(["--batch_size", "32"] if algorithm == "ppo" else []),
        "--total_steps",
    ]
    assert launcher.main([*command, "1024"]) == 0
    first = len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) - 1
    assert launcher.main([*command, "2048", "--resume", "--keep_schedule"]) == 0
    with open(tmp_path / "run" / "metrics.csv", newline="") as file:
        rates = [float(row["learning_rate"]) for row in csv.DictReader(file)][first:]
    assert len(rates) > 1
    assert len(set(rates)) == 1
    assert rates[0] > 0
