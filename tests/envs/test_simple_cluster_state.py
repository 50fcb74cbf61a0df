"""`state` of the cluster environment shows neither truth nor future: order and number of its rows."""

import numpy as np

import environment
from schedrl.workload.types import Workload


def toy(*jobs, **columns):
    """Jobs as (arrival, duration, cpu, memory, gpu)."""
    arrival, duration, *demand = np.array(jobs, float).T
    return Workload(arrival, duration, np.array(demand).T, ["cpu", "memory", "gpu"], "s", **columns)


def one_server(workload, **settings):
    """One server of 4 cores, 8 GB and 2 GPUs, seen as `state`."""
    settings |= {"num_servers": 1, "server": (4, 8, 2), "representation": "state"}
    return environment.make("simple_cluster", workload=workload, **settings)


def test_rows_of_running_stand_in_the_order_of_start_whatever_the_true_run_times():
    """Three jobs start at 0, 0 and 1; their estimates are equal, the last one really ends first."""
    jobs = toy((0, 90, 1, 1, 0), (0, 50, 1, 1, 0), (1, 20, 1, 1, 0), estimate=np.array([60.0, 60.0, 60.0]))
    env = one_server(jobs, queue_order="arrival", decide="every_event")
    env.reset()
    for action in (0, 0, 1, 0):  # two starts at 0, the wait until 1, the third start
        obs, *_, info = env.step(action)
    assert info["time"] == 1.0
    assert obs["running"][:4, 0].tolist() == [0, 1, 2, -1]


def test_shape_of_state_is_one_whatever_comes():
    few, many = toy((0, 10, 1, 1, 0)), toy(*((k, 10, 1, 1, 0) for k in range(300)), instances=np.full(300, 2))
    shapes = {one_server(jobs).observation_space["running"].shape for jobs in (few, many)}
    assert shapes == {(200, 7)}
    assert one_server(few, running_rows=3).observation_space["running"].shape == (
        3,
        7,
    )


def test_instances_beyond_the_rows_of_running_are_left_out():
    jobs = toy((0, 10, 1, 1, 0), (0, 30, 1, 1, 0), (0, 20, 1, 1, 0), (50, 1, 1, 1, 0))
    env = one_server(jobs, running_rows=2, queue_order="arrival", decide="every_event")
    env.reset()
    for _ in range(3):
        obs, *_ = env.step(0)
    assert obs["running"][:, 0].tolist() == [0, 1]
