"""The policy-and-value networks, written once for TensorFlow and for NumPy.

A network is a list of dense layers (shapes only) and a ``forward`` that calls operations of an *ops*
table (`layers`). Training passes TensorFlow's table, serving and evaluation pass NumPy's, so the exported
policy cannot drift from the trained one. All parameters live in one flat float32 vector: one gradient to
clip, one moment vector for Adam, one array in a checkpoint, one buffer to share between processes.

| name    | reads                             | why                                                        |
|---------|-----------------------------------|------------------------------------------------------------|
| `slots` | `queue [S, F]` and any other leaf | one small network for all slots: the largest effect seen   |
| `mlp`   | every leaf, flattened             | the usual two hidden layers                                |
| `image` | every leaf, flattened             | DeepRM's (Mao et al., HotNets 2016): one hidden layer of 20 |
| `pair_scorer` | `queue`, `cluster [M, G]`, ... | one small network for all jobs and machines      |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from schedrl.learning.layers import (
    NUMPY,
    POLICY_GAIN,
    RELU_GAIN,
    VALUE_GAIN,
    Drop,
    Layer,
    dense,
    flat,
    hidden,
    initial_vector,
    keep,
    parameter_shapes,
    tensorflow_ops,
    unpack,
)
from schedrl.learning.pair_scorer import CRITIC, PRIVATE, PairScorer
from schedrl.policy import PRIVILEGED
from schedrl.settings import UserError

__all__ = [
    "NUMPY",
    "VALUE_LAYERS",
    "DenseNetwork",
    "Network",
    "PairScorer",
    "SlotNetwork",
    "initial_vector",
    "keep",
    "make_network",
    "parameter_shapes",
    "tensorflow_ops",
    "unpack",
]

DEFAULT_HIDDEN = {"slots": (32, 32), "mlp": (128, 128), "image": (20,), "pair_scorer": (32, 32, *CRITIC)}
VALUE_LAYERS = ("value",)
"""Layers that only the value head reads: their names begin so."""


def nothing_more(ops: Any, obs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be read off an observation before it is normalised: nothing."""
    del ops, obs
    return {}


class SlotNetwork:
    """Scores each job slot with one small network shared by all slots; no-op and value read the state.

    `embed(slot)` describes a slot; the mean over slots joins the other leaves (cluster, backlog, ...) in
    `state`; slot score = `score(relu(slot_hidden(embed) + state_hidden(state)))`.
    """

    name = "slots"
    extra: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    seen = staticmethod(nothing_more)

    def __init__(
        self,
        leaves: Mapping[str, tuple[int, ...]],
        num_actions: int,
        hidden: Sequence[int],
        num_values: int = 1,
        *,
        layer_norm: bool = False,
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
            Layer("embed", features, width, RELU_GAIN, norm=layer_norm),
            Layer("state", inputs, state, RELU_GAIN, norm=layer_norm),
            Layer("slot_hidden", width, width, RELU_GAIN, bias=False),
            Layer("state_hidden", state, width, RELU_GAIN),
            Layer("score", width, 1, POLICY_GAIN),
            Layer("noop", state, 1, POLICY_GAIN),
            Layer("value_hidden", state, state, RELU_GAIN, norm=layer_norm),
            Layer("value", state, num_values, VALUE_GAIN),
        )

    def forward(
        self,
        ops: Any,
        w: Mapping[str, Any],
        obs: Mapping[str, Any],
        drop: Drop = keep,
        values: bool = True,
    ) -> tuple[Any, Any]:
        """Return logits `[B, A]` and values `[B, V]` (None unless wanted) from float leaves of a batch."""
        slots = self.num_slots
        queue = obs["queue"]
        embed = hidden(ops, w, "embed", ops.reshape(queue, (-1, queue.shape[-1])))  # [B*S, width]
        width = embed.shape[-1]
        pooled = ops.middle_mean(ops.reshape(embed, (-1, slots, width)))
        state = hidden(ops, w, "state", ops.concat([*flat(ops, obs, self.others), pooled]))
        own = ops.reshape(embed @ w["slot_hidden/kernel"], (-1, slots, width))
        context = ops.reshape(dense(ops, w, "state_hidden", state), (-1, 1, width))
        own += context
        score = dense(ops, w, "score", ops.reshape(ops.relu(own), (-1, width)))
        logits = ops.concat([ops.reshape(score, (-1, slots)), dense(ops, w, "noop", state)])
        if not values:
            return logits, None
        return logits, dense(ops, w, "value", drop(hidden(ops, w, "value_hidden", state)))


