"""Each heuristic on small instances with the known choice, and its two ways of running, which must agree."""

import numpy as np
import pytest

from schedrl import heuristics, registry
from schedrl.envs.deeprm import DeepRMSettings, play
from schedrl.heuristics import tuning
from schedrl.heuristics.fused import fuse
from schedrl.heuristics.rules import built_in
from schedrl.settings import UserError
from schedrl.sim.deeprm.sequences import from_steps
from schedrl.sim.jit import leaf
from schedrl.workload.streams import SequenceStream

NOOP = 4


def see(*jobs, free=(10, 10), time=0, since=0, running=0, noop=True):
    """Observe a cluster of four slots; a job is (duration, demand, arrival), None an empty slot."""
    jobs = [*jobs, *[None] * (4 - len(jobs))]
    fits = [
        job is not None and all(want <= have for want, have in zip(job[1], free, strict=True)) for job in jobs
    ]
    return {
        "action_mask": np.array([*fits, noop]),
        "startable": np.array(fits),
        "duration": np.array([job[0] if job else 0 for job in jobs], np.int32),
        "demand": np.array([job[1] if job else (0, 0) for job in jobs], np.int32),
        "arrival": np.array([job[2] if job else -1 for job in jobs], np.int32),
        "free": np.repeat(np.array(free, np.int32)[:, None], 20, axis=1),
        "scalars": np.array([time, since, running, 0, 0, noop], np.int32),
    }


SHORT_NEW, LONG_OLD, BIG = (2, (1, 1), 5), (12, (2, 2), 1), (4, (9, 2), 3)


@pytest.mark.parametrize(
    ("name", "numbers", "obs", "choice"),
    [
        ("fifo", {}, see(SHORT_NEW, LONG_OLD, BIG), 1),
        ("fifo", {}, see(SHORT_NEW, BIG, free=(5, 5)), 0),  # what does not fit is passed over
        ("fifo", {}, see((3, (1, 1), 2), (1, (1, 1), 2)), 0),  # a tie goes to the lowest slot
        ("sjf", {}, see(LONG_OLD, SHORT_NEW, BIG), 1),
        ("sjf", {}, see(None, LONG_OLD, None, (12, (1, 1), 0)), 1),
        ("sjf", {}, see(BIG, free=(5, 5)), NOOP),
        ("sjf", {}, see(), NOOP),
        # alignment: 10 * 1 + 10 * 1 = 20, 40, 110
        ("packer", {}, see(SHORT_NEW, LONG_OLD, BIG), 2),
        ("packer", {}, see(SHORT_NEW, LONG_OLD, BIG, free=(8, 8)), 1),
        ("packer", {}, see((1, (3, 0), 0), (1, (0, 3), 0), free=(4, 9)), 1),
        # 0.001 * 110 + 0.999 / 4 = 0.36 beats 0.001 * 40 + 0.999 / 3 = 0.37? no: it does from 0.0012 on
        ("tetris", {"knob": 0.001}, see((4, (9, 2), 0), (3, (2, 2), 0)), 1),
        ("tetris", {"knob": 0.0013}, see((4, (9, 2), 0), (3, (2, 2), 0)), 0),
        ("tetris", {"knob": 0.0}, see(LONG_OLD, SHORT_NEW), 1),
        ("tetris", {"knob": 1.0}, see(LONG_OLD, SHORT_NEW), 0),
        # a long job (10 steps or more) starts only where 5 of each remain free, or nothing runs
        ("sjf_hold", {"threshold": 5}, see((10, (5, 5), 0), running=1), 0),
        ("sjf_hold", {"threshold": 5}, see((10, (6, 1), 0), running=1), NOOP),
        ("sjf_hold", {"threshold": 5}, see((10, (6, 1), 0), running=0), 0),
        ("sjf_hold", {"threshold": 5}, see((9, (6, 1), 0), running=1), 0),
        ("sjf_hold", {"threshold": 5}, see((10, (6, 1), 0), (11, (1, 5), 0), running=1), 1),
        ("sjf_hold", {"threshold": 0}, see((10, (10, 10), 0), running=1), 0),
        ("sjf_hold", {"threshold": 5, "long_from": 3}, see((3, (6, 1), 0), running=1), NOOP),
        # ... only after 5 steps without an arrival
        ("tsl", {"threshold": 5}, see((10, (1, 1), 0), since=4), NOOP),
        ("tsl", {"threshold": 5}, see((10, (1, 1), 0), since=5), 0),
        ("tsl", {"threshold": 5}, see((10, (1, 1), 0), (9, (1, 1), 0), since=4), 1),
        # ... only from step 48 on
        ("defer", {"threshold": 48}, see((10, (1, 1), 0), time=47), NOOP),
        ("defer", {"threshold": 48}, see((10, (1, 1), 0), time=48), 0),
        ("defer", {"threshold": 48}, see((10, (1, 1), 0), (3, (1, 1), 0), time=0), 1),
    ],
)
def test_known_choices(name, numbers, obs, choice):
    rule = heuristics.get(name, **numbers)
    assert rule.predict(obs) == choice
    batch = {leaf_name: np.stack([leaf, leaf]) for leaf_name, leaf in obs.items()}
    assert rule.predict(batch).tolist() == [choice, choice]


