"""The policy-and-value networks, written once for TensorFlow and for NumPy.

A network is a list of dense layers (shapes only) and a ``forward`` that calls four operations of an *ops*
table. Training passes TensorFlow's table, serving and evaluation pass NumPy's, so the exported policy cannot
drift from the trained one. All parameters live in one flat float32 vector: one gradient to clip, one moment
vector for Adam, one array in a checkpoint, one buffer to share between processes.

| name    | reads                             | why                                                        |
|---------|-----------------------------------|------------------------------------------------------------|
| `slots` | `queue [S, F]` and any other leaf | one small network for all slots: the largest effect seen   |
| `mlp`   | every leaf, flattened             | the usual two hidden layers                                |
| `image` | every leaf, flattened             | DeepRM's (Mao et al., HotNets 2016): one hidden layer of 20 |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from schedrl.settings import UserError

DEFAULT_HIDDEN = {"slots": (32, 32), "mlp": (128, 128), "image": (20,)}


class Layer(NamedTuple):
    """A dense layer: `gain` scales its orthogonal initial weights; its bias starts at zero."""

    name: str
    inputs: int
    outputs: int
    gain: float
    bias: bool = True


RELU_GAIN, POLICY_GAIN, VALUE_GAIN = 2**0.5, 0.01, 1.0
VALUE_LAYERS = ("value_hidden", "value")
"""Layers that only the value head reads."""
Drop = Callable[[Any], Any]
"""Dropout on what the value head reads; the policy's log-probabilities never see any."""


def keep(x: Any) -> Any:
    """Drop nothing: what acting and evaluation pass as `drop`."""
    return x


class SlotNetwork:
    """Scores each job slot with one small network shared by all slots; no-op and value read the state.

    `embed(slot)` describes a slot; the mean over slots joins the other leaves (cluster, backlog, ...) in
    `state`; slot score = `score(relu(slot_hidden(embed) + state_hidden(state)))`.
    """

    name = "slots"

    def __init__(
        self,
        leaves: Mapping[str, tuple[int, ...]],
        num_actions: int,
        hidden: Sequence[int],
        num_values: int = 1,
    ):
        if "queue" not in leaves or len(leaves["queue"]) != 2 or leaves["queue"][0] != num_actions - 1:
            raise UserError(
                f"the network 'slots' needs a leaf queue [slots, features] and slots + 1 actions, "
                f"got {dict(leaves)} and "
                f"{num_actions} actions; use representation 'slots' or the network 'mlp'"
            )
        self.num_slots, features = leaves["queue"]
        self.others = sorted(set(leaves) - {"queue"})
        width, state = hidden[0], hidden[-1]
        inputs = sum(prod(leaves[name]) for name in self.others) + width
        self.layers = (
            Layer("embed", features, width, RELU_GAIN),
            Layer("state", inputs, state, RELU_GAIN),
            Layer("slot_hidden", width, width, RELU_GAIN, bias=False),
            Layer("state_hidden", state, width, RELU_GAIN),
            Layer("score", width, 1, POLICY_GAIN),
            Layer("noop", state, 1, POLICY_GAIN),
            Layer("value_hidden", state, state, RELU_GAIN),
            Layer("value", state, num_values, VALUE_GAIN),
        )

    def forward(
        self, ops: Any, w: Mapping[str, Any], obs: Mapping[str, Any], drop: Drop = keep
    ) -> tuple[Any, Any]:
        """Return logits `[B, A]` and values `[B, V]` from float leaves with a leading batch axis."""
        slots = self.num_slots
        queue = obs["queue"]
        embed = ops.relu(dense(ops, w, "embed", ops.reshape(queue, (-1, queue.shape[-1]))))  # [B*S, width]
        width = embed.shape[-1]
        pooled = ops.middle_mean(ops.reshape(embed, (-1, slots, width)))
        state = ops.relu(dense(ops, w, "state", ops.concat([*flat(ops, obs, self.others), pooled])))
        own = ops.reshape(embed @ w["slot_hidden/kernel"], (-1, slots, width))
        context = ops.reshape(dense(ops, w, "state_hidden", state), (-1, 1, width))
        own += context
        score = dense(ops, w, "score", ops.reshape(ops.relu(own), (-1, width)))
        logits = ops.concat([ops.reshape(score, (-1, slots)), dense(ops, w, "noop", state)])
        value = dense(ops, w, "value", drop(ops.relu(dense(ops, w, "value_hidden", state))))
        return logits, value


