"""Both compiled kernels, all quirks on, repeat what the original program did; the environment its colours."""

import numpy as np
import pytest
import replay
from kernels import KERNELS, KernelAdapter

from schedrl import heuristics
from schedrl.envs.deeprm.clusters import Clusters
from schedrl.envs.deeprm.colours import Colours
from schedrl.envs.deeprm.settings import PRESETS, DeepRMSettings
from schedrl.sim.deeprm.sequences import from_steps
from schedrl.sim.deeprm.state import BACKLOG

pytestmark = pytest.mark.parametrize("kernel", KERNELS)


def replay_all(data, kernel):
    number = 0
    for name, episode in replay.golden_episodes(data):
        physics = replay.original_physics(episode["ending"], data["config"])
        replay.replay_episode(KernelAdapter(physics, kernel), episode, name)
        number += 1
    return number


def test_golden_episodes(golden, kernel):
    assert replay_all(golden, kernel) == 72


def test_all_golden_episodes(full_reference, kernel):
    assert replay_all(replay.load("deeprm_simu50_seed42", full_reference), kernel) == 400


def test_micro_scenarios(micro, kernel):
    """Beside the trace of the replay, the inner state: clock, lists by legacy number, free units."""
    assert len(micro) == 16
    for scenario in micro.values():
        replay.replay_micro(lambda physics: KernelAdapter(physics, kernel), scenario)
        sim = KernelAdapter(replay.original_physics(scenario["end"], scenario), kernel)
        sim.reset(*replay.micro_sequence(scenario))
        for action, row in zip(scenario["actions"], scenario["trace"], strict=True):
            sim.step(action)
            if row["done"]:  # the original has already reset itself
                continue
            expected = {
                "time": row["time"],
                "running": row["running"],
                "slots": row["slots"],
                "free": row["avail"],
            }
            assert sim.inner() == expected, scenario["name"]
            assert sim.state.column(BACKLOG)[0] == row["backlog"]


def test_observations(kernel):
    for case in replay.load("deeprm_observations")["cases"]:
        replay.replay_observations(lambda physics: KernelAdapter(physics, kernel), case)


def test_all_observations(full_reference, kernel):
    cases = replay.load("deeprm_observations", full_reference)["cases"]
    assert len(cases) == 14
    for case in cases:
        replay.replay_observations(lambda physics: KernelAdapter(physics, kernel), case)


def test_picture_in_the_original_colours(kernel):
    """With the original's order of colours the environment's picture is the original's."""
    pictures = 0
    for case in replay.load("deeprm_observations")["cases"]:
        if case["repre"] != "image":
            continue
        own = {
            "num_job_slots": case["num_nw"],
            "image_colours": True,
            "image_dtype": "float32",
            "kernel": kernel,
        }
        settings = DeepRMSettings.from_dict(PRESETS["deeprm-original"] | own)
        jobs = from_steps(np.array(case["seq_len"]), np.array(case["seq_size"]))
        clusters = Clusters(settings, 1, jobs.arrival.shape[1], jobs.steps)
        clusters.load(np.arange(1), np.arange(1), jobs)
        colours = Colours(clusters)
        colours.use(case["colormap_seed7"])
        expected = {observation["step"]: observation for observation in case["observations"]}
        for number in range(max(expected) + 1):
            if number:
                clusters.step(np.array([case["actions"][number - 1]]))
                colours.update()
            if number in expected:
                golden = replay.unpack(expected[number]).astype(np.float32)
                np.testing.assert_array_equal(colours.paint(clusters.observe()["image"][0]), golden)
                pictures += 1
    assert pictures > 5


RULES = {"SJF": ("sjf", {}), "Packer": ("packer", {}), "PackerSJF0.5": ("tetris", {"knob": 0.5})}


def test_fused_heuristics_schedule_as_the_original_agents(golden, kernel):
    """Whole compiled episodes end with the job table of the original's SJF, Packer and mix of both."""
    number = 0
    for name, episode in replay.golden_episodes(golden):
        if episode["policy"] not in RULES:
            continue
        rule, numbers = RULES[episode["policy"]]
        own = {
            "num_job_slots": golden["config"]["num_nw"],
            "termination": episode["ending"],
            "kernel": kernel,
        }
        own |= {"episode_max_length": 20_000, "representation": "state"}
        settings = DeepRMSettings.from_dict(PRESETS["deeprm-original"] | own)
        jobs = from_steps(np.array(episode["seq_len"]), np.array(episode["seq_size"]))
        outcome = heuristics.get(rule, **numbers).run(settings, jobs)
        columns = ("arrival_time", "start_time", "finish_time", "duration")
        table = np.stack([outcome.jobs()[column] for column in columns], axis=1)
        assert table[outcome.jobs()["legacy_id"] >= 0].tolist() == episode["jobs"], name
        assert outcome.decisions[0] == len(episode["actions"]), name
        assert outcome.ret[0] == pytest.approx(sum(episode["rewards"]), abs=1e-9), name
        number += 1
    assert number > 30
