"""The same schedules whatever is played beside; NaN is named; one policy may be asked by several threads."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from random_policies import random_policy

import environment
from schedrl.envs import deeprm, simple_cluster  # noqa: F401 (registered)
from schedrl.envs.deeprm import episodes as deeprm_episodes
from schedrl.envs.deeprm.clusters import Clusters
from schedrl.envs.draws import GUMBEL, NORMAL, Draws
from schedrl.envs.simple_cluster import episodes as cluster_episodes
from schedrl.evaluation.evaluate import evaluate, sequences_of
from schedrl.heuristics import get
from schedrl.learning.distributions import TOLERANCE, first_largest
from schedrl.settings import UserError

COUNT = 60
CHUNKS = (1, 7, 30, 60)
CLUSTER = {"num_jobs": 6, "num_job_slots": 3}
DEEPRM = {"sequence_length": 12, "arrival_rate": 0.9, "num_job_slots": 4}


def parts(chunk, numbers):
    return [numbers[first : first + chunk] for first in range(0, len(numbers), chunk)]


def on_deeprm(policy, env, chunk, deterministic, numbers=None):
    sequences = sequences_of(env.settings, COUNT, seed=3)
    found = [
        deeprm_episodes.play(policy, env.settings, sequences.rows(some), deterministic=deterministic, seed=5)
        for some in parts(chunk, np.arange(COUNT) if numbers is None else numbers)
    ]
    return b"".join(row.tobytes() for outcome in found for row in outcome.start)


def on_cluster(policy, env, chunk, deterministic, numbers=None):
    found = [
        schedule
        for some in parts(chunk, np.arange(COUNT) if numbers is None else numbers)
        for schedule in cluster_episodes.play(policy, env.settings, some, seed=5, deterministic=deterministic)
    ]
    return b"".join(column.tobytes() for s in found for column in (s.start, s.finish, *s.placed))


def made(kind):
    """Return what plays, a policy and an environment."""
    if kind.startswith("deeprm"):
        env = environment.make("deeprm", representation="slots", **DEEPRM)
        return on_deeprm, get("random_legal") if kind == "deeprm rule" else random_policy(env, "slots"), env
    action = "elastic" if "mixed" in kind else "job_machine"
    env = environment.make("simple_cluster", action=action, **CLUSTER)
    return on_cluster, random_policy(env, "pair_scorer", gaussian="gaussian" in kind), env


KINDS = ("deeprm", "deeprm rule", "cluster", "cluster mixed", "cluster mixed gaussian")


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_of_sequences_give_the_same_schedules(kind, deterministic):
    play, policy, env = made(kind)
    found = [play(policy, env, chunk, deterministic) for chunk in (CHUNKS[1::2] if deterministic else CHUNKS)]
    assert all(each == found[0] for each in found)
    # Not because nothing is drawn.
    assert (play(policy, env, 60, not deterministic) == found[0]) == (kind == "deeprm rule")


def test_compiled_rules_draw_by_the_number_of_the_sequence_too():
    env = environment.make("deeprm", **DEEPRM)
    sequences, rule = sequences_of(env.settings, COUNT, seed=3), get("random_legal")
    whole = rule.run(env.settings, sequences, 5).start
    for chunk in CHUNKS:
        some = [rule.run(env.settings, sequences.rows(n), 5).start for n in parts(chunk, np.arange(COUNT))]
        np.testing.assert_array_equal(np.concatenate(some), whole)


PLAY = """
import sys
sys.path[:0] = [{here!r}, {root!r}]
import numpy as np
import test_sampled_play as test
for kind in ("deeprm", "cluster mixed gaussian"):
    play, policy, env = test.made(kind)
    sys.stdout.write(play(policy, env, 15, False, np.arange({first}, {end})).hex() + chr(10))
