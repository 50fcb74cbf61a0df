"""Weights that are kept: those of the best look at validation workloads, for every algorithm."""

import csv

import numpy as np
import pytest
from small_runs import start, trained

import launcher
from schedrl import registry
from schedrl.learning.checkpoint import load_arrays
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.run_folder import newest_checkpoint
from schedrl.learning.selection import Selection

SHORT = {"total_steps": 4_000}


class Scripted:
    """A measure whose costs are written down; remembers the weights it saw."""

    def __init__(self, *costs):
        self.costs, self.seen = list(costs), []

    def __call__(self, policy):
        self.seen.append(weights_of(policy))
        greedy = self.costs[min(len(self.seen), len(self.costs)) - 1]
        return {"greedy": greedy, "sampled": greedy - 0.5 if len(self.seen) == 2 else greedy + 1}


def weights_of(policy):
    return np.concatenate([np.ravel(w) for w in policy._weights.values()])


def selection(*costs, every=1_000):
    measure, said = Scripted(*costs), []
    return Selection(every, measure, said.append), measure, said


@pytest.mark.parametrize("algorithm", registry.names("algorithm"))
def test_the_best_look_is_kept_and_the_last_weights_are_resumed(algorithm, tmp_path):
    chosen, measure, said = selection(3.0, 1.0, 2.0)
    run, _ = trained(algorithm, "action_by_observation", folder=tmp_path, selection=chosen, **SHORT)
    assert len(measure.seen) >= 3
    assert not np.array_equal(measure.seen[1], measure.seen[-1])
    np.testing.assert_array_equal(weights_of(run.model.policy()), measure.seen[1])
    saved = NumpyPolicy.load(tmp_path / "policy.npz")
    np.testing.assert_array_equal(weights_of(saved), measure.seen[1])
    assert (saved.play, run.play) == ("sampled", "sampled")
    looks = list(csv.DictReader((tmp_path / "validation.csv").read_text().splitlines()))
    assert [row["greedy"] for row in looks][:3] == ["3.0", "1.0", "2.0"]
    assert said[-1].startswith("kept the weights after")
    assert "played sampled" in said[-1]

    again, measure, _ = selection(5.0)
    run, _ = trained(
        algorithm, "action_by_observation", folder=tmp_path, selection=again, resume=True, total_steps=8_000
    )
    assert again.rows[1]["sampled"] == 0.5
    np.testing.assert_array_equal(weights_of(NumpyPolicy.load(tmp_path / "policy.npz")), weights_of(saved))
    arrays, _ = load_arrays(newest_checkpoint(tmp_path), kind="checkpoint")
    assert not np.array_equal(arrays["model/weights"], arrays["selection/best/weights"])


def test_looking_changes_nothing_in_training(tmp_path):
    plain, _ = trained("ppo", "action_by_observation", folder=tmp_path / "plain", **SHORT)
    chosen, *_ = selection(3.0, 2.0, 1.0, 0.5, 0.4, 0.3, 0.2)
    trained("ppo", "action_by_observation", folder=tmp_path / "looked", selection=chosen, **SHORT)
    one, two = (load_arrays(newest_checkpoint(tmp_path / name))[0] for name in ("plain", "looked"))
    np.testing.assert_array_equal(one["model/weights"], two["model/weights"])


def test_who_stops_early_does_not_wait_for_a_last_look():
    chosen, measure, said = selection(3.0, every=1)
    run, records = start("ppo", "action_by_observation", selection=chosen, **SHORT)
    for _ in records:
        run.request_stop()
    assert len(measure.seen) == 1
    chosen, measure, said = selection(3.0, every=10**9)
    run, records = start("ppo", "action_by_observation", selection=chosen, **SHORT)
    for _ in records:
        run.request_stop()
    assert measure.seen == []
    assert "last weights are kept" in said[-1]


def test_numbers_that_are_none_never_win():
    chosen, *_ = selection(float("nan"))
    run, _ = trained("pg", "action_by_observation", selection=chosen, **SHORT)
    assert run.play == "greedy"


@pytest.mark.parametrize(
    ("words", "looks"),
    [
        (["--env", "simple_cluster", "--num_jobs", "10"], True),
        (["--env", "deeprm"], False),
        (["--env", "deeprm", "--validate_every", "200"], True),
    ],
)
def test_the_launcher_looks_where_it_should(words, looks, tmp_path, capsys):
    more = ["--algo", "ppo", "--total_steps", "400", "--num_envs", "8", "--num_steps", "16", "--no_eval"]
    command = [
        *words,
        *more,
        "--batch_size",
        "64",
        "--model_dir",
        str(tmp_path),
        "--validation_sequences",
        "5",
    ]
    assert launcher.main(command) == 0
    assert (tmp_path / "validation.csv").exists() == looks
    assert ("kept the weights after" in capsys.readouterr().out) == looks


def test_other_sequences_give_other_means(tmp_path, capsys):
    means = set()
    for count in ("3", "6"):
        folder = tmp_path / count
        words = ["--algo", "ppo", "--env", "deeprm", "--total_steps", "200", "--num_envs", "8", "--no_eval"]
        more = ["--num_steps", "16", "--batch_size", "64", "--validate_every", "100"]
        command = [*words, *more, "--validation_sequences", count, "--model_dir", str(folder)]
        assert launcher.main(command) == 0
        means.add((folder / "validation.csv").read_text())
    assert len(means) == 2
