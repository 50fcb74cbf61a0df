"""PG's training loop: build -> while the budget lasts: play episodes -> learn -> log -> checkpoint.

From a shell: `python launcher.py --algo pg`, `python -m pg.train`, or `cd pg && python train.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from gymnasium.vector import VectorEnv

from pg.config import PGSettings
from pg.model import STATISTICS, make_batch, make_step
from schedrl.learning.actor_critic import actor_critic_for
from schedrl.learning.batches import minibatches
from schedrl.learning.checkpoint import RandomState
from schedrl.learning.episodes import EpisodeCollector
from schedrl.learning.logger import Record
from schedrl.learning.pretraining import pretrain
from schedrl.learning.run_folder import Run


def train(env: VectorEnv, settings: PGSettings, run: Run) -> Iterator[Record]:
    """Train on `env` until the run is done; yield a record of metrics after each update."""
    run.model = model = actor_critic_for(env, settings, run.seed, run.replicas)
    pretrain(model, env, settings, run)
    step = make_step(model, settings)
    collector = EpisodeCollector(
        env, settings.episodes_per_sequence, run.seed, check_numerics=settings.check_numerics
    )
    shuffler = RandomState(run.seed, 2)
    parts = {"model": model, "step": step, "collector": collector, "shuffler": shuffler}
    run.restore(**parts)

    while not run.done:
        started, rates = time.perf_counter(), settings.rates(run.budget.scheduled)
        played = collector.collect(lambda obs, _: model.act(obs, collector.step)[0])
        batch = make_batch(played, collector.groups, settings, run.replicas)
        parts_of_it = minibatches(batch, settings.batch_size, shuffler.generator, run.replicas)
        taken = [step(part, **rates) for part in parts_of_it]
        # Nothing to learn from where no episode had a choice: at a very low load.
        metrics = {name: np.mean([found[name] for found in taken] or [0.0]) for name in STATISTICS}
        model.update_normaliser(played.obs)

        record = run.log(
            decisions=played.decisions,
            seconds=time.perf_counter() - started,
            episodes=played.ended,
            learned_share=len(played.actions) / played.decisions,
            gradient_steps=len(taken),
            **rates,
            **metrics,
        )
        run.checkpoint(**parts)
        yield record
    run.finish(**parts)


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "pg", *sys.argv[1:]]))
