"""PG's own numbers: advantages and one step by hand, the paper's preset, settings alive."""

import numpy as np
import pytest
from small_runs import small_settings

from pg.config import PRESETS, PGSettings
from pg.model import make_batch, make_step
from schedrl.envs.probes import MaskedBestAction
from schedrl.learning import optimisers
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.episodes import Episodes
from schedrl.settings import UserError


def episodes() -> Episodes:
    """Two episodes of one sequence; the second starts a job more at time 0, and one of its own is forced."""
    return Episodes(
        rewards=np.array([[0.0, 0.0], [-2.0, 0.0], [-1.0, -4.0]]),
        times=np.array([[0, 0], [0, 0], [1, 0]]),
        obs={},
        actions=np.array([1, 2, 1], np.int32),
        steps=np.array([0, 2, 1]),
        envs=np.array([0, 0, 1]),
    )


def test_advantages_by_hand():
    settings = PGSettings(reward_scale=1.0, normalise_advantages=False)
    batch = make_batch(episodes(), np.array([0, 0]), settings)
    # By time: from 0 on the two earn -3 and -4, from 1 on -1 and (over) 0.
    np.testing.assert_allclose(batch["advantage"], [-3 + 3.5, -1 + 0.5, -4 + 3.5])
    batch = make_batch(episodes(), np.array([0, 0]), settings.replace(baseline="decision"))
    np.testing.assert_allclose(batch["advantage"], [-3 + 3.5, -1 + 2.5, -4 + 3.5])
    batch = make_batch(episodes(), np.array([0, 0]), settings.replace(gamma=0.5))
    np.testing.assert_allclose(batch["advantage"], [-1.25 + 1.125, -1 + 0.5, -2 + 1.125])


def test_the_paper_s_step_is_its_rmsprop():
    settings = small_settings(
        "pg", **PRESETS["pg-paper"] | {"num_envs": 20, "network": "mlp", "hidden": (4,)}
    )
    model = ActorCritic(MaskedBestAction(8).single_observation_space, settings, 0)
    before = model.weights.numpy()
    obs = MaskedBestAction(6, 0).reset()[0]
    action = obs["action_mask"].argmax(axis=1).astype(np.int32)
    advantage = np.arange(6, dtype=np.float32) - 2
    batch = {"obs": obs, "action": action, "advantage": advantage}
    # Finite differences of mean(log pi A), in NumPy.
    policy = model.policy()

    def objective(weights):
        shifted = type(policy)(policy.spec, weights.astype(np.float32), {"count": np.zeros(())})
        logits = shifted.forward(obs)[0].astype(float)
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return np.mean(log_probs[np.arange(6), action] * advantage)

    gradient = np.array(
        [(objective(before + h) - objective(before - h)) / 0.02 for h in 0.01 * np.eye(before.size)]
    )
    make_step(model, settings)(batch, 1e-3)
    expected, _, v = optimisers.rmsprop(before, -gradient, None, 0.0, 1, 1e-3)
    moved = np.abs(gradient) > 1e-2  # RMSProp's first step is nearly the sign: tiny gradients say nothing
    assert moved.sum() > 5
    np.testing.assert_allclose((model.weights.numpy() - before)[moved], (expected - before)[moved], rtol=0.05)
    np.testing.assert_allclose(v, 0.1 * gradient**2)


def test_the_environments_are_cut_into_groups():
    with pytest.raises(UserError, match="num_envs is 30; it must be a multiple"):
        PGSettings(num_envs=30)
