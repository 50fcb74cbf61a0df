"""Playing policies: what is played, by which rules, and that playing leaves no trace (case 34)."""

import numpy as np
import pytest

from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.evaluation import evaluate, steady_state
from schedrl.evaluation.evaluate import sequences_of
from schedrl.evaluation.steady_state import Windows, continuing
from schedrl.settings import UserError
from tests.evaluation.outcomes import random_outcome

SETTINGS = DeepRMSettings(arrival_rate=0.5, idle_limit=0)
FEW = 40


class Rule:
    """A stand-in heuristic that records the settings it was run with."""

    representation = "state"

    def __init__(self, idles=False):
        self.idles = idles

    def rules_of_play(self, settings):
        return settings.replace(idle_limit=None) if self.idles else settings

    def run(self, settings, sequences, seed=0):
        self.settings, self.sequences = settings, sequences
        return random_outcome(0, sequences.count)


class FirstLegal:
    """A learned policy's stand-in: the first legal action, or any legal one when sampling."""

    representation = "slots"

    def reseed(self, seed):
        self.rng = np.random.default_rng(seed)

    def predict(self, obs, deterministic=True):
        mask = np.asarray(obs["action_mask"])
        return (mask if deterministic else mask * self.rng.random(mask.shape)).argmax(axis=-1)


def test_heuristics_play_by_their_own_idle_limit():
    rules = {"sjf": Rule(), "tsl": Rule(idles=True), "defer": Rule(idles=True)}
    evaluation = evaluate({}, SETTINGS, num_sequences=3, baselines=rules)
    assert [run.idle_limit for run in evaluation.runs] == [0, None, None]
    assert rules["tsl"].settings.idle_limit is None
    assert all(run.mode == "rule" for run in evaluation.runs)
    assert not evaluation.compare("sjf", "tsl").comparable


def test_overrides_are_stated():
    evaluation = evaluate(
        {"a": Rule()},
        SETTINGS,
        num_sequences=3,
        baselines={},
        overrides={"a": {"idle_limit": 5, "mask": "physics"}},
    )
    assert (evaluation.run("a").idle_limit, evaluation.run("a").mask) == (5, "physics")


def test_everyone_gets_the_same_unseen_sequences():
    a, b = Rule(), Rule()
    evaluate({"a": a, "b": b}, SETTINGS, num_sequences=5, seed=3, baselines={})
    assert a.sequences is b.sequences
    assert a.sequences.count == 5
    validation = sequences_of(SETTINGS, 5, 3, "validation")
    assert not np.array_equal(a.sequences.duration[:, :5], validation.duration[:, :5])


@pytest.mark.parametrize(
    "wrong",
    [
        {"modes": ("greedy", "best")},
        {"modes": ()},
        {"num_sequences": 0},
        {"family": "tests"},
        {"policies": {}},
        {"baselines": ["sjff"]},
    ],
)
def test_bad_input_is_refused(wrong):
    arguments = {"policies": {"a": Rule()}, "num_sequences": 2, "baselines": []} | wrong
    with pytest.raises(UserError):
        evaluate(arguments.pop("policies"), SETTINGS, **arguments)


def test_windows_keep_the_picture_that_a_policy_was_trained_on():
    drawn = continuing(SETTINGS.replace(representation="image"), Windows())
    assert (drawn.backlog_size, continuing(SETTINGS, Windows()).backlog_size) == (60, 10_000)


def test_windows_are_validated_and_never_stop():
    with pytest.raises(UserError, match="first"):
        Windows(first=1500, last=300)
    settings = continuing(SETTINGS, Windows(steps=100, first=10, last=50))
    assert (settings.termination, settings.sequence_length) == ("continuing", 100)


# -- with the real heuristics and the real environment ----------------------------------------------------


@pytest.fixture(scope="module")
def real():
    return evaluate({"first": FirstLegal()}, SETTINGS, num_sequences=FEW, baselines=("sjf", "packer", "tsl"))