def test_tetris_lies_between_sjf_and_packer():
    """The two scores cross where knob * 110 + (1 - knob) / 4 = knob * 40 + (1 - knob) / 3."""
    obs = see((4, (9, 2), 0), (3, (2, 2), 0))
    crossing = (1 / 12) / (70 + 1 / 12)
    assert (
        heuristics.get("tetris", knob=crossing * 0.999).predict(obs)
        == heuristics.get("sjf").predict(obs)
        == 1
    )
    assert (
        heuristics.get("tetris", knob=crossing * 1.001).predict(obs)
        == heuristics.get("packer").predict(obs)
        == 0
    )


def drawn(name, obs, count=6000):
    rule = heuristics.get(name)
    rule.reseed(1)
    batch = {leaf_name: np.stack([leaf] * count) for leaf_name, leaf in obs.items()}
    return np.bincount(rule.predict(batch), minlength=NOOP + 1) / count


def test_random_draws():
    """All actions alike, or the legal ones alike; from a stream of its own that a seed repeats."""
    obs = see(SHORT_NEW, None, BIG, LONG_OLD, free=(5, 5))
    np.testing.assert_allclose(drawn("random", obs), 1 / 5, atol=0.02)
    np.testing.assert_allclose(drawn("random_legal", obs), [1 / 3, 0, 0, 1 / 3, 1 / 3], atol=0.02)
    forced = see(SHORT_NEW, None, BIG, LONG_OLD, free=(5, 5), noop=False)
    np.testing.assert_allclose(drawn("random_legal", forced), [1 / 2, 0, 0, 1 / 2, 0], atol=0.02)
    assert (drawn("random", obs) == drawn("random", obs)).all()
    assert heuristics.get("random_legal").predict(see()) == NOOP


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("tetris", {"knob": -0.1}),
        ("tetris", {"knob": 2}),
        ("sjf_hold", {"threshold": -1}),
        ("tsl", {"long_from": 0}),
    ],
)
def test_numbers_out_of_range(name, numbers):
    with pytest.raises(UserError):
        heuristics.get(name, **numbers)


def test_unknown_name():
    with pytest.raises(UserError, match="nearest: tetris"):
        heuristics.get("tetriss")


# ---- Whole episodes ---------------------------------------------------------------------------------

SETTINGS = {
    "default": {"sequence_length": 30},
    "original": {
        "preset": None,
        "quirks": "all",
        "allow_reservation": True,
        "mask": "physics",
        "idle_limit": None,
    },
    "counts": {"kernel": "counts", "idle_limit": 2, "sequence_length": 30},
    "steady": {"termination": "continuing", "sequence_length": 60, "backlog_size": 100},
    "narrow": {"num_job_slots": 3, "backlog_size": 4, "sequence_length": 30},
}


def sequences(settings, count, family="validation"):
    return from_steps(*SequenceStream(settings, 0, family).take(0, count))


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("name", ["fifo", "sjf", "packer", "tetris", "sjf_hold", "tsl", "defer"])
def test_fused_is_the_policy_played(name, kind):
    settings = DeepRMSettings.from_dict(
        {key: value for key, value in SETTINGS[kind].items() if key != "preset"}
    )
    rule = heuristics.get(name)
    jobs = sequences(settings, 40)
    fused = rule.run(settings, jobs)
    played = play(rule, rule.rules_of_play(settings), jobs)
    for field in vars(fused):
        np.testing.assert_array_equal(getattr(fused, field), getattr(played, field))


@pytest.mark.parametrize("name", ["random", "random_legal"])
def test_random_fused_is_alike(name):
    """Streams differ, so the means of many episodes are compared; each way repeats by its seed."""
    settings = DeepRMSettings(sequence_length=20, arrival_rate=0.4)
    rule, jobs = heuristics.get(name), sequences(settings, 1500)
    fused, played = rule.run(settings, jobs, seed=1), play(rule, settings, jobs, seed=1)
    same = rule.run(settings, jobs, seed=1)
    assert (fused.finish == same.finish).all()
    assert (fused.finish != rule.run(settings, jobs, seed=2).finish).any()
    assert (played.finish == play(rule, settings, jobs, seed=1).finish).all()
    means = [tuning.mean_slowdown(outcome) for outcome in (fused, played)]
    assert means[0] == pytest.approx(means[1], rel=0.02)


def test_every_registered_heuristic_is_tested_here():
    assert set(registry.names("heuristic")) == {
        "fifo", "sjf", "packer", "tetris", "sjf_hold", "tsl", "defer", "random", "random_legal",
    }  # fmt: skip
    assert all(registry.get("heuristic", name).name == name for name in registry.names("heuristic"))


@leaf
def longest_first(view, parameters):
    """Start the longest job that fits: a rule from outside the library."""
    best, longest = view.duration.shape[0], 0
    for slot in range(view.duration.shape[0]):
        if view.startable[slot] and view.duration[slot] > longest:
            best, longest = slot, view.duration[slot]
    return best


class LongestFirst(heuristics.Heuristic):
    name, rule = "longest_first", staticmethod(longest_first)


def test_a_rule_of_your_own():
    settings = DeepRMSettings(sequence_length=30)
    jobs = sequences(settings, 40)
    rule = LongestFirst()
    assert rule.predict(see(SHORT_NEW, LONG_OLD, BIG)) == 1
    fused, played = rule.run(settings, jobs), play(rule, settings, jobs)
    assert (fused.finish == played.finish).all()
    assert (fused.finish != heuristics.get("sjf").run(settings, jobs).finish).any()
    assert fuse(longest_first)[0] is not fuse(built_in)[0]
