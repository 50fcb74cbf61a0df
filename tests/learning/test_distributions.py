"""The masked categorical: case 17, gradients, sampling; TensorFlow and NumPy agree."""

import numpy as np
import pytest

from schedrl.learning import distributions
from schedrl.learning.distributions import NoLegalActionError
from schedrl.learning.tf_setup import tensorflow

tf = tensorflow()

LOGITS, MASK = np.array([[2.0, 1.0, 0.5]], np.float32), np.array([[True, False, True]])


def test_case_17_probabilities_and_entropy():
    log_probs = distributions.log_probs(tf.constant(LOGITS), MASK)
    probs = tf.exp(log_probs).numpy()[0]
    np.testing.assert_allclose(probs, [0.817574476, 0.0, 0.182425524], atol=1e-6)
    assert probs[1] == 0.0
    assert distributions.log_prob_of(log_probs, [0]).numpy()[0] == pytest.approx(-0.201413278, abs=1e-6)
    assert distributions.entropy(log_probs).numpy()[0] == pytest.approx(0.475051564, abs=1e-6)


def test_a_mask_without_a_legal_action_is_a_named_error():
    with pytest.raises(NoLegalActionError, match="first at row 1"):
        distributions.log_probs(tf.constant(np.zeros((2, 3), np.float32)), np.array([[1, 0, 0], [0, 0, 0]]))
    with pytest.raises(NoLegalActionError):
        distributions.require_legal(np.zeros(3, bool))


def test_thousands_of_actions_and_one_legal():
    mask = np.zeros((1, 7830), bool)
    mask[0, 7829] = True
    logits = tf.zeros([1, 7830])
    log_probs = distributions.log_probs(logits, mask)
    assert tf.exp(log_probs).numpy()[0, 7829] == 1.0
    assert distributions.entropy(log_probs).numpy()[0] == 0.0
    for first in range(0, 10_000, 500):
        actions = distributions.sample(tf.zeros([500, 7830]), np.repeat(mask, 500, 0), [3, first])
        assert (actions.numpy() == 7829).all()


def test_gradients_are_finite_and_zero_for_illegal_actions():
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        log_probs = distributions.log_probs(logits, MASK)
        loss = distributions.log_prob_of(log_probs, [2])[0] + distributions.entropy(log_probs)[0]
    gradient = tape.gradient(loss, logits).numpy()[0]
    assert np.isfinite(gradient).all()
    assert gradient[1] == 0.0


def test_gradient_equals_finite_differences():
    mask = np.array([[True, False, True, True]])

    def objective(values):
        log_probs = distributions.log_probs(values, mask)
        return 0.7 * distributions.log_prob_of(log_probs, [3])[0] + 0.3 * distributions.entropy(log_probs)[0]

    point = np.array([[0.3, 5.0, -1.2, 0.8]])
    variable = tf.Variable(point)
    with tf.GradientTape() as tape:
        value = objective(variable)
    gradient = tape.gradient(value, variable).numpy()[0]
    for i in range(4):
        step = np.zeros_like(point)
        step[0, i] = 1e-5
        slope = (objective(tf.constant(point + step)) - objective(tf.constant(point - step))) / 2e-5
        assert gradient[i] == pytest.approx(float(slope), abs=1e-8)


def test_sampling_is_stateless_legal_and_has_the_right_frequencies():
    logits, mask = np.repeat(LOGITS, 20_000, 0), np.repeat(MASK, 20_000, 0)
    first, again, other = (distributions.sample(tf.constant(logits), mask, [1, k]).numpy() for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert not (first == 1).any()
    assert (first == 0).mean() == pytest.approx(0.8176, abs=0.01)
