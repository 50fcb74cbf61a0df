"""What the workers share (parameters, moments, counters, mailboxes) and the gradient that each computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from a3c.config import A3CSettings
from schedrl.learning import losses, optimisers
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.budget import Budget, Limits
from schedrl.learning.gradient_step import Gradient
from schedrl.learning.networks import VALUE_LAYERS
from schedrl.learning.shared_vectors import Ring, SharedArrays

ROW = (
    "decisions",
    "staleness",
    "explained_variance",
    "learned_share",
    "learning_rate",
    "entropy_coef",
    *losses.ACTOR_CRITIC_STATISTICS,
    "grad_norm",
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
    | `updates`, `decisions`, `episodes`, `observed`, `alive` `[W]` | each worker its own element |
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
        self.scale = model.scale_of(VALUE_LAYERS, settings.critic_scale)
        self.arrays = SharedArrays(
            {
                "weights": vector, "m": vector, "v": vector,
                "updates": counter, "decisions": counter, "episodes": counter, "starts": counter,
                "observed": ((workers, model.normaliser.vector().size), np.float64),
                "told": ((len(EPISODE),), np.bool_),
                "stop": ((), np.bool_), "ready": ((workers,), np.bool_), "alive": counter,
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
        if not self["observed"][:, 0].any():
            self["observed"][0] = model.normaliser.vector()  # what pre-training has seen
        self["decisions"][0], self["episodes"][0] = budget.decisions, budget.episodes

    def spent(self, limits: Limits) -> Budget:
        """Return the budget as spent by all workers up to now."""
        budget = Budget(*limits)
        budget.spend(int(self["decisions"].sum()), int(self["episodes"].sum()))
        return budget

    def updates_by_others(self, worker: int) -> int:
        """Count the updates applied so far by all workers but one."""
        return int(self["updates"].sum() - self["updates"][worker])

    def apply(self, gradient: np.ndarray, worker: int, seen: int, learning_rate: float) -> int:
        """Take one step of the optimiser in place, without a lock.

        Two workers that step in the same microseconds may each overwrite a part of the other's moments; the
        parameters are only ever added to.

        Args:
            gradient: `[weights]`, clipped.
            worker: who applies it.
            seen: `updates_by_others` when the parameters were read that it was computed for.
            learning_rate: the actor's; the critic's own layers take `critic_scale` of it.

        Returns:
            The staleness: how many updates others have applied since then.
        """
        staleness = self.updates_by_others(worker) - seen
        step = int(self["updates"].sum()) + 1
        optimise = optimisers.OPTIMISERS[self.settings.optimiser]
        moved, m, v = optimise(
            np.float32(0.0), gradient, self["m"], self["v"], step, learning_rate * self.scale
        )
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


def gradient_of(model: ActorCritic, settings: A3CSettings) -> Gradient:
    """Return the compiled gradient of the actor-critic loss; batches have `advantage` and `target`."""

    def loss(weights, batch, entropy_coef, dropout_seed):
        return losses.actor_critic(model, weights, batch, (settings.value_coef, entropy_coef), dropout_seed)

    return Gradient(model, loss, losses.ACTOR_CRITIC_STATISTICS, ("advantage", "target"))
