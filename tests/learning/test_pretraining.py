"""Imitating a heuristic before learning."""

import csv

import numpy as np
import pytest

from schedrl import heuristics
from schedrl.envs.deeprm.episodes import play
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.envs.deeprm.vector import DeepRMVectorEnv
from schedrl.envs.probes import TwoActions
from schedrl.evaluation.evaluate import sequences_of
from schedrl.evaluation.metrics import slowdowns
from schedrl.learning.actor_critic import actor_critic_for
from schedrl.learning.budget import Budget
from schedrl.learning.pretraining import pretrain
from schedrl.learning.run_folder import Run
from schedrl.learning.settings import ActorCriticSettings
from schedrl.settings import UserError

SETTINGS = ActorCriticSettings(pretrain="SJF", pretrain_episodes=60, pretrain_epochs=12, num_envs=32)


def imitated(folder=None, environment=None, settings=SETTINGS):
    env = DeepRMVectorEnv(environment or DeepRMSettings(arrival_rate=0.5), settings.num_envs, copy=False)
    said = []
    run = Run(Budget(1000), 3, folder, say=said.append, tensorboard=False)
    model = actor_critic_for(env, settings, 3)
    pretrain(model, env, settings, run)
    return model, said


def test_it_plays_as_the_heuristic_does_on_other_jobs(tmp_path):
    model, said = imitated(tmp_path / "run")
    settings = DeepRMSettings(arrival_rate=0.5)
    sequences = sequences_of(settings, 40, family="validation")
    means = [
        np.nanmean(slowdowns(outcome))
        for outcome in (
            play(model.policy(), settings, sequences),
            heuristics.get("sjf").run(settings, sequences),
            heuristics.get("packer").run(settings, sequences),
        )
    ]
    assert abs(means[0] - means[1]) < abs(means[2] - means[1])
    with open(tmp_path / "run" / "pretraining.csv") as file:
        rows = list(csv.DictReader(file))
    best = max(float(row["validation_accuracy"]) for row in rows)
    assert best > 0.8
    assert f"{best:.1%}" in said[-1]
    assert float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"])


def test_the_critic_learns_the_returns_along_the_way():
    model, _ = imitated()
    env = DeepRMVectorEnv(DeepRMSettings(arrival_rate=0.5), 32, seed=77)
    # A whole episode's return is far below 0; an untrained critic says about 0.
    assert model.values(env.reset(seed=77)[0]).mean() < -0.3


def test_none_changes_nothing():
    plain = SETTINGS.replace(pretrain=None)
    model, said = imitated(settings=plain)
    fresh, _ = imitated(settings=plain)
    assert not said
    np.testing.assert_array_equal(model.weights.numpy(), fresh.weights.numpy())


def test_same_seed_same_imitation():
    np.testing.assert_array_equal(imitated()[0].weights.numpy(), imitated()[0].weights.numpy())


def test_more_episodes_and_epochs_imitate_differently():
    few, more, longer = (
        imitated(settings=SETTINGS.replace(pretrain_episodes=episodes, pretrain_epochs=epochs))[0]
        for episodes, epochs in ((20, 1), (40, 1), (20, 2))
    )
    for other in (more, longer):
        assert (other.weights.numpy() != few.weights.numpy()).any()


def test_refusals():
    with pytest.raises(UserError, match="idles.*idle_limit"):
        imitated(settings=SETTINGS.replace(pretrain="defer"))
    with pytest.raises(UserError, match="random, which chooses illegal actions"):
        imitated(settings=SETTINGS.replace(pretrain="random"))
    settings, env = SETTINGS.replace(network="mlp"), TwoActions(8)
    with pytest.raises(UserError, match="heuristics can't play"):
        pretrain(actor_critic_for(env, settings, 0), env, settings, Run(Budget(10), 0, None))
    with pytest.raises(UserError, match="sjf"):
        ActorCriticSettings(pretrain="sfj")
