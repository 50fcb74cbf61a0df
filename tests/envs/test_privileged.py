"""What only the critic is shown, worked out by hand; and that nobody else is shown it."""

from typing import ClassVar

import numpy as np

from schedrl.envs.simple_cluster import SimpleClusterEnv, SimpleClusterSettings, play
from schedrl.workload.types import Workload

RESOURCES = ["cpu", "memory", "gpu"]


def test_what_is_privileged_by_hand():
    """At 2 job 0 has 8 of its 10 s to go, unlike its estimate; job 1 waits; job 2 comes at 22."""
    demand = np.array([[4, 1, 0], [3, 1, 0], [2, 8, 1]], float)
    arrival, duration = np.array([0.0, 2.0, 22.0]), np.array([10.0, 20.0, 40.0])
    jobs = Workload(arrival, duration, demand, RESOURCES, "s", estimate=np.array([99.0, 5.0, 1.0]))
    settings = SimpleClusterSettings(num_servers=1, server=(4, 8, 2), decide="every_event", num_job_slots=3)
    env = SimpleClusterEnv(settings, privileged=True, workload=jobs)
    obs, _ = env.reset()
    assert env.observation_space.contains(obs)
    env.step(0)
    obs, *_, info = env.step(1)
    assert info["time"] == 2.0
    scaled = lambda seconds: np.log1p(seconds / 10) / 10  # noqa: E731
    np.testing.assert_allclose(obs["privileged_queue"], [[scaled(20)], [0], [0]], rtol=1e-6)
    np.testing.assert_allclose(obs["privileged_cluster"], [[scaled(8)] * 3], rtol=1e-6)
    # The mean duration is 70 / 3 s, so horizons end 5.8, 11.7, 23.3, ... s from now: job 2 is in the third.
    mean = 70 / 3
    counted = np.array([1, 10 / 40, 40 / mean * 2 / 4, 40 / mean * 8 / 8, 40 / mean * 1 / 2])
    expected = [np.zeros(5), np.zeros(5), *[np.log1p(counted / 2**h) for h in (2, 3, 4, 5)]]
    np.testing.assert_allclose(obs["privileged_arrivals"], expected, rtol=1e-6)


def test_what_is_privileged_is_not_shown_elsewhere():
    settings = SimpleClusterSettings(num_jobs=20, action="job_machine", privileged=True)
    assert "privileged_queue" in SimpleClusterEnv(settings).observation_space.spaces
    state = SimpleClusterEnv(settings, representation="state")
    assert not [name for name in state.observation_space if name.startswith("privileged")]

    class Spy:
        representation = "slots"
        seen: ClassVar[set[str]] = set()

        def predict(self, obs, deterministic=True):
            self.seen.update(obs)
            return obs["action_mask"].argmax(axis=-1)

    play(Spy(), settings, [0, 1])
    assert Spy.seen == {"action_mask", "cluster", "queue", "backlog", "pairs"}