"""


@pytest.mark.slow
def test_one_and_two_processes_give_the_same_schedules():
    here = Path(__file__).parent
    whole = [made(kind)[0](*made(kind)[1:], 60, False).hex() for kind in ("deeprm", "cluster mixed gaussian")]
    code = [PLAY.format(here=str(here), root=str(here.parents[1]), first=f, end=f + 30) for f in (0, 30)]
    both = [
        subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) for text in code
    ]
    found = [child.communicate()[0].split() for child in both]
    assert [child.returncode for child in both] == [0, 0]
    assert [one + two for one, two in zip(*found, strict=True)] == whole


def test_draws_are_named_and_distributed_as_they_should_be():
    names = np.arange(400)
    one = Draws(1, names, 7)
    for method in ("random", "gumbel", "standard_normal"):
        whole = getattr(one, method)((400, 6))
        for row in (0, 17, 399):
            alone = getattr(Draws(1, names[row : row + 1], 7), method)((1, 6))
            assert alone.tobytes() == whole[row : row + 1].tobytes()
        for other in (Draws(2, names, 7), Draws(1, names + 400, 7), Draws(1, names, 8)):
            assert not np.isin(getattr(other, method)((400, 6)), whole).any()
    many = [Draws(seed, names, decision) for seed in range(5) for decision in range(20)]
    uniform = np.concatenate([draws.random((400, 6)) for draws in many])
    assert uniform.min() > 0
    assert uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=0.003)
    assert np.abs(np.corrcoef(uniform.T) - np.eye(6)).max() < 0.03
    normal = np.concatenate([draws.standard_normal((400, 6)) for draws in many])
    assert (normal.mean(), normal.std()) == pytest.approx((0, 1), abs=0.01)
    gumbel = np.concatenate([draws.gumbel((400, 6)) for draws in many])
    assert (gumbel.mean(), gumbel.std()) == pytest.approx((0.5772, 1.2825), abs=0.01)
    assert not np.isin(one.random((400, 6), GUMBEL), one.random((400, 6), NORMAL)).any()


def test_the_first_of_those_that_are_as_good_is_taken():
    logits = np.array([[0.0, 1.0 - TOLERANCE / 2, 1.0, 1.0], [3.0, -1e9, 3.0 + TOLERANCE / 2, 0.0]])
    assert first_largest(logits).tolist() == [1, 0]
    assert first_largest(np.array([0.0, 1.0, 1.0 + 3 * TOLERANCE])) == 2
    with pytest.raises(UserError, match="weights are of no use"):
        first_largest(np.array([np.nan, 1.0]))


@pytest.mark.parametrize("kind", ["deeprm", "cluster", "cluster mixed"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_no_number_is_named(kind, bad):
    _, policy, env = made(kind)
    obs, _ = env.reset(seed=0)
    for name in policy.acts_on:
        broken = {key: leaf.copy() for key, leaf in obs.items()}
        broken[name].reshape(-1)[-1] = bad
        batch = {key: np.stack([obs[key], leaf]) for key, leaf in broken.items()}
        for ask in (policy.predict, policy.scores):
            with pytest.raises(UserError, match=f"leaf {name} holds {bad} at") as refused:
                ask(broken)
            assert "\n" not in str(refused.value)
            with pytest.raises(UserError, match=r"\(row 1 of 2\)"):
                ask(batch)
    policy.predict(obs)


def test_an_evaluation_stops_with_that_line(monkeypatch):
    _, policy, env = made("deeprm")
    observe, asked = Clusters.observe, []

    def broken(self, envs):
        obs = observe(self, envs)
        asked.append(len(envs))
        if len(asked) == 4:
            obs["queue"][0, 1, 0] = np.nan
        return obs

    monkeypatch.setattr(Clusters, "observe", broken)
    with pytest.raises(UserError, match="leaf queue holds nan"):
        evaluate({"broken": policy}, env.settings, num_sequences=5, baselines=())
    assert len(asked) == 4


@pytest.mark.parametrize("action", ["job_machine", "elastic"])
def test_threads_with_other_numbers_of_machines_may_share_a_policy(action):
    small = environment.make("simple_cluster", action=action, num_servers=5, **CLUSTER)
    large = environment.make("simple_cluster", action=action, num_servers=50, **CLUSTER)
    policy = random_policy(small, "pair_scorer")
    seen = [env.reset(seed=0)[0] for env in (small, large)]
    alone = [policy.scores(obs) for obs in seen]
    before = dict(policy.leaves), policy.num_actions
    faults = []

    def ask(obs, expected):
        try:
            for _ in range(150):
                np.testing.assert_array_equal(policy.scores(obs), expected)
                policy.predict(obs, deterministic=False)
        except Exception as error:  # a thread's fault would be lost
            faults.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=pair) for pair in zip(seen, alone, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not faults
    assert (dict(policy.leaves), policy.num_actions) == before
