"""Jobs handed to an environment: taken in every form that the docs name, refused in words otherwise."""

import numpy as np
import pytest

import environment
from schedrl.settings import UserError
from schedrl.workload import Resource, Workload

DURATIONS = np.array([[1, 0, 2]])
DEMANDS = np.array([[[1, 1], [0, 0], [2, 2]]])


def ages(workload):
    env = environment.make("deeprm", workload=workload)
    env.reset()
    over = False
    while not over:
        _, _, over, _, _ = env.step(0)
    return env.unwrapped.jobs()["arrival_time"].tolist()


def test_arrays_may_be_a_pair_or_have_names():
    pair = ages((DURATIONS, DEMANDS))
    assert pair == ages([DURATIONS.tolist(), DEMANDS.tolist()])
    assert pair == ages({"durations": DURATIONS, "demands": DEMANDS})


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"a": 1}, r"workload is a dict with a; give the name of a workload, .*'durations': "),
        ({}, "workload is a dict; give"),
        ({"durations": DURATIONS}, "workload is a dict with durations; give"),
        (5, "workload is a int"),
        (True, "workload is a bool"),
        ((DURATIONS,), "workload is a tuple"),
        ((1, 2, 3), "workload is a tuple"),
        (("ab", "cd"), "durations must be an array of numbers"),
        (([[1], [1, 2]], DEMANDS), "durations must be an array of numbers, every row of one length"),
        ((DURATIONS, [{"cpu": 1}]), "demands must be an array of numbers"),
        ((DURATIONS + 0.5, DEMANDS), "must be whole numbers"),
        ((DURATIONS * np.nan, DEMANDS), "must be whole numbers"),
        ((DURATIONS, DEMANDS[0]), "got"),
        ("bursti", "unknown workload 'bursti'"),
    ],
)
def test_what_is_no_workload_is_refused_in_words(workload, message):
    with pytest.raises(UserError, match=message):
        environment.make("deeprm", workload=workload)


@pytest.mark.parametrize("workload", [{"a": 1}, 5, [], [1], (DURATIONS, DEMANDS)])
def test_machines_take_workloads(workload):
    with pytest.raises(UserError, match="give the name of a workload, a Workload or a list of them"):
        environment.make("simple_cluster", workload=workload)
    jobs = Workload(arrival=[0, 1], duration=[5, 5], demand=[[1], [1]], resources=(Resource("cpu", "cores"),))
    environment.make("simple_cluster", workload=[jobs]).reset()
