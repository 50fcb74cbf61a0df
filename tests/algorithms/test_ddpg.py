"""DDPG's own numbers: targets, Polyak and straight-through gradients by hand, masks, every kind of action."""

import numpy as np
import pytest
from small_runs import require_learning, small_settings

from ddpg.model import Agent
from ddpg.train import make_batch, train
from ddpg.update import Learner
from schedrl.envs.action_probes import ACTION_PROBES, MixedChoice, MixedTwoChoices
from schedrl.envs.probes import MaskedBestAction
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.budget import Budget
from schedrl.learning.exploration import BoxNoise, Explorer
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.replay import Replay
from schedrl.learning.rollout import NumericsError
from schedrl.learning.run_folder import Run
from schedrl.learning.tf_setup import tensorflow
from schedrl.settings import UserError

tf = tensorflow()


def make_learner(env, **changes) -> Learner:
    settings = small_settings(
        "ddpg", **{"hidden": (4,), "critic_hidden": (4,), "gradient_steps": 1, "batch_size": 16} | changes
    )
    spec = ActionSpec.of(env.single_action_space)
    return Learner(Agent(env.single_observation_space, spec, settings, 0, "probe"))


def batch_of(env, size: int = 16, seed: int = 0) -> dict:
    """Return one gradient step of transitions with legal random actions."""
    rng = np.random.default_rng(seed)
    env.num_envs = size
    obs, after = env.reset(seed=seed)[0], env.reset(seed=seed + 1)[0]
    spec = ActionSpec.of(env.single_action_space)
    parts = [(rng.random(mask.shape) * mask).argmax(axis=1) for mask in spec.split(obs["action_mask"])]
    action = spec.store(parts, rng.uniform(-1, 1, (size, spec.num_continuous)))
    return {
        "obs": obs,
        "next_obs": after,
        "action": action[None],
        "reward": rng.normal(size=(1, size)).astype(np.float32),
        "discount": rng.choice(np.array([0.0, 0.5, 0.9], np.float32), (1, size)),
        "importance": rng.random((1, size)).astype(np.float32),
    }


def step_of(batch: dict) -> dict:
    """Return the only gradient step in it."""
    return {name: part if "obs" in name else part[0] for name, part in batch.items()}


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class TestTargets:
    @pytest.mark.parametrize("num_critics", [1, 2])
    def test_by_hand(self, num_critics):
        """Return + discount x the slow actor's mean over legal choices of the least of the slow critics."""
        learner = make_learner(MaskedBestAction(8), num_critics=num_critics)
        agent, batch = learner.agent, step_of(batch_of(MaskedBestAction(8)))
        agent.target.assign(agent.target + 0.3 * np.random.default_rng(0).normal(size=agent.target.shape))
        found = learner.targets(agent.target, batch).numpy()
        actor, *critics = agent.split(agent.target)
        outputs, _ = agent.actor.forward(actor, batch["next_obs"])
        logits = np.where(batch["next_obs"]["action_mask"], outputs, -np.inf)
        least = np.min([agent.q(critic, batch["next_obs"], None) for critic in critics], axis=0)
        wanted = batch["reward"] + batch["discount"] * (softmax(logits) * least).sum(axis=1)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)

    def test_illegal_choices_never_count(self):
        """Whatever the critic says of an illegal action: the target stays the same."""
        learner = make_learner(MaskedBestAction(8))
        agent, batch = learner.agent, step_of(batch_of(MaskedBestAction(8)))
        plain = learner.targets(agent.target, batch).numpy()
        q = agent.q
        illegal = ~batch["next_obs"]["action_mask"]
        agent.q = lambda *arguments: q(*arguments) + 1e4 * illegal
        np.testing.assert_allclose(learner.targets(agent.target, batch).numpy(), plain, rtol=1e-4)

    def test_nothing_flows_back_into_them(self):
        learner = make_learner(MixedChoice(8))
        target = tf.Variable(learner.agent.target)
        with tf.GradientTape() as tape:
            found = learner.targets(target, step_of(batch_of(MixedChoice(8))))
        assert tape.gradient(found, target) is None


