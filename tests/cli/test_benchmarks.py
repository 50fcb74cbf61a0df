"""The benchmarks run, with tiny budgets, and say what they promise to; what they measure is not tested."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import distributed, failures, learning, paired, simulator, workload_learning, workloads
from benchmarks.__main__ import BENCHMARKS, main
from schedrl.envs.deeprm import DeepRMSettings, play
from schedrl.evaluation.evaluate import sequences_of
from schedrl.heuristics import SJF
from schedrl.settings import UserError

RATIO = r"\d+\.\dx \(\d+\.\d \.\. \d+\.\d\)"


def test_help_names_every_benchmark(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in BENCHMARKS)


def test_what_cannot_run_is_skipped_where_all_run(capsys, monkeypatch):
    def refuse(name, argv):
        raise UserError(f"{name} needs a peer")

    monkeypatch.setattr("benchmarks.__main__._run", refuse)
    assert main([]) == 0
    assert "skipped: training needs a peer" in capsys.readouterr().out


def test_unknown_names_and_options_are_refused(capsys):
    assert main(["simulater"]) == 2
    assert "simulator" in capsys.readouterr().err
    assert main(["simulator", "--round", "3"]) == 2
    assert "rounds" in capsys.readouterr().err


@pytest.mark.parametrize("passes", [True, False])
def test_a_row_that_fails_is_exit_code_1(tmp_path, capsys, monkeypatch, passes):
    monkeypatch.setattr(learning, "train", lambda *arguments: None)
    monkeypatch.setattr(learning, "measure", lambda *arguments: [{"passes": True}, {"passes": passes}])
    monkeypatch.setattr(learning, "_show", lambda rows, header: None)
    one = ["--arrival_rates", "0.7", "--idle_limits", "0", "--seeds", "0", "--out", str(tmp_path)]
    assert main(["learning", *one]) == (0 if passes else 1)
    assert f"{1 + passes} of 2 rows pass" in capsys.readouterr().out


def test_simulator_prints_ratios_and_verdicts(capsys, monkeypatch):
    monkeypatch.setattr(simulator, "WARM_UP", 2)
    monkeypatch.setattr(simulator, "GROWTH", [("job slots", "num_job_slots", (3,))])
    assert main(["simulator", "--rounds", "2", "--seconds", "0.001", "--num_envs", "2"]) == 0
    shown = capsys.readouterr().out
    for case in simulator.cases():
        line = next(line for line in shown.splitlines() if case.name in line)
        assert re.search(RATIO, line)
        assert ("met" in line or "MISSED" in line) == (case.bound is not None)
    assert "Nanoseconds per decision by job slots" in shown


def test_the_cluster_environment_prints_a_ratio_and_a_verdict(capsys):
    tiny = ["--rounds", "1", "--seconds", "0.05", "--num_envs", "64"]
    assert main(["cluster_env", *tiny]) in (0, 1)
    shown = capsys.readouterr().out
    assert re.search(RATIO + r"  (met|MISSED)", shown)
    assert "plain" in shown


def test_workloads_prints_a_ratio_and_a_verdict_for_every_generator(capsys):
    assert main(["workloads", "--rounds", "2", "--num_jobs", "500"]) == 0
    shown = capsys.readouterr().out
    for name in workloads.drawing():
        line = next(line for line in shown.splitlines() if line.strip().startswith(name))
        assert re.search(RATIO, line)
        assert "met" in line or "MISSED" in line
    assert main(["workloads", "--generators", "poison"]) == 2
    assert "poisson" in capsys.readouterr().err


def test_traces_prints_times_memory_and_verdicts(capsys):
    assert main(["traces", "--rounds", "2", "--num_jobs", "500"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "at most" in line]
    assert len(lines) == 3
    assert all(re.search(RATIO, line) and line.count("at most") == 2 for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_training_prints_ratios(capsys, monkeypatch):
    pytest.importorskip("sb3_contrib", reason="the peer is not installed: make peer")
    from benchmarks import training

    monkeypatch.setattr(training, "ROLLOUT", 1024)
    monkeypatch.setattr(training, "MINIBATCH", 256)
    assert main(["training", "--rounds", "1", "--seconds", "0.01", "--peer_envs", "4"]) == 0
    shown = capsys.readouterr().out
    assert len(re.findall(RATIO, shown)) == 4
    assert "MaskablePPO, 4 envs" in shown


def test_the_median_of_the_rounds_ratios_counts():
    rates = {"a": np.array([2.0, 30.0, 8.0]), "b": np.array([1.0, 10.0, 2.0])}
    assert paired.ratio(rates, "a", "b") == (3.0, 2.5, 3.5)
    assert paired.verdict(3.0, 2.0).startswith("met")
    assert "25%" in paired.verdict(3.0, 4.0)


def test_both_sides_of_the_simulator_decide_alike():
    """The rule of each form of the reference and the compiled one play the same episode as SJF."""
    settings = DeepRMSettings(sequence_length=20)
    outcome = play(SJF(), settings, sequences_of(settings, 1, family="train"))
    for form in simulator.FORMS:
        steps = simulator.reference_steps(form, settings)
        episode = [next(steps) for _ in range(int(outcome.decisions[0]))]
        assert [over for over in episode if over] == [True]
        assert episode[-1]
    env, act = simulator.compiled(1, sequence_length=20)
    for _ in range(int(outcome.decisions[0])):
        *_, infos = env.step(act())
    assert infos["episode"]["r"][0] == outcome.ret[0]


@pytest.mark.parametrize("passes", [True, False])
def test_learning_on_workloads_prints_and_draws_a_row_for_each(tmp_path, capsys, monkeypatch, passes):
    trained = []
    spans = {label: (-0.4, -0.5, -0.3) for label in (*workload_learning.CHANCE, *workload_learning.RULES)}
    means = {label: (2.0, 1.9, 2.1) for label in workload_learning.SHOWN}
    row = {"sequences": 10, "means": means, "against": spans, "passes": passes}
    monkeypatch.setattr(workload_learning, "train", lambda *given: trained.append(given))
    monkeypatch.setattr(workload_learning, "measure", lambda *given: row)
    words = ["--workloads", "poisson", "--traces", "x/jobs.swf", "--seeds", "10", "--out", str(tmp_path)]
    assert main(["workload_learning", *words]) == (0 if passes else 1)
    shown = capsys.readouterr().out
    assert "| poisson | 10 | 10 | 2.000 |" in shown
    assert "| -40.0% [-50.0% .. -30.0%] |" in shown
    assert [flags[-2:] for _, flags, *_ in trained] == [
        ["--workload", "poisson"],
        ["--sequence_length", "20"],
    ]
    assert (tmp_path / "workload_learning.png").stat().st_size > 1000


def test_learning_on_workloads_measures_against_chance_and_the_untrained_self(tmp_path):
    import launcher

    tiny = [
        "--num_envs",
        "16",
        "--num_steps",
        "16",
        "--batch_size",
        "64",
        "--total_steps",
        "512",
        "--no_eval",
    ]
    words = ["--workload", "bursty", "--load", "0.9", "--model_dir", str(tmp_path / "run"), "--seed", "3"]
    assert launcher.main([*tiny, *words]) == 0
    settings = workload_learning.WorkloadLearningBenchmark(num_sequences=20)
    row = workload_learning.measure(tmp_path / "run", 3, settings)
    assert set(row["against"]) == {*workload_learning.CHANCE, *workload_learning.RULES}
    assert row["means"].keys() > workload_learning.SHOWN.keys()
    assert row["means"]["untrained (greedy)"] != row["means"]["ppo (greedy)"]
    assert row["sequences"] == 20


@pytest.mark.slow
def test_workers_prints_ratios_a_control_and_a_verdict(capsys, monkeypatch):
    from benchmarks import local_workers

    monkeypatch.setattr(local_workers, "SETTINGS", {"num_envs": 8, "num_steps": 8, "batch_size": 64})
    monkeypatch.setattr(local_workers, "CALIBRATION", 0.05)
    tiny = ["--compare", "ppo", "--rounds", "1", "--seconds", "0.05", "--local_workers", "1,2"]
    assert main(["workers", *tiny]) in (0, 1)
    shown = capsys.readouterr().out
    assert re.search("Two processes that share nothing: " + RATIO, shown)
    for name in ("cheap, 1 process", "cheap, 2 workers", "costly, 1 process", "costly, 2 workers"):
        line = next(line for line in shown.splitlines() if line.startswith(name))
        assert len(re.findall(RATIO, line)) == 2
    assert re.search(r"costly steps: (met|MISSED)", shown)
    assert main(["workers", "--compare", "dqn"]) == 2


PLAYED = """
import signal, sys, time
from pathlib import Path

