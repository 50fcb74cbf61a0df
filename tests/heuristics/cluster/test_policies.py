"""Rules as policies of the environment: the same schedules as the simulator's, and Tetris' choice by hand."""

import numpy as np
import pytest

from schedrl.envs.simple_cluster import play, workloads_of
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.heuristics.cluster.policies import ClusterPolicy
from schedrl.heuristics.cluster.tetris import TetrisPolicy
from schedrl.settings import UserError
from schedrl.sim.cluster import simulate
from schedrl.workload.cluster_file import default_cluster

ALL_SEEN = SimpleClusterSettings(num_jobs=40, num_job_slots=40, load=1.0)


def assert_same(policy, settings, rule):
    played = play(policy, settings, range(3), seed=0, family="test")
    for schedule, workload in zip(played, workloads_of(settings, 3, 0, "test"), strict=True):
        assert schedule.start.tolist() == simulate(workload, default_cluster(), rule).start.tolist()


@pytest.mark.parametrize(
    "rule",
    [
        "sjf+best_fit+skip",
        "fifo+first_fit+skip",
        "saf+tetris+strict",
        "wfp3+balanced+skip",
        "f1+gpu_packing+skip",
        "unicep+worst_fit+strict",
        "priority+dot_product+skip",
    ],
)
def test_a_policy_makes_the_schedule_of_its_rule(rule):
    assert_same(ClusterPolicy(rule), ALL_SEEN.replace(action="job_machine"), rule)


@pytest.mark.parametrize("action", ["machine", "elastic"])
def test_the_head_is_the_environments_where_only_machines_are_chosen(action):
    settings = ALL_SEEN.replace(action=action, queue_order="sjf")
    assert_same(ClusterPolicy("sjf+best_fit+strict", action), settings, "sjf+best_fit+strict")


@pytest.mark.parametrize(
    ("rule", "said"), [("sjf+easy", "simulate"), ("drf", "users"), ("next_fit", "last placement")]
)
def test_what_no_observation_shows_is_refused(rule, said):
    with pytest.raises(UserError, match=said):
        ClusterPolicy(rule)


def seen(*jobs, free=((4, 8), (8, 8))):
    """Observe two machines of 8 cores and 16 GB; a job is (estimate, cores, GB)."""
    rows = np.array([[estimate, 0, 0, 1, 0, *demand] for estimate, *demand in jobs], float)
    return {
        "action_mask": np.ones(2 * len(jobs) + 1, bool),
        "free": np.array(free, float),
        "capacity": np.array([[8.0, 16.0], [8.0, 16.0]]),
        "share": np.zeros((2, 1)),
        "jobs": rows,
        "scalars": np.array([0.0, len(jobs), -1.0]),
    }


def test_tetris_weighs_alignment_against_work():
    # alignment on the machines: .375 and .625, .1875 and .3125; work 40 x .375 = 15, 10 x .1875 = 1.875;
    # averages .375 and 8.4375: .625 - .044 x 15 = -.04 loses to .3125 - .044 x 1.875 = .23
    obs = seen((40, 4, 4), (10, 2, 2))
    assert TetrisPolicy(weight=0).predict(obs) == 1
    assert TetrisPolicy(weight=1).predict(obs) == 3
    # .625 - .067 = .56 against .3125 - .008 = .30
    assert TetrisPolicy(weight=0.1).predict(obs) == 1


def test_tetris_waits_where_nothing_fits_and_answers_batches():
    full = seen((40, 4, 4), (10, 2, 2), free=((1, 8), (1, 8)))
    one = seen((40, 4, 4), (10, 2, 2))
    batch = {name: np.stack([full[name], one[name]]) for name in one}
    assert TetrisPolicy().predict(batch).tolist() == [4, 3]
    with pytest.raises(UserError, match="weight"):
        TetrisPolicy(-1)


def test_tetris_plays_to_the_end():
    settings = ALL_SEEN.replace(action="job_machine")
    for schedule in play(TetrisPolicy(), settings, range(2)):
        assert np.isfinite(schedule.finish).all()
