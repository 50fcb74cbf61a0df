"""Every generator: reproducible, families and numbers apart, settings that make no sense refused."""

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload import FAMILIES
from schedrl.workload.generators import GENERATORS, generate, settings_of
from schedrl.workload.generators.jobs import JobSettings

NAMES = [name for name in GENERATORS if name != "real_trace"]  # which has tests of its own
INDEPENDENT = [name for name in NAMES if issubclass(settings_of(name), JobSettings)]


def draw(name, num_jobs=200, seed=0, family="train", number=0, **settings):
    return generate(settings_of(name).from_dict(settings), num_jobs, seed, family, number)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_arguments_give_the_same_jobs(name):
    jobs = draw(name, seed=3, family="validation", number=2)
    assert len(jobs) == 200
    assert jobs.same_as(draw(name, seed=3, family="validation", number=2))


@pytest.mark.parametrize("name", NAMES)
def test_seeds_families_and_numbers_share_no_job(name):
    drawn = [
        draw(name, seed=seed, family=family, number=number)
        for seed in (0, 1)
        for family in FAMILIES
        for number in (0, 1, 2)
    ]
    seen = {tuple(np.column_stack([w.arrival, w.duration, w.demand]).ravel()) for w in drawn}
    assert len(seen) == len(drawn)
    if name in INDEPENDENT:
        arrivals = np.concatenate([w.arrival for w in drawn])
        assert len(np.unique(arrivals)) == len(arrivals)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_jobs_of_many_are_the_same_as_few(name):
    assert draw(name, 1000).take(slice(0, 100)).same_as(draw(name, 100))


@pytest.mark.parametrize("name", NAMES)
def test_global_random_state_is_neither_read_nor_moved(name):
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    draw(name)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("name", INDEPENDENT)
def test_times_are_seconds_and_resources_those_of_the_cluster(name):
    jobs = draw(name)
    assert jobs.time_unit == "s"
    assert [(r.name, r.unit) for r in jobs.resources] == [("cpu", "cores"), ("memory", "GB"), ("gpu", "gpus")]
    assert (jobs.estimate == jobs.duration).all()


def test_another_estimate_leaves_the_jobs_as_they_are():
    exact, rounded = draw("bursty"), draw("bursty", estimates="round")
    for column in ("arrival", "duration", "demand"):
        assert (getattr(exact, column) == getattr(rounded, column)).all()
    assert (exact.estimate != rounded.estimate).all()


def test_laws_and_resources_combine_freely():
    jobs = draw("diurnal", durations="whole:1:3", sizes="constant:2,uniform:1:2", resources="cpu,disk",
                capacity="10,20", load=0.5)  # fmt: skip
    assert set(jobs.duration) == {1, 2, 3}
    assert (jobs.demand[:, 0] == 2).all()
    assert [(r.name, r.unit) for r in jobs.resources] == [("cpu", "cores"), ("disk", "units")]


REFUSED = [
    ({"name": "poison"}, "nearest: poisson"),
    ({"num_jobs": 0}, "num_jobs is 0"),
    ({"seed": -1}, "seed is -1"),
    ({"number": -1}, "number is -1"),
    ({"family": "tests"}, "nearest: test"),
    ({"arrival_rates": 2}, "nearest: arrival_rate"),
    ({"arrival_rate": 0}, "above 0"),
    ({"load": -0.5}, "at least 1e-06"),
    ({"exact_load": True}, "give load"),
    ({"exact_load": True, "load": 0.5, "num_jobs": 1}, "at least 2 jobs"),
    ({"capacity": (40, 160)}, "2 values for 3 resources"),
    ({"capacity": (40, 160, 0)}, "above 0"),
    ({"resources": "cpu,cpu,gpu"}, "each once"),
    ({"resources": "cpu", "capacity": (4,)}, "give one law per resource"),
    ({"durations": "lognorml"}, "nearest: lognormal"),
    ({"durations": "lognormal:a"}, "'a' is no number"),
    ({"durations": "lognormal:1:2:3:4:5"}, "lognormal:median:sigma:low:high"),
    ({"durations": "lognormal:60:median=3"}, "not understood"),
    ({"durations": "lognormal:0"}, "median 0 must be above 0"),
    ({"durations": "lognormal:low=9:high=1"}, "low 9 exceeds high 1"),
    ({"durations": "pareto:0"}, "alpha 0 must be above 0"),
    ({"durations": "pareto:1:5:5"}, "0 < low < high"),
    ({"durations": "uniform:-1:5"}, "0 or more"),
    ({"durations": "uniform:1:inf"}, "finite"),
    ({"durations": "exponential:0"}, "average 0"),
    ({"durations": "whole:1:2.5"}, "whole number"),
    ({"durations": "constant:0"}, "0 seconds"),
    ({"sizes": "cluster_mx"}, "sizes"),
    ({"sizes": "uniform:1:2,uniform:1:2"}, "2 laws for 3 resources"),
    ({"sizes": "whole:0:1,whole:0:1,whole:0:1"}, "demands nothing"),
    ({"estimates": "exactly"}, "nearest: exact"),
    ({"estimates": "factor:-1"}, "0 or more"),
    ({"estimates": "noise:99"}, "0 to 10"),
    ({"name": "heavy_tail", "alpha": 0}, "above 0"),
    ({"name": "heavy_tail", "max_size": 1}, "above 1"),
    ({"name": "heavy_tail", "tail": "both"}, "duration, demand"),
    ({"name": "heavy_tail", "tail": "demand", "largest_demand": (3,)}, "1 values for 3 resources"),
    ({"name": "heavy_tail", "largest_demand": (0, 0, 0)}, "above 0 somewhere"),
    ({"name": "bursty", "burst_duration": 300}, "burst_interval 300 must be above burst_duration 300"),
    ({"name": "bursty", "burst_factor": 0.5}, "at least 1"),
    ({"name": "bursty", "burst_gaps": 0}, "above 0"),
    ({"name": "diurnal", "peak_hour": 24}, "below 24"),
    ({"name": "diurnal", "amplitude": 0.9}, "at least 1"),
    ({"name": "diurnal", "amplitude": 21}, "at most 20"),
    ({"name": "correlated", "corr_coeff": 1}, "below 1"),
    ({"name": "correlated", "corr_coeff": -0.7}, "not possible between every two of 3"),
    ({"name": "correlated", "sizes": "cluster_mix"}, "one law per resource"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda value: str(value))
def test_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        draw(**{"name": "poisson", **arguments})


def test_jobs_too_rare_for_the_history_of_bursts_are_refused_and_rare_ones_are_not():
    def bursty(num_jobs, **often):
        return generate(settings_of("bursty")(**often), num_jobs, 0, "train")

    with pytest.raises(UserError, match="too rare beside the bursts"):
        bursty(10, arrival_rate=1e-11)
    assert (bursty(20, load=1e-4).arrival == bursty(2000, load=1e-4).arrival[:20]).all()
