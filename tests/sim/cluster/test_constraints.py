"""Jobs that wait for others and may not run everywhere: the kernel against its specification, and by hand."""

from dataclasses import replace

import numpy as np
from clusters import constrained, jobs, machines
from hypothesis import given, settings
from test_kernel import OPTIONS, RULES, same

from schedrl.sim.cluster import STATUS, MachineEvents, simulate
from schedrl.sim.cluster.problem import REASONS
from schedrl.sim.cluster.reference import simulate as specified
from schedrl.sim.cluster.schedule import FINISHED, REJECTED, check
from schedrl.workload.constraints import Allowed, Predecessors


@settings(max_examples=250, deadline=None)
@given(constrained(), RULES, OPTIONS)
def test_kernel_is_the_specification(case, rule, options):
    workload, cluster, events = case
    given = {"rule": "+".join(rule), "events": events, **options}
    got, expected = simulate(workload, cluster, **given), specified(workload, cluster, **given)
    same(got, expected)
    np.testing.assert_array_equal(got.came, expected.came)
    check(got)


@settings(max_examples=40, deadline=None)
@given(constrained(), RULES)
def test_every_job_ends_in_one_state(case, rule):
    workload, cluster, _ = case
    got = simulate(workload, cluster, "+".join(rule))
    assert set(got.status.tolist()) <= {FINISHED, REJECTED}
    assert ((got.status == REJECTED) == (got.reject_reason > 0)).all()
    entered = got.came[got.status == FINISHED]
    assert (entered >= workload.arrival[got.status == FINISHED]).all()


def test_a_chain_runs_one_after_another_with_think_time():
    chain = jobs([0, 10, 20], [1000, 100, 100], [[4, 1, 0]] * 3)
    chain = replace(chain, predecessors=Predecessors.of([[], [0], [1]], [0, 0, 100]))
    for rule in ("fifo+strict", "sjf+easy", "fifo+conservative", "wfp3+skip", "hold"):
        got = simulate(chain, machines([[8, 8, 0]]), rule)
        assert got.start.tolist() == [0, 1000, 1200], rule
        assert got.came.tolist() == [0, 1000, 1200], rule


def test_a_chain_of_a_hundred_thousand_needs_no_recursion():
    count = 100_000
    chain = jobs(np.zeros(count), np.ones(count), np.ones((count, 3)) * [1, 0, 0])
    waits = Predecessors(np.maximum(np.arange(count + 1) - 1, 0), np.arange(count - 1), np.zeros(count))
    got = simulate(replace(chain, predecessors=waits), machines([[8, 8, 0]]))
    assert np.array_equal(got.start, np.arange(count))
    events = MachineEvents([1.5], [0], [False])
    got = simulate(replace(chain, predecessors=waits), machines([[8, 8, 0]]), events=events, on_down="fail")
    assert np.bincount(got.status).tolist() == [0, 0, 1, count - 2, 1]


def test_what_can_never_enter_the_queue_says_why():
    waits = Predecessors([0, 1, 2, 3, 4, 5, 6, 6], [0, 2, 1, -1, 6, 4], np.zeros(7), ("gone",))
    queue = jobs([0] * 7, [1] * 7, [[1, 1, 0]] * 6 + [[9, 1, 0]], predecessors=waits)
    got = simulate(queue, machines([[8, 8, 0]]))
    assert [REASONS[k] for k in got.reject_reason] == [
        "it waits for itself",
        "it waits for a job that waits for it (a circle)",
        "it waits for a job that waits for it (a circle)",
        "it waits for a job that is not there",
        "it waits for a job that is rejected",
        "it waits for a job that is rejected",
        "one instance is larger than every machine",
    ]


def test_models_are_honoured_and_an_empty_set_is_rejected():
    allowed = Allowed.of([("V100",), ("V100",), ("A100",), (), ("m0",), None, ("V100",)])
    demand = [[1, 1, 2]] * 6 + [[1, 9, 0]]
    cluster = machines([[8, 16, 2], [8, 8, 2]], model=np.array(["T4", "V100"], object))
    queue = jobs([0] * 7, [100] * 7, demand, allowed=allowed)
    for placement in ("first_fit", "best_fit", "worst_fit", "spread", "fgd"):
        got = simulate(queue, cluster, f"fifo+{placement}+skip")
        assert got.placed.machine.tolist()[:2] == [1, 1], placement
        assert got.start[:2].tolist() == [0, 100], placement
        assert got.placed.machine[2] == 0, placement  # of job 4
        assert [STATUS[k] for k in got.status[[2, 3, 6]]] == ["rejected"] * 3
        reasons = [REASONS[k] for k in got.reject_reason[[2, 3, 6]]]
        assert reasons[:2] == ["no machine has a model or name that it allows"] * 2
        assert reasons[2] == "it does not fit on the machines that it allows"


def test_a_small_job_that_waits_for_its_machine_holds_nobody_else_back():
    """The first waits for machine 1 and asks for less than the second, which may run on machine 0."""
    allowed = Allowed.of([("m1",), ("m1",), None])
    queue = jobs([0, 1, 2], [10, 1, 1], [[8, 1, 0], [1, 1, 0], [1, 1, 0]], allowed=allowed)
    got = simulate(queue, machines([[8, 8, 0], [8, 8, 0]]), "fifo+first_fit+skip")
    assert got.start.tolist() == [0, 10, 2]


def test_a_selection_takes_what_it_lacks_for_finished_and_counts_it():
    waits = Predecessors.of([[], [0], [1, 0], [2, 1]], [0, 1, 2, 3])
    queue = jobs([3, 2, 1, 0], [1] * 4, [[1, 1, 0]] * 4, predecessors=waits, id=list("abcd"))
    assert queue.predecessors.names(queue.id) == [["c", "b"], ["b", "a"], ["a"], []]
    part = queue.take(slice(0, 2))
    assert part.predecessors.names(part.id) == [["c"], []]
    assert part.predecessors.think.tolist() == [3, 0]
    assert part.predecessors.dropped == 3
