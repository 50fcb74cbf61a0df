"""What went wrong in other schedulers, as small traces with the right starts."""

import pytest

from schedrl.sim.cluster import reference, simulate
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.readers import read_trace

GANGS = "id,arrival,duration,cpu,instances\n1,0,50,8,60\n2,0,70,8,60\n3,1,5,8,40\n"
HUNDRED = '[[machines]]\nname = "n"\ncount = 100\ncpu = 8\n'
TIES = (
    "id,arrival,duration,cpu\n1,0.1,0.2,4\n2,0.30000000000000004,1,4\n3,0.3,1,4\n4,10,10,4\n5,20,10,4\n"
    "6,20,0,4\n7,30,5,4\n"
)
ONE = '[[machines]]\nname = "n"\ncpu = 4\n'


def starts(folder, trace, cluster, rule):
    (folder / "jobs.csv").write_text(trace)
    (folder / "cluster.toml").write_text(cluster)
    (workload, _), machines = read_trace(folder / "jobs.csv"), read_cluster(folder / "cluster.toml")
    found = simulate(workload, machines, rule)
    assert found.start.tolist() == reference.simulate(workload, machines, rule).start.tolist()
    return dict(zip(map(str, workload.id), found.start.tolist(), strict=True))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("fifo+first_fit+strict", [0, 50, 50]),
        ("fifo+best_fit+skip", [0, 50, 1]),
        ("fifo+spread+easy", [0, 50, 1]),
        ("fifo+worst_fit+conservative", [0, 50, 1]),
    ],
)
def test_two_gangs_never_hold_half_each(tmp_path, rule, expected):
    """github.com/volcano-sh/volcano/issues/3373: two jobs of 60 nodes of 100, both in part, for ever."""
    assert list(starts(tmp_path, GANGS, HUNDRED, rule).values()) == expected


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_a_job_that_ends_as_another_comes_has_gone(tmp_path, discipline):
    """github.com/oar-team/batsim/issues/14: equal times, and sums that are equal but for their rounding."""
    found = starts(tmp_path, TIES, ONE, f"fifo+first_fit+{discipline}")
    assert {k: found[k] for k in "14567"} == {"1": 0.1, "4": 10, "5": 20, "6": 30, "7": 30}
