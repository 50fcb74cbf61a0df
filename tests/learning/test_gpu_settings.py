"""Settings for GPUs, as far as a CPU can tell: 16-bit networks learn, and memory is asked for as said."""

import numpy as np
import pytest
from gymnasium import spaces

from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.settings import ActorCriticSettings
from schedrl.learning.tf_setup import tensorflow

tf = tensorflow()
LEAVES = {"cluster": (6, 2), "queue": (4, 5), "backlog": (3,)}


def made(network, precision):
    boxes = {name: spaces.Box(0, 1, shape, np.float32) for name, shape in LEAVES.items()}
    space = spaces.Dict(boxes | {"action_mask": spaces.Box(0, 1, (5,), np.bool_)})
    settings = ActorCriticSettings(network=network, precision=precision, layer_norm=True)
    return ActorCritic(space, settings, 3)


@pytest.mark.parametrize("network", ["slots", "mlp"])
def test_mixed_precision_gives_nearly_the_same_gradient_in_float32(network, tmp_path):
    rng = np.random.default_rng(0)
    obs = {name: rng.random((64, *shape)).astype(np.float32) for name, shape in LEAVES.items()}
    obs["action_mask"] = np.ones((64, 5), bool)
    gradients, outputs = {}, {}
    for precision in ("float32", "mixed_bfloat16"):
        model = made(network, precision)
        with tf.GradientTape() as tape:
            logits, values = model.forward(model.weights, obs)
            loss = tf.reduce_mean(tf.square(values - 1.0)) + tf.reduce_mean(tf.nn.log_softmax(logits)[:, 0])
        gradients[precision], outputs[precision] = tape.gradient(loss, model.weights), logits.numpy()
        assert (logits.dtype, gradients[precision].dtype) == (tf.float32, tf.float32)
    one, other = (gradients[name].numpy() for name in ("float32", "mixed_bfloat16"))
    assert one @ other > 0.99 * np.linalg.norm(one) * np.linalg.norm(other)
    assert (outputs["float32"] != outputs["mixed_bfloat16"]).any()
    # What is acted by and exported is computed in 32 bits.
    model.export(tmp_path / "model")
    answer = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    served = answer(**{name: tf.constant(leaf) for name, leaf in obs.items()})["logits"].numpy()
    np.testing.assert_allclose(served, outputs["float32"], atol=1e-5)
    np.testing.assert_allclose(model.policy().forward(obs)[0], outputs["float32"], atol=1e-5)


@pytest.mark.parametrize("algorithm", ["ppo", "ddpg"])
def test_it_learns_in_mixed_precision(algorithm, monkeypatch):
    from pathlib import Path

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "algorithms"))
    from small_runs import trained

    from schedrl.envs.probes import PROBES

    run, _ = trained(algorithm, "action_by_observation", 0, precision="mixed_bfloat16", total_steps=15_000)
    env = PROBES["action_by_observation"](1)
    x = np.unique(env.start(100), axis=0)
    found = run.model.policy().predict({"x": x, "action_mask": env.mask(x)})
    np.testing.assert_array_equal(found, env.optimal_actions(x))


@pytest.mark.parametrize("growth", [True, False])
def test_memory_growth_is_set_for_every_gpu(growth, monkeypatch):
    asked = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: ["gpu0", "gpu1"])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", lambda *call: asked.append(call))
    tensorflow(memory_growth=growth)
    assert asked == [("gpu0", growth), ("gpu1", growth)]
    tensorflow()
    assert len(asked) == 2


def test_workers_of_one_host_take_its_gpus_in_turn():
    from schedrl.launch.distributed.worker import own_gpu

    assert [own_gpu(["a", "b"], index) for index in range(3)] == [["a"], ["b"], ["a"]]
    assert own_gpu([], 1) == []