class TestCriticLoss:
    @pytest.mark.parametrize("probe", [MaskedBestAction, MixedChoice, MixedTwoChoices])
    def test_by_hand(self, probe):
        """Half the weighted squared error of Q(s, a) at the actions that were stored."""
        learner = make_learner(probe(8))
        agent, batch = learner.agent, step_of(batch_of(probe(8)))
        _, statistics, errors = learner.loss(agent.weights, batch, agent.target, 0.0, [0, 0])
        actor, critic = agent.split(agent.weights)
        spec = agent.actions
        if spec.plain:
            q = agent.q(critic, batch["obs"], None).numpy()
            of_actions = q[np.arange(16), batch["action"]]
        else:
            count = len(spec.sizes)
            q = agent.q(critic, batch["obs"], spec.to_unit(batch["action"][:, count:])).numpy()
            parts = batch["action"][:, :count].astype(int).T
            of_actions = q[np.arange(16), np.ravel_multi_index(tuple(parts), spec.sizes)]
        wanted = learner.targets(agent.target, batch).numpy() - of_actions
        np.testing.assert_allclose(errors, np.abs(wanted), rtol=1e-4, atol=1e-6)
        loss = 0.5 * np.mean(batch["importance"] * wanted**2)
        assert float(statistics[0]) == pytest.approx(loss, rel=1e-4)

    def test_gradient_equals_finite_differences(self):
        learner = make_learner(MaskedBestAction(8), value_coef=0.0)
        agent, batch = learner.agent, step_of(batch_of(MaskedBestAction(8)))
        weights, size = tf.Variable(agent.weights), agent.sizes[0]

        def critic_loss(vector):
            return learner.loss(vector, batch, agent.target, 0.0, [0, 0])[1][0]

        with tf.GradientTape() as tape:
            loss = critic_loss(weights)
        gradient = tape.gradient(loss, weights).numpy()
        assert not gradient[:size].any()
        rng = np.random.default_rng(0)
        for _ in range(4):
            direction = rng.normal(size=gradient.shape).astype(np.float32)
            direction /= np.linalg.norm(direction)
            plus, minus = (float(critic_loss(weights + s * direction)) for s in (3e-3, -3e-3))
            assert (plus - minus) / 6e-3 == pytest.approx(float(gradient @ direction), abs=3e-3)


class TestStraightThrough:
    def test_hard_forward_soft_backward(self):
        learner = make_learner(MaskedBestAction(8), temperature=0.7)
        logits = tf.Variable([[0.3, -0.2, -1e9], [-1e9, 1.0, 1.5]])
        noise = np.array([[0.1, 1.2, 5.0], [9.0, 0.4, -0.3]], np.float32)
        pay = np.array([[1.0, -2.0, 100.0], [50.0, 3.0, 0.5]], np.float32)
        with tf.GradientTape() as tape:
            draws = learner.straight_through(logits, noise[:, None])
            total = tf.reduce_sum(draws * pay)
        np.testing.assert_allclose(draws, [[0, 1, 0], [0, 1, 0]], atol=1e-6)
        soft = softmax((logits.numpy() + noise) / 0.7)
        # d sum_i y_i pay_i / d logit_j = y_j (pay_j - sum_i y_i pay_i) / temperature.
        wanted = soft * (pay - (soft * pay).sum(axis=1, keepdims=True)) / 0.7
        found = tape.gradient(total, logits).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
        assert found[0, 2] == found[1, 0] == 0.0

    def test_draws_have_the_actors_probabilities(self):
        learner = make_learner(MaskedBestAction(8))
        logits = np.tile(np.array([[0.0, 1.0, -1e9]], np.float32), (20_000, 1))
        noise = np.random.default_rng(0).gumbel(size=logits.shape).astype(np.float32)
        draws = learner.straight_through(tf.constant(logits), noise[:, None]).numpy()
        np.testing.assert_allclose(draws.mean(axis=0), softmax(logits[0]), atol=0.01)

    def test_parts_combine_to_one_of_all_combinations(self):
        learner = make_learner(MixedTwoChoices(8))
        logits = tf.constant([[0.0, 5.0, -1e9, 0.0, 5.0]])
        draw = learner.straight_through(logits, np.zeros((1, 1, 5), np.float32)).numpy()
        np.testing.assert_allclose(draw, [[0, 0, 0, 0, 0, 1]], atol=1e-6)
        np.testing.assert_array_equal(learner.agent.greedy(logits), [[0, 0, 0, 0, 0, 1]])


def test_the_policy_follows_the_critic_through_the_numbers():
    """The gradient in the continuous part is that of Q(s, actor's action), by finite differences."""
    learner = make_learner(ACTION_PROBES["continuous_target"](8), value_coef=0.0)
    agent = learner.agent
    obs = {"x": np.linspace(-1, 1, 16, dtype=np.float32)[:, None]}
    weights, size = tf.Variable(agent.weights), agent.sizes[0]

    def loss_of(vector):
        actor, critic = agent.split(vector)
        logits, numbers, _ = agent.act(actor, obs)
        q = agent.q(tf.stop_gradient(critic), obs, numbers)
        return learner.policy_loss(logits, q, obs, [0, 0])[0]

    with tf.GradientTape() as tape:
        loss = loss_of(weights)
    gradient = tape.gradient(loss, weights).numpy()
    assert gradient[:size].any()
    assert not gradient[size:].any()
    rng = np.random.default_rng(1)
    for _ in range(4):
        direction = np.zeros(gradient.shape, np.float32)
        direction[:size] = rng.normal(size=size)
        direction /= np.linalg.norm(direction)
        plus, minus = (float(loss_of(weights + s * direction)) for s in (3e-3, -3e-3))
        assert (plus - minus) / 6e-3 == pytest.approx(float(gradient @ direction), abs=3e-3)