class DenseNetwork:
    """Hidden layers over all leaves flattened, shared by the policy head and the value head."""

    extra: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    seen = staticmethod(nothing_more)

    def __init__(
        self,
        leaves: Mapping[str, tuple[int, ...]],
        num_actions: int,
        hidden: Sequence[int],
        num_values: int = 1,
        name: str = "mlp",
        *,
        layer_norm: bool = False,
    ):
        self.name = name
        self.leaves = sorted(leaves)
        widths = [sum(prod(shape) for shape in leaves.values()), *hidden]
        body = [
            Layer(f"hidden_{i}", a, b, RELU_GAIN, norm=layer_norm)
            for i, (a, b) in enumerate(zip(widths, widths[1:], strict=False))
        ]
        self.depth = len(body)
        heads = (
            Layer("policy", widths[-1], num_actions, POLICY_GAIN),
            Layer("value", widths[-1], num_values, VALUE_GAIN),
        )
        self.layers = (*body, *heads)

    def forward(
        self,
        ops: Any,
        w: Mapping[str, Any],
        obs: Mapping[str, Any],
        drop: Drop = keep,
        values: bool = True,
    ) -> tuple[Any, Any]:
        """Return logits `[B, A]` and values `[B, V]` (None unless wanted) from float leaves of a batch."""
        parts = flat(ops, obs, self.leaves)
        x = parts[0] if len(parts) == 1 else ops.concat(parts)
        for i in range(self.depth):
            x = hidden(ops, w, f"hidden_{i}", x)
        return dense(ops, w, "policy", x), dense(ops, w, "value", drop(x)) if values else None


Network = SlotNetwork | DenseNetwork | PairScorer


def make_network(
    name: str,
    leaves: Mapping[str, tuple[int, ...]],
    num_actions: int,
    hidden: Sequence[int] = (),
    num_values: int = 1,
    *,
    choices: int | None = None,
    joint: bool = False,
    layer_norm: bool = False,
    prior: float = 0.0,
) -> Network:
    """Build the named network for leaves of these shapes (no mask).

    Args:
        name: of DEFAULT_HIDDEN.
        leaves: their shapes, without the batch axis.
        num_actions: A.
        hidden: widths; empty = the network's default.
        num_values: V, 1 or the number of quantiles of the return that the value head predicts.
        choices: of the A outputs those of the first discrete part; None = all.
        joint: the outputs are combinations of that part with others.
        layer_norm: normalise the hidden layers.
        prior: see `PairScorer`.

    Raises:
        UserError: the network is not for such leaves or actions, or has no prior.
    """
    if name not in DEFAULT_HIDDEN:
        raise UserError(f"unknown network {name!r}; choose one of {', '.join(DEFAULT_HIDDEN)}")
    if prior and name != "pair_scorer":
        raise UserError(f"prior is {prior:g}, but the network {name!r} has none; use pair_scorer, or prior 0")
    private = {leaf for leaf in leaves if leaf.startswith(PRIVILEGED)}
    if private and (name != "pair_scorer" or private != set(PRIVATE)):
        raise UserError(
            f"the network {name!r} would show the policy {', '.join(sorted(private))}; pair_scorer keeps "
            f"{', '.join(PRIVATE)} from it: use that, or set privileged off"
        )
    hidden = tuple(hidden) or DEFAULT_HIDDEN[name]
    sizes = (num_actions, hidden, num_values)
    if name == "slots":
        return SlotNetwork(leaves, *sizes, layer_norm=layer_norm)
    if name == "pair_scorer":
        return PairScorer(leaves, *sizes, choices=choices, joint=joint, layer_norm=layer_norm, prior=prior)
    return DenseNetwork(leaves, *sizes, name, layer_norm=layer_norm)
