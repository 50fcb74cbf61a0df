"""GAE against hand-computed arrays (case 18) and a naive loop."""

import numpy as np
import pytest

from schedrl.learning.returns import explained_variance, gae, next_values


def column(*values, dtype=np.float64):
    return np.array(values, dtype)[:, None]


CASE = {
    "gamma": 0.99,
    "lambda": 0.95,
    "rewards": [1.0, 1.0, 1.0],
    "values": [0.5, 0.6, 0.7],
    "final": 0.8,
    "reset": 9.9,
}


def advantages(terminated: bool, truncated: bool) -> np.ndarray:
    last = np.array([[False], [False], [True]])
    following = next_values(
        column(*CASE["values"]),
        np.array([CASE["reset"]]),
        last & terminated,
        last & truncated,
        column(0, 0, CASE["final"]),
    )
    ended = last & (terminated or truncated)
    return gae(
        column(*CASE["rewards"]), column(*CASE["values"]), following, ended, CASE["gamma"], CASE["lambda"]
    )


def test_truncation_bootstraps_from_the_final_observation():
    np.testing.assert_allclose(advantages(False, True)[:, 0], [3.087884453, 2.120026, 1.092], atol=1e-9)


def test_termination_bootstraps_from_nothing():
    np.testing.assert_allclose(advantages(True, False)[:, 0], [2.387328575, 1.37515, 0.3], atol=1e-9)


def test_an_episode_that_ends_both_ways_is_terminated():
    np.testing.assert_array_equal(advantages(True, True), advantages(True, False))


def test_truncation_without_final_values_is_refused():
    flags = np.array([[True]])
    with pytest.raises(ValueError, match="final"):
        next_values(column(1.0), np.zeros(1), ~flags, flags)


def naive_advantages(rewards, values, last_values, terminated, truncated, final_values, gamma, lam):
    """The definition: a sum over the rest of the episode, one environment and one step at a time."""
    steps, envs = rewards.shape
    result = np.zeros((steps, envs))
    for b in range(envs):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                if terminated[k, b]:
                    after = 0.0
                elif truncated[k, b]:
                    after = final_values[k, b]
                else:
                    after = values[k + 1, b] if k + 1 < steps else last_values[b]
                result[t, b] += weight * (rewards[k, b] + gamma * after - values[k, b])
                if terminated[k, b] or truncated[k, b]:
                    break
                weight *= gamma * lam
    return result


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.9, 1.0), (0.97, 0.0), (0.0, 0.5)])
def test_gae_equals_the_naive_loop(gamma, lam):
    rng = np.random.default_rng(0)
    shape = (17, 5)
    rewards, values, finals = rng.normal(size=(3, *shape))
    last = rng.normal(size=shape[1])
    terminated, truncated = rng.random((2, *shape)) < 0.15
    following = next_values(values, last, terminated, truncated, finals)
    fast = gae(rewards, values, following, terminated | truncated, gamma, lam)
    slow = naive_advantages(rewards, values, last, terminated, truncated & ~terminated, finals, gamma, lam)
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_nothing_leaks_across_a_reset():
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(size=(2, 6, 1))
    ended = np.zeros((6, 1), bool)
    ended[2] = True
    before = gae(rewards, values, next_values(values, np.zeros(1), ended, ~ended & ended), ended, 1.0, 1.0)
    rewards[3:], values[3:] = 1e6, -1e6
    after = gae(rewards, values, next_values(values, np.ones(1), ended, ~ended & ended), ended, 1.0, 1.0)
    np.testing.assert_array_equal(before[:3], after[:3])


def test_explained_variance():
    targets = np.array([1.0, 2.0, 3.0])
    assert explained_variance(targets, targets) == 1.0
    assert explained_variance(np.full(3, 2.0), targets) == 0.0
    assert np.isnan(explained_variance(targets, np.ones(3)))
