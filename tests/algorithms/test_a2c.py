"""A2C's own numbers: one gradient step by hand, the critic's step size, settings alive."""

import numpy as np
import pytest
from small_runs import small_settings

from a2c.model import make_step
from schedrl.envs.probes import MaskedBestAction
from schedrl.learning import losses, optimisers
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.networks import NUMPY, VALUE_LAYERS
from schedrl.learning.tf_setup import tensorflow

tf = tensorflow()


def batch_of(size: int) -> dict:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(4, size)).astype(np.float32)
    names = ("advantage", "target", "log_prob", "value")
    obs = MaskedBestAction(size, 0).reset()[0]
    action = obs["action_mask"].argmax(axis=1).astype(np.int32)
    return {"obs": obs, "action": action, **dict(zip(names, columns, strict=True))}


def test_one_step_is_clipped_adam_with_the_critic_s_own_step_size():
    settings = small_settings("a2c", hidden=(4,), learning_rate=0.01, critic_learning_rate=0.002)
    model = ActorCritic(MaskedBestAction(8).single_observation_space, settings, 0)
    batch, before = batch_of(16), model.weights.numpy()
    with tf.GradientTape() as tape:
        loss, _ = losses.actor_critic(model, model.weights, batch, (settings.value_coef, 0.03))
    gradient, norm = optimisers.clip_norm(NUMPY, tape.gradient(loss, model.weights).numpy(), 0.5)
    metrics = make_step(model, settings)(batch, 0.01, 0.03)
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)
    zeros = np.zeros_like(before)
    rates = np.where(model.scale_of(VALUE_LAYERS, 0.2) == 1, 0.01, 0.002)
    expected, _, _ = optimisers.adam(before, gradient, zeros, zeros, 1.0, rates)
    np.testing.assert_allclose(model.weights.numpy(), expected, atol=2e-5)


def test_the_critic_s_step_size_is_half_by_default_and_reaches_its_layers_only():
    settings = small_settings("a2c", critic_learning_rate=None, hidden=(4,))
    assert settings.critic_scale == 0.5
    model = ActorCritic(MaskedBestAction(8).single_observation_space, settings, 0)
    # mlp of 4 units: value layer of 4 weights and a bias
    assert (model.scale_of(VALUE_LAYERS, 0.5) == 0.5).sum() == 5
