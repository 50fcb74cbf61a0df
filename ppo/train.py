"""PPO's training loop: build -> while the budget lasts: collect -> learn -> log -> checkpoint.

From a shell: `python launcher.py --algo ppo`, `python -m ppo.train`, or `cd ppo && python train.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from ppo.config import PPOSettings
from ppo.model import PPOLearner, permutations
from schedrl.learning import returns
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.checkpoint import RandomState
from schedrl.learning.logger import Record
from schedrl.learning.rollout import Collector, Rollout
from schedrl.learning.run_folder import Run
from schedrl.learning.schedules import scheduled


def train(env: VectorEnv, settings: PPOSettings, run: Run) -> Iterator[Record]:
    """Train on `env` until the run is done; yield a record of metrics after each update.

    `run.model` is the model from the first record on: `run.model.policy()` evaluates it at any time.
    """
    model = ActorCritic(
        env.single_observation_space,
        settings,
        run.seed,
        getattr(env.unwrapped, "representation", settings.network),
    )
    learner = PPOLearner(model, settings)
    options = {"skip_forced": settings.skip_forced, "check_numerics": settings.check_numerics}
    collector = Collector(env, settings.num_steps, run.seed, **options)
    shuffler = RandomState(run.seed, 2)
    parts = {"model": model, "learner": learner, "collector": collector, "shuffler": shuffler}
    run.restore(**parts)
    run.model = model

    while not run.done:
        started = time.perf_counter()
        progress = run.budget.progress
        learning_rate = scheduled(settings.learning_rate_schedule, settings.learning_rate, 0.0, progress)
        entropy_coef = scheduled(
            settings.entropy_schedule, settings.entropy_coef, settings.entropy_coef_final, progress
        )

        rollout = collector.collect(model.act, model.values)
        batch = make_batch(rollout, settings)
        rows = permutations(shuffler.generator, len(batch["action"]), settings)
        metrics = learner.update(batch, rows, learning_rate, entropy_coef)
        # Only now: acting and learning must have seen the same normalised observations.
        model.update_normaliser(rollout.obs)

        record = run.log(
            decisions=rollout.rewards.size,
            seconds=time.perf_counter() - started,
            episodes=rollout.episodes,
            explained_variance=returns.explained_variance(batch["value"], batch["target"]),
            learned_share=rollout.learned.mean(),
            learning_rate=learning_rate,
            entropy_coef=entropy_coef,
            **metrics,
        )
        run.checkpoint(**parts)
        yield record
    run.finish(**parts)


def make_batch(rollout: Rollout, settings: PPOSettings) -> dict[str, Any]:
    """Turn a rollout into what `PPOLearner.update` reads: arrays `[n]` of the decisions to learn from."""
    rewards = rollout.rewards * np.float32(settings.reward_scale)
    following = returns.next_values(
        rollout.values, rollout.last_values, rollout.terminated, rollout.truncated, rollout.final_values
    )
    ended = rollout.terminated | rollout.truncated
    trace = returns.following_lambda(settings.gae_lambda, rollout.learned)
    advantages = returns.gae(rewards, rollout.values, following, ended, settings.gamma, trace)
    rows = np.flatnonzero(rollout.learned)
    advantage = advantages.reshape(-1)[rows].astype(np.float32)
    value = rollout.flat("values")[rows]
    target = advantage + value
    if settings.normalise_advantages:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    return {
        "obs": {name: rollout.flat(name)[rows] for name in rollout.obs},
        "action": rollout.flat("actions")[rows],
        "log_prob": rollout.flat("log_probs")[rows],
        "value": value,
        "advantage": np.clip(advantage, -settings.advantage_clip, settings.advantage_clip),
        "target": target,
    }


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "ppo", *sys.argv[1:]]))
