"""DDPG's training loop: build -> while the budget lasts: collect -> learn -> log -> checkpoint.

From a shell: `python launcher.py --algo ddpg`, `python -m ddpg.train`, or `cd ddpg && python train.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from ddpg.config import DDPGSettings
from ddpg.model import Agent
from ddpg.update import STATISTICS, Learner
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.checkpoint import RandomState
from schedrl.learning.exploration import BoxNoise, Explorer
from schedrl.learning.logger import Record
from schedrl.learning.pretraining import pretrain
from schedrl.learning.replay import Replay
from schedrl.learning.run_folder import Run
from schedrl.learning.transitions import NStep, TransitionCollector

MOST_WARM_UP = 0.1
"""Learning starts after this share of the budget at the latest."""


def train(env: VectorEnv, settings: DDPGSettings, run: Run) -> Iterator[Record]:
    """Train on `env` until the run is done; yield a record of metrics after each update.

    `run.model` is the agent from the first record on: `run.model.policy()` evaluates it at any time.
    """
    actions = ActionSpec.of(env.single_action_space)
    representation = getattr(env.unwrapped, "representation", settings.network)
    run.model = agent = Agent(
        env.single_observation_space, actions, settings, run.seed, representation, replicas=run.replicas
    )
    pretrain(agent.actor, env, settings, run)
    agent.adopt_actor()
    learner = Learner(agent)
    replay = Replay(settings.replay_size, env.single_observation_space, actions, settings.priority_alpha)
    steps = NStep(replay, env.num_envs, settings.n_step, settings.gamma)
    options = {"reward_scale": settings.reward_scale, "check_numerics": settings.check_numerics}
    collector = TransitionCollector(env, actions, steps, settings.num_steps, run.seed, **options)
    noise = BoxNoise(env.num_envs, actions.num_continuous, settings.noise_std, settings.noise == "ou")
    explorer = Explorer("ddpg", actions, noise, run.seed)
    sampler = RandomState(run.seed, 2)
    parts = {"model": agent, "learner": learner, "replay": replay, "collector": collector}
    parts |= {"noise": noise, "sampler": sampler}
    run.restore(**parts)

    while not run.done:
        started = time.perf_counter()
        now = settings.rates(run.budget.scheduled)
        act = partial(explorer.act, agent.actor.acting, epsilon=now["epsilon"])
        played = collector.collect(act, noise.restart)
        seen = replay.rows_of(played.numbers)
        agent.update_normaliser(seen)
        metrics, gradient_steps = dict.fromkeys(STATISTICS, 0.0), 0
        warm = replay.size >= settings.learning_starts or run.budget.progress >= MOST_WARM_UP
        if run.replicas.all(replay.size > 0 and warm):
            batch, places = make_batch(replay, settings, sampler.generator, now["priority_beta"])
            step_sizes = (now["learning_rate"], now["critic_learning_rate"], now["entropy_coef"])
            metrics, errors = learner.update(batch, *step_sizes)
            replay.set_errors(places, errors)
            gradient_steps = settings.gradient_steps

        record = run.log(
            decisions=played.decisions,
            seconds=time.perf_counter() - started,
            episodes=played.episodes,
            choice_share=len(played.numbers) / played.decisions,
            replayed=replay.size,
            gradient_steps=gradient_steps,
            **metrics,
            **now,
        )
        run.checkpoint(**parts)
        yield record
    run.finish(**parts)


def make_batch(
    replay: Replay, settings: DDPGSettings, generator: np.random.Generator, beta: float
) -> tuple[dict[str, Any], np.ndarray]:
    """Draw all gradient steps of an update; return what `Learner.update` reads, and the places drawn.

    All are drawn before the first is taken, so priorities are as of the update before.
    """
    places = replay.sample(settings.gradient_steps * settings.batch_size, generator)
    batch = replay.batch(places)
    shape = (settings.gradient_steps, settings.batch_size)
    for name in ("action", "reward", "discount"):
        batch[name] = batch[name].reshape(*shape, *batch[name].shape[1:])
    batch["importance"] = replay.importance(places.reshape(shape), beta)
    return batch, places


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "ddpg", *sys.argv[1:]]))
