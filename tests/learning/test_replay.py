"""Replay, n-step transitions, action storage and exploration, by hand-computed arrays."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from schedrl.envs.action_probes import index_of
from schedrl.envs.probes import Probe, TruncatedOrTerminated
from schedrl.learning import exploration
from schedrl.learning.action_spec import ActionSpec
from schedrl.learning.replay import Replay, SumTree
from schedrl.learning.rollout import NumericsError
from schedrl.learning.transitions import NStep, TransitionCollector
from schedrl.settings import UserError

SPACE = spaces.Dict({"x": spaces.Box(-100, 100, (1,), np.float32), "action_mask": spaces.MultiBinary(2)})
CHOICE = ActionSpec((2,))


def seen(*numbers):
    return {"x": np.array(numbers, np.float32)[:, None], "action_mask": np.ones((len(numbers), 2), bool)}


def full(count: int, alpha: float = 0.0) -> Replay:
    """Return a replay with `count` finished rows whose x, action and reward tell their number."""
    replay = Replay(4, SPACE, CHOICE, alpha)
    for i in range(count):
        number = replay.write(seen(i), np.array([i % 2]))
        replay.complete(number, np.array([float(i)]), np.array([0.5]), number)
    return replay


class TestSumTree:
    def test_every_mark_finds_its_stretch(self):
        tree = SumTree(5)
        tree.set(np.arange(5), np.array([1.0, 0.0, 2.0, 0.0, 4.0]))
        assert tree.total == 7.0
        np.testing.assert_array_equal(
            tree.find(np.array([0.0, 0.99, 1.0, 2.99, 3.0, 6.99])), [0, 0, 2, 2, 4, 4]
        )

    def test_rounding_past_the_end_never_finds_a_zero(self):
        tree = SumTree(5)
        tree.set(np.array([1]), 0.1)
        assert tree.find(np.array([0.1, 0.2])).tolist() == [1, 1]

    def test_sums_follow_changes(self):
        rng = np.random.default_rng(0)
        tree, numbers = SumTree(37), np.zeros(37)
        for _ in range(50):
            places = rng.integers(0, 37, 5)
            values = rng.random(5)
            tree.set(places, values)
            for place, value in zip(places, values, strict=True):
                numbers[place] = value
        np.testing.assert_allclose(tree.total, numbers.sum())
        marks = rng.random(1000) * tree.total
        np.testing.assert_array_equal(tree.find(marks), np.searchsorted(np.cumsum(numbers), marks, "right"))


class TestReplay:
    def test_rows_are_reused_in_order(self):
        replay = full(6)
        assert replay.size == 4
        batch = replay.batch(np.arange(4))
        np.testing.assert_array_equal(batch["reward"], [4, 5, 2, 3])
        np.testing.assert_array_equal(batch["obs"]["x"][:, 0], [4, 5, 2, 3])
        np.testing.assert_array_equal(batch["action"], [0, 1, 0, 1])

    def test_rows_without_a_return_are_never_drawn(self):
        replay = full(2)
        replay.write(seen(7), np.array([1]))
        replay.write(seen(8))
        drawn = replay.sample(200, np.random.default_rng(0))
        assert set(drawn) == {0, 1}

    def test_a_row_overwritten_before_it_was_complete_is_passed_over(self):
        replay = Replay(4, SPACE, CHOICE)
        old = replay.write(seen(0), np.array([0]))
        full_after = [replay.write(seen(i), np.array([0])) for i in range(1, 5)]
        replay.complete(old, np.array([9.0]), np.array([1.0]), full_after[-1])
        assert replay.size == 0

    @pytest.mark.parametrize("alpha", [0.0, 0.6])
    def test_sampling_follows_the_priorities(self, alpha):
        replay = full(3, alpha)
        errors = np.array([1.0, 2.0, 4.0])
        replay.set_errors(np.arange(3), errors)
        drawn = replay.sample(20_000, np.random.default_rng(1))
        wanted = errors**alpha / (errors**alpha).sum()
        np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 20_000, wanted, atol=0.015)

    def test_importance_weights_by_hand(self):
        replay = full(3, alpha=1.0)
        replay.set_errors(np.arange(3), np.array([1.0, 2.0, 5.0]))
        # Probabilities 1/8, 2/8, 5/8; (3 p)^-0.5, divided by the largest, that of row 0.
        wanted = np.array([1.0, (1 / 2) ** 0.5, (1 / 5) ** 0.5])
        np.testing.assert_allclose(replay.importance(np.arange(3), 0.5), wanted, rtol=1e-5)
        np.testing.assert_allclose(replay.importance(np.arange(3), 0.0), 1.0)
        assert full(3).importance(np.arange(3), 1.0).tolist() == [1, 1, 1]

    def test_new_rows_get_the_largest_priority(self):
        replay = full(2, alpha=1.0)
        replay.set_errors(np.array([0]), np.array([7.0]))
        number = replay.write(seen(2), np.array([0]))
        replay.complete(number, np.zeros(1), np.zeros(1), number)
        np.testing.assert_allclose(replay.tree.leaves[:3], [7.0, 1.0, 7.0], rtol=1e-5)

    @pytest.mark.parametrize("alpha", [0.0, 0.6])
    def test_state_restores_all_of_it(self, alpha):
        replay, other = full(3, alpha), Replay(4, SPACE, CHOICE, alpha)
        replay.set_errors(np.arange(3), np.array([1.0, 2.0, 5.0]))
        other.load_state(replay.state())
        draws = [r.sample(50, np.random.default_rng(0)) for r in (replay, other)]
        np.testing.assert_array_equal(*draws)
        for name, rows in replay.batch(draws[0]).items():
            np.testing.assert_equal(other.batch(draws[0])[name], rows)
        assert other.largest == replay.largest
        assert other.written == 3


class TestNStep:
    def rows(self, replay):
        places = np.flatnonzero(replay.ready)
        batch = replay.batch(places)
        columns = (batch["obs"]["x"][:, 0], batch["reward"], batch["discount"], batch["next_obs"]["x"][:, 0])
        return {a: (b, c, d) for a, b, c, d in np.round(np.stack(columns, axis=1), 6).tolist()}

    def play(self, n: int, end: str) -> dict:
        """One environment: choices at x = 1, 2, 3 (forced decisions between), rewards 1, 2, 3, 4, 5."""
        replay = Replay(16, SPACE, CHOICE)
        steps = NStep(replay, 1, n, gamma=0.5)
        row, action = np.array([0]), np.array([0])
        steps.choose(row, seen(1), action)
        steps.pass_time(np.array([1.0]))
        steps.pass_time(np.array([2.0]))
        steps.choose(row, seen(2), action)
        steps.pass_time(np.array([3.0]))
        steps.choose(row, seen(3), action)
        steps.pass_time(np.array([4.0]))
        steps.pass_time(np.array([5.0]))
        final = {"x": np.array([99.0], np.float32), "action_mask": np.ones(2, bool)}
        steps.end(np.array([end == "terminated"]), {0: final} if end == "truncated" else {})
        steps.choose(row, seen(50), action)  # after the reset: nothing may bootstrap from it
        return self.rows(replay)

    def test_two_steps_and_a_termination(self):
        rows = self.play(2, "terminated")
        # From 1: 1 + 2/2 + 3/4, then 0.5^3 of what 3 is worth. From 2 and 3: to the end, nothing follows.
        assert rows[1.0] == (2.75, 0.125, 3.0)
        assert rows[2.0][:2] == (3 + 4 / 2 + 5 / 4, 0.0)
        assert rows[3.0][:2] == (4 + 5 / 2, 0.0)
        assert len(rows) == 3

    def test_a_time_limit_bootstraps_from_the_final_observation(self):
        rows = self.play(2, "truncated")
        assert rows[1.0] == (2.75, 0.125, 3.0)
        assert rows[2.0] == (6.25, 0.125, 99.0)
        assert rows[3.0] == (6.5, 0.25, 99.0)

    def test_one_step_goes_from_choice_to_choice(self):
        rows = self.play(1, "truncated")
        assert rows == {1.0: (2.0, 0.25, 2.0), 2.0: (3.0, 0.5, 3.0), 3.0: (6.5, 0.25, 99.0)}


def collected(probe: Probe, n: int, num_steps: int = 40, scale: float = 1.0):
    actions = ActionSpec.of(probe.single_action_space)
    replay = Replay(10_000, probe.single_observation_space, actions)
    steps = NStep(replay, probe.num_envs, n, 0.9)
    collector = TransitionCollector(probe, actions, steps, num_steps, 0, reward_scale=scale)
    rng = np.random.default_rng(0)

    def act(obs, step):
        scores = rng.random(obs["action_mask"].shape) * obs["action_mask"]
        return scores.argmax(axis=1).astype(np.int32)

    return replay, collector, collector.collect(act)


def test_collecting_never_bootstraps_from_after_a_reset():
    replay, _, played = collected(TruncatedOrTerminated(32), 3)
    batch = replay.batch(np.flatnonzero(replay.ready))
    cut = batch["discount"] > 0
    assert cut.any()
    assert (~cut).any()
    assert played.decisions == 40 * 32
    np.testing.assert_array_equal(batch["next_obs"]["x"][cut], batch["obs"]["x"][cut])
    np.testing.assert_array_equal(cut, (batch["action"] == 1) & (batch["obs"]["x"][:, 2] == 0))


def test_rewards_are_scaled_and_reported_unscaled():
    rewards = [collected(TruncatedOrTerminated(8), 1, scale=scale) for scale in (1.0, 0.1)]
    (plain, _, played), (scaled, _, also) = rewards
    np.testing.assert_allclose(scaled.reward, 0.1 * plain.reward, rtol=1e-6)
    np.testing.assert_array_equal(played.episodes["r"], also.episodes["r"])


class TestActionSpec:
    TUPLE = spaces.Tuple(
        (
            spaces.Discrete(2),
            spaces.Discrete(3),
            spaces.Box(np.array([0, -4], np.float32), np.array([1, 4], np.float32)),
        )
    )

    def test_kinds(self):
        box = spaces.Box(-1, 1, (2,), np.float32)
        found = [ActionSpec.of(space) for space in (spaces.Discrete(4), box, self.TUPLE)]
        assert [spec.kind for spec in found] == ["discrete", "continuous", "mixed"]
        assert [spec.num_outputs for spec in found] == [4, 2, 7]
        assert [spec.shape for spec in found] == [(), (2,), (4,)]
        assert found[2].num_joint == 6
        assert found[2].num_logits == 5

    @pytest.mark.parametrize(
        "space",
        [spaces.Discrete(4), spaces.Box(-1, 1, (2,), np.float32), TUPLE, spaces.Tuple((spaces.Discrete(3),))],
    )
    def test_there_and_back(self, space):
        spec = ActionSpec.of(space)
        space.seed(0)
        single = [space.sample() for _ in range(5)]
        batch = tuple(map(np.stack, zip(*single, strict=True))) if spec.in_tuple else np.stack(single)
        stored = spec.encode(batch)
        assert stored.dtype == spec.dtype
        assert stored.shape == (5, *spec.shape)
        again = spec.decode(stored)
        for a, b in zip(batch, again, strict=True):
            np.testing.assert_array_equal(a, b)
        assert ActionSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec

    def test_units(self):
        spec = ActionSpec.of(self.TUPLE)
        np.testing.assert_allclose(spec.to_unit(np.array([[0.5, -4.0]])), [[0.0, -1.0]])
        np.testing.assert_allclose(spec.from_unit(np.array([[0.0, -1.0], [7.0, -7.0]])), [[0.5, -4], [1, -4]])

    def test_choices_and_forced(self):
        spec = ActionSpec((2, 2))
        mask = np.array([[0, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1]], bool)
        assert spec.choices({"action_mask": mask}).tolist() == [False, True, True]
        assert spec.forced({"action_mask": mask}).tolist() == [[1, 0], [0, 1], [0, 0]]

    @pytest.mark.parametrize(
        "space",
        [
            spaces.Box(-np.inf, np.inf, (1,)),
            spaces.Discrete(3, start=1),
            spaces.MultiBinary(3),
            spaces.Tuple((spaces.Box(-1, 1, (1,)), spaces.Discrete(2))),
        ],
    )
    def test_what_it_cannot_act_in_is_refused(self, space):
        with pytest.raises(UserError, match="can't act in"):
            ActionSpec.of(space)


CASE_33 = {"raw": [-1.0421247, 0.999999, 1.3, float("nan")], "n_servers": 5, "ratio_bounds": [0.0, 1.0]}


class TestExploration:
    def test_case_33_noise_past_the_range(self):
        """Clipped to [-1, 1]; the index is min(n - 1, floor((a + 1) / 2 n)); a ratio stays in its bounds."""
        raw = np.array(CASE_33["raw"][:3])
        low, high = CASE_33["ratio_bounds"]
        ratio = ActionSpec.of(spaces.Box(low, high, (1,), np.float32))
        np.testing.assert_allclose(np.clip(raw, -1, 1), [-1.0, 0.999999, 1.0])
        np.testing.assert_allclose(ratio.to_unit(ratio.from_unit(raw)), [-1.0, 0.999999, 1.0], atol=1e-6)
        index = index_of(raw, CASE_33["n_servers"])
        assert index.tolist() == [0, 4, 4]
        assert index.dtype.kind == "i"
        inside = ratio.from_unit(np.linspace(-3, 3, 1001))
        assert inside.min() == 0.0
        assert inside.max() == 1.0

    def test_case_33_a_nan_names_agent_and_step(self):
        with pytest.raises(NumericsError, match="ddpg chose NaN as action .* at vector step 12"):
            exploration.require_actions("ddpg", 12, np.array(CASE_33["raw"]))
        with pytest.raises(ValueError, match="NaN"):
            index_of(np.array(CASE_33["raw"]), 5)

    @pytest.mark.parametrize("correlated", [False, True])
    def test_noise_stays_in_the_box(self, correlated):
        noise = exploration.BoxNoise(50, 2, deviation=2.0, correlated=correlated)
        actions = [noise(np.full((50, 2), 0.9, np.float32), exploration.stream(0, t)) for t in range(20)]
        assert np.abs(actions).max() == 1.0
        assert np.std(actions) > 0.5

    def test_ornstein_uhlenbeck_remembers_until_the_episode_ends(self):
        noise = exploration.BoxNoise(2000, 1, deviation=0.1, correlated=True)
        first = noise(np.zeros((2000, 1)), exploration.stream(0, 0))
        noise.restart(np.arange(2000) < 1000)
        second = noise(np.zeros((2000, 1)), exploration.stream(0, 1))
        kept = np.corrcoef(first[1000:, 0], second[1000:, 0])[0, 1]
        forgotten = np.corrcoef(first[:1000, 0], second[:1000, 0])[0, 1]
        assert kept > 0.5
        assert abs(forgotten) < 0.1

    def test_epsilon_draws_legal_choices_uniformly(self):
        mask = np.tile(np.array([[True, False, True, True]]), (30_000, 1))
        chosen = np.zeros(30_000, np.int32)
        drawn = exploration.epsilon_legal(chosen, mask, 0.3, np.random.default_rng(0))
        shares = np.bincount(drawn, minlength=4) / 30_000
        np.testing.assert_allclose(shares, [0.8, 0.0, 0.1, 0.1], atol=0.01)
        assert exploration.epsilon_legal(chosen, mask, 0.0, np.random.default_rng(0)) is chosen
