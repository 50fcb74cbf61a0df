"""Gymnasium's and stable-baselines3's own checks pass, and MaskablePPO trains on the environment."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import environment
from schedrl.envs.flatten import FlattenObservations

REPRESENTATIONS = ("slots", "compact", "image", "state")
ADVICE = (
    "unconventional shape|different from the unwrapped version"  # not faults: what FlattenObservations is for
)


def make(representation, flat):
    env = gymnasium.make("schedrl/DeepRM-v0", representation=representation, sequence_length=10)
    return FlattenObservations(env) if flat else env


@pytest.fixture
def only_advice():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=f".*({ADVICE})")
        yield


def peer(name):
    return pytest.importorskip(
        name, reason="stable-baselines3 and sb3-contrib are not installed: `make peer`, then run this again"
    )


@pytest.mark.usefixtures("only_advice")
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_check_env_of_gymnasium(representation, flat):
    env = make(representation, flat)
    check_env(env if flat else env.unwrapped)


@pytest.mark.usefixtures("only_advice")
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_check_env_of_stable_baselines3(representation, flat):
    peer("stable_baselines3.common.env_checker").check_env(make(representation, flat))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_flat_observations_hold_every_leaf_but_the_mask(representation):
    env, plain = (
        make(representation, True),
        environment.make("deeprm", representation=representation, sequence_length=10),
    )
    flat, _ = env.reset(seed=1)
    obs, _ = plain.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        leaves = [np.ravel(obs[name]) / (255 if obs[name].dtype == np.uint8 else 1) for name in sorted(obs)]
        leaves = [leaf for name, leaf in zip(sorted(obs), leaves, strict=True) if name != "action_mask"]
        np.testing.assert_allclose(flat, np.concatenate(leaves), rtol=1e-6)
        assert (flat.dtype, flat.ndim) == (np.float32, 1)
        assert env.observation_space.contains(flat)
        assert (env.action_masks() == obs["action_mask"]).all()
        action = int(rng.choice(np.flatnonzero(obs["action_mask"])))
        flat, *rest, _ = env.step(action)
        obs, *rest_too, _ = plain.step(action)
        assert rest == rest_too
        if rest[1] or rest[2]:
            break


def test_maskable_ppo_trains():
    """A few thousand decisions through sb3-contrib's own loop; every action it takes is legal."""
    sb3_contrib = peer("sb3_contrib")
    env = make("compact", True)
    model = sb3_contrib.MaskablePPO(
        "MlpPolicy", env, n_steps=512, batch_size=128, n_epochs=2, seed=0, device="cpu"
    )
    model.learn(3000)
    obs, _ = env.reset(seed=0)
    for _ in range(100):
        masks = env.action_masks()
        action, _ = model.predict(obs, action_masks=masks)
        assert masks[action]
        obs, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            obs, _ = env.reset()