def test_case_34_two_runs_are_identical_and_global_state_is_untouched(real):
    before = np.random.get_state()  # noqa: NPY002  the old global generator is what is tested
    again = evaluate({"first": FirstLegal()}, SETTINGS, num_sequences=FEW, baselines=("sjf", "packer", "tsl"))
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert again.summaries == real.summaries
    assert again.comparisons == real.comparisons
    for one, two in zip(real.runs, again.runs, strict=True):
        assert np.array_equal(one.outcome.start, two.outcome.start)


def test_every_job_of_every_sequence_is_accounted_for(real):
    arrived = {summary.arrived for summary in real.summaries.values()}
    assert arrived == {int((sequences_of(SETTINGS, FEW).duration > 0).sum())}
    for run in real.runs:
        summary = real.summaries[run.label]
        assert summary.complete, run.label
        done = run.outcome.status == 1
        assert np.array_equal(run.outcome.finish[done], (run.outcome.start + run.outcome.duration)[done])
        assert summary.mean_return == pytest.approx(-summary.mean * summary.arrived / summary.episodes)


def test_sjf_beats_packer(real):
    assert real.compare("sjf", "packer").verdict == "better"
    assert real.run("first", "greedy").outcome is not real.run("first", "sampled").outcome


CHANGE = 25


@pytest.fixture(scope="module")
def futures():
    """Two families of sequences, equal but for the sizes of all jobs that arrive from step CHANGE on."""
    family = sequences_of(SETTINGS, FEW)
    later = (family.arrival >= CHANGE) & (family.duration > 0)
    other = family._replace(
        duration=np.where(later, 16 - family.duration, family.duration).astype(np.int32),
        demand=np.where(later[:, :, None], 11 - family.demand, family.demand).astype(np.int32),
    )
    return family, other


def test_case_34_decisions_do_not_depend_on_the_future(futures):
    policies = {"first": FirstLegal()}
    runs = [
        evaluate(policies, SETTINGS, sequences=given, baselines=("sjf", "sjf_hold", "tetris")).runs
        for given in futures
    ]
    known = futures[0].arrival < CHANGE
    for one, two in zip(*runs, strict=True):
        started = [np.where(run.outcome.start < CHANGE, run.outcome.start, -1) for run in (one, two)]
        assert np.array_equal(started[0][known], started[1][known]), one.label
        assert not np.array_equal(one.outcome.start, two.outcome.start), "the change must matter later"


class Watching(FirstLegal):
    """Keeps what it saw at its first decisions: after k of them no cluster is beyond step k."""

    def __init__(self, representation):
        self.representation, self.seen = representation, []

    def predict(self, obs, deterministic=True):
        self.seen.append({name: np.array(leaf) for name, leaf in obs.items()})
        return super().predict(obs, deterministic)


@pytest.mark.parametrize("representation", ["slots", "compact", "image", "state"])
def test_case_34_observations_do_not_depend_on_the_future(futures, representation):
    watchers = [Watching(representation) for _ in futures]
    for watcher, given in zip(watchers, futures, strict=True):
        evaluate({"w": watcher}, SETTINGS, sequences=given, baselines={}, modes=["greedy"])
    for one, two in list(zip(*(watcher.seen for watcher in watchers), strict=False))[:CHANGE]:
        assert one.keys() == two.keys()
        for name in one:
            assert np.array_equal(one[name], two[name]), name


def test_steady_state_counts_the_window_only():
    windows = Windows(steps=300, first=50, last=200, num_windows=8)
    settings = SETTINGS.replace(load=0.5)
    evaluation = steady_state({}, settings, windows, baselines=("sjf", "tetris"), tune=False)
    sequences = sequences_of(continuing(settings, windows), 8)
    inside = (sequences.arrival >= 50) & (sequences.arrival < 200)
    for summary in evaluation.summaries.values():
        assert summary.arrived == inside.sum()
        assert summary.dropped == 0
        assert 1 < summary.mean < 10
