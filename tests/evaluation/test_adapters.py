import gymnasium
import numpy as np
import pytest

import environment  # noqa: F401 (registers)
from schedrl.envs.deeprm.episodes import play
from schedrl.envs.draws import Draws
from schedrl.envs.flatten import FlattenObservations
from schedrl.evaluation.adapters import SB3Policy
from schedrl.evaluation.cluster import sequences
from schedrl.evaluation.evaluate import evaluate, sequences_of
from schedrl.settings import UserError

OBS = {"compact": np.ones((2, 3)), "action_mask": np.array([[True, False], [True, True]])}


class Maskable:
    def predict(self, obs, state=None, deterministic=False, action_masks=None):
        self.seen = obs
        return action_masks.argmax(axis=-1) + deterministic, state


class Plain:
    def predict(self, obs, deterministic=False):
        return np.zeros(len(obs), int), None


def test_mask_goes_to_the_model_and_the_tuple_is_opened():
    model = Maskable()
    policy = SB3Policy(model)
    assert policy.predict(OBS).tolist() == [1, 1]
    assert policy.predict(OBS, deterministic=False).tolist() == [0, 0]
    assert model.seen is OBS["compact"]


def test_models_without_masks_and_with_other_observations():
    assert SB3Policy(Plain(), masked=False).predict(OBS).tolist() == [0, 0]
    model = Maskable()
    SB3Policy(model, flatten=lambda obs: obs["compact"][:, :1]).predict(OBS)
    assert model.seen.shape == (2, 1)
    two = {**OBS, "queue": np.zeros((2, 1))}
    SB3Policy(model).predict(two)
    assert set(model.seen) == {"compact", "queue"}


def peer():
    return pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed: `make peer`")


SETTINGS = {
    "schedrl/DeepRM-v0": {"sequence_length": 8, "num_job_slots": 4},
    "schedrl/SimpleCluster-v0": {"num_jobs": 6},
}


def trained(name, flat, **settings):
    env = gymnasium.make(name, **SETTINGS[name], **settings)
    env = FlattenObservations(env) if flat else env
    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    model = peer().MaskablePPO(policy, env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    return model.learn(32), env


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("schedrl/DeepRM-v0", {}),
        ("schedrl/DeepRM-v0", {"representation": "compact"}),
        ("schedrl/DeepRM-v0", {"representation": "image"}),
        ("schedrl/SimpleCluster-v0", {"action": "machine"}),
        ("schedrl/SimpleCluster-v0", {"action": "job_machine", "representation": "state"}),
    ],
)
def test_a_maskable_ppo_is_evaluated_as_it_was_trained(name, settings, flat, loaded, tmp_path):
    model, env = trained(name, flat, **settings)
    shown = env.unwrapped.representation
    if loaded:  # knows its spaces, no environment
        model.save(tmp_path / "model.zip")
        model = type(model).load(tmp_path / "model.zip", device="cpu")
    policy = SB3Policy(model, shown if loaded and flat else None)
    assert policy.representation == shown
    if name == "schedrl/DeepRM-v0":
        found = evaluate({"sb3": policy}, env.unwrapped.settings, num_sequences=4, baselines=())
        assert [run.mode for run in found.runs] == ["greedy", "sampled"]
        assert all(run.outcome.decisions.min() > 0 for run in found.runs)
    else:
        found = sequences.evaluate({"sb3": policy}, env.unwrapped.settings, num_sequences=4, rules=[])
        assert [entry.measures["invalid_actions"] for entry in found.entries] == [0, 0]
    # What the model itself would do in its own environment.
    obs, _ = env.reset(seed=0)
    dictionary = env.unwrapped.reset(seed=0)[0]
    expected, _ = model.predict(obs, action_masks=env.unwrapped.action_masks(), deterministic=True)
    assert int(policy.predict(dictionary)) == int(expected)


def test_sampled_play_of_a_peer_is_named_and_leaves_torch_alone():
    torch = pytest.importorskip("torch")
    model, env = trained("schedrl/DeepRM-v0", False)
    policy, settings = SB3Policy(model), env.unwrapped.settings
    before = torch.random.get_rng_state()
    drawn = sequences_of(settings, 6)
    whole = play(policy, settings, drawn, deterministic=False, seed=2).start
    alone = [play(policy, settings, drawn.rows([n]), deterministic=False, seed=2).start for n in range(6)]
    np.testing.assert_array_equal(np.concatenate(alone), whole)
    assert torch.equal(torch.random.get_rng_state(), before)
    obs, _ = env.reset(seed=0)
    batch = {name: np.stack([leaf] * 4000) for name, leaf in obs.items()}
    actions = policy.predict(batch, False, Draws(0, np.arange(4000), 0))
    chances = model.policy.get_distribution(
        model.policy.obs_to_tensor(obs)[0], action_masks=obs["action_mask"]
    ).distribution.probs
    shares = np.bincount(actions, minlength=len(obs["action_mask"])) / 4000
    np.testing.assert_allclose(shares, chances.detach().numpy()[0], atol=0.04)


def test_a_model_for_other_observations_is_named():
    model, _ = trained("schedrl/DeepRM-v0", True)
    other = gymnasium.make("schedrl/DeepRM-v0", sequence_length=8, num_job_slots=5).reset(seed=0)[0]
    with pytest.raises(UserError, match=r"the model reads a vector \[.*shows .*queue \[5, "):
        SB3Policy(model).predict(other)
    model, _ = trained("schedrl/DeepRM-v0", False)
    with pytest.raises(UserError, match=r"the model reads .*queue \[4, .*shows .*queue \[5, "):
        SB3Policy(model).predict(other)
