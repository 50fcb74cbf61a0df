"""The kernels and the plain reference agree on random clusters, jobs and actions; and with whole runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.envs.simple_cluster.clusters import Clusters
from schedrl.envs.simple_cluster.jobs import Given
from schedrl.envs.simple_cluster.observation import Observer
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.state import (
    ARRIVED,
    CLOCK,
    DECISIONS,
    FINISH,
    HEAP,
    RUNNING_JOBS,
    START,
    STATUS,
    WAITING_JOBS,
)
from schedrl.sim.cluster_decisions.reference import ReferenceCluster
from schedrl.sim.cluster_decisions.reference_views import running as running_rows
from schedrl.sim.cluster_decisions.reference_views import slots
from schedrl.sim.cluster_decisions.spec import TERM_NAMES
from schedrl.sim.cluster_decisions.state import DONE, FURTHER, ILLEGAL, PLACED, REFUSED
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.types import Workload

ALL_TERMS = (
    "slowdown=-1,completion_time=-0.5,makespan=-1,utilisation=0.5,fragmentation=-0.3,sla=-0.2,waiting=-0.7,"
    "finished=1"
)
RESOURCES = ["cpu", "memory", "gpu"]
CLUSTERS = {
    "equal": "name,count,cpu,memory,gpu\nserver,3,4,8,2\n",
    "mixed": "name,count,cpu,memory,gpu\nbig,1,8,16,4\nplain,2,4,4,0\nodd,1,3,2.5,1\n",
}


def random_jobs(rng, count=14):
    """Return a workload in which much happens at the same time: few different times, gangs, zero lengths."""
    demand = np.column_stack(
        [rng.choice([0.5, 1, 2, 4, 9], count), rng.choice([0, 0.3, 1, 4], count), np.zeros(count)]
    )
    demand[:, 2] = rng.choice([0, 0, 0.25, 0.5, 1, 2], count)
    duration = rng.choice([0.0, 1.0, 3.0, 7.5, 40.0], count)
    arrival = np.sort(rng.choice([0.0, 0.0, 1.0, 2.0, 5.0, 20.0], count))
    return Workload(
        arrival,
        duration,
        demand,
        RESOURCES,
        "s",
        estimate=np.where(rng.random(count) < 0.6, duration * rng.choice([0.25, 2.0], count) + 0.5, np.nan),
        instances=rng.choice([1, 1, 1, 2, 5], count),
        priority=rng.choice([0, 1, 2, 3], count),
        deadline=np.where(rng.random(count) < 0.3, arrival + 6, np.nan),
    )


def made(tmp_path, cluster, workload, **changes):
    """Return (clusters of one, reference) loaded with the workload."""
    path = tmp_path / f"{cluster}.csv"
    path.write_text(CLUSTERS[cluster])
    options = SimpleClusterSettings(cluster=str(path), reward=ALL_TERMS, slowdown_floor=2.0, **changes)
    source = Given(options, [workload])
    batch = Clusters(options, 1, source)
    numbers, jobs = source.next(1)
    batch.load(numbers * 0, numbers, jobs)
    reference = ReferenceCluster(batch.spec, source.problem.capacity, source.problem.g)
    reference.reset(jobs.columns[0], jobs.demands[0], jobs.instances[0], source.problem)
    return batch, reference


def state_of(batch):
    """Return the present observation in `state`."""
    options = batch.settings.replace(representation="state")
    observer = Observer(options, batch.state, batch.spec.num_choices, batch.spec.num_devices)
    return observer.write(batch.state, batch.everyone)


def check_same(batch, reference):
    a = batch.state.arrays
    assert a.x[0, CLOCK] == reference.clock
    assert a.free[0].T.tolist() == reference.free
    assert [row[: len(own)] for row, own in zip(a.share[0].tolist(), reference.share, strict=True)] == (
        reference.share
    )
    waiting = a.queue[0, : a.n[0, WAITING_JOBS]].tolist()
    assert waiting == [job.number for job in reference.waiting]
    running = a.jobs[0, : a.n[0, RUNNING_JOBS], HEAP].tolist()
    assert sorted(running) == sorted(job.number for job in reference.running)
    obs = batch.observe()
    for name, expected in zip(("cluster", "queue", "backlog", "pairs"), slots(reference), strict=True):
        np.testing.assert_allclose(obs[name][0], expected, rtol=1e-5, atol=1e-6, err_msg=name)
    shown, rows = state_of(batch)["running"][0], running_rows(reference)
    assert (shown[len(rows) :] == -1.0).all()
    np.testing.assert_allclose(shown[: len(rows)], np.reshape(rows, (len(rows), shown.shape[1])))
    if not batch.ended[0]:
        mask = obs["action_mask"][0][: batch.spec.num_choices]
        assert mask.tolist() == (reference.mask() if batch.spec.masked else [True] * len(mask))


def check_conserved(batch):
    """Free and held amounts add up to the capacity exactly, on every machine and device; jobs to all jobs."""
    a = batch.state.arrays
    held = np.zeros_like(a.free[0])
    for place in range(a.n[0, RUNNING_JOBS]):
        job = a.jobs[0, place, HEAP]
        for i in range(a.jobs[0, job, 2], a.jobs[0, job, 3]):
            held[:, a.instances[0, i, 0]] += a.demand[0, job]
    for i in range(a.n[0, PLACED]):  # of a gang half placed
        job = a.queue[0, 0]
        held[:, a.instances[0, a.jobs[0, job, 2] + i, 0]] += a.demand[0, job]
    assert (a.free[0] + held == a.capacity[0]).all()
    assert (a.free >= 0).all()
    assert ((a.share >= 0) & (a.share <= ONE)).all()
    g = batch.state.device
    assert (a.share[0].sum(axis=1) == a.free[0, g]).all()
    n = a.n[0]
    states = np.bincount(a.jobs[0, : n[ARRIVED], STATUS], minlength=6)
    assert states[:4].tolist() == n[[WAITING_JOBS, RUNNING_JOBS, DONE, REFUSED]].tolist()
    assert states.sum() == n[ARRIVED]
    assert n[DECISIONS] - n[FURTHER] <= batch.spec.max_decisions


CHOICES = {
    "action": st.sampled_from(["machine", "job_machine", "elastic"]),
    "queue_order": st.sampled_from(["arrival", "sjf", "priority"]),
    "termination": st.sampled_from(["all_done", "all_done", "continuing"]),
    "decide": st.sampled_from(["when_possible", "every_event"]),
    "allow_reject": st.booleans(),
    "wait_when_idle": st.booleans(),
    "num_job_slots": st.sampled_from([1, 3, 5]),
    "mask": st.booleans(),
    "wait_limit": st.sampled_from([None, None, 0.0, 4.0]),
    "episode_max_decisions": st.sampled_from([None, None, 9]),
}


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(list(CLUSTERS)),
    st.fixed_dictionaries(CHOICES),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_kernel_and_reference_agree(tmp_path_factory, seed, cluster, changes, wildness):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.getbasetemp()
    batch, reference = made(folder, cluster, random_jobs(rng), **changes)
    elastic = changes["action"] == "elastic"
    check_same(batch, reference)
    total = 0.0
    while not batch.ended[0]:
        mask = np.array(reference.mask())
        wild = rng.random() < wildness
        action = int(rng.integers(len(mask)) if wild else rng.choice(np.flatnonzero(mask)))
        device, ratios = 0, (1.0, 1.0)
        if elastic:
            device = int(rng.integers(batch.spec.num_devices))
            ratios = tuple(rng.uniform(0.25, 1.0, 2).tolist())
            given_action = (np.array([action]), np.array([device]), np.array([ratios]))
        else:
            given_action = np.array([action])
        reward = batch.step(given_action)[0]
        expected = reference.step(action, device, ratios)
        assert reward == pytest.approx(expected, abs=1e-9)
        assert reward == pytest.approx(batch.terms[:, 0].sum(), abs=1e-12)
        assert dict(zip(TERM_NAMES, batch.terms[:, 0], strict=True)) == pytest.approx(
            reference.terms, abs=1e-9
        )
        check_same(batch, reference)
        check_conserved(batch)
        total += reward
    assert ["", "terminated", "truncated"][batch.ended[0]] == reference.ended
    a = batch.state.arrays
    for job in reference.all_jobs:
        if job.status in ("running", "finished"):
            assert (a.times[0, job.number, START], a.times[0, job.number, FINISH]) == (job.start, job.finish)
        if job.status != "to come":
            assert ["waiting", "running", "finished", "rejected"][a.jobs[0, job.number, STATUS]] == job.status
    assert a.n[0, ILLEGAL] == reference.illegal
    if reference.ended == "terminated":
        assert {job.status for job in reference.all_jobs} <= {"finished", "rejected"}


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize(("queue_order", "rule"), [("arrival", "fifo"), ("sjf", "sjf")])
def test_placing_whatever_fits_first_is_the_simulators_rule(tmp_path, cluster, queue_order, rule):
    """Every visible job that fits on the first machine that has room: order + first_fit + skip."""
    for seed in range(20):
        workload = random_jobs(np.random.default_rng(seed), 30)
        workload = Workload(
            workload.arrival, workload.duration, workload.demand, RESOURCES, "s", workload.estimate
        )
        batch, _ = made(
            tmp_path, cluster, workload, action="job_machine", queue_order=queue_order, num_job_slots=30
        )
        while not batch.ended[0]:
            batch.step(batch.observe()["action_mask"].argmax(axis=1))
        path = tmp_path / f"{cluster}.csv"
        schedule = simulate(workload, read_cluster(path), f"{rule}+first_fit+skip")
        a = batch.state.arrays
        ours = a.times[0, :30]
        np.testing.assert_array_equal(ours[:, START], schedule.start)
        np.testing.assert_array_equal(
            np.where(a.jobs[0, :30, STATUS] == 2, ours[:, FINISH], np.nan), schedule.finish
        )
        np.testing.assert_array_equal(a.jobs[0, :30, STATUS], schedule.status)
