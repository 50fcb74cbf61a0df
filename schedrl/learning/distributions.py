"""The masked categorical distribution: illegal actions have probability exactly zero, and never a NaN.

Illegal logits are set to a large negative number, not to -inf: -inf gives NaN gradients, and multiplying
probabilities by the mask leaves illegal actions alive or divides by zero. exp(LARGE_NEGATIVE) underflows to
exactly 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schedrl.settings import UserError

LARGE_NEGATIVE = -1e9
TOLERANCE = 1e-5
"""Actions whose logits differ by no more are equally likely to arg-max, which takes the first of them: in
float32 logits of one observation differ by some 2e-6 from batch size to batch size and machine to machine."""


class NoLegalActionError(ValueError):
    """An action mask without a legal action reached a policy; an environment always offers at least one."""


class NotANumberError(UserError):
    """A policy was shown, or puts out, something that is no finite number."""


def require_legal(mask: np.ndarray) -> None:
    """Raise `NoLegalActionError` unless every row of `mask [..., A]` has a legal action."""
    legal = np.asarray(mask).astype(bool).any(axis=-1)
    if not legal.all():
        rows = np.flatnonzero(~np.atleast_1d(legal))
        raise NoLegalActionError(
            f"no legal action in {rows.size} of {legal.size} masks (first at row {rows[0]}): "
            "the environment must leave at least the no-op legal"
        )


def first_largest(scores: np.ndarray) -> np.ndarray:
    """Return the first of those within `TOLERANCE` of the largest along the last axis, int64.

    Raises:
        NotANumberError: the largest is no finite number, so that nothing can be chosen.
    """
    largest = scores.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        raise NotANumberError(
            "the policy's outputs are not finite though what it read is: its weights are of no use; take "
            "another policy or train anew"
        )
    return (scores >= largest - TOLERANCE).argmax(axis=-1)


def masked_logits(logits: Any, mask: Any) -> Any:
    """Return `logits [B, A]` with illegal actions at LARGE_NEGATIVE (TensorFlow)."""
    import tensorflow as tf

    if tf.executing_eagerly():
        require_legal(np.asarray(mask))
    # A sum, not tf.where: broadcasting select and its gradient take as long as the softmax.
    return logits + LARGE_NEGATIVE * (1.0 - tf.cast(mask, logits.dtype))


def log_probs(logits: Any, mask: Any) -> Any:
    """Return the log-probability of every action `[B, A]`; about LARGE_NEGATIVE where illegal."""
    import tensorflow as tf

    return tf.nn.log_softmax(masked_logits(logits, mask))


def log_prob_of(all_log_probs: Any, actions: Any) -> Any:
    """Return the log-probabilities `[B]` of `actions [B]` out of `[B, A]`."""
    import tensorflow as tf

    # A product with one-hot rows: its gradient is dense, a gather's is a slow scatter.
    chosen = tf.one_hot(actions, all_log_probs.shape[-1], dtype=all_log_probs.dtype)
    return tf.reduce_sum(all_log_probs * chosen, axis=-1)


def entropy(all_log_probs: Any) -> Any:
    """Return the entropy over legal actions `[B]`, in nats (an illegal one adds 0 x LARGE_NEGATIVE = 0)."""
    import tensorflow as tf

    return -tf.reduce_sum(tf.exp(all_log_probs) * all_log_probs, axis=-1)


def sample(logits: Any, mask: Any, seed: Any) -> Any:
    """Draw one legal action per row by the Gumbel trick; `seed [2]` int decides it entirely (stateless)."""
    import tensorflow as tf

    # Uniform in (0, 1): both ends would give an infinite Gumbel value.
    uniform = tf.random.stateless_uniform(
        tf.shape(logits), seed, minval=1e-7, maxval=1.0 - 1e-7, dtype=logits.dtype
    )
    return tf.argmax(
        masked_logits(logits - tf.math.log(-tf.math.log(uniform)), mask), axis=-1, output_type=tf.int32
    )
