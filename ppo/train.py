"""PPO's training loop: build -> while the budget lasts: collect -> learn -> log -> checkpoint.

From a shell: `python launcher.py --algo ppo`, `python -m ppo.train`, or `cd ppo && python train.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from gymnasium.vector import VectorEnv

from ppo.config import PPOSettings
from ppo.model import PPOLearner, permutations
from schedrl.learning.actor_critic import actor_critic_for
from schedrl.learning.batches import decisions_of, log_rollout
from schedrl.learning.checkpoint import RandomState
from schedrl.learning.logger import Record
from schedrl.learning.pretraining import pretrain
from schedrl.learning.rollout import collector_for
from schedrl.learning.run_folder import Run


def train(env: VectorEnv, settings: PPOSettings, run: Run) -> Iterator[Record]:
    """Train on `env` until the run is done; yield a record of metrics after each update.

    `run.model` is the model from the first record on: `run.model.policy()` evaluates it at any time.
    """
    run.model = model = actor_critic_for(env, settings, run.seed, run.replicas)
    pretrain(model, env, settings, run)
    learner = PPOLearner(model, settings)
    collector = collector_for(env, settings, run.seed)
    shuffler = RandomState(run.seed, 2)
    parts = {"model": model, "learner": learner, "collector": collector, "shuffler": shuffler}
    run.restore(**parts)

    while not run.done:
        started, rates = time.perf_counter(), settings.rates(run.budget.scheduled)
        rollout = collector.collect(model.act, model.values)
        batch = decisions_of(rollout, settings, run.replicas)
        rows = permutations(shuffler.generator, len(batch["action"]), settings, run.replicas)
        metrics = learner.update(batch, rows, **rates)
        # Only now: acting and learning must have seen the same normalised observations.
        model.update_normaliser(rollout.obs)

        record = log_rollout(run, rollout, batch, started, **rates, **metrics)
        run.checkpoint(**parts)
        yield record
    run.finish(**parts)


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "ppo", *sys.argv[1:]]))
