"""simple_cluster from training to the report: a comparison, slow_down_cdf.py, a model in a replay."""

import csv
import json

import pytest

import compare_algorithms
import job_distribution
import slow_down_cdf
from schedrl.evaluation.cluster import plots, report
from schedrl.launch.comparing import on_cluster, one_run, training
from schedrl.launch.comparing.plan import read_plan

TINY = (
    "--use_tf_function False --total_steps 1024 --num_envs 16 --num_steps 16 --batch_size 64 --num_epochs 2"
)
NUM_JOBS = 60
CLUSTER = "--env simple_cluster --algorithms PPO --seeds 0 --num_jobs 30 --privileged True"
"""So that it is seen everywhere that what only the critic is shown is not asked for again."""


@pytest.fixture(scope="module")
def quick():
    """Draw nothing: pictures have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "save", lambda path, *_: (path.write_bytes(b""), path)[1])
        patch.setattr(report, "write_html", lambda path, *_: path.write_text("page"))
        patch.setattr(on_cluster, "write_pdf", lambda path, *_: path.write_bytes(b"%PDF"))
        patch.setattr(training, "_in_a_process", lambda request, stop: one_run.perform(request))
        yield


@pytest.fixture(scope="module")
def compared(quick, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster") / "results"
    words = f"{CLUSTER} {TINY} --num_eval_episodes 120 --compare.num_jobs 1 --output_dir {folder}"
    assert compare_algorithms.main(words.split()) == 0
    return folder


def test_a_comparison_on_a_cluster(compared):
    names = {path.name for path in compared.iterdir()}
    assert {"comparison_report.pdf", "comparison_report.html", "comparison_report.csv"} <= names
    rows = list(csv.DictReader((compared / "comparison_report.csv").open(encoding="utf-8")))
    policies = [row["policy"] for row in rows]
    assert policies[-2:] == ["ppo seed 0 (greedy)", "ppo seed 0 (sampled)"]
    assert "sjf+best_fit+skip" in policies
    assert {row["nb_jobs"] for row in rows} == {str(12 * 30)}
    assert {row["finished"] for row in rows} == {str(12 * 30)}
    notes = json.loads((compared / "comparison_report.json").read_text(encoding="utf-8"))["notes"]
    assert notes[0].startswith("sjf+best_fit+hold: tuned on validation sequences (long_from")
    jobs = list(csv.DictReader((compared / report.JOBS).open(encoding="utf-8")))
    assert {row["sequence"] for row in jobs} == set(map(str, range(12)))


@pytest.mark.slow
def test_all_algorithms_with_two_seeds(quick, tmp_path):
    words = "--env simple_cluster --preset cluster --seeds 0,1 --num_jobs 30 --use_tf_function False"
    words += " --num_envs 16 --total_steps 1024 --validation_sequences 4 --num_eval_episodes 120"
    words += " --compare.num_jobs 1 --ppo.batch_size 512 --ddpg.replay_size 512 --ddpg.learning_starts 100"
    assert compare_algorithms.main([*words.split(), "--output_dir", str(tmp_path)]) == 0
    rows = list(csv.DictReader((tmp_path / "comparison_report.csv").open(encoding="utf-8")))
    learned = {row["policy"] for row in rows if "seed" in row["policy"]}
    assert learned == {
        f"{algo} seed {seed} ({mode})"
        for algo in ("a2c", "a3c", "ddpg", "pg", "ppo")
        for seed in (0, 1)
        for mode in ("greedy", "sampled")
    }
    rules = [row for row in rows if "seed" not in row["policy"]]
    assert all(int(row["nb_jobs"]) == 12 * 30 for row in rules)
    assert all(0 < int(row["nb_jobs"]) <= 12 * 30 for row in rows)  # hardly trained, some are cut off


def test_a_trained_model_is_evaluated(compared, tmp_path, capsys):
    words = f"--model_dir {compared / 'ppo/seed_0'} --num_eval_episodes 12 --output_dir {tmp_path}"
    assert slow_down_cdf.main([*words.split(), "--baselines", "fifo,sjf+best_fit"]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    wanted = {"slowdown_cdf.png", "resource_utilization.png", "gantt.png", "job_completion_time.csv"}
    assert wanted <= names
    assert "ppo (greedy) has a mean bounded slowdown of" in capsys.readouterr().out
    found = json.loads((tmp_path / report.EVALUATION).read_text(encoding="utf-8"))
    assert [row["policy"] for row in found["rows"]][:2] == ["fifo+first_fit+skip", "sjf+best_fit+skip"]


def test_a_trained_model_is_evaluated_on_another_cluster(compared, quick, tmp_path, capsys):
    words = f"--model_dir {compared / 'ppo/seed_0'} --num_eval_episodes 2 --output_dir {tmp_path}"
    words += " --baselines fifo"
    assert slow_down_cdf.main([*words.split(), "--num_servers", "8", "--num_job_slots", "4"]) == 0
    assert slow_down_cdf.main([*words.split(), "--privileged", "False"]) == 2
    assert "--privileged has no effect" in capsys.readouterr().err


def test_what_a_cluster_has_not_is_refused(compared, capsys):
    words = ["--model_dir", str(compared / "ppo/seed_0"), "--steady_state"]
    assert slow_down_cdf.main(words) == 2
    assert "--termination continuing" in capsys.readouterr().err


def test_a_model_stands_in_a_replay(compared, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "five.csv").write_text("name,count,cpu,memory,gpu\nserver,5,8,32,2\n")
    (tmp_path / "four.csv").write_text("name,count,cpu,memory,gpu\nserver,4,8,32,2\n")
    drawn = f"generate --distribution bursty --load 0.9 --num_jobs {NUM_JOBS} --out jobs.csv"
    assert job_distribution.main(drawn.split()) == 0
    model = compared / "ppo/seed_0"
    words = f"--trace jobs.csv --policies fifo,{model} --output_dir out --cluster".split()
    assert compare_algorithms.main([*words, "five.csv"]) == 0
    rows = list(csv.DictReader((tmp_path / "out" / report.CSV).open(encoding="utf-8")))
    assert [row["policy"] for row in rows] == ["fifo+first_fit+skip", str(model)]
    assert [row["finished"] for row in rows] == [str(NUM_JOBS)] * 2
    assert rows[1]["invalid_actions"] == "0"
    assert compare_algorithms.main([*words, "four.csv"]) == 0  # the network doesn't mind how many


def test_the_number_of_jobs_is_that_of_an_episode(tmp_path):
    plan = read_plan([*CLUSTER.split(), "--output_dir", str(tmp_path)])
    assert plan.environment.num_jobs == 30
    assert plan.settings.num_jobs is None
    assert plan.algorithms["ppo"].network == "pair_scorer"
    assert plan.baselines[0] == "sjf+best_fit+easy"
    assert plan.baselines[-1] == "sjf+best_fit+hold"
    plan = read_plan([*CLUSTER.split(), "--baselines", "sjf", "--output_dir", str(tmp_path)])
    assert plan.baselines == ("sjf+first_fit+skip",)
