"""What only the critic is shown, worked out by hand; and that nobody else is shown it."""

from typing import ClassVar

import numpy as np
import pytest

from schedrl.envs.flatten import FlattenObservations
from schedrl.envs.simple_cluster import SimpleClusterEnv, SimpleClusterSettings, SimpleClusterVectorEnv, play
from schedrl.settings import UserError
from schedrl.workload.types import Workload

RESOURCES = ["cpu", "memory", "gpu"]


def scaled(*seconds):
    return np.log1p(np.array(seconds) / 10) / 10


def test_by_hand():
    """Two servers of 4 cores, 8 GB, no GPUs; jobs 0 and 1 run on the second one, jobs 2 and 3 wait at 2 s.

    Job 4 comes at 22 as two instances of 2 cores and 8 GB; job 5 wants a GPU and will be turned away.
    """
    demand = np.array([[1, 1, 0], [2, 1, 0], [4, 1, 0], [4, 1, 0], [2, 8, 0], [1, 1, 1]], float)
    arrival, duration = np.array([0.0, 0, 2, 2, 22, 23]), np.array([10.0, 40, 20, 5, 40, 5])
    jobs = Workload(
        arrival,
        duration,
        demand,
        RESOURCES,
        "s",
        estimate=np.array([99.0, 99, 5, 70, 1, 1]),
        instances=np.array([1, 1, 1, 1, 2, 1]),
    )
    settings = SimpleClusterSettings(
        num_servers=2,
        server=(4, 8, 0),
        decide="every_event",
        num_job_slots=3,
        action="job_machine",
        privileged=True,
    )
    env = SimpleClusterEnv(settings, workload=jobs, scales=(4.6, 20.0))
    obs, _ = env.reset()
    assert env.observation_space.contains(obs)
    wait = env.num_choices - 1
    env.step(1)  # the first of the queue to the second machine, twice
    obs, *_, info = env.step(1)
    while info["time"] < 2:
        obs, *_, info = env.step(wait)
    np.testing.assert_allclose(obs["privileged_queue"][:, 0], scaled(20, 5, 0), rtol=1e-6)
    np.testing.assert_allclose(obs["privileged_cluster"], [[0, 0, 0], scaled(8, 23, 38)], rtol=1e-6)
    # The mean duration is 20 s, so horizons end 5, 10, 20, 40, ... s from now: job 4 is in the third.
    counted = np.array([1, 10 / 40, 2 * 40 / 20 * 2 / 4, 2 * 40 / 20 * 8 / 8, 0])
    expected = [np.zeros(5), np.zeros(5), *[np.log1p(counted / 2 / 2**h) for h in (2, 3, 4, 5)]]
    np.testing.assert_allclose(obs["privileged_arrivals"], expected, rtol=1e-6)


def test_machines_that_an_episode_lacks_show_nothing():
    settings = SimpleClusterSettings(num_servers=4, train_servers=(1, 4), num_jobs=30, privileged=True)
    env = SimpleClusterVectorEnv(settings, num_envs=2)
    obs, _ = env.reset(seed=0)
    few = (obs["cluster"].sum(axis=-1) > 0).sum(axis=-1)
    for _ in range(20):
        obs, *_ = env.step(obs["action_mask"].argmax(axis=-1))
    for row, count in enumerate(few):
        assert not obs["privileged_cluster"][row, count:].any()
        assert obs["privileged_cluster"][row, :count].any()


def test_nobody_else_is_shown_it():
    settings = SimpleClusterSettings(num_jobs=20, action="job_machine", privileged=True)
    assert "privileged_queue" in SimpleClusterEnv(settings).observation_space.spaces
    state = SimpleClusterEnv(settings, representation="state")
    assert not [name for name in state.observation_space if name.startswith("privileged")]
    with pytest.raises(UserError, match="a flat vector would show the policy privileged_"):
        FlattenObservations(SimpleClusterEnv(settings))

    class Spy:
        representation = "slots"
        seen: ClassVar[set[str]] = set()

        def predict(self, obs, deterministic=True):
            self.seen.update(obs)
            return obs["action_mask"].argmax(axis=-1)

    play(Spy(), settings, [0, 1])
    assert Spy.seen == {"action_mask", "cluster", "queue", "backlog", "pairs"}
