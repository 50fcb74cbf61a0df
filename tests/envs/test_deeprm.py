"""The DeepRM environment: an episode computed by hand, masks, ends, given jobs, the job table, no future."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import environment
from schedrl.envs.deeprm import Clusters, DeepRMEnv, DeepRMSettings
from schedrl.settings import UserError
from schedrl.sim.deeprm.sequences import Sequences, from_steps
from schedrl.workload.types import Workload

REPRESENTATIONS = ("slots", "compact", "image", "state")
TINY = {
    "num_job_slots": 2,
    "time_horizon": 4,
    "capacity": (2, 3),
    "max_job_duration": 4,
    "max_job_demand": 2,
    "backlog_size": 4,
}
THREE_JOBS = ([2, 1, 2], [[1, 2], [2, 1], [1, 1]])


def tiny(workload=THREE_JOBS, **changes):
    return DeepRMEnv(workload=workload, **(TINY | {"representation": "compact", "idle_limit": 0} | changes))


# ---- By hand ----------------------------------------------------------------------------------------


def test_an_episode_computed_by_hand():
    """Capacity 2, 3. A (2 steps; 1 and 2 units), B (1; 2 and 1), C (2; 1 and 1) come at steps 0, 1, 2."""
    env = tiny()
    obs, info = env.reset(seed=0)
    empty = [0, 0, 0]
    a, b, c = [2, 1, 2], [1, 2, 1], [2, 1, 1]
    script = [
        # action, reward, jobs left, free of each resource, slots, mask, time
        (None, 0, [0, 0, 0, 0], [2, 2, 2, 2], [3, 3, 3, 3], (a, empty), [1, 0, 0], 0),
        (0, 0, [1, 1, 0, 0], [1, 1, 2, 2], [1, 1, 3, 3], (empty, empty), [0, 0, 1], 0),
        # A's steps 0 (in its slot) and 1 (running), B's step 1
        (2, -0.5 - 0.5 - 1, [1, 0, 0, 0], [1, 2, 2, 2], [1, 3, 3, 3], (b, empty), [0, 0, 1], 1),
        # A has left; the machine is idle and both could start, so waiting is illegal
        (2, -1 - 0.5, [0, 0, 0, 0], [2, 2, 2, 2], [3, 3, 3, 3], (b, c), [1, 1, 0], 2),
        (0, 0, [1, 0, 0, 0], [0, 2, 2, 2], [2, 3, 3, 3], (empty, c), [0, 0, 1], 2),
        # C does not fit beside B: choosing it lets time pass
        (1, -0.5, [0, 0, 0, 0], [2, 2, 2, 2], [3, 3, 3, 3], (empty, c), [0, 1, 0], 3),
        (1, 0, [1, 1, 0, 0], [1, 1, 2, 2], [2, 2, 3, 3], (empty, empty), [0, 0, 1], 3),
        (2, -0.5, [1, 0, 0, 0], [1, 2, 2, 2], [2, 3, 3, 3], (empty, empty), [0, 0, 1], 4),
        (2, 0, [0, 0, 0, 0], [2, 2, 2, 2], [3, 3, 3, 3], (empty, empty), [0, 0, 1], 5),
    ]
    total = 0.0
    for number, (action, reward, left, free_0, free_1, slots, mask, time) in enumerate(script):
        if action is not None:
            obs, got, terminated, truncated, info = env.step(action)
            assert got == pytest.approx(reward)
            assert sum(info["reward_terms"].values()) == pytest.approx(got)
            assert (terminated, truncated) == (number == len(script) - 1, False)
            assert info["time"] == time
            total += got
        assert obs["compact"].tolist() == [*left, *free_0, *free_1, *slots[0], *slots[1], 0]
        assert obs["action_mask"].tolist() == [bool(legal) for legal in mask]
    table = env.jobs()
    assert table["arrival_time"].tolist() == [0, 1, 2]
    assert table["start_time"].tolist() == [0, 2, 3]
    assert table["finish_time"].tolist() == [2, 3, 5]
    assert set(table["status"]) == {"finished"}
    assert total == pytest.approx(-(2 / 2 + 2 / 1 + 3 / 2))


def test_slots_and_state_by_hand():
    env = tiny(representation="slots", observe_clock=True)
    env.reset(seed=0)
    for action in (0, 2):
        obs, *_ = env.step(action)
    cluster = [[1 / 2, 1 / 3], [1, 1], [1, 1], [1, 1]]
    np.testing.assert_allclose(obs["cluster"], cluster, rtol=1e-6)
    # present, duration, 1 / duration, startable, alignment, waited, demands
    b = [1, 1 / 4, 1, 0, (2 / 2 * 1 / 2 + 1 / 3 * 1 / 3) / 2, 0, 1, 1 / 3]
    np.testing.assert_allclose(obs["queue"], [b, [0] * 8], rtol=1e-6)
    # backlog, booked, idle, idle run, since arrival, clock of 3 steps, arrivals over
    np.testing.assert_allclose(obs["backlog"], [0, 1 / 2, 0, 0, 0, 1 / 3, 0], rtol=1e-6)
    env = tiny(representation="state")
    env.reset(seed=0)
    for action in (0, 2):
        obs, *_ = env.step(action)
    expected = {
        "action_mask": [False, False, True], "startable": [False, False], "duration": [1, 0],
        "demand": [[2, 1], [0, 0]], "arrival": [1, -1], "free": [[1, 2, 2, 2], [1, 3, 3, 3]],
        "scalars": [1, 0, 1, 0, 0, 1],
    }  # fmt: skip
    assert {name: leaf.tolist() for name, leaf in obs.items()} == expected


# ---- Masks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["counts", "bitplanes"])
@pytest.mark.parametrize(
    ("mask", "reservation"), [("fits_now", False), ("physics", False), ("physics", True), ("fits_now", True)]
)
def test_masks_are_sound_and_complete(kernel, mask, reservation):
    """A legal slot is booked and takes no time; an illegal one lets a step pass; nothing bookable is masked.

    With `fits_now` beside reservation, the mask hides what could be booked only later.
    """
    chosen = DeepRMSettings(
        num_job_slots=4, sequence_length=30, mask=mask, allow_reservation=reservation, kernel=kernel
    )
    jobs = from_steps(*_drawn(chosen, 30))
    clusters = Clusters(chosen, chosen.num_actions, 30)  # all in one state, and every action tried at once
    clusters.load(clusters.everyone, clusters.everyone, jobs.rows(np.zeros(chosen.num_actions, int)))
    rng, noop = np.random.default_rng(0), chosen.num_job_slots
    legal_seen = illegal_seen = 0
    while not clusters.ended.any():
        state, legal, before = clusters.get_state(), clusters.observe()["action_mask"][0], clusters.outcome()
        clusters.step(clusters.everyone)
        after = clusters.outcome()
        passed = after.end_time - before.end_time
        new = (after.start >= 0) & (before.start < 0)
        for slot in range(noop):
            later = new[slot].any() and after.start[slot][new[slot]][0] > before.end_time[slot]
            hidden = later and mask == "fits_now"
            assert new[slot].sum() == (legal[slot] or hidden)
            assert passed[slot] == 1 - new[slot].sum()
            assert reservation or not later
            legal_seen, illegal_seen = legal_seen + legal[slot], illegal_seen + (not legal[slot])
        assert (passed[noop], new[noop].sum()) == (1, 0)
        clusters.set_state(state)
        clusters.step(np.full(noop + 1, rng.choice(np.flatnonzero(legal))))
    assert legal_seen > 10
    assert illegal_seen > 10


def _drawn(chosen, steps, seed=0):
    durations, demands = chosen.draw(np.random.default_rng(seed), 1)
    return durations[:, :steps], demands[:, :steps]


@pytest.mark.parametrize("limit", [0, 1, 3, None])
def test_idle_limit(limit):
    """Beside a startable job the no-op is legal for that many steps in a row, and again once it has run."""
    env = tiny(([1, 2, 0, 0, 0, 0, 0, 0, 0, 0], [[1, 1]] * 10), idle_limit=limit)
    obs, _ = env.reset(seed=0)
    for step in range(5):
        assert obs["action_mask"][-1] == (limit is None or step < limit)
        obs, *_ = env.step(2)  # taken all the same: the mask advises, the physics lets time pass
    obs, *_ = env.step(0)
    assert obs["action_mask"].tolist() == [False, True, True]  # something runs: waiting is always legal
    obs, *_ = env.step(2)
    assert obs["action_mask"][-1] == (limit != 0)
    assert env.unwrapped._clusters.outcome().idle_steps[0] == 5


# ---- Ends -------------------------------------------------------------------------------------------


def ends(env, actions):
    env.reset(seed=0)
    return [env.step(action)[2:4] for action in actions]


def test_terminated_is_told_from_truncated():
    jobs = ([1, 0, 1], [[1, 1]] * 3)
    go_on, over, cut = (False, False), (True, False), (False, True)
    assert ends(tiny(jobs), [0, 2, 2, 0, 2]) == [go_on] * 4 + [over]
    assert ends(tiny(jobs, episode_max_length=4), [2] * 5) == [go_on] * 4 + [cut]
    assert ends(tiny(jobs, termination="no_new_job"), [2] * 3) == [go_on] * 2 + [over]
    assert ends(tiny(jobs, termination="continuing"), [2] * 3) == [go_on] * 2 + [cut]
    assert ends(tiny(jobs, termination="continuing", episode_max_length=2), [2] * 2) == [go_on, cut]


def test_given_jobs_are_cut_off_by_their_own_length():
    """By default after ten times the arrival steps, however long a generated sequence would be."""
    env = tiny(([1] + [0] * 99, [[1, 1]] * 100), idle_limit=None)
    assert ends(env, [2] * 1001) == [(False, False)] * 1000 + [(False, True)]


# ---- Given jobs, and what became of them ------------------------------------------------------------


def test_every_status_in_the_table():
    jobs = Sequences(
        np.zeros((1, 7), np.int32),
        np.array([[1, 3, 2, 1, 9, 1, 1]], np.int32),
        np.array([[[2, 3], [2, 1], [2, 1], [1, 1], [1, 1], [1, 9], [1, 1]]], np.int32),
        6,
    )
    env = tiny(jobs, num_job_slots=3, time_horizon=6, backlog_size=1, allow_reservation=True, mask="physics")
    env.reset(seed=0)
    env.step(0)
    env.step(1)
    table = env.jobs()
    assert table["status"].tolist() == [
        "running", "reserved", "waiting", "waiting", "rejected", "rejected", "dropped",
    ]  # fmt: skip
    assert table["job_id"].tolist() == list(range(7))
    assert table["legacy_id"].tolist() == [0, 1, 2, 3, -1, -1, -1]
    assert table["start_time"].tolist() == [0, 1, -1, -1, -1, -1, -1]
    assert table["finish_time"].tolist() == [1, 4, -1, -1, -1, -1, -1]
    _, _, _, _, info = env.step(3)
    assert info["reward_terms"]["drop"] == env.settings.drop_penalty
    assert env.jobs()["status"].tolist()[:2] == ["finished", "running"]


def test_three_forms_of_given_jobs():
    durations, demands = THREE_JOBS
    workload = Workload(np.arange(3), np.array(durations), np.array(demands))
    for form in (THREE_JOBS, (np.array([durations]), np.array([demands])), workload):
        env = tiny(form)
        env.reset(seed=0)
        for action in (0, 2, 2, 0, 2, 1, 2, 2):
            *_, terminated, _, _ = env.step(action)
        assert terminated
        assert env.jobs()["finish_time"].tolist() == [2, 3, 5]


def test_a_sequence_is_picked_by_number():
    durations = np.array([[1, 0], [2, 0], [3, 0]])
    env = tiny((durations, np.ones((3, 2, 2), int)), representation="state")
    firsts = [env.reset(seed=0)] + [env.reset() for _ in range(3)]
    assert [int(obs["duration"][0]) for obs, _ in firsts] == [1, 2, 3, 1]
    assert [info["sequence"] for _, info in firsts] == [0, 1, 2, 0]
    obs, info = env.reset(options={"sequence": 2})
    assert (obs["duration"][0], info["sequence"]) == (3, 2)
    for wrong in (3, -1):
        with pytest.raises(UserError, match=f"sequence {wrong} does not exist"):
            env.reset(options={"sequence": wrong})
    streamed = environment.make("deeprm", representation="state", arrival_rate=1.0)
    thousandth, _ = streamed.reset(seed=1, options={"sequence": 1000})
    again, _ = streamed.reset(options={"sequence": 1000})
    assert (thousandth["duration"] == again["duration"]).all()
    with pytest.raises(UserError, match="sequence -2 does not exist"):
        streamed.reset(options={"sequence": -2})


def test_num_sequences_come_in_turn():
    env = environment.make(
        "deeprm", num_sequences=2, representation="state", sequence_length=5, arrival_rate=1
    )
    seen = [env.reset(seed=0)[0]["demand"].tolist()] + [env.reset()[0]["demand"].tolist() for _ in range(3)]
    assert seen[0] == seen[2] != seen[1] == seen[3]


def test_families_and_seeds_give_other_jobs():
    firsts = {}
    for family in ("train", "validation", "test"):
        for seed in (0, 1):
            env = environment.make("deeprm", family=family, termination="no_new_job")
            env.reset(seed=seed)
            while not env.step(10)[2]:
                pass
            firsts[family, seed] = env.jobs()["demand"].tobytes()
    assert len(set(firsts.values())) == 6


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (([1, 2], [[1], [1]]), "the jobs have 1 resources, the cluster has num_resources 2"),
        (([1, 2.5], [[1, 1], [1, 1]]), "durations must be whole numbers"),
        (([1, -2], [[1, 1], [1, 1]]), "durations must not be negative"),
        (([1, 2, 3], [[1, 1], [1, 1]]), "durations must be"),
    ],
)
def test_given_jobs_that_are_none(workload, message):
    with pytest.raises(UserError, match=message):
        tiny(workload)


def test_case_29_as_long_as_the_horizon(shared_dir):
    case = shared_dir / "cases" / "29-deeprm-job-as-long-as-the-horizon"
    params, expected = (json.loads((case / name).read_text()) for name in ("params.json", "expected.json"))
    expected = expected["expected"]
    long = [(job["len"], job["req"]) for job in params["jobs"]]
    jobs = Sequences(
        np.zeros((1, 3), np.int32),
        np.array([[duration for duration, _ in long]], np.int32),
        np.array([[demand for _, demand in long]], np.int32),
        1,
    )
    env = DeepRMEnv(workload=jobs)
    env.reset(seed=0)
    env.step(0)
    env.step(1)
    table = dict(zip(env.jobs()["duration"].tolist(), env.jobs()["start_time"].tolist(), strict=True))
    assert (table[20], table[19]) == (expected["len20_starts_at"], expected["len19_starts_at"])
    assert expected["len21"].startswith(env.jobs()["status"][2])
    original = DeepRMEnv(workload=jobs, quirks="horizon_off_by_one")
    original.reset(seed=0)
    original.step(1)
    assert original.jobs()["start_time"].tolist() == [-1, 0, -1]
    pair = [(job["len"], job["req"]) for job in params["two_jobs_finish_together"]]
    jobs = Sequences(
        np.zeros((1, 2), np.int32), np.array([[d for d, _ in pair]]), np.array([[r for _, r in pair]]), 9
    )
    for quirks, key in (("none", "running_after_3_steps"), ("lingering", "original_running_after_3_steps")):
        env = DeepRMEnv(workload=jobs, quirks=quirks, representation="state")
        env.reset(seed=0)
        for action in (0, 1, 10, 10, 10):
            obs, *_ = env.step(action)
        assert obs["scalars"][2] == expected[key]


# ---- Representations and the future -----------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    physics=st.fixed_dictionaries(
        {
            "num_job_slots": st.integers(1, 6),
            "backlog_size": st.sampled_from([0, 20, 40]),
            "allow_reservation": st.booleans(),
            "mask": st.sampled_from(["fits_now", "physics"]),
            "idle_limit": st.sampled_from([0, 2, None]),
            "termination": st.sampled_from(["all_done", "no_new_job", "continuing"]),
            "objective": st.sampled_from(["slowdown", "completion_time"]),
            "quirks": st.sampled_from(["none", "all", "lingering"]),
            "observe_clock": st.booleans(),
            "observe_since_arrival": st.booleans(),
        }
    ),
)
def test_representations_change_neither_jobs_nor_physics(seed, physics):
    envs = [DeepRMEnv(representation=name, sequence_length=10, **physics) for name in REPRESENTATIONS]
    envs.append(
        DeepRMEnv(
            representation="image", image_dtype="float32", image_colours=True, sequence_length=10, **physics
        )
    )
    masks = [env.reset(seed=seed)[0]["action_mask"].tolist() for env in envs]
    rng = np.random.default_rng(seed)
    for _ in range(40):
        assert all(mask == masks[0] for mask in masks)
        action = int(rng.integers(len(masks[0])))
        steps = [env.step(action) for env in envs]
        assert all(step[1:] == steps[0][1:] for step in steps)
        masks = [obs["action_mask"].tolist() for obs, *_ in steps]
        if steps[0][2] or steps[0][3]:
            break
    tables = [{name: column.tolist() for name, column in env.jobs().items()} for env in envs]
    assert all(table == tables[0] for table in tables)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_case_34_no_observation_shows_the_future(representation):
    """Jobs that come from step T on may change as they like: all before T is equal, bit for bit."""
    cut = 15
    base = DeepRMSettings(representation=representation, sequence_length=30, observe_clock=True)
    durations, demands = _drawn(base, 30)
    other, other_demands = _drawn(base, 30, seed=1)
    changed = (durations.copy(), demands.copy())
    changed[0][:, cut:], changed[1][:, cut:] = other[:, cut:], other_demands[:, cut:]
    envs = [DeepRMEnv(base, workload=jobs) for jobs in ((durations, demands), changed)]
    seen = [env.reset(seed=0)[0] for env in envs]
    rng = np.random.default_rng(0)
    time = 0
    while time < cut:
        for name, leaf in seen[0].items():
            assert leaf.tobytes() == seen[1][name].tobytes()
        tables = [{name: column.tolist() for name, column in env.jobs().items()} for env in envs]
        assert tables[0] == tables[1]
        action = int(rng.choice(np.flatnonzero(seen[0]["action_mask"])))
        steps = [env.step(action) for env in envs]
        time = steps[0][4]["time"]
        if time < cut:
            assert steps[0][1:] == steps[1][1:]
        seen = [obs for obs, *_ in steps]
    assert any(leaf.tobytes() != seen[1][name].tobytes() for name, leaf in seen[0].items())


# ---- Settings that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: environment.make("deprm"), "nearest: deeprm"),
        (lambda: environment.make_vec("deprm"), "nearest: deeprm"),
        (lambda: environment.make("deeprm", preset="deeprm-orginal"), "nearest: deeprm-original"),
        (lambda: environment.make("deeprm", arival_rate=1), "nearest: arrival_rate"),
        (lambda: environment.make("deeprm", render_mode="human"), "use ansi or rgb_array"),
        (lambda: environment.make_vec("deeprm", 0), "num_envs is 0"),
        (lambda: environment.make("deeprm", time_horizon=10), "max_job_duration 15 exceeds"),
        (lambda: environment.make("deeprm", representation="image", backlog_size=50), "can't be drawn"),
        (lambda: environment.make("deeprm", kernel="bitplanes", time_horizon=65), "kernel=bitplanes needs"),
        (
            lambda: environment.make_vec(
                "deeprm", 2, representation="image", image_dtype="float32", image_colours=True
            ),
            "image_colours are drawn by the single environment only",
        ),
    ],
)
def test_refused_with_the_remedy(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_legacy_names_and_presets():
    env = environment.make("deeprm", preset="deeprm-original", num_nw=5, simu_len=10)
    assert (env.settings.num_job_slots, env.settings.sequence_length) == (5, 10)
    assert env.settings.quirks.lingering
    assert env.observation_space["image"].shape == (20, 124)
    assert environment.make("deeprm", preset="deeprm-70").settings.arrival_rate == 0.38
