"""The hold rule on worked examples, and its numbers found on validation workloads."""

import numpy as np
import pytest
from small_clusters import jobs, machines

from schedrl.heuristics.cluster import hold, tune_hold, validation_workloads
from schedrl.settings import UserError
from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.rule import Hold
from schedrl.workload.generators import settings_of


def test_a_long_job_waits_for_room_or_for_silence():
    """Ten processors, half of which a long job must leave free; the first job takes one until 10."""
    workload = jobs((0, 10, 1), (1, 100, 5), (2, 200, 1))
    assert simulate(workload, machines(10), "sjf+best_fit+easy").start.tolist() == [0, 1, 2]
    # .4 would stay free at 1; at 10 nothing runs. The third job is behind the held head, then held itself.
    found = simulate(workload, machines(10), "hold", hold=Hold(60, keep=0.5, slope=0))
    assert found.start.tolist() == [0, 10, 110]
    # up to long_from nothing is held
    assert simulate(workload, machines(10), "hold", hold=Hold(200, 0.5, 0)).start.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("procs", "start"), [(7, 1), (8, 50)])
def test_the_longer_the_job_the_more_room(procs, start):
    """At twice long_from .05 + .2 ln 2 = .19 of the ten processors must stay free: two, not one."""
    workload = jobs((0, 50, 1), (1, 120, procs))
    assert simulate(workload, machines(10), "hold", hold=Hold(60, 0.05, 0.2)).start.tolist() == [0, start]


def test_the_numbers_are_the_best_on_the_workloads_given():
    settings = settings_of("bursty").from_dict(
        {"load": 0.9, "resources": ("cpu",), "capacity": (16.0,), "sizes": ("whole:1:8",)}
    )
    workloads = validation_workloads(settings, num_jobs=60, count=10)
    cluster = machines(8, 8)

    def mean(numbers):
        runs = (simulate(workload, cluster, "hold", hold=numbers) for workload in workloads)
        return np.mean([hold.mean_bounded_slowdown(run) for run in runs])

    best = tune_hold(workloads, cluster, long_from=(60.0,))
    assert mean(best) <= min(mean(Hold(60.0, keep, slope)) for keep in hold.KEEP for slope in hold.SLOPE)
    assert mean(best) < mean(Hold(1e9, 0, 0)), "never holding is worse"


def test_a_job_held_to_the_end_counts():
    """Cut at 60: 20 s in the system of 10 s, 60 s so far of 20 s, and one that comes later."""
    workload = jobs((0, 10, 1), (0, 20, 1), (99, 1, 1))
    cut = simulate(workload, machines(1), "ljf", until=60.0)._replace(
        start=np.array([10.0, np.nan, np.nan]), finish=np.array([20.0, np.nan, np.nan])
    )
    assert hold.mean_bounded_slowdown(cut) == pytest.approx((2 + 3) / 2)


def test_few_jobs_are_refused():
    with pytest.raises(UserError, match="at least 300 jobs"):
        tune_hold([], machines(1))


def test_what_counts_as_long_is_tried_at_quantiles_of_the_estimates():
    spread = jobs(*((j, j + 1, 1) for j in range(100)))
    assert hold._long([spread]) == pytest.approx([30.7, 50.5, 70.3, 90.1])
    assert hold._long([jobs((0, 0, 1))]) == [1.0]
