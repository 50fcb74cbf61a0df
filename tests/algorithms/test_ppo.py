"""PPO's own numbers: loss against NumPy and finite differences, KL stop, no retracing, settings alive."""

import numpy as np
import pytest
from small_runs import small_settings, trained

from ppo.model import PPOLearner, permutations
from schedrl.envs.probes import MaskedBestAction
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.batches import decisions_of
from schedrl.learning.rollout import Rollout
from schedrl.learning.tf_setup import tensorflow
from schedrl.settings import UserError

tf = tensorflow()


@pytest.fixture
def learner() -> PPOLearner:
    settings = small_settings("ppo", num_envs=8, num_steps=2, batch_size=8, value_clip=0.1, hidden=(4,))
    return PPOLearner(ActorCritic(MaskedBestAction(8).single_observation_space, settings, 0), settings)


def minibatch(size: int = 16, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    obs = MaskedBestAction(size, seed).reset()[0]
    columns = rng.normal(size=(4, size)).astype(np.float32)
    return {
        "obs": obs,
        "action": np.full(size, 1, np.int32),
        "log_prob": -np.abs(columns[0]),
        "value": columns[1],
        "advantage": columns[2],
        "target": columns[3],
    }


def numpy_loss(policy, batch, entropy_coef, s):
    """Equations 7 and 9 of the PPO paper, row by row."""
    logits, values = policy.forward(batch["obs"])
    total = 0.0
    for i, mask in enumerate(batch["obs"]["action_mask"]):
        p = np.exp(logits[i] - logits[i].max()) * mask
        p /= p.sum()
        ratio = p[batch["action"][i]] / np.exp(batch["log_prob"][i])
        a = batch["advantage"][i]
        surrogate = min(ratio * a, np.clip(ratio, 1 - s.clip_epsilon, 1 + s.clip_epsilon) * a)
        near = batch["value"][i] + np.clip(values[i] - batch["value"][i], -s.value_clip, s.value_clip)
        error = max((values[i] - batch["target"][i]) ** 2, (near - batch["target"][i]) ** 2)
        entropy = -sum(q * np.log(q) for q in p if q > 0)
        total += -surrogate + s.value_coef * 0.5 * error - entropy_coef * entropy
    return total / len(values)


def test_loss_equals_the_paper(learner):
    batch = minibatch()
    loss, _ = learner.loss(learner.model.weights, batch, 0.03)
    expected = numpy_loss(learner.model.policy(), batch, 0.03, learner.settings)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_gradient_equals_finite_differences(learner):
    batch = minibatch()
    weights = tf.Variable(learner.model.weights)
    with tf.GradientTape() as tape:
        loss, _ = learner.loss(weights, batch, 0.03)
    gradient = tape.gradient(loss, weights).numpy()
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = rng.normal(size=gradient.shape).astype(np.float32)
        direction /= np.linalg.norm(direction)
        plus, minus = (float(learner.loss(weights + s * direction, batch, 0.03)[0]) for s in (3e-3, -3e-3))
        assert (plus - minus) / 6e-3 == pytest.approx(float(gradient @ direction), abs=3e-3)


def test_the_update_never_retraces():
    settings = small_settings("ppo", num_envs=8, num_steps=2, batch_size=8)
    learner = PPOLearner(ActorCritic(MaskedBestAction(8).single_observation_space, settings, 0), settings)
    for seed in range(4):
        rows = permutations(np.random.default_rng(seed), 16 - seed, settings)
        learner.update(minibatch(16 - seed, seed), rows, 1e-3 / (seed + 1), 0.01)
    assert learner._update.experimental_get_tracing_count() == 1


def test_target_kl_ends_the_update_early():
    steps = [
        [r["gradient_steps"] for r in trained("ppo", "two_actions", total_steps=3_000, target_kl=kl)[1]]
        for kl in (None, 1e-9)
    ]
    assert min(steps[0]) == 16
    assert max(steps[1]) < 16


def test_each_epoch_visits_every_row_once():
    settings = small_settings("ppo", num_envs=8, num_steps=4, batch_size=8, num_epochs=3)
    assert permutations(np.random.default_rng(0), 33, settings).shape == (12, 8)
    rows = permutations(np.random.default_rng(0), 32, settings)
    assert rows.shape == (12, 8)
    for epoch in np.split(rows, 3):
        np.testing.assert_array_equal(np.sort(epoch.ravel()), np.arange(32))


def test_forced_decisions_are_passed_over_exactly():
    """Rows learned from get the advantages of the game in which forced steps are part of the environment."""
    settings = small_settings("ppo", num_envs=1, num_steps=6, batch_size=1, gae_lambda=0.5)
    rollout = Rollout(6, 1, MaskedBestAction(1).single_observation_space)
    rollout.learned[:, 0] = [True, False, False, True, True, False]
    rollout.rewards[:, 0] = [1, 2, 3, 4, 5, 6]
    rollout.values[:, 0] = [0.5, 0, 0, 0.7, 0.9, 0]
    rollout.last_values[:] = 2.0
    g = 0.9
    third = 5 + g * 6 + g**2 * 2.0 - 0.9
    second = 4 + g * 0.9 - 0.7 + g * 0.5 * third
    first = 1 + g * 2 + g**2 * 3 + g**3 * 0.7 - 0.5 + g**3 * 0.5 * second
    batch = decisions_of(rollout, settings.replace(normalise_advantages=False, advantage_clip=100.0))
    np.testing.assert_allclose(batch["advantage"], [first, second, third], rtol=1e-5)
    np.testing.assert_allclose(batch["target"], batch["advantage"] + [0.5, 0.7, 0.9], rtol=1e-5)


def test_refusals():
    for changes, message in (
        ({"batch_size": 10_000}, "batch_size is 10000"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"total_steps": None}, "budget"),
        ({"network": "transformer"}, "network"),
        ({"dropout": 1.0}, "dropout is 1"),
        ({"num_quantiles": 5, "value_clip": 0.1}, "value_clip is 0.1"),
        ({"clip_epsilom": 0.1}, "clip_epsilon"),
    ):
        with pytest.raises(UserError, match=message):
            small_settings("ppo", **changes)
