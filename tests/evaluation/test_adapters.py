import numpy as np

from schedrl.evaluation.adapters import SB3Policy

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
