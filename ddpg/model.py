"""The agent: an actor, its critics and their slow copies, over one flat vector of weights.

A critic gives a value to every combination of discrete choices at once, and reads the continuous numbers as
one more leaf of the observation. So Q(s, a) is the product of a (soft) one-hot vector with its outputs, and
the same code serves discrete, continuous and mixed actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ddpg.config import DDPGSettings
from schedrl.learning import distributions, networks
from schedrl.learning.action_spec import MASK, ActionSpec
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.checkpoint import check_shapes
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.settings import UserError

CONTINUOUS = "continuous_action"
MOST_COMBINATIONS = 1024


class Agent:
    """`weights` holds the actor's parameters, then each critic's; `target` is its slow copy.

    Args:
        observation_space: of one environment.
        actions: what an action consists of.
        settings: networks, widths, number of critics.
        seed: of the initial weights and of action sampling.
        representation: what the environment calls this observation.
        replicas: that learn together.

    Raises:
        UserError: the discrete parts have too many combinations to value each.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        actions: ActionSpec,
        settings: DDPGSettings,
        seed: int,
        representation: str,
        *,
        replicas: Replicas = ALONE,
    ):
        if actions.num_joint > MOST_COMBINATIONS:
            raise UserError(
                f"the discrete parts have {actions.num_joint} combinations, ddpg values at most "
                f"{MOST_COMBINATIONS}; choose another algorithm"
            )
        self.settings, self.actions, self.seed, self.replicas = settings, actions, seed, replicas
        self.actor = ActorCritic(
            observation_space, settings, seed, representation, actions, replicas=replicas
        )
        self.tf, self.ops = tf, _ = self.actor.tf, self.actor.ops
        leaves = {name: shape for name, (shape, _) in self.actor.leaves.items()}
        if actions.low:
            leaves[CONTINUOUS] = (actions.num_continuous,)
        hidden = settings.critic_hidden or settings.hidden
        options = {"choices": actions.sizes[0] if actions.sizes else None, "joint": len(actions.sizes) > 1}
        self.critic = networks.make_network(
            settings.network, leaves, actions.num_joint, hidden, layer_norm=settings.layer_norm, **options
        )
        self.critic_shapes = networks.parameter_shapes(self.critic)
        vectors = [self.actor.weights.numpy()]
        for i in range(settings.num_critics):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, i)))
            vectors.append(networks.initial_vector(self.critic, rng))
        size = sum(map(prod, self.critic_shapes.values()))
        self.sizes = [len(vectors[0]), *[size] * settings.num_critics]
        self.weights = tf.Variable(np.concatenate(vectors), name="weights")
        self.target = tf.Variable(self.weights.read_value(), name="target")

    # -- graph code ------------------------------------------------------------------------------------------

    def split(self, vector: Any) -> list[Any]:
        """Cut a flat vector into the actor's parameters and those of each critic."""
        return self.tf.split(vector, self.sizes)

    def act(self, weights: Any, obs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return the actor's masked logits `[B, sum(sizes)]`, numbers `[B, k]` in -1 .. 1, and V(s) `[B]`."""
        tf, count = self.tf, self.actions.num_logits
        outputs, value = self.actor.forward(weights, obs)
        logits = outputs[:, :count]
        if self.actions.sizes:
            logits = distributions.masked_logits(logits, obs[MASK])
        return logits, tf.tanh(outputs[:, count:]), value

    def q(self, weights: Any, obs: Mapping[str, Any], numbers: Any) -> Any:
        """Return the value of each combination of discrete choices, `[B, combinations]`, for any weights.

        Dueling (Wang et al., 2016): a value of the state, plus advantages whose mean over the legal
        combinations is 0. `numbers [B, k]` are the continuous part in -1 .. 1.
        """
        tf = self.tf
        leaves = self.actor.floats(obs)
        if self.actions.low:
            leaves[CONTINUOUS] = numbers
        options = (self.critic, self.critic_shapes, weights, leaves, networks.keep)
        advantage, value = self.actor.evaluate(*options)
        value = tf.reshape(value, (-1, 1))
        if not self.actions.sizes:
            return value
        return value + advantage - self.legal_mean(advantage, obs)

    def legal_mean(self, per_combination: Any, obs: Mapping[str, Any]) -> Any:
        """Return the mean `[B, 1]` of `[B, combinations]` over legal ones."""
        tf = self.tf
        legal = self.joint(self.actions.split(tf.cast(obs[MASK], tf.float32)))
        count = tf.reduce_sum(legal, axis=-1, keepdims=True)
        return tf.reduce_sum(per_combination * legal, axis=-1, keepdims=True) / count

    def joint(self, parts: list[Any]) -> Any:
        """Return the outer product `[B, combinations]` of float vectors `[B, size]`, one for each part.

        Of one-hot vectors it is the one-hot vector of the combination; without parts it is all ones `[1, 1]`.
        """
        tf = self.tf
        if not parts:
            return tf.ones([1, 1])
        product = parts[0]
        for part in parts[1:]:
            width = product.shape[-1] * part.shape[-1]
            product = tf.reshape(product[:, :, None] * part[:, None, :], (-1, width))
        return product

    def greedy(self, logits: Any) -> Any:
        """Return the one-hot vector `[B, combinations]` of the likeliest choice of each part."""
        tf = self.tf
        parts = self.actions.split(logits)
        return self.joint([tf.one_hot(tf.argmax(part, axis=-1), part.shape[-1]) for part in parts])

    # -- host code -------------------------------------------------------------------------------------------

    def values(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return Q(s, greedy action) of the first critic for a batch `[B]`."""
        tf = self.tf
        actor, *critics = self.split(self.weights)
        seen = self.actor.normalise(obs)
        logits, numbers, _ = self.act(actor, seen)
        return tf.reduce_sum(self.greedy(logits) * self.q(critics[0], seen, numbers), axis=-1).numpy()

    def adopt_actor(self) -> None:
        """Take over the actor's own weights, as imitation left them, here and in the slow copy."""
        for vector in (self.weights, self.target):
            vector.assign(self.tf.concat([self.actor.weights, vector[self.sizes[0] :]], axis=0))

    def refresh(self) -> None:
        """Let acting use the present weights and statistics; call it after each update."""
        self.actor.weights.assign(self.split(self.weights)[0])
        self.actor.refresh()

    def update_normaliser(self, obs: Mapping[str, np.ndarray]) -> None:
        """Merge observations `[..., *leaf]` into the running statistics."""
        self.actor.normaliser.update(obs, self.replicas)

    def policy(self, seed: int = 0) -> NumpyPolicy:
        """Return the present actor in NumPy, for evaluation; later updates don't touch it."""
        return self.actor.policy(seed)

    def save_policy(self, path: Path | str, **header: Any) -> None:
        """Write the actor as `policy.npz`."""
        self.actor.save_policy(path, **header)

    def export(self, path: Path | str) -> None:
        """Write the actor as a SavedModel."""
        self.actor.export(path)

    def spec(self) -> dict[str, Any]:
        """Return what the weights fit, in JSON's types."""
        return self.actor.spec() | {"num_critics": self.settings.num_critics}

    def state(self) -> dict[str, Any]:
        """Return weights, their slow copy and the statistics, with the shapes they fit."""
        arrays = {"weights": self.weights.numpy(), "target": self.target.numpy()}
        return {**arrays, "spec": self.spec(), **self.actor.normaliser.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`.

        Raises:
            UserError: it was made for other networks or shapes.
        """
        check_shapes(state["spec"], self.spec(), "the checkpoint")
        self.weights.assign(state["weights"])
        self.target.assign(state["target"])
        self.actor.normaliser.load_state(state)
        self.refresh()
