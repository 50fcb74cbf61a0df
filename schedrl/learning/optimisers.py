"""Optimiser steps as pure functions over one flat parameter vector, for TensorFlow and NumPy alike."""

from __future__ import annotations

from typing import Any

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-5


def clip_norm(ops: Any, gradient: Any, limit: float) -> tuple[Any, Any]:
    """Return the gradient scaled down to a Euclidean norm of at most `limit`, and its norm before."""
    norm = ops.sum(gradient * gradient) ** 0.5
    return gradient * (limit / ops.maximum(norm, limit)), norm


def adam(vector: Any, gradient: Any, m: Any, v: Any, step: Any, learning_rate: Any) -> tuple[Any, Any, Any]:
    """Return the parameters and both moments after one step (Kingma and Ba, 2015; `step` counts from 1).

    Epsilon is 1e-5 as in most PPO code, not 1e-8: early second moments are tiny.
    """
    m = BETA1 * m + (1.0 - BETA1) * gradient
    v = BETA2 * v + (1.0 - BETA2) * gradient * gradient
    scale = learning_rate / (1.0 - BETA1**step)
    return vector - scale * m / ((v / (1.0 - BETA2**step)) ** 0.5 + EPSILON), m, v
