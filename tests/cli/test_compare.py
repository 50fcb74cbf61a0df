"""The comparison's command line: plans, refusals, runs that are used again, stopped, continued or fail."""

import csv
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import compare_algorithms
from schedrl import registry
from schedrl.evaluation.comparison_report import files, html
from schedrl.evaluation.comparison_report.files import FILES
from schedrl.launch.comparing import measuring, one_run, training
from schedrl.launch.comparing.plan import read_plan
from schedrl.launch.progress import Progress
from schedrl.settings import UserError

ALGORITHMS = ["ppo", *(name for name in registry.names("algorithm") if name != "ppo")][:2]
TINY = ["--num_envs", "16", "--use_tf_function", "False"]
TINY += ["--ppo.num_steps", "16", "--ppo.batch_size", "64", "--ppo.num_epochs", "2"]
MEASURED = ["--num_eval_episodes", "20", "--baselines", "sjf,packer", "--num_jobs", "1"]


def compare(folder, *arguments, algorithms="ppo", steps=1024):
    words = ["--algorithms", algorithms, "--total_steps", steps, "--output_dir", folder, *TINY, *MEASURED]
    return compare_algorithms.main([str(word) for word in (*words, *arguments)])


@pytest.fixture
def here(monkeypatch):
    """Runs are trained in this process, which has TensorFlow already, rather than in one of their own."""
    seen = []

    def in_this_process(request, stop):
        seen.append((request["algo"], request["seed"], request["resume"]))
        return one_run.perform(request)

    monkeypatch.setattr(training, "_in_a_process", in_this_process)
    # Drawing takes seconds, and the report has tests of its own.
    monkeypatch.setattr(files, "write_pdf", lambda path, *_: path.write_bytes(b"%PDF"))
    monkeypatch.setattr(html, "_picture", lambda _: "")
    return seen


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The folder of a tiny comparison of two seeds, and the algorithms in it."""
    folder = tmp_path_factory.mktemp("compared") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_in_a_process", lambda request, stop: one_run.perform(request))
        assert compare(folder, "--seeds", "0,1", algorithms=",".join(ALGORITHMS)) == 0
    return folder


def rows(folder, **wanted):
    with open(folder / "comparison_report.csv", newline="", encoding="utf-8") as file:
        every = list(csv.DictReader(file))
    return [row for row in every if all(row[name] == value for name, value in wanted.items())]


def weights(folder):
    with np.load(folder / "policy.npz") as file:
        return file["weights"]


# ---- The plan ----------------------------------------------------------------------------------------------


def test_a_flag_sets_all_and_a_table_one(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("gamma = 0.5\n[ppo]\nclip_epsilon = 0.3\n[deeprm]\nbacklog_size = 40\n")
    words = ["--algorithms", "PPO", "--config", str(config), "--learning-rate", "0.1", "--PPO.lr=0.2"]
    plan = read_plan([*words, "--preset", "deeprm-70,ppo-mlp", "--ppo.xla"])
    ppo = plan.algorithms["ppo"]
    assert (ppo.gamma, ppo.clip_epsilon, ppo.learning_rate, ppo.xla) == (0.5, 0.3, 0.2, True)
    assert (ppo.network, ppo.total_steps) == ("mlp", 2_000_000)
    assert (plan.environment.arrival_rate, plan.environment.backlog_size) == (0.38, 40)


def test_every_run_has_the_same_budget_and_environment():
    plan = read_plan(
        ["--total_steps", "5000", "--seeds", "3,4", "--arrival_rate", "0.4", "--output_dir", "x"]
    )
    runs = plan.runs()
    assert len(runs) == 2 * len(registry.names("algorithm"))
    assert {run.algorithm.total_steps for run in runs} == {5000}
    assert {run.environment for run in runs} == {plan.environment}
    assert [run.folder for run in runs if run.launch.algo == "ppo"] == [
        Path("x/ppo/seed_3"),
        Path("x/ppo/seed_4"),
    ]


def test_a_preset_is_for_its_own_class_and_does_not_change_the_budget():
    plan = read_plan(["--algorithms", "ppo", "--preset", "ppo-steady", "--total_steps", "7000"])
    assert (plan.algorithms["ppo"].gamma, plan.budget) == (0.999, 7000)
    pictured = read_plan(["--algorithms", "ppo", "--preset", "ppo-image"]).runs()[0]
    assert pictured.environment.representation == "image"


def test_algorithms_that_cannot_act_in_the_environment_are_left_out_or_refused(monkeypatch, capsys):
    cls = registry.get("algorithm_settings", "ppo")
    monkeypatch.setattr(cls, "actions", ("continuous",), raising=False)
    others = [name for name in registry.names("algorithm") if name != "ppo"]
    if others:
        assert list(read_plan([]).algorithms) == others
    assert compare_algorithms.main(["--algorithms", "ppo"]) == 2
    error = capsys.readouterr().err
    assert "ppo can't act in deeprm, whose actions are discrete; algorithms that can: " in error
    assert error.strip().endswith(", ".join(others) or "none")


def test_a_critic_is_shown_the_truth_only_where_all_have_one():
    shown = ["--env", "simple_cluster", "--preset", "cluster", "--privileged", "--algorithms"]
    assert read_plan([*shown, "ppo,a2c"]).runs()[0].environment.privileged
    with pytest.raises(UserError, match="ddpg has none: leave it out"):
        read_plan([*shown, "ppo,ddpg"])


def test_in_steady_state_defer_is_left_out():
    plan = read_plan(["--preset", "deeprm-steady"])
    assert "defer" not in plan.baselines
    assert "tsl" in plan.baselines


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--algorithms", "pppo"], "nearest: ppo"),
        (["--algorithms", "ppo", "--ppo.gama", "1"], "--ppo.gamma"),
        (["--algorithms", "ppo", "--nope.gamma", "1"], "unknown algorithm 'nope'"),
        (["--algorithms", "ppo", "--ppo.total_steps", "9"], "budget is the same for all"),
        (["--total_steps", "9", "--episodes", "9"], "leave the other out"),
        (["--seed", "1", "--seeds", "1,2"], "keep one of them"),
        (["--seeds", "1,1"], "names a seed twice"),
        (["--seeds", "-1"], "at least 0"),
        (["--num_jobs", "0"], "at least 1"),
        (["--baselines", "sjff"], "nearest: sjf"),
        (["--env", "deeprmm"], "nearest: deeprm"),
        (["--preset", "deeprm-71"], "nearest: deeprm-70"),
        (["--preset", "deeprm-steady", "--baselines", "sjf,defer"], "waits for arrivals to end"),
        (["--a2c.pretrain", "tsl"], "pretrain is tsl, which idles"),
        (["--num_env", "4"], "--num_envs"),
        (["--config", "/nowhere.toml"], "can't read"),
        (["--output_dir", "{file}/x"], "not a folder"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(wrong, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    assert compare_algorithms.main([word.format(file=file) for word in wrong]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert says in error
    assert list(tmp_path.iterdir()) == [file]


def test_a_budget_in_a_table_of_one_algorithm_is_refused(tmp_path, capsys):
    (tmp_path / "c.toml").write_text("[ppo]\ntotal_steps = 10\n")
    assert compare_algorithms.main(["--config", str(tmp_path / "c.toml")]) == 2
    assert "the budget is the same for all" in capsys.readouterr().err


def test_tables_of_algorithms_that_are_not_compared_are_left_alone(tmp_path):
    others = [name for name in registry.names("algorithm") if name != "ppo"]
    (tmp_path / "c.toml").write_text("".join(f"[{name}]\ngamma = 0.5\n" for name in ("ppo", *others)))
    plan = read_plan(["--algorithms", "ppo", "--config", str(tmp_path / "c.toml")])
    assert plan.algorithms["ppo"].gamma == 0.5


# ---- Runs --------------------------------------------------------------------------------------------------


def test_leaves_runs_and_a_report(compared):
    assert {path.name for path in compared.iterdir()} == {*ALGORITHMS, *FILES}
    for algorithm in ALGORITHMS:
        for seed in (0, 1):
            folder = compared / algorithm / f"seed_{seed}"
            names = {path.name for path in folder.iterdir()}
            assert {"run.json", "policy.npz", "reward_history.npy", "slowdown_history.npy"} <= names
            assert json.loads((folder / "run.json").read_text())["seed"] == seed
    assert len(rows(compared, kind="seed")) == len(ALGORITHMS) * 2 * 2
    assert {row["reused"] for row in rows(compared, kind="seed")} == {"False"}
    html = (compared / "comparison_report.html").read_text()
    assert "python compare_algorithms.py --algorithms" in html
    assert "SHA-256" in html


def test_finished_runs_are_used_again(compared, here, capsys):
    before = {path: path.stat().st_mtime_ns for path in compared.rglob("policy.npz")}
    first = rows(compared, kind="seed")
    assert compare(compared, "--seeds", "0,1", algorithms=",".join(ALGORITHMS)) == 0
    assert not here
    assert {path: path.stat().st_mtime_ns for path in compared.rglob("policy.npz")} == before
    again = rows(compared, kind="seed")
    assert {row["reused"] for row in again} == {"True"}
    assert [row | {"reused": ""} for row in again] == [row | {"reused": ""} for row in first]
    assert "finished already" in capsys.readouterr().out


def test_runs_of_another_comparison_are_refused_with_the_differences(compared, here, capsys):
    before = sorted(compared.rglob("*"))
    wrong = ("--arrival_rate", "0.4", "--ppo.gamma", "0.9", "--seeds", "0,1")
    assert compare(compared, *wrong, steps=2048) == 2
    error = capsys.readouterr().err
    for text in ("total_steps = 1024 (asked for 2048)", "arrival_rate = 0.7 (asked for 0.4)", "gamma = 1"):
        assert text in error
    for remedy in ("--output_dir", "--retrain", "seed_0", "seed_1"):
        assert remedy in error
    assert not here
    assert sorted(compared.rglob("*")) == before


@pytest.mark.parametrize("damage", ["cut", "gone", "pipe", "other"])
def test_a_damaged_log_of_a_finished_run_is_refused_in_a_line(damage, tmp_path, compared, here, capsys):
    shutil.copytree(compared / "ppo" / "seed_0", tmp_path / "ppo" / "seed_0")
    path = tmp_path / "ppo" / "seed_0" / "metrics.csv"
    content = path.read_bytes()
    path.unlink()
    if damage == "pipe":
        os.mkfifo(path)
    elif damage != "gone":
        path.write_bytes(content[:-40] if damage == "cut" else content.replace(b"256", b"x56", 1))
    assert compare(tmp_path, "--seed", 0) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "metrics.csv is not as it was" in error
    assert "--retrain" in error
    assert not here


def test_retrain_replaces_them(tmp_path, compared, here):
    shutil.copytree(compared / "ppo" / "seed_0", tmp_path / "ppo" / "seed_0")
    assert compare(tmp_path, "--seed", 0, "--retrain", "--ppo.gamma", "0.9") == 0
    assert here == [("ppo", 0, False)]
    stored = json.loads((tmp_path / "ppo" / "seed_0" / "run.json").read_text())
    assert stored["settings"]["algorithm"]["gamma"] == 0.9
    assert len((tmp_path / "ppo" / "seed_0" / "metrics.csv").read_text().splitlines()) == 1 + 4


def test_episodes_are_converted_by_a_rule_that_is_printed(tmp_path, here, capsys):
    words = ["--algorithms", "ppo", "--episodes", "10", "--seed", "0", "--output_dir", str(tmp_path), *TINY]
    assert compare_algorithms.main([*words, *MEASURED]) == 0
    shown = capsys.readouterr().out
    (told,) = {line for line in shown.splitlines() if "episodes count as" in line}
    assert "SJF's on 500 validation sequences" in told
    stored = json.loads((tmp_path / "ppo" / "seed_0" / "run.json").read_text())["settings"]["algorithm"]
    assert f"10 episodes count as {stored['total_steps']:,} decisions" in told
    assert 800 < stored["total_steps"] < 3000
    assert stored["num_episodes"] is None


def test_interrupted_runs_are_kept_and_continued_exactly(compared, tmp_path, here, monkeypatch, capsys):
    """Seed 0 is there, seed 1 is stopped half-way, seed 2 never begins: the same command goes on exactly."""
    shutil.copytree(compared / "ppo" / "seed_0", tmp_path / "ppo" / "seed_0")
    update = Progress.update

    def interrupted(self, record, yardsticks):
        update(self, record, yardsticks)
        if len(here) == 1 and self.updates == 2:
            os.kill(os.getpid(), signal.SIGINT)  # to the run, as its waiting process would
            (tmp_path / training.RUNNING / training.STOP).touch()

    monkeypatch.setattr(Progress, "update", interrupted)
    assert compare(tmp_path, "--seeds", "0,1,2") == 1
    assert here == [("ppo", 1, False)]
    shown = capsys.readouterr()
    assert "ppo seed 1: stopped and saved" in shown.out
    assert "the same command goes on" in shown.err
    assert not (tmp_path / training.RUNNING).exists()
    assert len(rows(tmp_path, kind="seed", mode="greedy")) == 1
    assert compare(tmp_path, "--seeds", "0,1") == 0
    assert here[1:] == [("ppo", 1, True)]
    assert (weights(tmp_path / "ppo" / "seed_1") == weights(compared / "ppo" / "seed_1")).all()
    assert {row["reused"] for row in rows(tmp_path, kind="seed", seed="0")} == {"True"}


def test_ctrl_c_ends_with_130_and_no_report(tmp_path, here, monkeypatch, capsys):
    def in_this_process(request, stop):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.exists()
        return {"status": "stopped"}

    monkeypatch.setattr(training, "_in_a_process", in_this_process)
    assert compare(tmp_path, "--seeds", "0,1") == 130
    assert "the same command goes on" in capsys.readouterr().out
    assert not list(tmp_path.glob("comparison_report*"))


def test_a_failing_run_does_not_lose_the_others(tmp_path, compared, here, monkeypatch, capsys):
    shutil.copytree(compared / "ppo" / "seed_1", tmp_path / "ppo" / "seed_1")
    perform = one_run.perform

    def broken(request):
        if request["seed"] == 0:
            request = request | {"algorithm": request["algorithm"] | {"learning_rate": 1e30}}
        return perform(request)

    monkeypatch.setattr(one_run, "perform", broken)
    assert compare(tmp_path, "--seeds", "0,1") == 1
    assert here == [("ppo", 0, False)]
    assert len(rows(tmp_path, kind="seed", mode="greedy")) == 1
    shown = capsys.readouterr()
    assert "ppo seed 0: FAILED: " in shown.out
    assert shown.err.startswith("error: ppo seed 0 failed: ")
    assert "Failed and left out: ppo seed 0 (" in (tmp_path / "comparison_report.html").read_text()


# ---- Processes and backends --------------------------------------------------------------------------------

STANDINS = {
    "dies": "import os; os.kill(os.getpid(), 9)",
    "breaks": "raise OSError('no room')",
    "waits": """
