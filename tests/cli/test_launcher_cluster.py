"""Training on the cluster environment from the command line, and what its reward is made of."""

import numpy as np
import pytest

import launcher
from schedrl.envs.simple_cluster import SimpleClusterSettings, play
from schedrl.launch.plan import read_plan
from schedrl.launch.reward_terms import reward_lines
from schedrl.learning.numpy_policy import load_policy
from schedrl.sim.cluster.schedule import FINISHED

TINY = ["--env", "simple_cluster", "--num_jobs", "10", "--total_steps", "400", "--num_envs", "8", "--no_eval"]


@pytest.mark.parametrize("action", ["job_machine", "elastic"])
def test_ppo_trains_and_says_what_the_reward_is_made_of(tmp_path, capsys, action):
    words = [*TINY, "--algo", "ppo", "--action", action, "--num_steps", "16", "--batch_size", "64"]
    folder = tmp_path / action
    assert launcher.main([*words, "--reward", "balanced", "--model_dir", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.count("reward per decision so far: completion_time -") == 1
    assert "utilisation" in said
    assert (folder / "policy.npz").exists()


@pytest.mark.parametrize("algo", ["pg", "a2c", "a3c"])
def test_the_others_give_shares_too(tmp_path, algo):
    words = [
        *TINY,
        "--algo",
        algo,
        "--action",
        "elastic",
        "--use_tf_function",
        "False",
        "--validate_every",
        "0",
    ]
    folder = tmp_path / algo
    assert launcher.main([*words, "--model_dir", str(folder)]) == 0
    policy, description = load_policy(folder)
    settings = SimpleClusterSettings.from_dict(description["settings"]["environment"])
    for schedule in play(policy, settings, [0, 1], deterministic=False):
        share = (schedule.granted[:, 0] / schedule.workload.demand[:, 0])[schedule.status == FINISHED]
        assert share.size
        assert (share >= settings.min_share - 1e-6).all()
        assert (share <= 1 + 1e-6).all()
        assert (share < 1).any()


def test_the_cluster_has_a_network_of_its_own_unless_told_otherwise(tmp_path):
    words = ["--algo", "ppo", "--env", "simple_cluster", "--model_dir", str(tmp_path / "a")]
    assert read_plan(words).algorithm.network == "pair_scorer"
    assert read_plan([*words, "--network", "image"]).algorithm.network == "image"
    plan = read_plan([*words, "--workload", "bursty", "--burst_gaps", "20"])
    assert plan.environment.workload_settings.burst_gaps == 20
    assert read_plan(["--algo", "ppo", "--model_dir", str(tmp_path / "b")]).algorithm.network == "slots"


class Env:
    """Stands for an environment that keeps the means of its terms."""

    def __init__(self, **means):
        self.means, self.unwrapped = means, self

    def mean_reward_terms(self):
        """Return them."""
        return self.means


def test_a_term_that_drowns_the_others_is_warned_of():
    lines = reward_lines(Env(makespan=-9.5, utilisation=0.5, sla=0.0))
    assert lines[0] == "reward per decision so far: makespan -9.5 (95%), utilisation 0.5 (5%)"
    assert lines[1].startswith("warning: makespan makes up 95%")
    assert len(reward_lines(Env(makespan=-1.0, utilisation=0.5))) == 1
    assert len(reward_lines(Env(slowdown=-1.0))) == 1
    assert reward_lines(Env(slowdown=0.0)) == []
    assert reward_lines(type("Bare", (), {"unwrapped": np})()) == []
