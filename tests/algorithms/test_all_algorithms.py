"""What every algorithm must do: learn the probes, repeat bit for bit, resume exactly, leave all files."""

import numpy as np
import pytest
from small_runs import require_learning, start, trained

from schedrl import registry
from schedrl.envs.probes import PROBES
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.rollout import NumericsError

GAMMA = 0.9
NEED_A_CRITIC = ("constant_reward", "reward_from_observation", "delayed_reward", "truncated_or_terminated")
"""Probes of values: the first three leave nothing to choose, the last needs the value of a cut-off state."""


def states_of(env) -> np.ndarray:
    extra = [np.ones((1, 1), np.float32)] if type(env).__name__ == "DelayedReward" else []
    return np.unique(np.concatenate([env.start(100), *extra]), axis=0)


@pytest.mark.parametrize("probe", PROBES)
def test_learns_the_probe(algorithm, probe):
    critic = registry.get("algorithm_settings", algorithm).critic
    if not critic and probe in NEED_A_CRITIC:
        pytest.skip("it learns no values")
    require_learning(lambda seed: learned(algorithm, probe, seed, critic), seeds=range(3), needed=2)


def learned(algorithm: str, probe: str, seed: int, critic: bool) -> None:
    run, _ = trained(algorithm, probe, seed)
    env = PROBES[probe](1)
    x = states_of(env)
    policy = run.model.policy()
    obs = {"x": x, "action_mask": env.mask(x)}
    if critic:
        np.testing.assert_allclose(run.model.values(obs), env.optimal_values(x, GAMMA), rtol=0.05, atol=0.02)
    best = env.optimal_actions(x)
    if best is not None:
        np.testing.assert_array_equal(policy.predict(obs)[best >= 0], best[best >= 0])


def test_same_seed_same_weights(algorithm):
    weights = [
        trained(algorithm, "action_by_observation", seed, total_steps=2_000)[0].model.weights.numpy()
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


def test_killed_and_resumed_equals_uninterrupted(algorithm, tmp_path):
    options = {"normalise_observations": True, "total_steps": 9_000}
    whole, _ = trained(algorithm, "truncated_or_terminated", 5, tmp_path / "whole", **options)
    _, records = start(algorithm, "truncated_or_terminated", 5, tmp_path / "cut", **options)
    for record in records:
        last = record["decisions"]
        if last > 5_000:
            break
    del records  # killed: more was done than the newest checkpoint holds
    resumed, rest = trained(algorithm, "truncated_or_terminated", 5, tmp_path / "cut", resume=True, **options)
    assert rest[0]["decisions"] <= last
    np.testing.assert_array_equal(resumed.model.weights.numpy(), whole.model.weights.numpy())
    for name in ("reward_history.npy",):
        np.testing.assert_array_equal(np.load(tmp_path / "whole" / name), np.load(tmp_path / "cut" / name))
    timed = ("seconds", "decisions_per_second")
    tables = [
        np.genfromtxt(tmp_path / name / "metrics.csv", delimiter=",", names=True) for name in ("whole", "cut")
    ]
    for column in set(tables[0].dtype.names) - set(timed):
        np.testing.assert_array_equal(tables[0][column], tables[1][column])


def test_stop_saves_and_the_folder_is_complete(algorithm, tmp_path):
    run, records = start(algorithm, "masked_best_action", 0, tmp_path / "run")
    next(records)
    run.request_stop()
    assert len(list(records)) <= 1
    names = {path.name for path in (tmp_path / "run").iterdir()}
    expected = {"run.json", "metrics.csv", "checkpoints", "policy.npz", "saved_model"}
    assert expected | {"reward_history.npy", "slowdown_history.npy"} <= names
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 1
    policy = NumpyPolicy.load(tmp_path / "run" / "policy.npz")
    obs, _ = PROBES["masked_best_action"](16).reset()
    np.testing.assert_array_equal(policy.predict(obs), run.model.policy().predict(obs))


def test_eager_equals_compiled(algorithm):
    runs = [
        trained(algorithm, "action_by_observation", 0, total_steps=1_000, use_tf_function=flag)[
            0
        ].model.weights
        for flag in (True, False)
    ]
    np.testing.assert_allclose(runs[0].numpy(), runs[1].numpy(), atol=1e-4)


def test_a_nan_stops_the_run_and_is_named(algorithm):
    run, records = start(algorithm, "two_actions", 0, check_numerics=True)
    next(records)
    run.model.weights.assign(run.model.weights * np.float32("nan"))
    with pytest.raises(NumericsError, match="Tensor had NaN|holds nan"):
        next(records)
