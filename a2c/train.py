"""A2C's training loop: build -> while the budget lasts: collect -> learn -> log -> checkpoint.

From a shell: `python launcher.py --algo a2c`, `python -m a2c.train`, or `cd a2c && python train.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from gymnasium.vector import VectorEnv

from a2c.config import A2CSettings
from a2c.model import make_step
from schedrl.learning.actor_critic import actor_critic_for
from schedrl.learning.batches import decisions_of, log_rollout
from schedrl.learning.logger import Record
from schedrl.learning.pretraining import pretrain
from schedrl.learning.rollout import collector_for
from schedrl.learning.run_folder import Run


def train(env: VectorEnv, settings: A2CSettings, run: Run) -> Iterator[Record]:
    """Train on `env` until the run is done; yield a record of metrics after each update."""
    run.model = model = actor_critic_for(env, settings, run.seed, run.replicas)
    pretrain(model, env, settings, run)
    step = make_step(model, settings)
    collector = collector_for(env, settings, run.seed)
    parts = {"model": model, "step": step, "collector": collector}
    run.restore(**parts)

    while not run.done:
        started, rates = time.perf_counter(), settings.rates(run.budget.scheduled)
        rollout = collector.collect(model.act, model.values)
        batch = decisions_of(rollout, settings, run.replicas)
        metrics = step(batch, **rates)
        model.update_normaliser(rollout.obs)

        record = log_rollout(run, rollout, batch, started, **rates, **metrics)
        run.checkpoint(**parts)
        yield record
    run.finish(**parts)


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "a2c", *sys.argv[1:]]))