folder, count = Path(sys.argv[sys.argv.index("--model_dir") + 1]) / "checkpoints", 0
folder.mkdir(parents=True)

def end(*_):
    print("saved after all", flush=True)
    sys.exit(42)

signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGUSR1, lambda *_: print("it hurts", flush=True))
while True:
    count += 1
    (folder / f"step_{count:012d}.npz").touch()
    time.sleep(0.01)
"""


def test_failures_are_timed_to_the_message_and_to_what_follows(tmp_path, capsys, monkeypatch):
    script = tmp_path / "plays_a_launcher.py"
    script.write_text(PLAYED)
    harms = (
        failures.Harm("pain", failures.to_parent(signal.SIGUSR1), "it hurts"),
        failures.Harm("SIGTERM", failures.to_parent(signal.SIGTERM), "saved after", ends=True),
        failures.Harm("SIGKILL", failures.to_parent(signal.SIGKILL), "", ends=True),
    )
    monkeypatch.setattr(failures, "LAUNCHER", script)
    monkeypatch.setattr(failures, "LOCAL", harms)
    assert main(["failures", "--modes", "local", "--rounds", "2"]) == 0
    rows = [re.split("  +", line.strip()) for line in capsys.readouterr().out.splitlines()[3:6]]
    assert [(row[0], row[2]) for row in rows] == [
        ("pain", "it learns again"),
        ("SIGTERM", "all has ended, exit code 42"),
        ("SIGKILL", "all has ended, exit code -9"),
    ]
    assert rows[2][1] == "-"
    for text in (rows[0][1], rows[0][3], rows[1][1], rows[1][3], rows[2][3]):
        middle, least, most = map(float, re.findall(r"[\d.]+\d", text))
        assert least <= middle <= most


def test_the_launcher_takes_the_costly_environment(root):
    paths = os.pathsep.join([str(root), str(root / "benchmarks" / "costly")])
    code = (
        "from schedrl import registry; print(registry.get('vector_environment', 'deeprm')(num_envs=2)._turns)"
    )
    variables = {**os.environ, "PYTHONPATH": paths, "BURN_TURNS": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


@pytest.mark.parametrize(("slowdown", "code"), [(2.5, 0), (2.6, 1)])
def test_distributed_compares_quality_and_both_speeds(tmp_path, capsys, monkeypatch, slowdown, code):
    trained = []
    monkeypatch.setattr(
        distributed, "train", lambda folder, flags, *more: trained.append((folder.name, *more))
    )
    monkeypatch.setattr(
        distributed, "mean_slowdown", lambda folder, _: slowdown if "2_w" in folder.name else 2.5
    )
    monkeypatch.setattr(distributed, "rate_of", lambda folder: 300.0 if "2_workers" in folder.name else 200.0)
    assert main(["distributed", "--out", str(tmp_path), "--seeds", "7"]) == code
    shown = capsys.readouterr().out
    assert shown.count("1.50x") == 2
    assert ("the bound holds" in shown) == (code == 0)
    costly = {name: more for name, _, *more in trained if name.endswith("costly")}
    assert set(costly) == {"one_process_costly", "2_workers_costly"}
    for decisions, variables in costly.values():
        assert decisions == 40_000
        assert int(variables["BURN_TURNS"]) > 19 * 1_000_000 / 200  # 95 % of the time, on any processor