class DenseNetwork:
    """Hidden layers over all leaves flattened, shared by the policy head and the value head."""

    def __init__(
        self,
        leaves: Mapping[str, tuple[int, ...]],
        num_actions: int,
        hidden: Sequence[int],
        num_values: int = 1,
        name: str = "mlp",
    ):
        self.name = name
        self.leaves = sorted(leaves)
        widths = [sum(prod(shape) for shape in leaves.values()), *hidden]
        body = [
            Layer(f"hidden_{i}", a, b, RELU_GAIN)
            for i, (a, b) in enumerate(zip(widths, widths[1:], strict=False))
        ]
        self.depth = len(body)
        heads = (
            Layer("policy", widths[-1], num_actions, POLICY_GAIN),
            Layer("value", widths[-1], num_values, VALUE_GAIN),
        )
        self.layers = (*body, *heads)

    def forward(
        self, ops: Any, w: Mapping[str, Any], obs: Mapping[str, Any], drop: Drop = keep
    ) -> tuple[Any, Any]:
        """Return logits `[B, A]` and values `[B, V]` from float leaves with a leading batch axis."""
        parts = flat(ops, obs, self.leaves)
        x = parts[0] if len(parts) == 1 else ops.concat(parts)
        for i in range(self.depth):
            x = ops.relu(dense(ops, w, f"hidden_{i}", x))
        return dense(ops, w, "policy", x), dense(ops, w, "value", drop(x))


Network = SlotNetwork | DenseNetwork


def make_network(
    name: str,
    leaves: Mapping[str, tuple[int, ...]],
    num_actions: int,
    hidden: Sequence[int] = (),
    num_values: int = 1,
) -> Network:
    """Build the named network for leaves of these shapes (no mask).

    Args:
        name: of DEFAULT_HIDDEN.
        leaves: their shapes, without the batch axis.
        num_actions: A.
        hidden: widths; empty = the network's default.
        num_values: V, 1 or the number of quantiles of the return that the value head predicts.
    """
    if name not in DEFAULT_HIDDEN:
        raise UserError(f"unknown network {name!r}; choose one of {', '.join(DEFAULT_HIDDEN)}")
    hidden = tuple(hidden) or DEFAULT_HIDDEN[name]
    if name == "slots":
        return SlotNetwork(leaves, num_actions, hidden, num_values)
    return DenseNetwork(leaves, num_actions, hidden, num_values, name)


def dense(ops: Any, w: Mapping[str, Any], name: str, x: Any) -> Any:
    """Apply one dense layer to `x [B, inputs]`."""
    return ops.dense(x, w[f"{name}/kernel"], w[f"{name}/bias"])


def flat(ops: Any, obs: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the named leaves as `[B, size]` each."""
    return [ops.reshape(obs[name], (-1, prod(obs[name].shape[1:]))) for name in names]


# -- parameters ----------------------------------------------------------------------------------------------


def parameter_shapes(network: Network) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter in the order of the flat vector."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in network.layers:
        shapes[f"{layer.name}/kernel"] = (layer.inputs, layer.outputs)
        if layer.bias:
            shapes[f"{layer.name}/bias"] = (layer.outputs,)
    return shapes


def initial_vector(network: Network, rng: np.random.Generator) -> np.ndarray:
    """Draw the initial parameters: orthogonal kernels, zero biases, as one float32 vector."""
    parts = []
    for layer in network.layers:
        parts.append((layer.gain * orthogonal(rng, layer.inputs, layer.outputs)).ravel())
        if layer.bias:
            parts.append(np.zeros(layer.outputs))
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


NUMPY = SimpleNamespace(
    dense=_numpy_dense,
    relu=lambda x: np.maximum(x, 0, out=x),  # in place: its argument is always a fresh product
    concat=lambda parts: np.concatenate(parts, axis=-1),
    middle_mean=_numpy_middle_mean,
    reshape=lambda x, shape: x.reshape(shape),
    split=_numpy_split,
    sum=np.sum,
    maximum=np.maximum,
)


def tensorflow_ops() -> SimpleNamespace:
    """Return TensorFlow's table of the operations in `NUMPY`."""
    import tensorflow as tf

    def concat(parts: Sequence[Any]) -> Any:
        return tf.concat(parts, axis=-1)

    return SimpleNamespace(
        # As bias_add, so that TensorFlow fuses product, bias and relu into one kernel.
        dense=lambda x, kernel, bias: tf.nn.bias_add(tf.matmul(x, kernel), bias),
        relu=tf.nn.relu,
        concat=concat,
        # Scaled after the sum: the gradient of reduce_mean divides the whole tensor.
        middle_mean=lambda x: tf.reduce_sum(x, axis=1) * (1.0 / x.shape[1]),
        reshape=tf.reshape,
        split=tf.split,
        sum=tf.reduce_sum,
        maximum=tf.maximum,
    )
