"""The compiled simulator against its specification, on anything; and what must hold whatever happens."""

import numpy as np
import pytest
from clusters import cases, jobs, machines
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.evaluation.cluster import measure
from schedrl.settings import UserError
from schedrl.sim.cluster import STATUS, MachineEvents, simulate
from schedrl.sim.cluster.orders import ORDERS
from schedrl.sim.cluster.placements import PLACEMENTS
from schedrl.sim.cluster.problem import REASONS, prepare
from schedrl.sim.cluster.reference import Simulation
from schedrl.sim.cluster.reference import simulate as specified
from schedrl.sim.cluster.rule import DISCIPLINES
from schedrl.sim.cluster.run import places_of, play
from schedrl.sim.cluster.schedule import FINISHED, REJECTED, UNFINISHED, check
from schedrl.sim.cluster.state import OFFLINE, UP, new_cluster

RULES = st.tuples(*(st.sampled_from(list(names)) for names in (ORDERS, PLACEMENTS, DISCIPLINES)))
OPTIONS = st.fixed_dictionaries(
    {
        "window": st.sampled_from([None, None, 1, 2, 5]),
        "until": st.sampled_from([None, None, 10.0]),
        "on_down": st.sampled_from(["requeue", "fail"]),
    }
)


def same(one, other):
    """Assert that two schedules are the same in everything."""
    for name in ("start", "finish", "status", "restarts", "reject_reason", "lost"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("offset", "machine", "devices"):
        np.testing.assert_array_equal(getattr(one.placed, name), getattr(other.placed, name), err_msg=name)
    assert (one.end_time, one.decisions, one.rule) == (other.end_time, other.decisions, other.rule)


@settings(max_examples=250, deadline=None)
@given(cases(), RULES, OPTIONS)
def test_kernel_is_the_specification(case, rule, options):
    workload, cluster, events = case
    given = {"rule": "+".join(rule), "events": events, **options}
    got = simulate(workload, cluster, **given)
    same(got, specified(workload, cluster, **given))
    check(got)


@settings(max_examples=60, deadline=None)
@given(cases(), RULES, OPTIONS)
def test_nothing_is_lost(case, rule, options):
    workload, cluster, events = case
    problem = prepare(workload, cluster, "+".join(rule), events=events, **options)
    run = Simulation(problem)
    run.run()
    held = np.zeros_like(problem.capacity)
    for job, places in run.cluster.held.items():
        for m, _ in places:
            held[:, m] += problem.demand[job]
    free = np.array([[run.cluster.free[r, m] for m in range(len(cluster))] for r in range(len(held))])
    assert (free + held == problem.capacity).all()
    state = new_cluster(problem, *places_of(problem))
    play(state)
    down = state.machines[:, UP] == 0
    assert (state.free + held + OFFLINE * down == problem.capacity).all()


@settings(max_examples=60, deadline=None)
@given(cases(), RULES)
def test_every_job_ends_in_one_state(case, rule):
    workload, cluster, _ = case
    got = simulate(workload, cluster, "+".join(rule))
    assert set(got.status.tolist()) <= {FINISHED, REJECTED}
    assert ((got.status == REJECTED) == (got.reject_reason > 0)).all()
    assert (np.isfinite(got.finish) == (got.status == FINISHED)).all()


def test_rejections_say_why():
    cluster = machines([[4, 8, 2], [4, 8, 0]])
    demand = [[5, 1, 0], [1, 1, 1.5], [2, 1, 0], [1, 1, 1], [4, 1, 0]]
    got = simulate(jobs([0] * 5, [1] * 5, demand, instances=[1, 1, 5, 3, 2]), cluster)
    assert [REASONS[k] for k in got.reject_reason] == [
        "one instance is larger than every machine",
        "asks for more than a device but not for whole ones",
        "its instances fit one by one, but not all at once, on the empty cluster",
        "its instances fit one by one, but not all at once, on the empty cluster",
        "",
    ]
    one = machines([[4]])
    got = simulate(jobs([0, 0], [1, 1], [[1, 0], [1, 1]]), one)
    assert REASONS[got.reject_reason[1]] == "asks for a resource that no machine has"
    assert [STATUS[s] for s in got.status] == ["finished", "rejected"]


def test_a_machine_that_goes_down_stops_the_whole_gang():
    cluster = machines([[4, 8, 0], [4, 8, 0]])
    gang = jobs([0], [10], [[4, 1, 0]], instances=[2])
    events = MachineEvents([3, 5], [1, 1], [False, True])
    got = simulate(gang, cluster, events=events)
    assert (got.start[0], got.finish[0], got.restarts[0]) == (5, 15, 1)
    assert measure(got)["lost"] == {"time": 3.0, "cpu": 24.0, "memory": 6.0, "gpu": 0.0}
    got = simulate(gang, cluster, events=events, on_down="fail")
    assert STATUS[got.status[0]] == "failed"
    assert got.lost.tolist() == [3.0]
    got = simulate(gang, cluster, events=MachineEvents([3], [1], [False]))
    assert got.status[0] == UNFINISHED
    assert got.end_time == 3


def test_devices_are_not_shared_beyond_one():
    cluster = machines([[8, 8, 2]])
    got = simulate(jobs([0, 0, 0, 0], [1, 1, 1, 1], [[1, 1, 0.6]] * 2 + [[1, 1, 0.4], [1, 1, 1]]), cluster)
    assert got.start.tolist() == [0, 0, 0, 1]
    assert got.placed.devices.tolist() == [1, 2, 1, 1]


def test_the_window_hides_what_is_behind_it():
    cluster = machines([[4, 8, 0]])
    queue = jobs([0, 0, 0, 0], [4, 4, 4, 1], [[3, 1, 0], [2, 1, 0], [2, 1, 0], [1, 1, 0]])
    assert simulate(queue, cluster, window=2).start[3] == 8
    assert simulate(queue, cluster, window=3).start[3] == 0
    assert simulate(queue, cluster, "fifo+strict").start.tolist() == [0, 4, 4, 8]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "sjf+bestfit"}, "best_fit"),
        ({"rule": "sjf+fifo"}, "two of one kind"),
        ({"window": 0}, "at least 1"),
        ({"aging_time": 0.0}, "above 0"),
        ({"on_down": "lose"}, "requeue"),
        ({"events": MachineEvents([1.0], [7], [True])}, "machines 0 to 0"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        simulate(jobs([0], [1], [[1, 1, 0]]), machines([[1, 1, 1]]), **options)
