"""A policy keeps the scales that it was trained with, and is shown everything in them afterwards."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import compare_algorithms
import launcher
import slow_down_cdf
from schedrl.envs.simple_cluster import SimpleClusterEnv, SimpleClusterSettings, clusters, play
from schedrl.envs.simple_cluster.scales import Scales, as_scales
from schedrl.evaluation.cluster import plots, report
from schedrl.launch.replay import trained
from schedrl.learning.checkpoint import load_arrays, save_arrays
from schedrl.learning.numpy_policy import load_policy
from schedrl.learning.run_description import run_id_of
from schedrl.settings import UserError
from schedrl.workload.cluster_file import default_cluster
from schedrl.workload.generators import generate, settings_of
from schedrl.workload.writers import write_trace

TRAIN = (
    "--env simple_cluster --algo ppo --preset cluster --num_jobs 10 --total_steps 256 --num_envs 8 "
    "--num_steps 16 --batch_size 64 --no_eval --use_tf_function False --validate_every 0"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("scales") / "run"
    assert launcher.main([*TRAIN.split(), "--model_dir", str(path)]) == 0
    return path


@pytest.fixture
def older(folder, tmp_path):
    """The same run as a version before wrote it: without scales."""
    path = tmp_path / "older"
    shutil.copytree(folder, path)
    arrays, header = load_arrays(path / "policy.npz", kind="policy")
    del header["scales"], header["run_id"]
    save_arrays(path / "policy.npz", arrays, header)
    description = json.loads((path / "run.json").read_text())
    del description["settings"]["scales"]
    (path / "run.json").write_text(json.dumps(description | {"run_id": run_id_of(description)}))
    return path


def some_jobs(stretch=1.0, count=60):
    """Jobs of which the second half comes `stretch` times as far apart."""
    jobs = generate(settings_of("poisson")(arrival_rate=0.1), count)
    gaps = np.diff(jobs.arrival, prepend=0.0)
    gaps[count // 2 :] *= stretch
    return replace(jobs, arrival=np.cumsum(gaps))


def test_a_run_and_its_policy_keep_the_scales_of_training(folder):
    policy, description = load_policy(folder)
    settings = SimpleClusterSettings.from_dict(description["settings"]["environment"])
    assert policy.scales == description["settings"]["scales"] == settings.scales()
    assert as_scales(policy.scales).machines == 5


def test_what_comes_later_changes_no_start_before(folder):
    """The same first half of a workload, then gaps three times as long: all starts up to there are equal."""
    policy, description = load_policy(folder)
    settings = SimpleClusterSettings.from_dict(description["settings"]["environment"])
    starts, last = [], float(some_jobs().arrival[29])
    for stretch in (1.0, 3.0):
        (schedule,) = play(policy, settings, [0], workload=some_jobs(stretch))
        starts.append(np.where(schedule.start <= last, schedule.start, np.inf)[:30])
    assert (starts[0] == starts[1]).all()


def seen_scales(monkeypatch):
    """Return the list of (mean gap, mean duration) of every batch of clusters made from now on."""
    seen, own = [], clusters.spec_of

    def noted(*given):
        spec = own(*given)
        seen.append((spec.mean_gap, spec.mean_duration))
        return spec

    monkeypatch.setattr(clusters, "spec_of", noted)
    return seen


def test_evaluation_at_another_load_shows_the_scales_of_training(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plots, "save", lambda path, *_: path)
    seen = seen_scales(monkeypatch)
    words = [
        "--model_dir",
        str(folder),
        "--load",
        "0.3",
        "--num_eval_episodes",
        "10",
        "--output_dir",
        str(tmp_path),
    ]
    assert slow_down_cdf.main([*words, "--baselines", "fifo"]) == 0
    scales = as_scales(load_policy(folder)[0].scales)
    assert len(seen) > 2
    assert set(seen[-2:]) == {scales[:2]}, "greedy and sampled; a batch before only shows its shapes"


@pytest.mark.parametrize("kept", ["policy.npz", "nothing"])
def test_a_replay_shows_the_scales_of_training(request, folder, tmp_path, monkeypatch, capsys, kept):
    model = folder if kept == "policy.npz" else request.getfixturevalue("older")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plots, "save", lambda path, *_: (path.write_bytes(b""), path)[1])
    write_trace(some_jobs(), tmp_path / "jobs.csv")
    trained.write_machines(default_cluster(10, (8.0, 32.0, 2.0)), tmp_path / "cluster.csv")
    seen = seen_scales(monkeypatch)
    words = f"--trace jobs.csv --cluster cluster.csv --output_dir out --policies fifo+first_fit+skip,{model}"
    assert compare_algorithms.main(words.split()) == 0
    scales = as_scales(load_policy(folder)[0].scales)
    assert set(seen) == {(scales.gap_on(10), scales.mean_duration)}
    said = capsys.readouterr().out
    assert "is shown times in the scales of its training" in said
    known = "known of the future by design: how many of its jobs are still to come (backlog, column 5)"
    content = json.loads((tmp_path / "out" / report.JSON).read_text())
    assert known in said
    assert known in (tmp_path / "out" / report.HTML).read_text()
    assert {"number_of_jobs", "run_times"} <= {each["what"] for each in content["declares"]}
    assert ("it has kept no scales" in said) is (kept == "nothing")
    assert "is shown times in the scales" in (tmp_path / "out" / report.HTML).read_text()


def test_jobs_that_are_given_have_no_say_in_scales():
    settings = SimpleClusterSettings()
    seen = {SimpleClusterEnv(settings, workload=some_jobs(stretch)).scales for stretch in (1.0, 3.0)}
    assert seen == {Scales(**settings.scales())}


@pytest.mark.parametrize(
    "wrong", [{"mean_gap": 1.0}, (0.0, 1.0), (1.0, float("nan")), (1.0, 2.0, 0), "text", 3, {"mean": 2}]
)
def test_wrong_scales_are_refused(wrong):
    with pytest.raises(UserError, match="give mean_gap and mean_duration"):
        SimpleClusterEnv(scales=wrong)