class TestUpdate:
    def test_polyak_by_hand(self):
        learner = make_learner(MaskedBestAction(8), tau=0.25)
        agent = learner.agent
        agent.target.assign(agent.target * 0.0 + 1.0)
        learner.update(batch_of(MaskedBestAction(8)), 1e-2, 1e-2, 0.0)
        wanted = 0.75 * 1.0 + 0.25 * agent.weights.numpy()
        np.testing.assert_allclose(agent.target.numpy(), wanted, rtol=1e-5, atol=1e-6)

    def test_actor_and_critic_have_step_sizes_of_their_own(self):
        for sizes, moved in (((1e-2, 0.0), (True, False)), ((0.0, 1e-2), (False, True))):
            learner = make_learner(MaskedBestAction(8))
            before = learner.agent.weights.numpy()
            learner.update(batch_of(MaskedBestAction(8)), *sizes, 0.0)
            changed, size = learner.agent.weights.numpy() != before, learner.agent.sizes[0]
            assert (changed[:size].any(), changed[size:].any()) == moved

    def test_it_never_retraces(self):
        learner = make_learner(MaskedBestAction(8))
        for seed in range(3):
            learner.update(
                batch_of(MaskedBestAction(8), 16 - seed, seed), 1e-2 / (seed + 1), 1e-2, 0.1 * seed
            )
        assert learner._update.experimental_get_tracing_count() == 1

    def test_errors_come_back_row_by_row(self):
        replay = Replay(64, MaskedBestAction(1).single_observation_space, ActionSpec((3,)), alpha=1.0)
        one = batch_of(MaskedBestAction(8))
        numbers = replay.write(one["obs"], one["action"][0])
        replay.complete(numbers, one["reward"][0], one["discount"][0], numbers)
        settings = small_settings("ddpg", gradient_steps=3, batch_size=5, hidden=(4,))
        batch, places = make_batch(replay, settings, np.random.default_rng(0), 0.4)
        assert batch["obs"]["x"].shape == (15, 1)
        assert batch["reward"].shape == batch["importance"].shape == (3, 5)
        learner = make_learner(MaskedBestAction(8), gradient_steps=3, batch_size=5)
        _, errors = learner.update(batch, 0.0, 0.0, 0.0)
        assert errors.shape == (3, 5)
        by_place = {}
        for place, error in zip(places, errors.ravel(), strict=True):
            assert by_place.setdefault(place, error) == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("probe", [MaskedBestAction, MixedChoice, MixedTwoChoices])
def test_exploring_is_always_legal(probe):
    env = probe(64)
    agent = make_learner(env).agent
    spec = agent.actions
    explorer = Explorer("ddpg", spec, BoxNoise(64, spec.num_continuous, 3.0), seed=1)
    obs, seen = env.reset(seed=0)[0], []
    for step in range(20):
        stored = explorer.act(agent.actor.acting, obs, step, epsilon=0.5)
        seen.append(stored)
        obs = env.step(spec.decode(stored))[0]  # refuses what is illegal or outside the box
    assert len(np.unique(np.concatenate(seen).round(3), axis=0)) >= 3
    again = Explorer("ddpg", spec, BoxNoise(64, spec.num_continuous, 3.0), seed=1)
    np.testing.assert_array_equal(again.act(agent.actor.acting, env.reset(seed=0)[0], 0, 0.5), seen[0])


def test_a_nan_in_a_number_names_agent_and_step():
    env = ACTION_PROBES["continuous_target"](8)
    agent = make_learner(env).agent
    agent.actor.weights.assign(agent.actor.weights * np.float32("nan"))
    explorer = Explorer("ddpg", agent.actions, BoxNoise(8, 1, 0.1), seed=1)
    with pytest.raises(NumericsError, match="ddpg chose NaN .* at vector step 7"):
        explorer.act(agent.policy(), env.reset()[0], 7, epsilon=0.5)


# -- learning ------------------------------------------------------------------------------------------------

OTHER_ACTIONS = {"n_step": 1, "epsilon": 0.3, "learning_rate": 5e-3, "total_steps": 60_000}
"""Noise in later numbers spoils n-step targets, and two choices that pay only together must both be tried."""


def train_on(probe: str, seed: int = 0, folder=None, resume: bool = False, **changes):
    settings = small_settings("ddpg", **{**OTHER_ACTIONS, **changes})
    run = Run(
        Budget(settings.total_steps), seed, folder, resume=resume, tensorboard=False, checkpoint_every=2_000
    )
    records = list(train(ACTION_PROBES[probe](settings.num_envs), settings, run))
    return run, records


