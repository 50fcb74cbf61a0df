"""What every environment promises, single and batched, the probes included."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import environment
from schedrl import registry
from schedrl.envs import IDS
from schedrl.envs.probes import PROBES
from schedrl.learning.action_spec import ActionSpec

SINGLE = {
    "deeprm": {"sequence_length": 12, "idle_limit": 0},
    "deeprm original": {"preset": "deeprm-original", "sequence_length": 12, "representation": "compact"},
    "deeprm small": {
        "num_job_slots": 2,
        "backlog_size": 3,
        "sequence_length": 12,
        "termination": "no_new_job",
    },
    "deeprm for ever": {"termination": "continuing", "sequence_length": 12, "idle_limit": None},
    "simple_cluster": {"num_jobs": 12},
    "simple_cluster jobs": {"num_jobs": 12, "action": "job_machine", "num_job_slots": 3},
    "simple_cluster rejects": {
        "num_jobs": 5,
        "allow_reject": True,
        "queue_order": "priority",
        "decide": "every_event",
        "reward": "operations",
    },
    "simple_cluster elastic": {"num_jobs": 8, "action": "elastic"},
    "simple_cluster unmasked": {"num_jobs": 8, "mask": False, "representation": "state", "reward": "batch"},
    "simple_cluster for ever": {"num_jobs": 12, "termination": "continuing", "workload": "bursty"},
}
BATCHED = [*SINGLE, *PROBES]


def make(kind):
    return environment.make(kind.split()[0], **SINGLE[kind])


def make_vec(kind, num_envs=5, **changes):
    if kind in PROBES:
        return PROBES[kind](num_envs=num_envs, seed=changes.get("seed", 0))
    return environment.make_vec(kind.split()[0], num_envs, **SINGLE[kind], **changes)


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            same(a[name], b[name])
    elif isinstance(a, (list, tuple)) or (isinstance(a, np.ndarray) and a.dtype == object):
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        np.testing.assert_array_equal(a, b)


def drawn(rng, mask):
    """Draw a legal choice for each row."""
    return np.where(mask, rng.random(mask.shape), -1.0).argmax(axis=-1)


def legal(rng, mask, space):
    """Draw a legal action for each row, as `space` (of one environment) has them."""
    if not isinstance(space, spaces.Tuple):
        return drawn(rng, mask)
    choices, devices, shares = space.spaces
    parts = drawn(rng, mask[..., : choices.n]), drawn(rng, mask[..., choices.n :])
    return (*parts, rng.uniform(shares.low, shares.high, (*mask.shape[:-1], 2)))


def choices_of(space):
    """Return the discrete choice of an action space."""
    return space.spaces[0] if isinstance(space, spaces.Tuple) else space


def with_choice(space, choice):
    """Return an action with that choice, for one environment or, given an array, for a batch."""
    if not isinstance(space, spaces.Tuple):
        return choice
    return choice, np.zeros_like(choice, dtype=int), np.ones((*np.shape(choice), 2))


def episode(env, rng, **how):
    """Play one episode; return all that was seen."""
    obs, info = env.reset(**how)
    seen, ended = [(obs, info)], False
    while not ended:
        seen.append(env.step(legal(rng, obs["action_mask"], env.action_space)))
        obs, _, terminated, truncated, _ = seen[-1]
        ended = terminated or truncated
    return seen


def batch_steps(env, seed, count=40):
    rng = np.random.default_rng(1)
    obs, info = env.reset(seed=seed)
    seen = [(obs, info)]
    for _ in range(count):
        obs, *rest = env.step(legal(rng, obs["action_mask"], env.single_action_space))
        seen.append((obs, *rest))
    return seen


def test_every_environment_is_under_contract():
    assert {kind.split()[0] for kind in SINGLE} == set(registry.names("environment"))
    assert set(registry.names("environment")) == set(registry.names("vector_environment")) == set(IDS)


@pytest.mark.parametrize("kind", SINGLE)
def test_same_seed_same_episode(kind):
    """In two environments, and after a reset of one with the seed again; another seed gives another one."""
    env, other = make(kind), make(kind)
    first = episode(env, np.random.default_rng(0), seed=3)
    following = episode(env, np.random.default_rng(0))
    same(first, episode(other, np.random.default_rng(0), seed=3))
    same(first, episode(env, np.random.default_rng(0), seed=3))
    same(following, episode(env, np.random.default_rng(0)))
    different = episode(env, np.random.default_rng(0), seed=4)
    assert [step[1:4] for step in different] != [step[1:4] for step in first]
    assert [step[1:4] for step in following] != [step[1:4] for step in first]


@pytest.mark.parametrize("kind", SINGLE)
def test_nothing_comes_from_global_random_state(kind):
    env = make(kind)
    np.random.seed(0)  # noqa: NPY002 - it is what must not matter
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    episode(env, np.random.default_rng(0), seed=1)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("kind", SINGLE)
def test_observations_lie_in_the_space_and_an_action_is_legal(kind):
    env = make(kind)
    rng = np.random.default_rng(0)
    assert ActionSpec.of(env.action_space).num_logits == env.observation_space["action_mask"].n
    for _ in range(5):
        for obs, *_ in episode(env, rng):
            assert env.observation_space.contains(obs)
            assert obs["action_mask"].dtype == bool
            assert obs["action_mask"].any()
            for name, leaf in obs.items():
                assert leaf.dtype == (bool if name == "action_mask" else env.observation_space[name].dtype)
        assert (env.action_masks() == obs["action_mask"]).all()


@pytest.mark.parametrize("kind", SINGLE)
def test_bad_decisions_are_refused_by_name(kind):
    env = make(kind)
    space, count = env.action_space, int(choices_of(env.action_space).n)
    with pytest.raises(ValueError, match="reset"):
        env.step(with_choice(space, 0))
    env.reset(seed=0)
    for wrong in (-1, count, 99):
        with pytest.raises(ValueError, match=f"action {wrong} .*outside 0..{count - 1}"):
            env.step(with_choice(space, wrong))
    with pytest.raises(ValueError, match="whole numbers, got float64"):
        env.step(with_choice(space, 0.5))
    episode(env, np.random.default_rng(0))
    with pytest.raises(ValueError, match="reset"):
        env.step(with_choice(space, 0))


@pytest.mark.parametrize("kind", BATCHED)
def test_batches_repeat_and_keep_to_their_spaces(kind):
    env = make_vec(kind)
    first, again = batch_steps(env, 7), batch_steps(env, 7)
    same(first, again)
    same(first, batch_steps(make_vec(kind), 7))
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    for obs, *_ in first:
        assert obs["action_mask"].any(axis=1).all()
        for n in range(env.num_envs):
            assert env.single_observation_space.contains({name: leaf[n] for name, leaf in obs.items()})


@pytest.mark.parametrize("kind", BATCHED)
def test_ends_of_episodes(kind):
    """Flags, final observation and summary where an episode ended, nowhere else; then a new one has begun."""
    env = make_vec(kind)
    ended = 0
    returns, lengths = np.zeros(env.num_envs), np.zeros(env.num_envs)
    for _, rewards, terminated, truncated, infos in batch_steps(env, 1, 120)[1:]:
        returns, lengths = returns + rewards, lengths + 1
        done = terminated | truncated
        assert not (terminated & truncated).any()
        assert done.any() == ("final_obs" in infos) == ("episode" in infos)
        if done.any():
            assert (infos["_final_obs"] == done).all()
            assert (infos["_episode"] == done).all()
            assert [final is not None for final in infos["final_obs"]] == done.tolist()
            for n in np.flatnonzero(done):
                assert env.single_observation_space.contains(infos["final_obs"][n])
                assert infos["episode"]["r"][n] == pytest.approx(returns[n], abs=1e-4)
                assert infos["episode"]["l"][n] == lengths[n]
            returns[done] = lengths[done] = 0
            ended += done.sum()
    assert ended > env.num_envs


@pytest.mark.parametrize("kind", BATCHED)
@pytest.mark.parametrize("at", [0, 17, 55])
def test_set_state_goes_on_exactly(kind, at):
    """Another environment that takes the state over does what the uninterrupted one does."""
    env, other = make_vec(kind), make_vec(kind)
    rng = np.random.default_rng(5)
    obs, _ = env.reset(seed=9)
    for _ in range(at):
        obs, *_ = env.step(legal(rng, obs["action_mask"], env.single_action_space))
    state = {name: value.copy() for name, value in env.get_state().items()}
    assert all(isinstance(value, np.ndarray) for value in state.values())
    other.reset(seed=9)
    other.set_state(state)
    for _ in range(60):
        actions = legal(rng, obs["action_mask"], env.single_action_space)
        obs, *rest = env.step(actions)
        obs_too, *rest_too = other.step(actions)
        same([obs, *rest], [obs_too, *rest_too])


@pytest.mark.parametrize("kind", SINGLE)
def test_a_batch_of_one_is_the_single_environment(kind):
    env, batch = make(kind), make_vec(kind, 1)
    obs, info = env.reset(seed=4)
    obs_too, _ = batch.reset(seed=4)
    rng = np.random.default_rng(1)
    episodes = 0
    for _ in range(150):
        same(obs, {name: leaf[0] for name, leaf in obs_too.items()})
        action = rng.integers(int(choices_of(env.action_space).n), size=1)
        obs, reward, terminated, truncated, info = env.step(with_choice(env.action_space, int(action[0])))
        obs_too, rewards, terminateds, truncateds, infos = batch.step(with_choice(env.action_space, action))
        assert (reward, terminated, truncated) == (rewards[0], terminateds[0], truncateds[0])
        assert info["reward_terms"] == {name: term[0] for name, term in infos["reward_terms"].items()}
        if terminated or truncated:
            same(obs, infos["final_obs"][0])
            assert info["time"] == infos["final_info"]["time"][0]
            episodes += 1
            obs, info = env.reset()
    assert episodes >= 2


@pytest.mark.parametrize("kind", SINGLE)
def test_arrays_are_fresh_unless_asked_otherwise(kind):
    obs, _ = (fresh := make_vec(kind)).reset(seed=0)
    kept = {name: leaf.copy() for name, leaf in obs.items()}
    for _ in range(5):
        fresh.step(with_choice(fresh.single_action_space, np.zeros(5, int)))
    same(obs, kept)
    reused = make_vec(kind, copy=False)
    obs, _ = reused.reset(seed=0)
    after, *_ = reused.step(with_choice(reused.single_action_space, np.zeros(5, int)))
    assert all(after[name] is obs[name] for name in obs)
    copies = batch_steps(make_vec(kind), 7)
    rng = np.random.default_rng(1)
    obs, _ = reused.reset(seed=7)
    for expected, rewards, *_ in copies[1:]:
        obs, got, *_ = reused.step(legal(rng, obs["action_mask"], reused.single_action_space))
        same(obs, expected)
        same(got, rewards)


@pytest.mark.parametrize("kind", SINGLE)
def test_batches_refuse_bad_decisions(kind):
    env = make_vec(kind)
    space = env.single_action_space
    with pytest.raises(ValueError, match="reset"):
        env.step(with_choice(space, np.zeros(5, int)))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action 77 of environment 3 is outside"):
        env.step(with_choice(space, np.array([0, 0, 0, 77, 0])))
    with pytest.raises(ValueError, match="must be 5 whole numbers"):
        env.step(with_choice(space, np.zeros(4, int)))


def test_gymnasium_knows_them():
    for name, long in IDS.items():
        env = gymnasium.make(long, render_mode="ansi", **SINGLE[name])
        obs, _ = env.reset(seed=2)
        expected, _ = make(name).reset(seed=2)
        same(obs, expected)
        assert env.unwrapped.render_mode == "ansi"
        vector = gymnasium.make_vec(long, num_envs=3, seed=2, **SINGLE[name])
        assert vector.unwrapped.num_envs == 3
        same(vector.reset(seed=2)[0], make_vec(name, 3).reset(seed=2)[0])
        assert registry.find("environment", long) == name