import json, os, signal, sys, time
json.load(sys.stdin)
signal.signal(signal.SIGINT, lambda *_: (print(json.dumps({"status": "stopped"})), sys.exit(0)))
with open(sys.argv[0] + ".part", "w") as file:
    file.write(str(os.getpid()))
os.replace(sys.argv[0] + ".part", sys.argv[0] + ".ready")
time.sleep(60)
""",
    "works": """
import json, os, sys
request = json.load(sys.stdin)
print("chatter")
print(json.dumps({"status": "finished", "decisions": 1, "seconds": 1.0, "by": os.getppid()}))
""",
}


@pytest.fixture
def standin(tmp_path, monkeypatch):
    """Put a small program in the place of the one that trains."""
    for name, text in STANDINS.items():
        (tmp_path / f"standin_{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda name: monkeypatch.setattr(training, "TASK_MODULE", f"standin_{name}")


def carry_out(folder, seed=0):
    request = {
        "algo": "ppo",
        "seed": seed,
        "folder": str(folder / "run"),
        "progress": str(folder / f"{seed}.json"),
    }
    return training.carry_out(request, str(folder / "stop"))


@pytest.mark.parametrize(("kind", "says"), [("dies", "signal 9 (SIGKILL)"), ("breaks", "OSError: no room")])
def test_a_crash_is_a_failure_with_its_reason(kind, says, standin, tmp_path):
    standin(kind)
    result = carry_out(tmp_path)
    assert result["status"] == "failed"
    assert says in result["error"]
    assert says in (tmp_path / "run" / training.LOG).read_text()
    assert json.loads((tmp_path / "0.json").read_text())["state"] == "failed"


@pytest.fixture
def when_ready(tmp_path, standin, monkeypatch):
    """Do something once the run that waits for ever is there, when its waiting process looks for `stop`."""
    standin("waits")
    exists, ready = Path.exists, tmp_path / "standin_waits.py.ready"

    def then(act):
        def look(path):
            if path.name == "stop" and exists(ready):
                act(path)
            return exists(path)

        monkeypatch.setattr(Path, "exists", look)
        return lambda: int(ready.read_text())

    return then


def test_a_wish_to_stop_reaches_the_run(when_ready, tmp_path):
    when_ready(lambda stop: stop.touch())
    assert carry_out(tmp_path)["status"] == "stopped"
    assert training.carry_out({"algo": "x"}, str(tmp_path / "stop")) == {"status": "stopped"}, "never begun"


def test_no_run_outlives_who_waits_for_it(when_ready, tmp_path):
    def second_ctrl_c(_):
        raise KeyboardInterrupt

    number = when_ready(second_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        carry_out(tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(number(), 0)


def test_a_run_ends_when_nobody_waits_any_more(monkeypatch):
    got = []
    before = signal.signal(signal.SIGINT, lambda *_: got.append("SIGINT"))
    try:
        monkeypatch.setattr(one_run, "LOOK_EVERY", 0.01)
        one_run._end_with(os.getppid())
        time.sleep(0.1)
        assert not got
        one_run._end_with(os.getppid() + 1)
        until = time.monotonic() + 60
        while not got and time.monotonic() < until:  # a full machine may take a moment
            time.sleep(0.01)
        assert got == ["SIGINT"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_backend_chosen_outside_carries_the_runs(standin, tmp_path):
    from joblib import parallel_config, register_parallel_backend
    from joblib._parallel_backends import ThreadingBackend

    taken = []

    class Elsewhere(ThreadingBackend):
        def submit(self, *arguments, **named):
            taken.append(arguments)
            return super().submit(*arguments, **named)

        apply_async = submit  # its name before joblib 1.5

    register_parallel_backend("elsewhere", Elsewhere)
    standin("works")
    runs = read_plan(["--algorithms", "ppo", "--seeds", "0,1", "--output_dir", str(tmp_path)]).runs()
    assert training.number_of_jobs(None, runs)[1].startswith("one run per processor")
    with parallel_config(backend="elsewhere"):
        assert training.number_of_jobs(None, runs) == (-1, "all that Elsewhere has")
    with parallel_config(backend="elsewhere", n_jobs=2):
        assert training.number_of_jobs(None, runs) == (2, "as joblib.parallel_config says")
        assert training.number_of_jobs(5, runs)[0] == 5
        said = []
        interrupts = type("Interrupts", (), {"on_stop": None})()
        watch = training.Watch(said.append)
        results = training.train_all([(run, False) for run in runs], tmp_path / "r", 2, interrupts, watch)
    assert len(taken) == 2
    assert [result["status"] for result in results] == ["finished"] * 2
    assert sum("begins" in line for line in said) == 2
    assert "2 of 2 runs over" in said[-1]


@pytest.mark.slow
def test_the_whole_command_in_processes_that_loky_waits_for(tmp_path):
    import subprocess

    words = ["--algorithms", "ppo", "--total_steps", "1024", "--seeds", "0,1", "--output_dir", "out", *TINY]
    code = (
        "import sys, joblib, compare_algorithms\n"
        "with joblib.parallel_config(backend='loky', n_jobs=2):\n"
        f"    sys.exit(compare_algorithms.main({[*words, *MEASURED[:4]]}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(registry.ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "2 at a time, as joblib.parallel_config says" in done.stdout
    assert len(rows(tmp_path / "out", kind="seed", mode="greedy")) == 2
    assert len(done.stdout.splitlines()) < 45, "not a wall of text"


# ---- Fairness ----------------------------------------------------------------------------------------------


def test_everyone_is_measured_on_the_same_jobs_and_measuring_leaves_no_trace(compared, monkeypatch):
    """What each policy and heuristic met is recorded: the same job tables; and nothing of it remains."""
    import random

    from schedrl.evaluation.evaluate import sequences_of

    words = ["--algorithms", ",".join(ALGORITHMS), "--seeds", "0,1", "--total_steps", "1024", *MEASURED]
    plan = read_plan([*words, *TINY, "--output_dir", str(compared)])
    policies = {}
    load = measuring.load_policy

    def kept(folder):
        policy, description = load(folder)
        policies[folder] = policy
        return policy, description

    monkeypatch.setattr(measuring, "load_policy", kept)
    states = {run.folder: "finished" for run in plan.runs()}
    before = {path: path.read_bytes() for path in compared.rglob("policy.npz")}
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002  the old global one is tested

    def measured(runs):
        return measuring.measure(plan, runs, states, (), {}, lambda _: None)

    result = measured(plan.runs())
    loaded = {folder: load(folder)[0] for folder in policies}
    jobs = sequences_of(plan.environment, 20, measuring.SEED, "test")
    assert len(result.evaluation.runs) == len(ALGORITHMS) * 2 * 2 + 2
    for run in result.evaluation.runs:
        for name in ("arrival", "duration", "demand"):
            met, meant = getattr(run.outcome, name), getattr(jobs, name)
            assert np.array_equal(met, meant[:, : met.shape[1]]), (run.label, name)
            assert not meant[:, met.shape[1] :].any() or name == "arrival"
    assert random.getstate() == python
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(one, other) for one, other in zip(legacy, after, strict=True))
    assert {path: path.read_bytes() for path in compared.rglob("policy.npz")} == before
    for folder, policy in policies.items():
        assert _state(policy) == _state(loaded[folder]), "weights and statistics are as they were loaded"
    again = measured(tuple(reversed(plan.runs())))
    for run in result.evaluation.runs:
        other = again.evaluation.run(run.name, run.mode)
        assert np.array_equal(run.outcome.start, other.outcome.start), f"{run.label} depends on its company"


def test_greedy_play_draws_nothing(compared):
    from schedrl.evaluation import evaluate

    policy, description = measuring.load_policy(compared / ALGORITHMS[0] / "seed_0")
    settings = registry.get("environment_settings", "deeprm").from_dict(
        description["settings"]["environment"]
    )

    class DrawsItself:  # takes no numbers that are drawn for it
        representation = policy.representation

        def predict(self, obs, deterministic):
            return policy.predict(obs, deterministic)

    for mode, draws in (("greedy", False), ("sampled", True)):
        before = policy.rng.bit_generator.state
        evaluate({"p": DrawsItself()}, settings, modes=(mode,), num_sequences=5, baselines=())
        assert (policy.rng.bit_generator.state != before) == draws


def _state(policy):
    """Return everything that a policy is made of, generator apart, as bytes."""
    return [policy._weights[name].tobytes() for name in sorted(policy._weights)], {
        name: [np.asarray(part).tobytes() for part in parts] for name, parts in policy._scale.items()
    }
