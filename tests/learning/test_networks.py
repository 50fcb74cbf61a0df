"""Networks: parameters in one vector, slots treated alike, NumPy equal to TensorFlow and to the export."""

import numpy as np
import pytest
from gymnasium import spaces

from schedrl.learning import networks
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.settings import LearningSettings
from schedrl.learning.tf_setup import tensorflow
from schedrl.settings import UserError

tf = tensorflow()

SLOTS = {"cluster": (6, 2), "queue": (4, 5), "backlog": (3,)}


def space(leaves: dict, num_actions: int = 5, dtype=np.float32) -> spaces.Dict:
    boxes = {name: spaces.Box(0, 255, shape, dtype) for name, shape in leaves.items()}
    return spaces.Dict(boxes | {"action_mask": spaces.Box(0, 1, (num_actions,), np.bool_)})


def batch(leaves: dict, size: int = 9, num_actions: int = 5, dtype=np.float32, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    obs = {name: (rng.random((size, *shape)) * 4).astype(dtype) for name, shape in leaves.items()}
    mask = rng.random((size, num_actions)) < 0.5
    mask[:, -1] = True
    return obs | {"action_mask": mask}


KINDS = {
    "slots": ("slots", SLOTS, np.float32),
    "mlp": ("mlp", SLOTS, np.float32),
    "image": ("image", {"image": (6, 7)}, np.uint8),
}


@pytest.fixture(params=KINDS)
def case(request):
    network, leaves, dtype = KINDS[request.param]
    settings = LearningSettings(network=network, normalise_observations=True)
    model = ActorCritic(space(leaves, dtype=dtype), settings, seed=3, representation=network)
    model.update_normaliser(batch(leaves, 50, dtype=dtype, seed=1))
    # Larger than initial weights: differences would show.
    model.weights.assign(np.random.default_rng(5).normal(0, 0.4, model.weights.shape).astype(np.float32))
    model.refresh()
    return model, batch(leaves, dtype=dtype)


def test_numpy_equals_tensorflow(case):
    model, obs = case
    logits, values = model.forward(
        model.weights, model.normalise({k: tf.constant(v) for k, v in obs.items()})
    )
    legal = obs["action_mask"]
    own_logits, own_values = model.policy().forward(obs)
    np.testing.assert_allclose(own_logits[legal], logits.numpy()[legal], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(own_values, values.numpy(), rtol=1e-4, atol=1e-5)


def test_policy_file_and_saved_model_act_alike(case, tmp_path):
    model, obs = case
    model.save_policy(tmp_path / "policy.npz")
    policy = NumpyPolicy.load(tmp_path / "policy.npz")
    actions = policy.predict(obs)
    np.testing.assert_array_equal(actions, model.policy().predict(obs))
    single = {name: leaf[0] for name, leaf in obs.items()}
    assert policy.predict(single) == actions[0]
    assert isinstance(policy.predict(single), int)
    assert np.isneginf(policy.scores(obs)[~obs["action_mask"]]).all()

    model.export(tmp_path / "saved_model")
    loaded = tf.saved_model.load(str(tmp_path / "saved_model"))
    served = loaded.signatures["serving_default"](**{k: tf.constant(v) for k, v in obs.items()})
    np.testing.assert_array_equal(served["action"].numpy(), actions)
    np.testing.assert_allclose(served["value"].numpy(), policy.forward(obs)[1], rtol=1e-4, atol=1e-5)
    assert set(served) == {"action", "logits", "value"}


def test_acting_samples_legal_actions_with_their_log_probabilities(case):
    model, obs = case
    many = {name: np.repeat(leaf, 500, 0) for name, leaf in obs.items()}
    actions, log_probs, values = model.act(many, step=4)
    again, _, _ = model.act(many, step=4)
    other, _, _ = model.act(many, step=5)
    np.testing.assert_array_equal(actions, again)
    assert (actions != other).any()
    rows = np.arange(len(actions))
    assert many["action_mask"][rows, actions].all()
    logits, expected_values = model.policy().forward(many)
    probabilities = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.exp(log_probs), probabilities[rows, actions], rtol=1e-4)
    np.testing.assert_array_equal(values, expected_values)
    frequency = np.bincount(actions[:500], minlength=5) / 500
    np.testing.assert_allclose(frequency, probabilities[0], atol=0.08)


def test_slots_are_scored_by_the_same_weights():
    network = networks.make_network("slots", SLOTS, 5)
    shapes = networks.parameter_shapes(network)
    weights = networks.unpack(
        networks.NUMPY, networks.initial_vector(network, np.random.default_rng(0)), shapes
    )
    obs = batch(SLOTS)
    order = np.array([2, 0, 3, 1])
    logits, values = network.forward(networks.NUMPY, weights, obs)
    moved, same = network.forward(networks.NUMPY, weights, obs | {"queue": obs["queue"][:, order].copy()})
    np.testing.assert_allclose(moved[:, :4], logits[:, order], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(same, values, rtol=1e-3, atol=1e-5)


def test_initial_policy_is_nearly_uniform_and_vectors_unpack_in_order():
    network = networks.make_network("mlp", SLOTS, 5, (8,))
    shapes = networks.parameter_shapes(network)
    vector = networks.initial_vector(network, np.random.default_rng(0))
    parts = networks.unpack(networks.NUMPY, vector, shapes)
    assert {name: part.shape for name, part in parts.items()} == shapes
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts.values()]), vector)
    assert np.abs(network.forward(networks.NUMPY, parts, batch(SLOTS))[0]).max() < 1.0


def test_refusals():
    with pytest.raises(UserError, match="needs a leaf queue"):
        networks.make_network("slots", {"image": (4, 4)}, 5)
    with pytest.raises(UserError, match="unknown network"):
        networks.make_network("transformer", SLOTS, 5)
    policy = ActorCritic(space(SLOTS), LearningSettings(), 0).policy()
    with pytest.raises(UserError, match="queue"):
        policy.predict(batch(SLOTS | {"queue": (3, 5)}))