def states_of(probe: str) -> np.ndarray:
    if probe == "continuous_two_steps":
        return np.array([[0.0, 0.0], [0.5, 1.0]], np.float32)
    return np.unique(ACTION_PROBES[probe](1).start(100), axis=0)


def seen_by(env, x):
    return {"x": x, "action_mask": env.mask(x)} if env.num_actions else {"x": x}


@pytest.mark.parametrize("needed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("probe", ACTION_PROBES)
def test_learns_continuous_and_mixed_probes(probe, needed):
    require_learning(lambda seed: learned(probe, seed), range(needed + 1), needed)


def learned(probe: str, seed: int) -> None:
    run, _ = train_on(probe, seed)
    x = states_of(probe)
    env = ACTION_PROBES[probe](len(x))
    env.x = x
    obs, best = seen_by(env, x), env.optimal_values(x, 0.9)
    np.testing.assert_allclose(run.model.values(obs), best, rtol=0.05, atol=0.02)
    policy = run.model.policy()
    np.testing.assert_allclose(policy.forward(obs)[1], best, rtol=0.1, atol=0.1)
    rewards, terminated, _, after = env.transition(x, env.checked(policy.predict(obs)))
    earned = rewards + 0.9 * np.where(terminated, 0.0, env.optimal_values(after, 0.9))
    np.testing.assert_allclose(earned, best, rtol=0.05, atol=0.03)
    spec = run.model.actions
    stored = spec.encode(policy.predict(obs))[:, : len(spec.sizes)]
    np.testing.assert_array_equal(stored, env.optimal_actions(x)[:, : len(spec.sizes)])


@pytest.mark.parametrize("probe", ["continuous_two_steps", "mixed_choice"])
def test_other_actions_resume_and_leave_a_policy(probe, tmp_path):
    options = {"total_steps": 4_000, "noise": "ou", "priority_alpha": 0.6}
    whole, _ = train_on(probe, 3, tmp_path / "whole", **options)
    settings = small_settings("ddpg", **{**OTHER_ACTIONS, **options})
    run = Run(Budget(4_000), 3, tmp_path / "cut", tensorboard=False, checkpoint_every=2_000)
    records = train(ACTION_PROBES[probe](settings.num_envs), settings, run)
    for _ in range(6):
        next(records)  # then killed, past the checkpoint
    again, _ = train_on(probe, 3, tmp_path / "cut", resume=True, **options)
    np.testing.assert_array_equal(whole.model.weights, again.model.weights)
    policy, obs = (
        NumpyPolicy.load(tmp_path / "whole" / "policy.npz"),
        ACTION_PROBES[probe](5).reset(seed=1)[0],
    )
    found, wanted = policy.predict(obs), whole.model.policy().predict(obs)
    np.testing.assert_equal(found, wanted)
    one = policy.predict({name: leaf[0] for name, leaf in obs.items()})
    first = [part[0] for part in found] if isinstance(found, tuple) else found[0]
    np.testing.assert_allclose(np.hstack(one), np.hstack(first), atol=1e-5)
    served = tf.saved_model.load(str(tmp_path / "whole" / "saved_model")).signatures["serving_default"]
    outputs = served(**{name: tf.constant(leaf) for name, leaf in obs.items()})
    stored = whole.model.actions.encode(found)
    np.testing.assert_allclose(outputs["action"], stored, atol=1e-5)
    choices = {"logits"} if whole.model.actions.sizes else set()
    assert set(outputs) == {"action", "numbers", "value"} | choices


def test_after_imitating_the_critics_learn_first():
    plain = small_settings("ddpg")
    imitator = plain.replace(pretrain="sjf")
    assert imitator.rates(0.1)["learning_rate"] == 0
    assert imitator.rates(0.1)["critic_learning_rate"] == plain.rates(0.1)["critic_learning_rate"] > 0
    assert imitator.rates(0.2) == plain.rates(0.2)


def test_refusals():
    for changes, message in (
        ({"tau": 0.0}, "tau is 0"),
        ({"num_critics": 3}, "num_critics is 3"),
        ({"replay_size": 100}, "replay_size is 100"),
        ({"epsilon": 1.5}, "epsilon is 1.5"),
        ({"priority_alpha": 1000.0}, "priority_alpha is 1000"),
        ({"temperature": 0.0}, "temperature"),
        ({"n_stepp": 3}, "n_step"),
    ):
        with pytest.raises(UserError, match=message):
            small_settings("ddpg", **changes)
    with pytest.raises(UserError, match="combinations"):
        Agent(
            MaskedBestAction(1).single_observation_space,
            ActionSpec((50, 50)),
            small_settings("ddpg"),
            0,
            "probe",
        )
