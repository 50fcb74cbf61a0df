"""A3C's training loop: build -> start the workers -> while they work: log -> checkpoint.

From a shell: `python launcher.py --algo a3c`, `python -m a3c.train`, or `cd a3c && python train.py`.
What each worker does stands in worker.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from gymnasium.vector import VectorEnv

from a3c.config import A3CSettings
from a3c.crew import crew_for
from a3c.model import Shared
from schedrl.learning.actor_critic import actor_critic_for
from schedrl.learning.logger import Record
from schedrl.learning.pretraining import pretrain
from schedrl.learning.run_folder import Run


def train(env: VectorEnv, settings: A3CSettings, run: Run) -> Iterator[Record]:
    """Train until the run is done; yield a record of metrics after every `updates_per_record` updates.

    With one worker, `env` is what it learns in. With more, each makes environments like it, with job
    sequences of its own. `run.model` is the model from the first record on.
    """
    run.model = model = actor_critic_for(env, settings, run.seed)
    pretrain(model, env, settings, run)
    shared = Shared(model, settings)
    crew = crew_for(env, model, shared, run)
    parts = {"model": model, "shared": shared, **crew.parts}
    run.restore(**parts)

    with crew:
        while (gathered := crew.gather()) is not None:
            record = run.log(
                decisions=gathered.decisions,
                seconds=gathered.seconds,
                episodes=gathered.episodes,
                **gathered.metrics,
            )
            run.checkpoint(**parts)
            yield record
    run.finish(**parts)


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "a3c", *sys.argv[1:]]))
