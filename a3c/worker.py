"""One worker: read the shared parameters, collect, compute a gradient, apply it, report; and again.

The same `Worker` runs inside the training process when it is the only one, and in a process of its own
(`main`) when there are several.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from a3c.config import A3CSettings
from a3c.model import EPISODE, ROW, Shared, gradient_of
from schedrl.learning import returns
from schedrl.learning.actor_critic import ActorCritic, actor_critic_for
from schedrl.learning.batches import decisions_of
from schedrl.learning.budget import Limits
from schedrl.learning.normaliser import Normaliser
from schedrl.learning.rollout import NumericsError, Rollout, collector_for
from schedrl.learning.shared_vectors import Ring, write_text
from schedrl.settings import UserError

WAIT = 0.005  # seconds, where the parent is behind with reading


class Worker:
    """Computes gradients with a model and environments of its own, and applies them to what is shared.

    Args:
        env: its own environments.
        model: its own model; its seed decides which actions are sampled.
        shared: parameters, moments, counters.
        limits: of the whole run: decisions and episodes.
        index: which of the workers it is.
    """

    def __init__(self, env: VectorEnv, model: ActorCritic, shared: Shared, limits: Limits, index: int = 0):
        self.model, self.shared, self.limits, self.index = model, shared, limits, index
        self.settings: A3CSettings = shared.settings
        self.collector = collector_for(env, self.settings, model.seed)
        self.gradient = gradient_of(model, self.settings)
        self.observed = Normaliser(model.normaliser.shapes)
        self.updates = Ring(shared.arrays, "update", index)
        self.episodes = Ring(shared.arrays, "episode", index)

    @property
    def over(self) -> bool:
        """Whether the run is to end: the parent said so, or the budget is spent."""
        return bool(self.shared["stop"]) or self.shared.spent(self.limits).done

    def update(self) -> None:
        """Read, collect, compute, apply, report."""
        shared, index = self.shared, self.index
        # Before the parameters are read: an update in between counts as stale, never the other way round.
        seen = shared.updates_by_others(index)
        shared.copy_to(self.model)
        rates = self.settings.rates(shared.spent(self.limits).scheduled)

        rollout = self.collector.collect(self.model.act, self.model.values)
        batch = decisions_of(rollout, self.settings)
        gradient, terms = self.gradient(batch, rates["entropy_coef"], int(shared["updates"][index]))
        staleness = shared.apply(gradient, index, seen, rates["learning_rate"])
        self._observe(rollout)

        found = {
            "decisions": rollout.rewards.size,
            "staleness": staleness,
            "explained_variance": returns.explained_variance(batch["value"], batch["target"]),
            "learned_share": rollout.learned.mean(),
        }
        self._report(rollout, found | rates | terms)

    def _observe(self, rollout: Rollout) -> None:
        """Add to what this worker has observed; all take part in it when they read next."""
        row = self.shared["observed"][self.index]
        self.observed.load_merged(row[None])
        self.observed.update(rollout.obs)
        row[:] = self.observed.vector()

    def _report(self, rollout: Rollout, numbers: dict[str, Any]) -> None:
        """Put the numbers and the episodes into the mailbox; wait while it is full."""
        ended = rollout.episodes
        count = len(ended.get("r", ()))
        columns = [np.asarray(ended.get(key, np.full(count, np.nan)), float) for key in EPISODE]
        self.shared["alive"][self.index] += 1
        while self.updates.room < 1 or self.episodes.room < count:
            self.shared["alive"][self.index] += 1
            if self.shared["stop"]:
                return
            time.sleep(WAIT)
        if count:
            self.shared["told"][:] = [key in ended for key in EPISODE]
        self.episodes.put(np.stack(columns, axis=1))
        self.updates.put(np.array([[numbers[name] for name in ROW]]))
        self.shared["episodes"][self.index] += count
        self.shared["decisions"][self.index] += rollout.rewards.size
        self.shared["ready"][self.index] = True


def main(make_env: Callable[..., VectorEnv], shared: Shared, seed: int, limits: Limits, index: int) -> None:
    """Work until the run is over: what a worker's process does. Failures are told to the parent."""
    try:
        if shared["stop"] or shared.spent(limits).done:
            return
        env = make_env(shared.settings.num_envs, seed=seed)
        worker = Worker(env, actor_critic_for(env, shared.settings, seed), shared, limits, index)
        while not worker.over:
            worker.update()
    except Exception as error:
        write_text(shared["failure"][index], type(error).__name__)
        write_text(shared["message"][index], str(error))
        if isinstance(error, UserError | NumericsError):
            sys.exit(1)  # the parent raises it again; a traceback would say nothing more
        raise
