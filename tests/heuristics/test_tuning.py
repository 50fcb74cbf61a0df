"""Tuning finds the known best numbers, on validation sequences only, and reaches the known results."""

import numpy as np
import pytest

from schedrl import heuristics
from schedrl.envs.deeprm import DeepRMSettings, DeepRMVectorEnv
from schedrl.heuristics import tuning
from schedrl.settings import UserError
from schedrl.sim.deeprm.sequences import from_steps
from schedrl.workload.streams import SequenceStream

KNOWN = {
    0.38: {"packer": 5.74, "sjf": 3.00, "tetris": 2.99, "sjf_hold": 2.52, "tsl": 2.02, "defer": 1.86},
    0.7: {"packer": 13.6, "sjf": 5.10, "tetris": 4.88, "sjf_hold": 3.20, "tsl": 2.74, "defer": 2.65},
}
"""Mean slowdown of fresh 50-step episodes without the job of step 0, measured before this project."""
WITHIN = {"packer": 0.1}
"""Relative tolerance where it is not 5 %: Packer's mean varies most between sequences; the known one comes
from fewer (the original program's own 100 sequences give 5.08 and 12.8)."""


@pytest.mark.parametrize("rate", KNOWN)
def test_known_results(rate):
    """Every rule comes within 5 %, tuned on 1,000 validation and measured on 10,000 test sequences."""
    settings = DeepRMSettings(arrival_rate=rate, quirks="skip_first_job")
    tuned = tuning.tune_all(settings, num_sequences=1000)
    rules = {name: tuned.get(name) or heuristics.get(name) for name in KNOWN[rate]}
    test = from_steps(*SequenceStream(settings, 0, "test").take(0, 10_000))
    outcomes = {name: rule.run(settings, test) for name, rule in rules.items()}
    got = {name: tuning.mean_slowdown(outcome) for name, outcome in outcomes.items()}
    for name, known in KNOWN[rate].items():
        assert got[name] == pytest.approx(known, rel=WITHIN.get(name, 0.05)), got
        assert not outcomes[name].cut_off.any()
    assert got["defer"] < got["tsl"] < got["sjf_hold"] < got["tetris"] <= got["sjf"] < got["packer"]


def test_grids():
    """At least four knobs a decade from 1e-5 to 1, every threshold that can matter."""
    knobs = [rule.knob for rule in tuning.candidates("tetris", DeepRMSettings())]
    assert (knobs[0], knobs[-1]) == (pytest.approx(1e-5), 1.0)
    assert np.diff(np.log10(knobs)).max() <= 0.25 + 1e-9
    keep = [rule.threshold for rule in tuning.candidates("sjf_hold", DeepRMSettings(capacity=(10, 12)))]
    assert keep == list(range(11))
    steps = [rule.threshold for rule in tuning.candidates("defer", DeepRMSettings())]
    assert {0, 48, 50} <= set(steps)
    for name in ("sjf", "fifo"):
        with pytest.raises(UserError, match="nothing to tune"):
            tuning.candidates(name, DeepRMSettings())


def test_too_few_sequences():
    with pytest.raises(UserError, match="at least 500"):
        tuning.tune("tetris", DeepRMSettings(), num_sequences=499)


def test_the_best_is_chosen_and_the_simplest_of_equals():
    settings = DeepRMSettings(sequence_length=20, arrival_rate=0.3)
    sequences = from_steps(*SequenceStream(settings, 0, "validation").take(0, 100))
    best = tuning.tune("tsl", settings, sequences=sequences)
    scores = {
        rule.threshold: tuning.mean_slowdown(rule.run(settings, sequences))
        for rule in tuning.candidates("tsl", settings)
    }
    assert scores[best.threshold] == min(scores.values())
    indifferent = tuning.tune("tsl", settings, sequences=sequences, score=lambda outcome: 1.0)
    assert indifferent.threshold == 0


def test_mean_slowdown_is_the_environments():
    """The summary of an episode's end and the tuning's score are one number."""
    settings = DeepRMSettings(sequence_length=20, backlog_size=3, num_job_slots=2, termination="no_new_job")
    env = DeepRMVectorEnv(settings, 1, seed=0, family="validation")
    obs, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        over = False
        while not over:
            before = env.clusters.get_state()
            action = rng.choice(np.flatnonzero(obs["action_mask"][0]))
            obs, _, terminated, _, infos = env.step(np.array([action]))
            over = terminated[0]
        env.clusters.set_state(before)
        env.clusters.step(np.array([action]))
        expected = tuning.mean_slowdown(env.outcome())
        assert infos["episode"]["slowdown"][0] == pytest.approx(expected)
        obs, _ = env.reset()
