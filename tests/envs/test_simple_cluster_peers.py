"""Gymnasium's and stable-baselines3's own checks pass, MaskablePPO and elastic action specs fit."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import environment
from schedrl.envs.flatten import FlattenObservations
from schedrl.learning.action_spec import ActionSpec

ADVICE = "unconventional shape|different from the unwrapped version|symmetric and normalized"


@pytest.fixture
def only_advice():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=f".*({ADVICE})")
        yield


def peer(name):
    return pytest.importorskip(name, reason="stable-baselines3 is not installed: `make peer`")


def make(flat, **settings):
    env = gymnasium.make("schedrl/SimpleCluster-v0", num_jobs=10, **settings)
    return FlattenObservations(env) if flat else env


@pytest.mark.usefixtures("only_advice")
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("representation", ["slots", "state"])
@pytest.mark.parametrize("action", ["machine", "job_machine", "elastic"])
def test_check_env_of_gymnasium(action, representation, flat):
    env = make(flat, action=action, representation=representation)
    check_env(env if flat else env.unwrapped)


@pytest.mark.usefixtures("only_advice")
@pytest.mark.parametrize("action", ["machine", "job_machine"])
def test_check_env_of_stable_baselines3(action):
    peer("stable_baselines3.common.env_checker").check_env(make(True, action=action))


def test_maskable_ppo_trains():
    sb3_contrib = peer("sb3_contrib")
    env = make(True)
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=1, device="cpu")
    model.learn(256)
    obs, _ = env.reset(seed=0)
    for _ in range(30):
        masks = env.action_masks()
        action, _ = model.predict(obs, action_masks=masks)
        assert masks[action]
        obs, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            obs, _ = env.reset()


def test_elastic_batches_under_the_algorithms_action_spec():
    """Random stored actions, pushed out of their box, stay within it; a batch of one is the single one."""
    options = {"num_jobs": 30, "action": "elastic", "min_share": 0.5, "load": 2.0}
    env, batch = (
        environment.make("simple_cluster", **options),
        environment.make_vec("simple_cluster", 1, **options),
    )
    spec = ActionSpec.of(batch.single_action_space)
    assert (spec.sizes, spec.low, spec.high) == ((6, 2), (0.5, 0.5), (1.0, 1.0))
    obs, _ = env.reset(seed=3)
    obs_too, _ = batch.reset(seed=3)
    assert spec.num_logits == obs["action_mask"].size
    rng = np.random.default_rng(0)
    ended = False
    while not ended:
        parts = [
            np.where(part, rng.random(part.shape), -1).argmax(axis=1)
            for part in spec.split(obs_too["action_mask"])
        ]
        stored = spec.store(parts, rng.normal(0.75, 1.0, (1, 2)))
        choices, devices, shares = batch_action = spec.decode(spec.inside(stored))
        obs, reward, terminated, truncated, info = env.step((choices[0], devices[0], shares[0]))
        obs_too, rewards, *_, infos = batch.step(batch_action)
        assert info["reward_terms"]["illegal"] == 0
        assert reward == rewards[0]
        ended = terminated or truncated
        final = infos["final_obs"][0] if ended else {name: leaf[0] for name, leaf in obs_too.items()}
        for name, leaf in obs.items():
            np.testing.assert_array_equal(leaf, final[name])
    assert terminated
    speed = env.unwrapped.jobs()["speed"]
    assert ((speed >= 0.5) & (speed <= 1.0)).all()
    assert (speed == 0.5).any(), "the bound is reached"
    with pytest.raises(ValueError, match="outside 0..1"):
        batch.step((np.array([0]), np.array([2]), np.ones((1, 2))))
    with pytest.raises(ValueError, match="choices, devices, shares"):
        batch.step(np.zeros(1, int))
    with pytest.raises(ValueError, match="shares must be 1 x 2"):
        batch.step((np.array([0]), np.array([0]), np.ones((1, 3))))
