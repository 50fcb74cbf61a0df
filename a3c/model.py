"""What the workers share (parameters, moments, counters, mailboxes) and the gradient that each computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from a3c.config import A3CSettings
from schedrl.learning import losses, optimisers
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.budget import Budget
from schedrl.learning.rollout import numerics_named
from schedrl.learning.shared_vectors import Ring, SharedArrays

STATISTICS = (*losses.ACTOR_CRITIC_STATISTICS, "grad_norm")
ROW = (
    "decisions",
    "staleness",
    "explained_variance",
    "learned_share",
    "learning_rate",
    "entropy_coef",
    *STATISTICS,
)
"""What a worker reports of each update."""
EPISODE = ("r", "l", "slowdown")
"""What it reports of each episode that ended, as far as the environment tells it."""
AHEAD, ROLLOUTS = 64, 4
"""How far a worker may be ahead of the parent's reading: updates, and rollouts of which every decision ends
an episode. Then it waits, so that nothing gets lost, and a parent that stands still stops the run."""
KEPT = ("m", "v", "updates", "starts", "observed")
"""What a checkpoint keeps beside the parameters, which are the model's."""


class Shared:
    """Everything in shared memory. Hand it to the workers' processes: only its description travels.

    | array | written by |
    |---|---|
    | `weights`, `m`, `v` | all workers, without a lock (Hogwild) |
    | `updates`, `decisions`, `episodes`, `observed` `[W]` | each worker its own element |
    | `stop`, `starts` | the parent |

    Args:
        model: whose parameters are shared.
        settings: number of workers, size of rollouts, optimiser.
    """

    def __init__(self, model: ActorCritic, settings: A3CSettings):
        self.settings, workers = settings, settings.num_workers
        vector = (tuple(model.weights.shape), np.float32)
        counter = ((workers,), np.int64)
        most = ROLLOUTS * settings.num_envs * settings.num_steps  # every decision may end an episode
        self.arrays = SharedArrays(
            {
                "weights": vector, "m": vector, "v": vector,
                "updates": counter, "decisions": counter, "episodes": counter, "starts": counter,
                "observed": ((workers, model.normaliser.vector().size), np.float64),
                "told": ((len(EPISODE),), np.bool_),
                "stop": ((), np.bool_), "ready": ((workers,), np.bool_),
                "failure": ((workers, 16), np.uint8), "message": ((workers, 2000), np.uint8),
                **Ring.layout("update", workers, AHEAD, len(ROW)),
                **Ring.layout("episode", workers, most, len(EPISODE)),
            }
        )  # fmt: skip

    def __getitem__(self, name: str) -> np.ndarray:
        """Return an array; writing into it is seen by all."""
        return self.arrays[name]

    def begin(self, model: ActorCritic, budget: Budget) -> None:
        """Put in the model's parameters and what is spent of the budget, before workers start."""
        self["weights"][:] = model.weights.numpy()
        self["decisions"][0], self["episodes"][0] = budget.decisions, budget.episodes

    def spent(self, total_steps: int | None, num_episodes: int | None) -> Budget:
        """Return the budget as spent by all workers up to now."""
        budget = Budget(total_steps, num_episodes)
        budget.spend(int(self["decisions"].sum()), int(self["episodes"].sum()))
        return budget

    def updates_by_others(self, worker: int) -> int:
        """Count the updates applied so far by all workers but one."""
        return int(self["updates"].sum() - self["updates"][worker])

    def apply(self, gradient: np.ndarray, worker: int, seen: int, learning_rate: Any) -> int:
        """Take one step of the optimiser in place, without a lock.

        Two workers that step in the same microseconds may each overwrite a part of the other's moments; the
        parameters are only ever added to.

        Args:
            gradient: `[weights]`, clipped.
            worker: who applies it.
            seen: `updates_by_others` when the parameters were read that it was computed for.
            learning_rate: a number, or one for each parameter.

        Returns:
            The staleness: how many updates others have applied since then.
        """
        staleness = self.updates_by_others(worker) - seen
        step = int(self["updates"].sum()) + 1
        optimise = optimisers.OPTIMISERS[self.settings.optimiser]
        moved, m, v = optimise(np.float32(0.0), gradient, self["m"], self["v"], step, learning_rate)
        self["m"][:], self["v"][:] = m, v
        self["weights"][:] += moved
        self["updates"][worker] += 1
        return staleness

    def copy_to(self, model: ActorCritic) -> None:
        """Give the model the present parameters and what all workers have observed.

        While others write, the copy may hold one update in its first half and not yet in its second; that is
        what every worker reads as well.
        """
        model.weights.assign(self["weights"].copy())  # TensorFlow may keep the array it is given
        model.normaliser.load_merged(self["observed"])
        model.refresh()

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {name: self[name].copy() for name in KEPT}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over `state()`."""
        for name in KEPT:
            self[name][:] = state[name]


class Gradient:
    """The compiled gradient of the actor-critic loss, clipped by its norm."""

    def __init__(self, model: ActorCritic, settings: A3CSettings):
        self.model, self.settings, tf = model, settings, model.tf
        batch: dict[str, Any] = dict.fromkeys(("advantage", "target"), tf.TensorSpec([None], tf.float32))
        batch |= {"obs": model.observation_spec(), "action": tf.TensorSpec([None], tf.int32)}
        self._compiled = model.compile(
            self._graph, [batch, tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.int32)]
        )

    def _graph(self, batch: Mapping[str, Any], entropy_coef: Any, seed: Any) -> tuple[Any, Any]:
        tf, s, weights = self.model.tf, self.settings, self.model.weights.read_value()
        batch = {**batch, "obs": self.model.normalise(batch["obs"])}
        with tf.GradientTape() as tape:
            tape.watch(weights)
            coefficients = (s.value_coef, entropy_coef)
            loss, terms = losses.actor_critic(self.model, weights, batch, coefficients, seed)
        gradient, norm = optimisers.clip_norm(self.model.ops, tape.gradient(loss, weights), s.max_grad_norm)
        if s.check_numerics:
            for name, tensor in (*zip(STATISTICS, terms, strict=False), ("gradient", gradient)):
                tf.debugging.check_numerics(tensor, name)
        return gradient, tf.stack([*terms, norm])

    def __call__(
        self, batch: Mapping[str, Any], entropy_coef: float, step: int
    ) -> tuple[np.ndarray, dict[str, float]]:
        """Return the gradient `[weights]` for the model's present parameters, and the loss's terms.

        Args:
            batch: what `decisions_of` returns.
            entropy_coef: weight of the entropy bonus.
            step: decides, with the model's seed, what dropout drops.

        Raises:
            NumericsError: with `check_numerics`, at the first NaN or infinity.
        """
        needed = {name: batch[name] for name in ("obs", "action", "advantage", "target")}
        seed = np.array([self.model.seed, step], np.int32)
        with numerics_named(self.model.tf):
            gradient, terms = self._compiled(needed, np.float32(entropy_coef), seed)
        return gradient.numpy(), dict(zip(STATISTICS, terms.numpy().tolist(), strict=True))
