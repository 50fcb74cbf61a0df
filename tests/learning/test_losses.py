"""Terms of losses against sums written out by hand."""

import numpy as np
import pytest

from schedrl.envs.probes import MaskedBestAction
from schedrl.learning import losses
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.settings import ActorCriticSettings
from schedrl.learning.tf_setup import tensorflow

tf = tensorflow()


def test_value_loss_of_one_value_is_half_the_squared_error():
    predicted = tf.constant([[1.0], [3.0]])
    assert float(losses.value_loss(predicted, tf.constant([0.0, 5.0]))) == pytest.approx((1 + 4) / 2 / 2)


def test_quantile_huber_by_hand():
    # Two quantiles stand for the shares 0.25 and 0.75. The target is 1.
    predicted = tf.constant([[0.5, 4.0]])
    # Below the target by 0.5: 0.25 x 0.125. Above it by 3: (1 - 0.75) x (3 - 0.5).
    assert float(losses.value_loss(predicted, tf.constant([1.0]))) == pytest.approx(0.25 * 0.125 + 0.25 * 2.5)


def test_quantiles_find_the_quantiles():
    rng = np.random.default_rng(0)
    targets = tf.constant(rng.exponential(10.0, 4000).astype(np.float32))
    found = tf.Variable(np.full((1, 4), 5.0, np.float32))
    for step in range(600):
        with tf.GradientTape() as tape:
            loss = losses.quantile_huber(tf.tile(found, (4000, 1)), targets)
        found.assign_sub((2.0 if step < 400 else 0.5) * tape.gradient(loss, found))
    expected = np.quantile(targets.numpy(), [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(found.numpy()[0], expected, rtol=0.1, atol=0.3)


@pytest.fixture
def model():
    settings = ActorCriticSettings(network="mlp", hidden=(16,), dropout=0.5, num_quantiles=3)
    return ActorCritic(MaskedBestAction(8).single_observation_space, settings, 0)


def test_actor_critic_is_the_sum_of_its_terms(model):
    obs = MaskedBestAction(4, seed=1).reset()[0]
    batch = {
        "obs": obs,
        "action": obs["action_mask"].argmax(axis=1).astype(np.int32),
        "advantage": np.array([1.0, -2.0, 0.5, 3.0], np.float32),
        "target": np.array([0.0, 1.0, 2.0, 3.0], np.float32),
    }
    loss, (policy, value, entropy) = losses.actor_critic(model, model.weights, batch, (0.7, 0.1))
    assert float(loss) == pytest.approx(float(policy + 0.7 * value - 0.1 * entropy), rel=1e-5)
    logits, _ = model.policy().forward(obs)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen = np.log(p[np.arange(4), batch["action"]])
    assert float(policy) == pytest.approx(-np.mean(chosen * batch["advantage"]), rel=1e-4)
    assert float(entropy) == pytest.approx(
        np.mean([-sum(q * np.log(q) for q in row if q) for row in p]), 1e-4
    )


def test_dropout_reaches_the_values_and_never_the_policy(model):
    obs = model.normalise(MaskedBestAction(64, seed=1).reset()[0])
    plain = [x.numpy() for x in model.outputs(model.weights, obs)]
    dropped = [x.numpy() for x in model.outputs(model.weights, obs, tf.constant([0, 1]))]
    again = [x.numpy() for x in model.outputs(model.weights, obs, tf.constant([0, 1]))]
    np.testing.assert_array_equal(dropped[0], plain[0])
    np.testing.assert_array_equal(dropped[1], again[1])
    assert (dropped[1] != plain[1]).any()


def test_exported_quantiles_are_sorted_and_their_mean_is_the_value(model):
    obs = MaskedBestAction(5, seed=1).reset()[0]
    quantiles = model.policy().quantiles(obs)
    assert quantiles.shape == (5, 3)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    np.testing.assert_allclose(quantiles.mean(axis=1), model.values(obs), rtol=1e-5)
