"""Rules as policies of the environment: the same schedules as the simulator's, and Tetris' choice by hand."""

from itertools import product

import numpy as np
import pytest
from small_clusters import jobs

from schedrl.envs.simple_cluster import SimpleClusterEnv, play, workloads_of
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.heuristics.cluster.policies import ClusterPolicy
from schedrl.heuristics.cluster.tetris import TetrisPolicy
from schedrl.settings import UserError
from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.orders import ORDERS
from schedrl.sim.cluster.placements import PLACEMENTS
from schedrl.sim.cluster.schedule import check
from schedrl.workload.cluster_file import default_cluster, read_cluster
from schedrl.workload.types import Workload

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


RESOURCES = ("cpu", "memory", "gpu")
MIXED = "name,count,cpu,memory,gpu\nbig,2,8,16,4\nplain,3,4,4,0\nodd,2,3,2.5,1\n"
HIDDEN = {"drf", "next_fit", "fgd"}
"""Needs what no observation shows: users, the last placement, the demands of the whole workload."""


def gangs(seed, count=24):
    """Draw jobs of one to seven instances with shares of devices, many at equal times."""
    rng = np.random.default_rng(seed)
    demand = [
        rng.choice(sizes, count) for sizes in ([0.1, 0.5, 1, 2, 3], [0, 0.3, 1, 2], [0, 0, 0.25, 0.5, 1])
    ]
    arrival, duration = (
        np.sort(rng.choice([0.0, 1, 2, 5, 20], count)),
        rng.choice([0.0, 1, 3, 7.5, 40], count),
    )
    return Workload(
        arrival,
        duration,
        np.column_stack(demand),
        RESOURCES,
        "s",
        estimate=duration * rng.choice([0.5, 1, 2], count),
        instances=rng.choice([1, 1, 2, 3, 7], count),
        priority=rng.integers(0, 4, count),
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path = tmp_path_factory.mktemp("clusters") / "mixed.csv"
    path.write_text(MIXED)
    return path


def assert_same_gangs(mixed, rule, action, order, seeds):
    settings = ALL_SEEN.replace(cluster=str(mixed), action=action, queue_order=order)
    for workload in map(gangs, seeds):
        (played,) = play(ClusterPolicy(rule, action), settings, [0], workload=workload)
        expected = simulate(workload, read_cluster(mixed), rule)
        np.testing.assert_array_equal(played.start, expected.start, rule)
        np.testing.assert_array_equal(played.placed.machine, expected.placed.machine, rule)
        if action != "elastic":
            np.testing.assert_array_equal(played.placed.devices, expected.placed.devices, rule)
        check(played)


def test_every_rule_places_gangs_as_the_simulator_does(mixed):
    """Orders x placements x disciplines that the environment can express, three workloads each."""
    rules = product(sorted(set(ORDERS) - HIDDEN), sorted(set(PLACEMENTS) - HIDDEN), ("skip", "strict"))
    for k, parts in enumerate(rules):
        assert_same_gangs(mixed, "+".join(parts), "job_machine", "arrival", range(3 * k, 3 * k + 3))


@pytest.mark.parametrize(("action", "order"), [*product(["machine", "elastic"], ["arrival", "sjf"])])
def test_a_policy_of_machines_alone_places_gangs_as_the_simulator_does(mixed, action, order):
    for placement in sorted(set(PLACEMENTS) - HIDDEN):
        rule = f"{order.replace('arrival', 'fifo')}+{placement}+strict"
        assert_same_gangs(mixed, rule, action, order, range(10))


def test_each_instance_of_a_gang_is_a_decision():
    """Four instances of 2 of 4 cores: one after the other where the policy says, before time passes."""
    workload = jobs((0, 10, (2, 1, 0)), (1, 5, (1, 1, 0)), resources=RESOURCES, instances=[4, 1])
    settings = ALL_SEEN.replace(num_servers=3, server=(4, 8, 0), allow_reject=True, action="job_machine")
    env = SimpleClusterEnv(settings, workload=workload, representation="state")
    obs, _ = env.reset()
    assert obs["jobs"][0, 3] == 4
    for left, machine in ((3, 2), (2, 0), (1, 2)):
        obs, *_, info = env.step(machine)
        assert (info["time"], obs["jobs"][0, 3]) == (0, left)
    # 2 is full, and neither waiting nor turning away is legal; the last instance has the choice of two
    assert np.flatnonzero(obs["action_mask"]).tolist() == [0, 1]
    *_, info = env.step(1)
    assert env.schedule().placed.machine[:4].tolist() == [2, 0, 2, 1]
    assert info["time"] == 1


def test_an_episode_that_ends_with_half_a_gang_places_the_rest_and_further_instances_are_not_counted():
    workload = jobs((0, 4, (1, 1, 0)), (0, 5, (1, 1, 0)), resources=RESOURCES, instances=[6, 6])
    settings = ALL_SEEN.replace(num_servers=2, server=(8, 8, 0), episode_max_decisions=1)
    env = SimpleClusterEnv(settings, workload=workload)
    env.reset()
    *_, truncated, _ = env.step(1)
    assert truncated
    assert env.schedule().placed.machine[:6].tolist() == [1, 0, 0, 0, 0, 0]
    check(env.schedule())
    env = SimpleClusterEnv(settings.replace(episode_max_decisions=2), workload=workload)
    env.reset()
    assert [env.step(0)[3] for _ in range(6)] == [False] * 6


def test_a_strict_rule_answers_where_waiting_is_not_legal(mixed):
    """A job that has waited too long goes next, though the rule would take another."""
    settings = ALL_SEEN.replace(cluster=str(mixed), action="job_machine", wait_limit=4.0)
    for workload in map(gangs, range(5)):
        env = SimpleClusterEnv(settings, workload=workload, representation="state")
        policy, (obs, info), terminated = ClusterPolicy("ljf+best_fit+strict"), env.reset(), False
        while not terminated:
            obs, _, terminated, truncated, info = env.step(policy.predict(obs))
            assert not truncated
        assert info["illegal_actions"] == 0


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
