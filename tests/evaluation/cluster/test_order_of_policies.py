"""Case 53: no policy of a comparison starts on a cluster that another one used."""

import numpy as np

import job_distribution
from schedrl.sim.cluster import simulate
from schedrl.workload.cluster_file import default_cluster

RULES = ("fifo+first_fit+skip", "sjf+best_fit+easy", "saf+worst_fit+skip", "hold", "fifo+first_fit+strict")


def test_five_policies_forwards_and_backwards_give_the_same_starts():
    jobs, machines = job_distribution.workload("bursty", load=0.9, num_jobs=600, seed=1), default_cluster()
    before = jobs.arrival.copy(), machines.capacity.copy()
    forwards = {rule: simulate(jobs, machines, rule).start for rule in RULES}
    backwards = {rule: simulate(jobs, machines, rule).start for rule in RULES[::-1]}
    for rule in RULES:
        assert forwards[rule].tobytes() == backwards[rule].tobytes()
    assert len({start.tobytes() for start in forwards.values()}) == len(RULES)
    assert (jobs.arrival == before[0]).all()
    assert (machines.capacity == before[1]).all()
    assert np.isfinite(forwards["hold"]).all()
