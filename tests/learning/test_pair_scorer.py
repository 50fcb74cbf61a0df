"""The scorer of pairs: NumPy as TensorFlow, jobs and machines alike, and one policy on other clusters."""

import numpy as np
import pytest
from gymnasium import spaces

from ddpg.config import DDPGSettings
from ddpg.model import Agent
from ppo.config import PPOSettings
from schedrl.envs.simple_cluster import SimpleClusterSettings, SimpleClusterVectorEnv, play
from schedrl.evaluation.cluster.sequences import mean_of_means, simulated
from schedrl.learning import networks
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.actor_critic import ActorCritic, actor_critic_for
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.pair_scorer import layout
from schedrl.learning.tf_setup import tensorflow
from schedrl.settings import UserError

tf = tensorflow()

SLOTS, MACHINES = 4, 3
LEAVES = {"cluster": (MACHINES, 6), "queue": (SLOTS, 5), "backlog": (3,)}
SETTINGS = PPOSettings(network="pair_scorer", normalise_observations=True)
KINDS = {
    "any job": (SLOTS * MACHINES + 1, {}, {}),
    "any job, rejected": (SLOTS * (MACHINES + 1) + 1, {}, {"layer_norm": True}),
    "first job": (MACHINES + 1, {"pairs": (SLOTS, MACHINES, 2)}, {}),
    "with a prior": (SLOTS * MACHINES + 1, {"pairs": (SLOTS, MACHINES, 4)}, {"prior": 2.0}),
    "with a privileged critic": (
        SLOTS * MACHINES + 1,
        {"privileged_queue": (SLOTS, 1), "privileged_cluster": (MACHINES, 3), "privileged_arrivals": (6, 5)},
        {},
    ),
    "first job, rejected": (MACHINES + 2, {}, {"hidden": (8, 16, 24), "num_quantiles": 3}),
}


