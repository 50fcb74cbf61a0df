"""DDPG's update: targets, losses and all gradient steps inside one compiled function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ddpg.model import Agent
from schedrl.learning import distributions, optimisers
from schedrl.learning.rollout import numerics_named

STATISTICS = (
    "critic_loss",
    "policy_loss",
    "value_loss",
    "entropy",
    "q_mean",
    "q_spread",
    "actor_grad_norm",
    "critic_grad_norm",
)
SMALLEST_SPREAD = 1e-6


class Learner:
    """Adam's moments and the compiled update of an `Agent`."""

    def __init__(self, agent: Agent):
        self.agent, self.settings = agent, agent.settings
        self.tf = tf = agent.tf
        self.moments = optimisers.Moments(tf, agent.weights)
        rows = {
            name: tf.TensorSpec(leaf.shape, leaf.dtype)
            for name, leaf in agent.actor.observation_spec().items()
        }
        matrix, scalar = tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([], tf.float32)
        actions = tf.TensorSpec([None, None, *agent.actions.shape], agent.actions.dtype)
        batch = {"obs": rows, "next_obs": rows, "action": actions}
        batch |= dict.fromkeys(("reward", "discount", "importance"), matrix)
        self._update = agent.actor.compile(self._update_graph, [batch, *[scalar] * 3])

    # -- pieces of the loss ----------------------------------------------------------------------------------

    def taken(self, actions: Any) -> tuple[Any, Any]:
        """Return stored actions as a one-hot vector `[B, combinations]` and numbers `[B, k]` in -1 .. 1."""
        tf, spec = self.tf, self.agent.actions
        if spec.plain:
            return tf.one_hot(actions, spec.num_joint), None
        count = len(spec.sizes)
        parts = [tf.one_hot(tf.cast(actions[:, i], tf.int32), size) for i, size in enumerate(spec.sizes)]
        return self.agent.joint(parts), spec.to_unit(actions[:, count:])

    def straight_through(self, logits: Any, noise: Any) -> Any:
        """Return the mean `[B, combinations]` of one-hot draws, with the gradient of the Gumbel-softmax.

        Forward each choice is hard, backward it is softmax((logits + noise) / temperature). Source: Jang et
        al., "Categorical reparameterization with Gumbel-softmax", 2017, section 2.2. Illegal choices stay at
        -1e9 whatever the noise, so they get neither a draw nor a gradient.

        Args:
            logits: masked, `[B, sum(sizes)]`.
            noise: Gumbel, `[B, draws, sum(sizes)]`.
        """
        tf, spec = self.tf, self.agent.actions
        # Broadcast and not tf.repeat, whose gradient transposes integers and has TensorFlow complain of it.
        noisy = tf.reshape(logits[:, None, :] + noise, (-1, spec.num_logits))
        parts = []
        for part in spec.split(noisy):
            soft = tf.nn.softmax(part / self.settings.temperature)
            hard = tf.one_hot(tf.argmax(part, axis=-1), part.shape[-1])
            parts.append(tf.stop_gradient(hard - soft) + soft)
        draws = tf.reshape(self.agent.joint(parts), (-1, noise.shape[1], spec.num_joint))
        return tf.reduce_mean(draws, axis=1)

    def targets(self, target: Any, batch: Mapping[str, Any]) -> Any:
        """Return n-step return + discount x Q'(s', a') `[B]`, a' by the slow actor; the least of the critics.

        Over discrete choices the mean under the slow actor's masked probabilities is taken: what sampling a'
        by the Gumbel trick would give on average, without its noise.
        """
        tf, agent = self.tf, self.agent
        actor, *critics = agent.split(target)
        logits, numbers, _ = agent.act(actor, batch["next_obs"])
        values = [agent.q(critic, batch["next_obs"], numbers) for critic in critics]
        least = values[0] if len(values) == 1 else tf.reduce_min(tf.stack(values), axis=0)
        chances = agent.joint([tf.nn.softmax(part) for part in agent.actions.split(logits)])
        following = tf.reduce_sum(chances * least, axis=-1)
        return tf.stop_gradient(batch["reward"] + batch["discount"] * following)

    def policy_loss(self, logits: Any, q: Any, obs: Mapping[str, Any], seed: Any) -> tuple[Any, Any]:
        """Return -mean Q(s, actor's action) in units of the spread of Q over legal choices, and that spread.

        `q [B, combinations]` carries a gradient only through continuous numbers.
        """
        tf, agent, s = self.tf, self.agent, self.settings
        if not agent.actions.sizes:
            return -tf.reduce_mean(q), tf.constant(0.0)
        still = tf.stop_gradient(q)
        mean = agent.legal_mean(still, obs)
        variance = tf.reduce_mean(agent.legal_mean(tf.square(still - mean), obs))
        (variance,) = agent.replicas.mean(tf.shape(logits)[0], [tf.stop_gradient(variance)])
        spread = tf.sqrt(variance)
        pay = (q - mean) / (spread + SMALLEST_SPREAD)
        shape = [tf.shape(logits)[0], s.gumbel_draws, logits.shape[1]]
        uniform = tf.random.stateless_uniform(shape, seed, minval=1e-7, maxval=1.0 - 1e-7)
        draws = self.straight_through(logits, -tf.math.log(-tf.math.log(uniform)))
        # What the critic says of illegal combinations has no meaning; the draw is 0 there.
        return -tf.reduce_mean(tf.reduce_sum(draws * pay, axis=-1)), spread

    def loss(
        self, weights: Any, batch: Mapping[str, Any], target: Any, entropy_coef: Any, seed: Any
    ) -> tuple[Any, tuple[Any, ...], Any]:
        """Return the loss of a minibatch, its statistics (STATISTICS but the norms) and |TD errors| `[B]`."""
        tf, agent, s = self.tf, self.agent, self.settings
        obs = batch["obs"]
        actor, *critics = agent.split(weights)
        wanted = self.targets(target, batch)
        chosen, chosen_numbers = self.taken(batch["action"])
        values = [agent.q(critic, obs, chosen_numbers) for critic in critics]
        errors = [wanted - tf.reduce_sum(chosen * q, axis=-1) for q in values]
        critic_loss = sum(0.5 * tf.reduce_mean(batch["importance"] * tf.square(error)) for error in errors)

        logits, numbers, value = agent.act(actor, obs)
        if agent.actions.low:
            q = agent.q(tf.stop_gradient(critics[0]), obs, numbers)
        else:
            q = tf.stop_gradient(values[0])
        policy_loss, spread = self.policy_loss(logits, q, obs, seed)
        entropy = self.entropy(logits)
        greedy = tf.stop_gradient(tf.reduce_sum(agent.greedy(logits) * q, axis=-1))
        value_loss = 0.5 * tf.reduce_mean(tf.square(tf.reshape(value, (-1,)) - greedy))
        total = critic_loss + policy_loss - entropy_coef * entropy + s.value_coef * value_loss
        statistics = (critic_loss, policy_loss, value_loss, entropy, tf.reduce_mean(greedy), spread)
        return total, statistics, tf.abs(errors[0])

    def entropy(self, logits: Any) -> Any:
        """Return the mean entropy in nats, summed over the discrete parts."""
        tf = self.tf
        parts = [distributions.entropy(tf.nn.log_softmax(part)) for part in self.agent.actions.split(logits)]
        return tf.reduce_mean(tf.add_n(parts)) if parts else tf.constant(0.0)

    # -- the update ------------------------------------------------------------------------------------------

    def _update_graph(
        self, batch: Mapping[str, Any], learning_rate: Any, critic_learning_rate: Any, entropy_coef: Any
    ) -> Any:
        tf, s, agent = self.tf, self.settings, self.agent
        steps, size, actor = tf.shape(batch["reward"])[0], tf.shape(batch["reward"])[1], agent.sizes[0]
        batch = dict(batch)
        for part in ("obs", "next_obs"):
            leaves = agent.actor.normalise(batch[part])
            batch[part] = {
                name: tf.reshape(leaf, [steps, size, *leaf.shape[1:]]) for name, leaf in leaves.items()
            }
        rates = tf.concat(
            [tf.fill([actor], learning_rate), tf.fill([sum(agent.sizes[1:])], critic_learning_rate)], axis=0
        )

        def step(
            i: Any, sums: Any, weights: Any, target: Any, m: Any, v: Any, count: Any, errors: Any
        ) -> Any:
            minibatch = tf.nest.map_structure(lambda rows: rows[i], batch)
            with tf.GradientTape() as tape:
                tape.watch(weights)
                seed = tf.stack([agent.seed, tf.cast(count, tf.int32)])
                loss, statistics, error = self.loss(weights, minibatch, target, entropy_coef, seed)
            gradients = [tape.gradient(loss, weights), *statistics]
            gradient, *statistics = agent.replicas.mean(size, gradients)
            if s.check_numerics:
                for name, tensor in (*zip(STATISTICS, statistics, strict=False), ("gradient", gradient)):
                    tf.debugging.check_numerics(tensor, name)
            own, own_norm = optimisers.clip_norm(agent.ops, gradient[:actor], s.max_grad_norm)
            rest, rest_norm = optimisers.clip_norm(agent.ops, gradient[actor:], s.max_grad_norm)
            count += 1.0
            gradient = tf.concat([own, rest], axis=0)
            weights, m, v = optimisers.adam(weights, gradient, m, v, count, rates)
            target += s.tau * (weights - target)
            sums += tf.stack([*statistics, own_norm, rest_norm])
            return i + 1, sums, weights, target, m, v, count, errors.write(i, error)

        networks = (agent.weights.read_value(), agent.target.read_value())
        start = (0, tf.zeros(len(STATISTICS)), *networks, *self.moments.read())
        start = (*start, tf.TensorArray(tf.float32, steps))
        _, sums, weights, target, *moments, errors = tf.while_loop(
            lambda i, *_: i < steps, step, start, parallel_iterations=1
        )
        agent.weights.assign(weights)
        agent.target.assign(target)
        self.moments.assign(*moments)
        return sums / tf.cast(steps, tf.float32), errors.stack()

    def update(
        self, batch: Mapping[str, Any], learning_rate: float, critic_learning_rate: float, entropy_coef: float
    ) -> tuple[dict[str, float], np.ndarray]:
        """Take all gradient steps of `batch`; return mean statistics and |TD errors| `[steps, batch]`.

        `batch` holds `[steps, batch]` arrays `action`, `reward`, `discount` and `importance`, and the leaves
        of `obs` and `next_obs` `[steps * batch, ...]`.

        Raises:
            NumericsError: with `check_numerics`, at the first NaN or infinity; it names the tensor.
        """
        rates = map(np.float32, (learning_rate, critic_learning_rate, entropy_coef))
        with numerics_named(self.tf):
            statistics, errors = self._update(dict(batch), *rates)
        self.agent.refresh()
        return dict(zip(STATISTICS, statistics.numpy().tolist(), strict=True)), errors.numpy()

    def state(self) -> dict[str, Any]:
        """Return Adam's moments and step count."""
        return self.moments.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        self.moments.load_state(state)
