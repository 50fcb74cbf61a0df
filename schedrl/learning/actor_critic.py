"""A policy and a value function over one flat vector of weights: acting, valuing, saving and exporting.

What every actor-critic algorithm needs around its own loss. The observation normaliser belongs to it and
travels with the weights.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from schedrl.learning import distributions, networks
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.checkpoint import check_shapes, save_arrays
from schedrl.learning.normaliser import CLIP, Normaliser
from schedrl.learning.numpy_policy import NumpyPolicy, make_policy
from schedrl.learning.replicas import ALONE, Replicas
from schedrl.learning.settings import ActorCriticSettings, LearningSettings
from schedrl.learning.tf_setup import tensorflow
from schedrl.settings import UserError

MASK = "action_mask"
Observation = Mapping[str, np.ndarray]


class ActorCritic:
    """Weights and normaliser; `act` and `values` for the collector, `forward` for losses.

    Args:
        observation_space: of one environment; leaves and `action_mask [A]`.
        settings: network, widths, normalising.
        seed: of the initial weights and of action sampling.
        representation: what the environment calls this observation; exported policies repeat it.
        actions: what the network's outputs stand for; None = one discrete choice, as long as the mask.
        gaussian: give each continuous number a mean and a deviation (see `gaussian`) in place of one output.
        replicas: that learn together; they see the same statistics of observations.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        settings: LearningSettings,
        seed: int,
        representation: str = "slots",
        actions: ActionSpec | None = None,
        *,
        gaussian: bool = False,
        replicas: Replicas = ALONE,
    ):
        self.tf = tf = tensorflow(seed=seed)
        self.ops = networks.tensorflow_ops()
        self.settings, self.seed, self.representation = settings, seed, representation
        self.replicas = replicas
        self.low = tf.bfloat16 if settings.precision == "mixed_bfloat16" else None
        self.leaves = {k: (tuple(s.shape), str(s.dtype)) for k, s in observation_space.items() if k != MASK}
        self.actions = actions or ActionSpec((int(observation_space[MASK].shape[0]),))
        self.gaussian = gaussian and not self.actions.plain
        self.num_actions = self.actions.num_outputs + self.gaussian * self.actions.num_continuous
        shapes = {name: shape for name, (shape, _) in self.leaves.items()}
        critic = settings if isinstance(settings, ActorCriticSettings) else None
        self.num_values = max(1, critic.num_quantiles) if critic else 1
        self.dropout = critic.dropout if critic else 0.0
        sizes = (self.num_actions, settings.hidden, self.num_values)
        choices = self.actions.sizes[0] if self.actions.sizes else None
        self.network = networks.make_network(
            settings.network,
            shapes,
            *sizes,
            layer_norm=settings.layer_norm,
            prior=settings.prior,
            choices=choices,
        )
        self.shapes = networks.parameter_shapes(self.network)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self.weights = tf.Variable(networks.initial_vector(self.network, rng), name="weights")
        normalised = settings.normalise_observations
        self.normaliser = Normaliser(
            {k: s for k, (s, dtype) in self.leaves.items() if normalised and dtype != "uint8"}
        )
        self._scale = {
            name: (tf.Variable(mean, name=f"mean_{name}"), tf.Variable(inverse, name=f"inverse_std_{name}"))
            for name, (mean, inverse) in self.normaliser.scale().items()
        }
        self.acting = self.policy()

    # -- graph code ------------------------------------------------------------------------------------------

    def compile(self, function: Any, signature: list[Any]) -> Any:
        """Return `function` as a `tf.function` with a fixed signature, or as it is when running eagerly."""
        if not self.settings.use_tf_function:
            return function
        return self.tf.function(function, input_signature=signature, jit_compile=self.settings.xla or None)

    def observation_spec(self, batch: int | None = None) -> dict[str, Any]:
        """Return the tensor specs of a batch of observations, the mask among them."""
        tf = self.tf
        spec = {
            name: tf.TensorSpec([batch, *shape], dtype, name) for name, (shape, dtype) in self.leaves.items()
        }
        mask = {MASK: tf.TensorSpec([batch, self.actions.num_logits], tf.bool, MASK)}
        return spec | mask if self.actions.sizes else spec

    def action_spec(self) -> Any:
        """Return the tensor spec of a batch of actions in storage form."""
        return self.tf.TensorSpec([None, *self.actions.shape], self.actions.dtype, "action")

    def normalise(self, obs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the observation with its float leaves normalised, 8-bit leaves and the mask unchanged."""
        tf = self.tf
        obs = dict(obs) | self.network.seen(self.ops, obs)
        for name, (mean, inverse_std) in self._scale.items():
            scaled = (tf.cast(obs[name], tf.float32) - mean) * inverse_std
            obs[name] = tf.clip_by_value(scaled, -CLIP, CLIP)
        return obs

    def forward(self, weights: Any, obs: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return unmasked logits `[B, A]` and values `[B]` of a normalised observation, for any weights."""
        logits, values = self.outputs(weights, obs)
        return logits, self.tf.reduce_mean(values, axis=-1)

    def outputs(self, weights: Any, obs: Mapping[str, Any], dropout_seed: Any = None) -> tuple[Any, Any]:
        """Return what `forward` does, but all that the value head predicts, `[B, V]`.

        Args:
            weights: flat vector.
            obs: a normalised observation.
            dropout_seed: `[2]` int that decides which units the value head doesn't see; None = sees all.
        """
        drop = networks.keep
        if dropout_seed is not None and self.dropout > 0:
            stateless = self.tf.nn.experimental.stateless_dropout
            drop = functools.partial(stateless, rate=self.dropout, seed=dropout_seed)
        return self.evaluate(self.network, self.shapes, weights, self.floats(obs), drop)

    def evaluate(
        self, network: Any, shapes: Mapping[str, Any], weights: Any, leaves: Mapping[str, Any], drop: Any
    ) -> tuple[Any, Any]:
        """Return a network's two outputs in float32, computed as the setting `precision` says."""
        tf, low = self.tf, self.low
        if low is not None:
            weights = tf.cast(weights, low)
            leaves = {
                k: tf.cast(x, low) if tf.as_dtype(x.dtype).is_floating else x for k, x in leaves.items()
            }
        found = network.forward(self.ops, networks.unpack(self.ops, weights, shapes), leaves, drop)
        return found if low is None else tuple(tf.cast(x, tf.float32) for x in found)

    def floats(self, obs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the leaves that networks read, as float32; 8-bit ones divided by 255."""
        tf = self.tf
        leaves = {}
        for name, (_, dtype) in self.leaves.items():
            leaf = tf.cast(obs[name], tf.float32)
            leaves[name] = leaf / 255.0 if dtype == "uint8" else leaf
        leaves |= {name: obs[name] for name in self.network.extra}
        # XLA needs to know how many places there are to score: all of them.
        if self.network.extra and MASK in obs and not self.settings.xla:
            leaves["legal"] = obs[MASK]
        return leaves

    # -- host code -------------------------------------------------------------------------------------------

    def act(self, obs: Observation, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample for a batch; return actions int32, their log-probabilities and values, each `[B]`.

        Runs in NumPy: at a few hundred rows a call into TensorFlow costs more than the network. The draw
        depends on the run's seed and `step` only, so that a resumed run repeats it.
        """
        return self.acting.sample(obs, self.seed, step)

    def values(self, obs: Observation) -> np.ndarray:
        """Return V(obs) `[B]`."""
        return self.acting.forward(obs)[1]

    def update_normaliser(self, obs: Observation) -> None:
        """Merge observations `[..., *leaf]` into the running statistics."""
        self.normaliser.update(obs, self.replicas)
        self.refresh()

    def refresh(self) -> None:
        """Let acting, and the graphs, use the present weights and statistics; call it after each update."""
        for name, (mean, inverse) in self.normaliser.scale().items():
            self._scale[name][0].assign(mean)
            self._scale[name][1].assign(inverse)
        self.acting = self.policy()

    def state(self) -> dict[str, Any]:
        """Return weights and statistics for a checkpoint, with the shapes they fit."""
        return {"weights": self.weights.numpy(), "spec": self.spec(), **self.normaliser.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`.

        Raises:
            UserError: it was made for another network or other shapes.
        """
        check_shapes(state["spec"], self.spec(), "the checkpoint")
        self.weights.assign(state["weights"])
        self.normaliser.load_state(state)
        self.refresh()

    def spec(self) -> dict[str, Any]:
        """Return what is needed to rebuild the network without TensorFlow, in JSON's types."""
        return {
            "network": self.settings.network,
            "hidden": list(self.settings.hidden),
            "leaves": {name: [list(shape), dtype] for name, (shape, dtype) in self.leaves.items()},
            "num_actions": self.num_actions,
            "num_values": self.num_values,
            **({"layer_norm": True} if self.settings.layer_norm else {}),
            **({"prior": self.settings.prior} if self.settings.prior else {}),
            **({} if self.actions.plain else {"actions": self.actions.to_dict()}),
            **({"gaussian": True} if self.gaussian else {}),
            "normalised": sorted(self.normaliser.shapes),
            "representation": self.representation,
        }

    def scale_of(self, layers: Sequence[str], factor: float) -> np.ndarray:
        """Return a vector like the weights: `factor` for layers whose names begin so, 1 elsewhere."""
        return np.concatenate(
            [
                np.full(int(np.prod(shape)), factor if name.startswith(tuple(layers)) else 1.0, np.float32)
                for name, shape in self.shapes.items()
            ]
        )

    def policy(self, seed: int = 0) -> NumpyPolicy:
        """Return the present policy in NumPy, for evaluation; later updates don't touch it."""
        return make_policy(self.spec(), self.weights.numpy(), self.normaliser.state(), seed)

    def save_policy(self, path: Path | str, **header: Any) -> None:
        """Write `policy.npz`: weights, statistics and specification, without TensorFlow or pickle."""
        arrays = {"weights": self.weights.numpy(), **self.normaliser.state()}
        save_arrays(path, arrays, {"kind": "policy", "spec": self.spec(), **header})

    def served(self, outputs: Any, obs: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a SavedModel answers from the network's outputs."""
        tf, spec = self.tf, self.actions
        answer = {}
        if spec.sizes:
            logits = distributions.masked_logits(outputs[:, : spec.num_logits], obs[MASK])
            answer["logits"] = logits
            best = [tf.argmax(_near_largest(tf, part), axis=-1) for part in spec.split(logits)]
            if spec.plain:
                return answer | {"action": best[0]}
        if spec.low:
            low, high = tf.constant(spec.low), tf.constant(spec.high)
            means = outputs[:, spec.num_logits : spec.num_outputs]
            unit = tf.clip_by_value(means, -1.0, 1.0) if self.gaussian else tf.tanh(means)
            answer["numbers"] = low + (unit + 1.0) * 0.5 * (high - low)
        columns = [tf.cast(part, tf.float32)[:, None] for part in best] if spec.sizes else []
        return answer | {"action": tf.concat([*columns, *([answer["numbers"]] if spec.low else [])], axis=1)}

    def export(self, path: Path | str) -> None:
        """Write a SavedModel whose signature takes the named leaves and the mask, any batch size.

        `serving_default` returns `action [B]` (greedy; in storage form where it is more than one choice),
        `logits` (masked), `numbers` (continuous ones) and `value [B]`; what there is none of is left out, as
        is the value where only a simulator could tell the critic what it needs.
        """
        tf = self.tf
        module = tf.Module()
        module.variables_kept = [self.weights, *[v for pair in self._scale.values() for v in pair]]
        private = self.network.private

        def serve(**obs: Any) -> dict[str, Any]:
            if private:  # nobody can show them: the policy does without, and the value is left out
                batch = tf.shape(next(iter(obs.values())))[0]
                obs |= {name: tf.zeros([batch, *self.leaves[name][0]]) for name in private}
            outputs, value = self.forward(self.weights, self.normalise(obs))
            return self.served(outputs, obs) | ({} if private else {"value": value})

        low, self.low = self.low, None  # what is served computes as `policy()` does
        spec = {name: leaf for name, leaf in self.observation_spec().items() if name not in private}
        function = tf.function(serve).get_concrete_function(**spec)
        self.low = low
        module.serve = function
        tf.saved_model.save(module, str(path), signatures={"serving_default": function})


def _near_largest(tf: Any, logits: Any) -> Any:
    """Return 1 where a logit is as good as the largest, else 0: as `distributions.first_largest`."""
    largest = tf.reduce_max(logits, axis=-1, keepdims=True)
    return tf.cast(logits >= largest - distributions.TOLERANCE, tf.int32)


def actor_critic_for(
    env: VectorEnv, settings: LearningSettings, seed: int, replicas: Replicas = ALONE
) -> ActorCritic:
    """Return a fresh stochastic policy with its critic for an environment's observations and actions.

    Raises:
        UserError: the algorithm can't choose from such actions.
    """
    representation = getattr(env.unwrapped, "representation", settings.network)
    actions = ActionSpec.of(env.single_action_space)
    if actions.kind not in settings.actions:
        raise UserError(
            f"{type(settings).__name__} is for {', '.join(settings.actions)} actions; those of this "
            f"environment are {actions.kind}: choose another algorithm"
        )
    options: dict[str, Any] = {"gaussian": True, "replicas": replicas}
    return ActorCritic(env.single_observation_space, settings, seed, representation, actions, **options)