def batch(leaves: dict, num_actions: int, size: int = 9, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    obs = {name: rng.random((size, *shape), np.float32) for name, shape in leaves.items()}
    there = np.arange(leaves["queue"][0]) < rng.integers(0, leaves["queue"][0] + 1, (size, 1))
    obs["queue"] *= there[..., None]
    obs["cluster"][::2, -1] = 0  # a machine that isn't there
    mask = rng.random((size, num_actions)) < 0.4
    mask[:, -1] = True
    return obs | {"action_mask": mask}


def model_of(kind: str) -> tuple[ActorCritic, dict, int]:
    num_actions, more, changes = KINDS[kind]
    leaves = LEAVES | more
    boxes = {name: spaces.Box(0, 1, shape, np.float32) for name, shape in leaves.items()}
    space = spaces.Dict(boxes | {"action_mask": spaces.MultiBinary(num_actions)})
    model = ActorCritic(space, SETTINGS.replace(**changes), seed=3)
    model.update_normaliser(batch(leaves, num_actions, 50, seed=1))
    # Larger than initial weights: differences would show.
    model.weights.assign(np.random.default_rng(5).normal(0, 0.4, model.weights.shape).astype(np.float32))
    model.refresh()
    return model, leaves, num_actions


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_equals_tensorflow_and_the_export(kind, tmp_path):
    model, leaves, num_actions = model_of(kind)
    obs = batch(leaves, num_actions)
    legal = obs["action_mask"]
    tensors = {name: tf.constant(leaf) for name, leaf in obs.items()}
    logits, values = model.forward(model.weights, model.normalise(tensors))
    model.save_policy(tmp_path / "policy.npz")
    policy = NumpyPolicy.load(tmp_path / "policy.npz")
    own_logits, own_values = policy.forward(obs)
    np.testing.assert_allclose(own_logits[legal], logits.numpy()[legal], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(own_values, values.numpy(), rtol=1e-3, atol=1e-4)
    model.export(tmp_path / "saved_model")
    served = tf.saved_model.load(str(tmp_path / "saved_model")).signatures["serving_default"](
        **{name: leaf for name, leaf in tensors.items() if not name.startswith("privileged")}
    )
    assert ("value" in served) == (kind != "with a privileged critic")
    np.testing.assert_array_equal(served["action"].numpy(), policy.predict(obs))


@pytest.mark.parametrize("kind", KINDS)
def test_scoring_the_legal_pairs_alone_gives_the_same_numbers_and_gradient(kind):
    model, leaves, num_actions = model_of(kind)
    obs = batch(leaves, num_actions)
    legal = obs["action_mask"].astype(np.float32)
    seen = model.floats(model.normalise({name: tf.constant(leaf) for name, leaf in obs.items()}))

    def of(leaves):
        with tf.GradientTape() as tape:
            weights = model.weights.read_value()
            tape.watch(weights)
            parts = networks.unpack(model.ops, weights, model.shapes)
            logits, values = model.network.forward(model.ops, parts, leaves)
            total = tf.reduce_sum(tf.square(logits * legal)) + tf.reduce_sum(values)
        return logits.numpy() * legal, tape.gradient(total, weights).numpy()

    some, every = of(seen), of({name: leaf for name, leaf in seen.items() if name != "legal"})
    np.testing.assert_allclose(some[0], every[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(some[1], every[1], rtol=1e-3, atol=2e-2)
    assert np.abs(some[1]).max() > 1


def test_jobs_and_machines_are_treated_alike():
    model, leaves, num_actions = model_of("any job")
    obs = batch(leaves, num_actions) | {"action_mask": np.ones((9, num_actions), bool)}
    jobs, machines = np.array([2, 0, 3, 1]), np.array([1, 2, 0])
    moved = obs | {"queue": obs["queue"][:, jobs], "cluster": obs["cluster"][:, machines]}
    policy = model.policy()
    logits, values = policy.forward(obs)
    expected = logits[:, :-1].reshape(-1, SLOTS, MACHINES)[:, jobs][:, :, machines].reshape(9, -1)
    found, same = policy.forward(moved)
    np.testing.assert_allclose(found[:, :-1], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[:, -1], logits[:, -1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(same, values, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("action", ["machine", "job_machine", "elastic"])
def test_a_policy_of_five_servers_plays_on_fifty_with_other_slots(action, tmp_path):
    settings = SimpleClusterSettings(action=action, num_jobs=30)
    model = actor_critic_for(SimpleClusterVectorEnv(settings, 4), SETTINGS, 0)
    model.save_policy(tmp_path / "policy.npz")
    policy = NumpyPolicy.load(tmp_path / "policy.npz")
    for changes in ({"num_servers": 50, "num_job_slots": 7}, {"num_servers": 2, "num_jobs": 20}, {}):
        for schedule in play(policy, settings.replace(**changes), range(2), deterministic=False):
            assert np.isfinite(schedule.finish).all()
    wide = settings.replace(num_servers=50)
    again = actor_critic_for(SimpleClusterVectorEnv(wide, 4), SETTINGS, 0)
    np.testing.assert_array_equal(again.weights.numpy(), model.weights.numpy())
    with pytest.raises(UserError, match=r"cluster"):  # a resource less
        play(policy, settings.replace(server=(8.0, 32.0, 0.0), cluster=_no_gpu(tmp_path)), [0])


def _no_gpu(folder) -> str:
    path = folder / "plain.csv"
    path.write_text("name,count,cpu,memory\nplain,3,8,32\n")
    return str(path)


@pytest.mark.parametrize("action", ["job_machine", "elastic"])
def test_ddpgs_critic_values_every_combination(action):
    env = SimpleClusterVectorEnv(SimpleClusterSettings(action=action, num_jobs=20), 6)
    spec = ActionSpec.of(env.single_action_space)
    settings = DDPGSettings(network="pair_scorer", critic_hidden=(16, 16))
    agent = Agent(env.single_observation_space, spec, settings, 0, "slots")
    obs, _ = env.reset(seed=0)
    for _ in range(8):  # until machines differ
        obs, *_ = env.step(spec.decode(spec.forced(obs)))
    seen = agent.actor.normalise({name: tf.constant(leaf) for name, leaf in obs.items()})
    numbers = tf.zeros((6, spec.num_continuous))
    values = agent.q(agent.split(agent.weights)[1], seen, numbers)
    assert values.shape == (6, spec.num_joint)
    legal = agent.joint(spec.split(tf.cast(obs["action_mask"], tf.float32))).numpy() > 0
    assert len(np.unique(values.numpy()[legal])) > 6


def test_machines_that_are_not_there_change_nothing():
    model, leaves, num_actions = model_of("any job")
    obs = batch(leaves, num_actions)
    obs["cluster"][:, 0] += 0.1
    wide = np.zeros((9, MACHINES + 4, 6), np.float32)
    wide[:, :MACHINES] = obs["cluster"]
    mask = np.zeros((9, SLOTS * (MACHINES + 4) + 1), bool)
    places = mask[:, :-1].reshape(9, SLOTS, MACHINES + 4)  # a view
    places[:, :, :MACHINES] = obs["action_mask"][:, :-1].reshape(9, SLOTS, MACHINES)
    mask[:, -1] = True
    policy = model.policy()
    (logits, values), wait = policy.forward(obs), obs["action_mask"][:, :-1]
    more, same = policy.forward(obs | {"cluster": wide, "action_mask": mask})
    np.testing.assert_allclose(
        more[:, :-1][places.reshape(9, -1)], logits[:, :-1][wait], rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(same, values, rtol=1e-3, atol=1e-4)


def test_with_a_prior_an_untrained_policy_plays_like_backfilling():
    settings = SimpleClusterSettings(action="job_machine", num_jobs=60, load=1.0)
    env = SimpleClusterVectorEnv(settings, 4)
    means = {}
    for prior in (0.0, 4.0):
        policy = actor_critic_for(env, SETTINGS.replace(prior=prior), 0).policy()
        policy.reseed(0)
        found = play(policy, settings, range(40), family="validation", deterministic=prior > 0)
        means[prior] = mean_of_means(found, settings) - 1
    rules = {
        rule: mean_of_means(simulated(rule, settings, 40, 0, "validation"), settings) - 1
        for rule in ("sjf+best_fit+easy", "fifo+best_fit+skip")
    }
    assert means[4.0] < 1.1 * rules["sjf+best_fit+easy"]
    assert means[4.0] < 0.6 * min(means[0.0], rules["fifo+best_fit+skip"])
    with pytest.raises(UserError, match="network 'mlp' has none"):
        actor_critic_for(env, PPOSettings(network="mlp", prior=1.0), 0)


def test_refusals():
    assert layout(13, 4, 3) == (True, False)
    assert layout(5, 4, 3) == (False, True)
    with pytest.raises(UserError, match="these 9 choices"):
        layout(9, 4, 3)
    with pytest.raises(UserError, match="needs leaves queue"):
        networks.make_network("pair_scorer", {"queue": (4, 5)}, 13)


def test_only_the_critic_reads_what_is_privileged(tmp_path):
    model, leaves, num_actions = model_of("with a privileged critic")
    obs = batch(leaves, num_actions)
    model.save_policy(tmp_path / "policy.npz")
    policy = NumpyPolicy.load(tmp_path / "policy.npz")
    logits, values = policy.forward(obs)
    for name in (name for name in leaves if name.startswith("privileged")):
        told_otherwise, other_values = policy.forward(obs | {name: 1.0 - obs[name]})
        np.testing.assert_array_equal(told_otherwise, logits)
        assert np.abs(other_values - values).max() > 0.1, name
    shown = SimpleClusterVectorEnv(num_envs=1, num_jobs=4, privileged=True).single_observation_space
    assert {name for name in shown if name.startswith("privileged")} == set(model.network.private)
    without = {name: leaf for name, leaf in obs.items() if not name.startswith("privileged")}
    np.testing.assert_array_equal(policy.predict(without), policy.predict(obs))
    assert "privileged_queue" not in policy.acts_on
    with pytest.raises(UserError, match="critic reads privileged_queue, .* use predict or scores"):
        policy.quantiles(without)


@pytest.mark.parametrize("name", ["mlp", "slots", "image", "pair_scorer"])
def test_networks_refuse_what_they_would_show_the_policy(name):
    leaves = {"queue": (4, 5), "cluster": (1, 6), "privileged_queue": (4, 1)}
    with pytest.raises(UserError, match="would show the policy privileged_queue"):
        networks.make_network(name, leaves, 5)
