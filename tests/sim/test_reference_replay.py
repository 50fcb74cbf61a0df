"""The plain-Python simulator, all quirks on, repeats what the original program did."""

from dataclasses import replace

import numpy as np
import pytest
import replay
from replay import ReferenceAdapter, original_physics

from schedrl.sim.deeprm.reference import ReferenceSimulator
from schedrl.sim.deeprm.reference_views import PALETTE, shuffled_palette

SCENARIOS = [
    "first_index_ignored",
    "linger_pair",
    "linger_chain",
    "linger_two_steps",
    "linger_two_steps_true",
    "future_reservation",
    "horizon_edge",
    "len_equals_horizon",
    "len_horizon_minus_1",
    "too_big",
    "empty_slot_is_void",
    "backlog_fifo",
    "backlog_full_drop",
    "force_end",
    "no_new_job_end",
    "all_done_empty",
]


def score(policy, sim, job):
    fit = sum(have * want for have, want in zip(sim.free[0], job.demand, strict=True))
    knob = {"SJF": 0.0, "Packer": 1.0, "PackerSJF0.5": 0.5}[policy]
    return knob * fit + (1 - knob) / job.duration


def choose(policy, sim):
    """Best score among the jobs that fit now, the lowest slot on a tie, else the no-op."""
    scores = [score(policy, sim, job) if sim.fits_now(job) else 0 for job in sim.slots]
    return int(np.argmax(scores)) if max(scores) > 0 else len(sim.slots)


def replay_all(data):
    number = 0
    for name, episode in replay.golden_episodes(data):
        adapter = ReferenceAdapter(original_physics(episode["ending"], data["config"]))
        rule = (
            None if episode["policy"] == "Random" else lambda p=episode["policy"], a=adapter: choose(p, a.sim)
        )
        replay.replay_episode(adapter, episode, name, rule)
        number += 1
    return number


def test_golden_episodes(golden):
    assert replay_all(golden) == 72


def test_all_golden_episodes(full_reference):
    assert replay_all(replay.load("deeprm_simu50_seed42", full_reference)) == 400


def test_scenario_list_is_complete(micro):
    assert set(SCENARIOS) == set(micro)


@pytest.mark.parametrize("name", SCENARIOS)
def test_micro_scenario(micro, name):
    """Beside the trace of the replay, the inner state: clock, lists by legacy number, free units."""
    scenario = micro[name]
    replay.replay_micro(ReferenceAdapter, scenario)
    sim = ReferenceSimulator(original_physics(scenario["end"], scenario), *replay.micro_sequence(scenario))
    for action, row in zip(scenario["actions"], scenario["trace"], strict=True):
        sim.step(action)
        if not row["done"]:  # the original has already reset itself
            assert sim.time == row["time"]
            assert [job.legacy_id for job in sim.running] == row["running"]
            assert [job and job.legacy_id for job in sim.slots] == row["slots"]
            assert len(sim.backlog) == row["backlog"]
            assert sim.free == row["avail"]


def test_observations():
    for case in replay.load("deeprm_observations")["cases"]:
        replay.replay_observations(ReferenceAdapter, case)


def test_all_observations(full_reference):
    cases = replay.load("deeprm_observations", full_reference)["cases"]
    assert len(cases) == 14
    for case in cases:
        replay.replay_observations(ReferenceAdapter, case)


def test_picture_in_the_original_colours():
    """With the original's shuffled palette the picture is equal to the last bit."""
    palette = shuffled_palette(np.random.RandomState(7))  # noqa: NPY002 - as recorded
    for case in replay.load("deeprm_observations")["cases"]:
        if case["repre"] != "image":
            continue
        assert palette == case["colormap_seed7"]
        physics = original_physics("all_done", case)
        sim = ReferenceSimulator(physics, case["seq_len"], case["seq_size"], palette=palette)
        for observation in case["observations"]:
            while sim.decisions < observation["step"]:
                sim.step(case["actions"][sim.decisions])
            np.testing.assert_array_equal(sim.image(colours=True), replay.unpack(observation))


def test_more_jobs_than_colours():
    """The original fails here; we start again from the first colour."""
    physics = replay.ReferencePhysics(num_slots=1, capacity=(60,))
    sim = ReferenceSimulator(physics, jobs=[(0, 5, [1])] * 45, steps=1)
    for _ in range(45):
        sim.step(0)
    canvas = sim.image(colours=True)[0, :60]
    assert set(canvas[:39]) == set(PALETTE)
    assert (canvas[39:45] > 0).all()
    assert (canvas[45:] == 0).all()


@pytest.mark.parametrize("quirk", ["lingering", "off_by_one", "skip_first"])
def test_each_quirk_matters(golden, quirk):
    """Without any one of them some golden episode comes out differently: the replay is no formality."""
    differs = 0
    for name, episode in replay.golden_episodes(golden):
        physics = replace(original_physics(episode["ending"], golden["config"]), **{quirk: False})
        try:
            replay.replay_episode(ReferenceAdapter(physics), episode, name)
        except (AssertionError, RuntimeError):
            differs += 1
    assert differs > 0
