"""Policies over choices and numbers: NumPy draws what TensorFlow scores, densities as SciPy has them."""

import numpy as np
import pytest
from scipy import stats

from ppo.config import PPOSettings
from schedrl.envs.action_probes import ACTION_PROBES
from schedrl.learning import gaussian
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.actor_critic import actor_critic_for
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.tf_setup import tensorflow

tf = tensorflow()
SETTINGS = PPOSettings(network="mlp", hidden=(8,))


def model_of(probe: str, seed: int = 0):
    env = ACTION_PROBES[probe](32, seed)
    model = actor_critic_for(env, SETTINGS, 0)
    # Larger than initial weights: differences would show.
    model.weights.assign(np.random.default_rng(3).normal(0, 0.5, model.weights.shape).astype(np.float32))
    model.refresh()
    return env, model, env.reset(seed=seed)[0]


def test_the_density_is_the_normal_s_times_the_choice_s_probability():
    spec = ActionSpec((3,), low=(0.0,), high=(4.0,), in_tuple=True)
    outputs = np.array([[0.2, -1.0, 0.5, 0.3, -0.4]], np.float32)
    obs = {"action_mask": np.array([[True, False, True]])}
    action = np.array([[2.0, 3.1]], np.float32)  # 3.1 of 0 .. 4 is 0.55 of -1 .. 1
    log_prob, entropy = gaussian.evaluate(spec, tf.constant(outputs), obs, tf.constant(action))
    chance = np.exp(0.5) / (np.exp(0.2) + np.exp(0.5))
    std = np.log1p(np.exp(-0.4 + gaussian.SHIFT)) + gaussian.MIN_STD
    expected = np.log(chance) + stats.norm.logpdf(0.55, 0.3, std)
    assert float(log_prob[0]) == pytest.approx(expected, rel=1e-4)
    assert float(entropy[0]) == pytest.approx(
        stats.entropy([chance, 1 - chance]) + stats.norm.entropy(0.3, std), rel=1e-4
    )


@pytest.mark.parametrize("probe", ACTION_PROBES)
def test_numpy_draws_what_tensorflow_scores(probe):
    env, model, obs = model_of(probe)
    stored, log_prob, values = model.act(obs, 7)
    outputs, predicted = model.outputs(model.weights, model.normalise(obs))
    scored, _ = gaussian.evaluate(model.actions, outputs, obs, tf.constant(stored))
    np.testing.assert_allclose(log_prob, scored.numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(values, predicted.numpy().mean(axis=-1), rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(stored, model.act(obs, 7)[0])
    assert (stored != model.act(obs, 8)[0]).any()
    env.step(
        model.actions.decode(model.actions.inside(stored))
    )  # the probe refuses what is illegal or outside


def test_draws_have_the_mean_and_deviation_that_the_network_says():
    _, model, obs = model_of("continuous_target")
    one = {name: np.repeat(leaf[:1], 4000, axis=0) for name, leaf in obs.items()}
    stored = model.act(one, 1)[0]
    outputs, _ = model.acting.forward(one)
    mean, std = model.acting._mean_and_std(outputs[:1, model.actions.num_logits :])
    unit = model.actions.to_unit(stored)
    np.testing.assert_allclose(unit.mean(axis=0), mean[0], atol=4 * std[0].max() / 60)
    np.testing.assert_allclose(unit.std(axis=0), std[0], rtol=0.1)


@pytest.mark.parametrize("probe", ["continuous_target", "mixed_choice"])
def test_saved_and_exported_policies_act_the_same(probe, tmp_path):
    _, model, obs = model_of(probe)
    model.save_policy(tmp_path / "policy.npz")
    loaded = NumpyPolicy.load(tmp_path / "policy.npz")
    expected = model.actions.encode(model.policy().predict(obs))
    np.testing.assert_array_equal(model.actions.encode(loaded.predict(obs)), expected)
    model.export(tmp_path / "saved_model")
    served = tf.saved_model.load(str(tmp_path / "saved_model")).signatures["serving_default"](
        **{name: tf.constant(leaf) for name, leaf in obs.items()}
    )
    np.testing.assert_allclose(served["action"].numpy(), expected, rtol=1e-4, atol=1e-5)
