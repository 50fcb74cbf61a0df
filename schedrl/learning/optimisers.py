"""Optimiser steps as pure functions over one flat parameter vector, for TensorFlow and NumPy alike.

`Moments` is what an optimiser remembers between steps, as TensorFlow variables that a checkpoint can carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-5
DECAY, RMS_EPSILON = 0.9, 1e-9


def clip_norm(ops: Any, gradient: Any, limit: float) -> tuple[Any, Any]:
    """Return the gradient scaled down to a Euclidean norm of at most `limit`, and its norm before."""
    norm = ops.sum(gradient * gradient) ** 0.5
    return gradient * (limit / ops.maximum(norm, limit)), norm


def adam(vector: Any, gradient: Any, m: Any, v: Any, step: Any, learning_rate: Any) -> tuple[Any, Any, Any]:
    """Return the parameters and both moments after one step (Kingma and Ba, 2015; `step` counts from 1).

    Epsilon is 1e-5 as in most PPO code, not 1e-8: early second moments are tiny. `learning_rate` is a number
    or a vector with one for each parameter.
    """
    m = BETA1 * m + (1.0 - BETA1) * gradient
    v = BETA2 * v + (1.0 - BETA2) * gradient * gradient
    scale = learning_rate / (1.0 - BETA1**step)
    return vector - scale * m / ((v / (1.0 - BETA2**step)) ** 0.5 + EPSILON), m, v


def rmsprop(
    vector: Any, gradient: Any, m: Any, v: Any, step: Any, learning_rate: Any
) -> tuple[Any, Any, Any]:
    """Return the parameters and the mean square `v` after one step of DeepRM's RMSProp (decay 0.9).

    Signature as `adam`'s; `m` and `step` are not used. Source: `rmsprop_updates` of the original's
    pg_network.py, where the root is taken of v + 1e-9.
    """
    del step
    v = DECAY * v + (1.0 - DECAY) * gradient * gradient
    return vector - learning_rate * gradient / (v + RMS_EPSILON) ** 0.5, m, v


OPTIMISERS: dict[str, Callable[..., tuple[Any, Any, Any]]] = {"adam": adam, "rmsprop": rmsprop}


class Moments:
    """Both moments and the number of steps, of a parameter vector `like`."""

    def __init__(self, tf: Any, like: Any):
        self.m = tf.Variable(tf.zeros_like(like), name="moment_1")
        self.v = tf.Variable(tf.zeros_like(like), name="moment_2")
        self.steps = tf.Variable(0.0, name="optimiser_steps")

    def read(self) -> tuple[Any, Any, Any]:
        """Return m, v and the steps as tensors (in a graph)."""
        return self.m.read_value(), self.v.read_value(), self.steps.read_value()

    def assign(self, m: Any, v: Any, steps: Any) -> None:
        """Take new values (in a graph)."""
        for variable, value in ((self.m, m), (self.v, v), (self.steps, steps)):
            variable.assign(value)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"m": self.m.numpy(), "v": self.v.numpy(), "steps": float(self.steps)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        self.assign(state["m"], state["v"], state["steps"])
