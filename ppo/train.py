"""PPO's training loop: build -> while the budget lasts: collect -> learn -> log -> checkpoint.

From a shell: `python launcher.py --algo ppo`, `python -m ppo.train`, or `cd ppo && python train.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

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
        env.single_observation_space, settings, run.seed, getattr(env, "representation", settings.network)
    )
    learner = PPOLearner(model, settings)
    collector = Collector(env, settings.num_steps, run.seed, settings.check_numerics)
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
        rows = permutations(shuffler.generator, settings)
        metrics = learner.update(batch, rows, learning_rate, entropy_coef)
        # Only now: acting and learning must have seen the same normalised observations.
        model.update_normaliser(rollout.obs)

        record = run.log(
            decisions=rollout.rewards.size,
            seconds=time.perf_counter() - started,
            episodes=rollout.episodes,
            explained_variance=returns.explained_variance(batch["value"], batch["target"]),
            learning_rate=learning_rate,
            entropy_coef=entropy_coef,
            **metrics,
        )
        run.checkpoint(**parts)
        yield record
    run.finish(**parts)


def make_batch(rollout: Rollout, settings: PPOSettings) -> dict[str, object]:
    """Turn a rollout into what `PPOLearner.update` reads: arrays `[T * B]`, advantages normalised."""
    rewards = rollout.rewards * np.float32(settings.reward_scale)
    following = returns.next_values(
        rollout.values, rollout.last_values, rollout.terminated, rollout.truncated, rollout.final_values
    )
    ended = rollout.terminated | rollout.truncated
    advantages = returns.gae(rewards, rollout.values, following, ended, settings.gamma, settings.gae_lambda)
    targets = advantages + rollout.values
    if settings.normalise_advantages:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    advantages = np.clip(advantages, -settings.advantage_clip, settings.advantage_clip)
    return {
        "obs": {name: rollout.flat(name) for name in rollout.obs},
        "action": rollout.flat("actions"),
        "log_prob": rollout.flat("log_probs"),
        "value": rollout.flat("values"),
        "advantage": advantages.reshape(-1).astype(np.float32),
        "target": targets.reshape(-1).astype(np.float32),
    }


if __name__ == "__main__":
    import sys

    from launcher import main

    sys.exit(main(["--algo", "ppo", *sys.argv[1:]]))
