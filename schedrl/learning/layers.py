"""Dense layers as shapes, their parameters in one flat vector, and the operations networks are made of.

Apart from the networks because each of those reads as a whole. TensorFlow's table and NumPy's have the same
names, so a `forward` written once serves training and acting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

RELU_GAIN, POLICY_GAIN, VALUE_GAIN = 2**0.5, 0.01, 1.0
NORM_EPSILON = 1e-5
Drop = Callable[[Any], Any]
"""Dropout on what the value head reads; the policy's log-probabilities never see any."""


class Layer(NamedTuple):
    """A dense layer: `gain` scales its orthogonal initial weights; its bias starts at zero."""

    name: str
    inputs: int
    outputs: int
    gain: float
    bias: bool = True
    norm: bool = False
    """Normalise what it puts out (Ba et al., "Layer normalization", 2016), before the relu."""


def keep(x: Any) -> Any:
    """Drop nothing: what acting and evaluation pass as `drop`."""
    return x


def dense(ops: Any, w: Mapping[str, Any], name: str, x: Any) -> Any:
    """Apply one dense layer to `x [B, inputs]`."""
    return ops.dense(x, w[f"{name}/kernel"], w[f"{name}/bias"])


def hidden(ops: Any, w: Mapping[str, Any], name: str, x: Any) -> Any:
    """Apply a dense layer, its layer normalisation where it has one, and relu."""
    y = dense(ops, w, name, x)
    if f"{name}/scale" in w:
        y = ops.layer_norm(y) * w[f"{name}/scale"] + w[f"{name}/shift"]
    return ops.relu(y)


def flat(ops: Any, obs: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the named leaves as `[B, size]` each."""
    return [ops.reshape(obs[name], (-1, prod(obs[name].shape[1:]))) for name in names]


# -- parameters ----------------------------------------------------------------------------------------------


def parameter_shapes(network: Any) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter in the order of the flat vector."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in network.layers:
        shapes[f"{layer.name}/kernel"] = (layer.inputs, layer.outputs)
        if layer.bias:
            shapes[f"{layer.name}/bias"] = (layer.outputs,)
        if layer.norm:
            shapes |= {f"{layer.name}/{part}": (layer.outputs,) for part in ("scale", "shift")}
    return shapes


def initial_vector(network: Any, rng: np.random.Generator) -> np.ndarray:
    """Draw the initial parameters: orthogonal kernels, zero biases, as one float32 vector."""
    parts = []
    for layer in network.layers:
        parts.append((layer.gain * orthogonal(rng, layer.inputs, layer.outputs)).ravel())
        if layer.bias:
            parts.append(np.zeros(layer.outputs))
        if layer.norm:
            parts += [np.ones(layer.outputs), np.zeros(layer.outputs)]
    return np.concatenate(parts).astype(np.float32)


def orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw a matrix with orthonormal rows or columns, whichever are fewer."""
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q *= np.sign(np.diag(r))
    return q if rows >= columns else q.T


def unpack(ops: Any, vector: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Cut a flat vector into named parameters (differentiable under TensorFlow's ops)."""
    pieces = ops.split(vector, [prod(shape) for shape in shapes.values()])
    return {
        name: ops.reshape(piece, shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)
    }


# -- operations ----------------------------------------------------------------------------------------------


def _numpy_split(vector: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    return np.split(vector, np.cumsum(sizes)[:-1])


def _numpy_dense(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    y = x @ kernel
    y += bias
    return y


def _numpy_middle_mean(x: np.ndarray) -> np.ndarray:
    weights = np.full((1, x.shape[1]), 1.0 / x.shape[1], x.dtype)
    return np.matmul(weights, x)[:, 0]  # several times faster than x.mean(1)


def _numpy_layer_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(NORM_EPSILON))


def _numpy_scatter(values: np.ndarray, rows: np.ndarray, count: Any) -> np.ndarray:
    spread = np.zeros((count, values.shape[-1]), values.dtype)
    spread[rows] = values
    return spread


NUMPY = SimpleNamespace(
    dense=_numpy_dense,
    relu=lambda x: np.maximum(x, 0, out=x),  # in place: its argument is always a fresh product
    layer_norm=_numpy_layer_norm,
    concat=lambda parts: np.concatenate(parts, axis=-1),
    middle_mean=_numpy_middle_mean,
    middle_sum=lambda weights, x: np.matmul(weights[:, None], x)[:, 0],
    reshape=lambda x, shape: x.reshape(shape),
    split=_numpy_split,
    sum=np.sum,
    maximum=np.maximum,
    float=lambda x: x.astype(np.float32),
    rows=lambda x: x.shape[0],
    true_places=np.flatnonzero,
    gather=lambda x, rows: x[rows],
    scatter=_numpy_scatter,
)


def tensorflow_ops() -> SimpleNamespace:
    """Return TensorFlow's table of the operations in `NUMPY`."""
    import tensorflow as tf

    def concat(parts: Sequence[Any]) -> Any:
        return tf.concat(parts, axis=-1)

    def layer_norm(x: Any) -> Any:
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        return centred * tf.math.rsqrt(
            tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True) + NORM_EPSILON
        )

    def true_places(x: Any) -> Any:
        return tf.cast(tf.where(tf.reshape(x, (-1,)))[:, 0], tf.int32)

    return SimpleNamespace(
        # As bias_add, so that TensorFlow fuses product, bias and relu into one kernel.
        dense=lambda x, kernel, bias: tf.nn.bias_add(tf.matmul(x, kernel), bias),
        relu=tf.nn.relu,
        layer_norm=layer_norm,
        concat=concat,
        # Scaled after the sum: the gradient of reduce_mean divides the whole tensor.
        middle_mean=lambda x: tf.reduce_sum(x, axis=1) * (1.0 / x.shape[1]),
        middle_sum=lambda weights, x: tf.matmul(weights[:, None], x)[:, 0],
        reshape=tf.reshape,
        split=tf.split,
        sum=tf.reduce_sum,
        maximum=tf.maximum,
        float=lambda x: tf.cast(x, tf.float32),
        rows=lambda x: tf.shape(x)[0],
        true_places=true_places,
        gather=tf.gather,
        scatter=lambda values, rows, count: tf.scatter_nd(rows[:, None], values, [count, values.shape[-1]]),
    )
