"""`--workload NAME` with its settings, on each command line that takes it."""

import json

import pytest

import compare_algorithms
import launcher
import slow_down_cdf
from schedrl.launch.comparing import one_run, training
from schedrl.launch.comparing.plan import read_plan as read_comparison
from schedrl.launch.plan import read_plan
from schedrl.settings import UserError

TINY = [
    "--num_envs",
    "16",
    "--num_steps",
    "16",
    "--batch_size",
    "64",
    "--total_steps",
    "512",
    "--algo",
    "ppo",
]
BURSTY = ["--workload", "bursty", "--burst_interval", "200", "--load", "0.9"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a tiny run on bursty jobs."""
    folder = tmp_path_factory.mktemp("bursty") / "run"
    assert launcher.main([*TINY, *BURSTY, "--model_dir", str(folder), "--no_eval"]) == 0
    return folder


def environment_of(folder):
    return json.loads((folder / "run.json").read_text())["settings"]["environment"]


def test_the_run_keeps_the_workload_and_goes_on_with_it(trained, capsys):
    stored = environment_of(trained)
    assert (stored["workload"], stored["load"]) == ("bursty", 0.9)
    assert stored["workload_settings"]["burst_interval"] == 200.0
    words = [*TINY, "--model_dir", str(trained), "--no_eval", "--resume"]
    assert launcher.main([*words, "--burst_interval", "200", "--workload", "bursty"]) == 0
    assert "bursty: a step is 19 s" in capsys.readouterr().out
    assert launcher.main([*words, "--burst_interval", "250"]) == 2
    assert (
        "workload_settings = burst_interval=250.0 (the run has burst_interval=200.0)"
        in capsys.readouterr().err
    )
    assert launcher.main([*words, "--workload", "poisson"]) == 2
    assert "workload = poisson (the run has bursty)" in capsys.readouterr().err
    assert launcher.main([*TINY, "--model_dir", str(trained), "--no_eval", "--resume"]) == 0


def test_a_model_is_evaluated_on_its_workload_or_on_another(trained, tmp_path, capsys):
    words = [
        "--model_dir",
        str(trained),
        "--num_eval_episodes",
        "10",
        "--baselines",
        "sjf",
        "--tune",
        "False",
    ]
    for more, says in (
        (["--burst_factor", "9"], "memory 90.0% after rounding"),
        (["--workload", "poisson", "--load", "0.4"], "poisson: a step"),
        (["--workload", "deeprm", "--load", "0.7"], "Slowdown on 10 test sequences"),
    ):
        assert slow_down_cdf.main([*words, *more, "--output_dir", str(tmp_path / "out")]) == 0
        out = capsys.readouterr().out
        assert says in out
        assert ("after rounding" in out) == ("deeprm" not in more)
    windows = ["--steady_state", "--steps", "200", "--first", "20", "--last", "120", "--num_windows", "4"]
    words = [*words[:2], *words[4:], *windows, "--output_dir", str(tmp_path / "steady")]
    assert slow_down_cdf.main(words) == 0
    assert "on 4 test sequences" in capsys.readouterr().out


def test_names_mean_what_the_workload_says():
    plan = read_plan([*BURSTY, "--capacity", "20", "--bursty.capacity", "80,320,20", "--algo", "ppo"])
    assert plan.environment.capacities == (20, 20)
    assert plan.environment.workload_settings.capacity == (80.0, 320.0, 20.0)
    poisson = read_plan(["--workload", "poisson", "--arrival-rate", "8"]).environment
    assert (poisson.workload_settings.arrival_rate, poisson.arrival_rate) == (8.0, 0.7)
    assert read_plan(["--arrival_rate", "0.3"]).environment.arrival_rate == 0.3
    assert read_plan(["--workload", "uniform"]).environment.distribution == "uniform"


def test_a_file_of_settings_names_a_workload_too(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(
        'load = 0.8\nburst_factor = 9\n[deeprm]\nworkload = "bursty"\n[bursty]\ncapacity = [8, 32, 2]\n'
    )
    environment = read_plan(["--config", str(config)]).environment
    own = environment.workload_settings
    assert (environment.workload, environment.load, own.burst_factor, own.capacity[0]) == (
        "bursty",
        0.8,
        9.0,
        8.0,
    )


def test_a_comparison_gives_the_workload_to_every_run(tmp_path, capsys):
    words = ["--algorithms", "ppo,a2c", *BURSTY, "--total_steps", "512", "--output_dir", str(tmp_path / "r")]
    plan = read_comparison([*words, "--bursty.burst_factor", "6", "--ppo.gamma", "0.9"])
    assert {run.environment.workload_settings.burst_factor for run in plan.runs()} == {6.0}
    assert {run.environment.load for run in plan.runs()} == {0.9}
    assert plan.algorithms["ppo"].gamma == 0.9
    assert compare_algorithms.main([*words, "--burst_facto", "6"]) == 2
    assert "burst_factor" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--workload", "burst"], "unknown workload 'burst'; nearest: bursty"),
        (["--workload", "poisson", "--burst_interval", "9"], "unknown option --burst_interval"),
        (["--burst_interval", "9"], "unknown option --burst_interval"),
        (
            ["--workload", "bursty", "--load", "0.9", "--arrival_rate", "3"],
            "load and arrival_rate are both given",
        ),
        (["--workload", "bursty", "--bursty.load", "0.9"], "which counts rounded jobs"),
        (["--workload", "bursty", "--preset", "deeprm-70"], "arrival_rate 0.38 is of workload deeprm"),
        (["--workload", "bursty", "--max_job_demand", "4"], "every job that fits the capacity"),
        (["--time_step", "4"], "time_step has no effect on workload deeprm"),
        (["--workload", "bursty", "--trace", "x.swf"], "leave out --workload bursty"),
    ],
)
def test_what_contradicts_is_one_line_and_writes_nothing(words, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for main in (launcher.main, compare_algorithms.main):
        assert main([*words, "--total_steps", "512"]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_help_lists_the_workloads_own_settings(capsys):
    for main in (launcher.main, compare_algorithms.main, slow_down_cdf.main):
        for words, listed in ((BURSTY, True), ([], False)):
            with pytest.raises(SystemExit):
                main([*words, "--help"])
            out = capsys.readouterr().out
            assert ("--burst_interval" in out) == listed
            assert "--workload X" in out
            assert "Jobs per minute" in out or not listed
            assert ("--trace FILE" in out) != listed


def test_jobs_that_cannot_come_are_refused_before_anything_is_written(tmp_path, capsys):
    with pytest.raises(UserError, match="burst_interval"):
        read_plan(["--workload", "bursty", "--burst_interval", "30"])
    words = [*TINY, "--workload", "bursty", "--time_step", "1e-9", "--long_jobs", "reject"]
    assert launcher.main([*words, "--model_dir", str(tmp_path / "run")]) == 2
    assert "none of the jobs" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# ---- Traces ------------------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path):
    """A small SWF file."""
    rows = [
        f"{n} {60 * n} -1 {10 + n % 50} {1 + n % 4} -1 -1 -1 -1 -1 1 1 1 1 0 -1 -1 -1" for n in range(1, 121)
    ]
    path = tmp_path / "jobs.swf"
    path.write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    return path


def test_a_trace_is_trained_on_evaluated_and_kept_apart_from_another(trace, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [*TINY, "--trace", "jobs.swf", "--load", "0.8", "--no_eval", "--model_dir", "run"]
    assert launcher.main(words) == 0
    assert "jobs.swf: 120 jobs; a step is" in capsys.readouterr().out
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert stored["environment"]["workload_settings"]["trace_file"] == str(trace)
    assert list(stored["data"]) == [str(trace)]
    assert launcher.main([*words, "--resume"]) == 0
    evaluated = [
        "--model_dir",
        "run",
        "--num_eval_episodes",
        "10",
        "--baselines",
        "sjf",
        "--output_dir",
        "out",
    ]
    assert slow_down_cdf.main(evaluated) == 0
    assert "test: 24 jobs in" in capsys.readouterr().out
    trace.write_text(trace.read_text().replace(" 60 ", " 61 "))
    for main, line in ((launcher.main, [*words, "--resume"]), (slow_down_cdf.main, evaluated)):
        assert main(line) == 2
        assert "jobs.swf" in capsys.readouterr().err
    other = tmp_path / "other.swf"
    other.write_text(trace.read_text())
    assert slow_down_cdf.main([*evaluated, "--trace", str(other), "--tune", "False"]) == 0
    assert "other.swf: 120 jobs" in capsys.readouterr().out


def test_a_comparison_on_a_trace(trace, tmp_path, monkeypatch, capsys):
    words = ["--algorithms", "ppo", "--trace", str(trace), "--total_steps", "512", "--seeds", "0"]
    words += [
        *TINY[:-4],
        "--baselines",
        "sjf",
        "--num_eval_episodes",
        "10",
        "--output_dir",
        str(tmp_path / "r"),
    ]
    plan = read_comparison([*words, "--realtrace.capacity", "cpu=16"])
    assert plan.environment.workload_settings.capacity == "cpu=16"
    monkeypatch.setattr(training, "_in_a_process", lambda request, stop: one_run.perform(request))
    assert compare_algorithms.main([*words, "--num_jobs", "1"]) == 0
    assert "jobs.swf: 120 jobs; a step is" in capsys.readouterr().out
    trace.write_text(trace.read_text().replace(" 60 ", " 61 "))
    assert compare_algorithms.main([*words, "--num_jobs", "1"]) == 2
    assert f"the content of {trace}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is no file; check the path"),
        ("; MaxProcs: 8\n", "no "),
        ("; MaxProcs: 8\n1 0 -1 5 9 -1 -1 -1 -1 -1 1 1 1 1 0 -1 -1 -1\n", "can't be split"),
        ("a,b\n1,2\n", ""),
    ],
)
def test_a_file_without_usable_jobs_is_one_line_and_writes_nothing(text, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jobs.swf"
    if text is not None:
        path.write_text(text)
    for main in (launcher.main, compare_algorithms.main):
        assert main(["--trace", str(path), "--total_steps", "512"]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
        assert error.startswith("error: ")
    assert not [found for found in tmp_path.iterdir() if found != path]
