"""Dependencies and allowed machines in the environment: kernel = reference = the simulator's rules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernel_and_reference import CHOICES, CLUSTERS, check_same, made, random_jobs

from schedrl.envs.simple_cluster import SimpleClusterEnv, play
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.heuristics.cluster.policies import ClusterPolicy
from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.placements import PLACEMENTS
from schedrl.sim.cluster.schedule import check
from schedrl.sim.cluster.state import STATUS
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.constraints import Allowed, Predecessors

NAMES = {"equal": ["server-0", "server-2"], "mixed": ["big", "odd"]}


def constrained_jobs(rng, cluster, count=14):
    """Return jobs that wait for others, rest, and may not run everywhere."""
    lists = [rng.integers(0, max(j, 1), rng.choice([0, 0, 1, 1, 2])) for j in range(count)]
    lists[0] = lists[0][:0]
    if rng.random() < 0.3:  # a circle, or a job that waits for itself; the first can always run
        lists[int(rng.integers(1, count))] = rng.integers(1, count, 1)
    sets = [(name,) for name in NAMES[cluster]] + [tuple(NAMES[cluster])]
    jobs = random_jobs(rng, count)
    numbers = 1 + rng.permutation(count - 1) if rng.random() < 0.3 else np.arange(1, count)
    numbers = np.append(0, numbers)
    return replace(
        jobs,
        demand=np.where(np.arange(count)[:, None] == 0, 1.0, jobs.demand),
        predecessors=Predecessors.of([numbers[x] for x in lists], rng.choice([0, 0, 1.5, 6], count)),
        instances=np.where(np.arange(count) == 0, 1, jobs.instances),
        allowed=Allowed(np.append(-1, rng.choice([-1, -1, 0, 1, 2], count - 1)), tuple(sets)),
    )


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(list(CLUSTERS)),
    st.fixed_dictionaries(CHOICES | {"show_allowed": st.booleans()}),
)
def test_kernel_and_reference_agree(tmp_path_factory, seed, cluster, changes):
    rng = np.random.default_rng(seed)
    workload = constrained_jobs(rng, cluster)
    shown = changes.pop("show_allowed")
    batch, reference = made(tmp_path_factory.getbasetemp(), cluster, workload, **changes)
    assert not shown or made(tmp_path_factory.getbasetemp(), cluster, workload, show_allowed=True, **changes)
    while True:
        check_same(batch, reference)
        if batch.ended[0]:
            break
        action = int(rng.choice(np.flatnonzero(reference.mask())))
        given_action = np.array([action])
        if changes["action"] == "elastic":
            given_action = (given_action, np.zeros(1, np.int64), np.ones((1, 2)))
        reward = batch.step(given_action)[0]
        assert reward == pytest.approx(reference.step(action), abs=1e-9)
    a = batch.state.arrays
    for job in reference.all_jobs:
        if job.status != "to come":
            assert ["waiting", "running", "finished", "rejected"][a.jobs[0, job.number, STATUS]] == job.status


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("rule", ["fifo+{}+skip", "sjf+{}+strict", "xf+{}+skip", "priority+{}+strict"])
def test_rules_play_alike_in_the_environment_and_in_the_simulator(tmp_path, cluster, rule):
    path = tmp_path / "cluster.csv"
    path.write_text(CLUSTERS[cluster])
    machines, orders = read_cluster(path), {"fifo": "arrival", "sjf": "sjf"}
    for seed, placement in enumerate(sorted(set(PLACEMENTS) - {"next_fit", "fgd"}) * 2):
        jobs = constrained_jobs(np.random.default_rng(seed), cluster, 25)
        jobs = replace(jobs, instances=None)
        name = rule.format(placement)
        options = SimpleClusterSettings(
            cluster=str(path),
            num_jobs=25,
            num_job_slots=25,
            action="job_machine",
            queue_order=orders.get(name.split("+")[0], "arrival"),
            mask=bool(seed % 2),
        )
        got = play(ClusterPolicy(name), options, [0], workload=jobs)[0]
        expected = simulate(jobs, machines, name)
        for column in ("start", "finish", "status", "reject_reason", "came"):
            np.testing.assert_array_equal(getattr(got, column), getattr(expected, column), err_msg=name)
        check(got)
        done = ~np.isnan(got.start)
        np.testing.assert_array_equal(
            got.placed.machine[got.placed.offset[:-1][done]],
            expected.placed.machine[expected.placed.offset[:-1][done]],
        )


def test_a_learned_policy_can_be_shown_where_jobs_may_run(tmp_path):
    path = tmp_path / "cluster.csv"
    path.write_text(CLUSTERS["mixed"])
    jobs = replace(random_jobs(np.random.default_rng(0), 4), allowed=Allowed.of([("odd",), None] * 2))
    env = SimpleClusterEnv(
        cluster=str(path), action="job_machine", num_job_slots=4, show_allowed=True, workload=jobs
    )
    obs, _ = env.reset()
    assert obs["pairs"].shape[2] == 5
    assert obs["pairs"][0, :, 4].tolist() == [0, 0, 0, 1]
    assert not obs["action_mask"][:3].any()


def test_those_who_wait_for_a_refused_job_are_refused(tmp_path):
    path = tmp_path / "cluster.csv"
    path.write_text(CLUSTERS["equal"])
    jobs = random_jobs(np.random.default_rng(0), 3)
    demand = np.tile([1.0, 1.0, 0.0], (3, 1))
    jobs = replace(
        jobs, arrival=np.zeros(3), demand=demand, instances=None, deadline=None,
        predecessors=Predecessors.of([[], [0], [1]]),
    )  # fmt: skip
    env = SimpleClusterEnv(cluster=str(path), allow_reject=True, workload=jobs)
    env.reset()
    _, _, terminated, _, _ = env.step(3)
    assert terminated
    assert env.jobs()["status"].tolist() == ["rejected"] * 3
