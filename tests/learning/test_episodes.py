"""Whole episodes in groups of one job sequence, returns to go and the time-dependent baseline."""

import numpy as np
import pytest

from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.envs.deeprm.vector import DeepRMVectorEnv
from schedrl.envs.probes import DelayedReward
from schedrl.learning import returns
from schedrl.learning.episodes import EpisodeCollector


def first_legal(obs, rows):
    return obs["action_mask"].argmax(axis=1)


def test_returns_to_go_by_hand():
    rewards = np.array([[1.0, 0.0], [2.0, 4.0], [3.0, 0.0]])
    np.testing.assert_allclose(returns.returns_to_go(rewards, 0.5), [[2.75, 2.0], [3.5, 4.0], [3.0, 0.0]])


def test_baseline_by_time_by_hand():
    # The first column spends two decisions in time step 0, the second one; the second is over at time 2.
    sums = np.array([[6.0, 10.0], [6.0, 4.0], [5.0, 0.0], [1.0, 0.0]])
    times = np.array([[0, 0], [0, 1], [1, -1], [2, -1]])
    baseline = returns.group_baseline(sums, times, np.array([0, 0]))
    np.testing.assert_allclose(baseline[:, 0], [8.0, 8.0, 4.5, 0.5])
    np.testing.assert_allclose(baseline[:2, 1], [8.0, 4.5])


def test_baseline_by_decision_is_the_original_s():
    sums = np.array([[6.0, 10.0, 1.0], [5.0, 4.0, 1.0], [1.0, 0.0, 1.0]])
    times = np.array([[0, 0, 0], [1, 1, 1], [2, -1, 2]])
    baseline = returns.group_baseline(sums, times, np.array([0, 0, 1]))
    np.testing.assert_allclose(baseline[:, 0], [8.0, 4.5, 0.5])
    np.testing.assert_allclose(baseline[:, 2], 1.0)


@pytest.fixture
def env():
    return DeepRMVectorEnv(DeepRMSettings(arrival_rate=0.5, sequence_length=12), 6, copy=False)


def test_groups_play_the_same_jobs_and_the_next_batch_plays_others(env):
    collector = EpisodeCollector(env, 3, seed=5)
    jobs = []
    started = collector._start

    def start():
        obs = started()
        jobs.append(env.outcome().duration.copy())
        return obs

    collector._start = start
    played = collector.collect(first_legal)
    collector.collect(first_legal)
    for batch in jobs:
        for group in (batch[:3], batch[3:]):
            np.testing.assert_array_equal(group, np.repeat(group[:1], 3, axis=0))
        assert (batch[0] != batch[3]).any()
    assert (jobs[0][0] != jobs[1][0]).any()
    # The rule is deterministic, so equal jobs earn equal returns, and those are the sums of the rewards.
    np.testing.assert_allclose(played.rewards.sum(axis=0), played.ended["r"])
    np.testing.assert_allclose(played.ended["r"][:3], played.ended["r"][0])


def test_what_comes_after_an_episode_is_not_kept(env):
    played = EpisodeCollector(env, 1, seed=5).collect(first_legal)
    lengths = played.ended["l"].astype(int)
    assert len(set(lengths)) > 1
    for column, length in enumerate(lengths):
        assert (played.times[:length, column] >= 0).all()
        assert (played.times[length:, column] == -1).all()
        assert (played.rewards[length:, column] == 0).all()
    assert (played.steps < lengths[played.envs]).all()
    assert played.decisions == lengths.sum()
    assert played.obs["action_mask"].sum(axis=1).min() > 1


def test_time_is_simulated_time(env):
    played = EpisodeCollector(env, 1, seed=5).collect(first_legal)
    steps = np.diff(played.times[: int(played.ended["l"][0]), 0])
    assert set(steps) <= {0, 1}
    assert 0 in steps


def test_without_numbered_sequences_time_is_the_decision():
    played = EpisodeCollector(DelayedReward(4), 2, seed=0).collect(first_legal)
    np.testing.assert_array_equal(played.times, [[0] * 4, [1] * 4])


def test_a_resumed_collector_goes_on_exactly(env):
    collector = EpisodeCollector(env, 2, seed=5)
    collector.collect(first_legal)
    state = collector.state()
    expected = collector.collect(first_legal)
    other = EpisodeCollector(DeepRMVectorEnv(env.settings, 6, seed=5, copy=False), 2, seed=5)
    other.load_state(state)
    np.testing.assert_array_equal(other.collect(first_legal).rewards, expected.rewards)
