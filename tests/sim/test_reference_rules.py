"""The rules of the simulator with the quirks off, one by one and as invariants."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import replay
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.sim.deeprm.reference import ReferencePhysics, ReferenceSimulator


def small(**changes):
    """Two slots, horizon 6, capacity 4 and 3, backlog 2."""
    sizes = {"num_slots": 2, "horizon": 6, "capacity": (4, 3), "backlog_size": 2, "episode_max_length": 200}
    return ReferencePhysics(**(sizes | {"max_job_demand": 4} | changes))


def simulator(jobs, steps=None, **changes):
    return ReferenceSimulator(small(**changes), jobs=jobs, steps=steps)


NOOP = 2


# ---- Arrivals ---------------------------------------------------------------------------------------


def test_jobs_of_step_0_are_there_at_reset():
    jobs = [(0, 1, [1, 1]), (0, 2, [1, 1]), (0, 3, [1, 1]), (1, 4, [1, 1])]
    sim = simulator(jobs)
    assert [job.duration for job in sim.slots] == [1, 2]
    assert [job.duration for job in sim.backlog] == [3]
    sim.step(NOOP)
    assert [job.duration for job in sim.backlog] == [3, 4]
    assert [job["arrival_time"] for job in sim.jobs()] == [0, 0, 0, 1]


def test_skip_first():
    sim = simulator([(0, 1, [1, 1]), (1, 2, [1, 1])], skip_first=True)
    assert sim.jobs() == []
    sim.step(NOOP)
    assert [job["duration"] for job in sim.jobs()] == [2]


def test_arrays_and_lists_say_the_same():
    durations, demands = [0, 2, 0, 3], [[0, 0], [1, 2], [0, 0], [4, 1]]
    a = ReferenceSimulator(small(), durations, demands)
    b = simulator([(1, 2, [1, 2]), (3, 3, [4, 1])], steps=4)
    while not a.terminated:
        assert a.step(0) == b.step(0)
    assert a.jobs() == b.jobs()
    assert b.terminated


def test_drop_is_counted_listed_and_charged():
    jobs = [(0, 1, [1, 1])] * 4 + [(1, 2, [1, 1]), (1, 2, [1, 1]), (2, 1, [1, 1])]
    sim = simulator(jobs, drop_penalty=-7.0)
    sim.step(NOOP)
    assert sim.reward_terms == (0.0, -4.0, -4.0, -14.0)  # the jobs of step 0 pay for two steps at once
    statuses = [job["status"] for job in sim.jobs()]
    assert statuses == ["waiting"] * 4 + ["dropped"] * 2
    assert [job["legacy_id"] for job in sim.jobs()] == [0, 1, 2, 3, -1, -1]
    sim.step(0)
    sim.step(NOOP)  # one job has left the backlog, so the next is taken and gets the number of the dropped
    assert sim.jobs()[-1]["legacy_id"] == 4
    silent = simulator(jobs, drop_penalty=-7.0, silent_drop=True)
    assert silent.step(NOOP)[0] == -8.0
    assert [job["status"] for job in silent.jobs()] == statuses


@pytest.mark.parametrize("jobs", [[(-1, 1, [1, 1])], [(5, 1, [1, 1])], [(0, 1, [1])]])
def test_bad_jobs_are_refused(jobs):
    with pytest.raises(ValueError, match="arrivals lie in"):
        simulator(jobs, steps=5)


def test_one_form_of_jobs():
    with pytest.raises(ValueError, match="give either"):
        ReferenceSimulator(small())


# ---- Decisions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [-1, 3, 99])
def test_action_out_of_range(action):
    with pytest.raises(ValueError, match=f"action {action} is outside"):
        simulator([(0, 1, [1, 1])]).step(action)


def test_step_after_the_end():
    sim = simulator([(0, 1, [1, 1])])
    sim.step(0)
    assert sim.step(NOOP) == (-1.0, True, False)  # it cost its step 0
    with pytest.raises(RuntimeError, match="ended at time 1"):
        sim.step(NOOP)
    sim.reset()
    assert sim.step(0) == (0.0, False, False)


def test_what_cannot_be_booked_lets_time_pass():
    sim = simulator([(0, 2, [3, 1]), (0, 2, [3, 1])])
    sim.step(0)
    for time, action in enumerate((0, 1, NOOP), start=1):  # an empty slot, a job that does not fit, the no-op
        sim.step(action)
        assert sim.time == time
    assert sim.jobs()[1]["start_time"] == -1


def test_freed_slot_takes_the_head_of_the_backlog():
    sim = simulator([(0, duration, [1, 0]) for duration in (1, 2, 3, 4)])
    assert sim.step(1) == (0.0, False, False)
    assert [job.duration for job in sim.slots] == [1, 3]
    assert sim.time == 0


def test_reservation_is_first_fit_within_the_horizon():
    jobs = [(0, 3, [4, 1]), (0, 3, [1, 1]), (0, 4, [1, 1])]
    sim = simulator(jobs, allow_reservation=True)
    sim.step(0)
    sim.step(1)
    assert [job["status"] for job in sim.jobs()] == ["running", "reserved", "waiting"]
    assert sim.jobs()[1]["start_time"] == 3
    sim.step(0)  # the backlog's job came to slot 0; rows 3 to 6 are past the horizon
    assert sim.time == 1
    sim.step(0)
    assert sim.jobs()[2]["start_time"] == 3
    assert simulator(jobs).step(1) == (0.0, False, False)


def test_off_by_one_loses_the_last_start_row():
    jobs = [(0, 3, [4, 1]), (0, 3, [4, 1])]
    for quirk, start in ((False, 3), (True, -1)):
        sim = simulator(jobs, allow_reservation=True, off_by_one=quirk)
        sim.step(0)
        sim.step(1)
        assert sim.jobs()[1]["start_time"] == start


# ---- Jobs that can never run ------------------------------------------------------------------------


def test_case_29(shared_dir):
    case = shared_dir / "cases" / "29-deeprm-job-as-long-as-the-horizon"
    params, expected = (
        json.loads((case / "params.json").read_text()),
        json.loads((case / "expected.json").read_text()),
    )
    expected = expected["expected"]
    physics = ReferencePhysics(horizon=params["time_horizon"], capacity=(params["res_slot"],) * 2)
    jobs = [(0, job["len"], job["req"]) for job in params["jobs"]]
    ours = ReferenceSimulator(physics, jobs=jobs)
    for action in (0, 1):
        ours.step(action)
    table = {job["duration"]: job for job in ours.jobs()}
    assert table[20]["start_time"] == expected["len20_starts_at"]
    assert table[19]["start_time"] == expected["len19_starts_at"]
    assert f"{table[21]['status']}: {table[21]['reason']}" == expected["len21"]
    original = ReferenceSimulator(replace(physics, off_by_one=True), jobs=jobs)
    for action in (0, 1):
        original.step(action)
    starts = {job["duration"]: job["start_time"] for job in original.jobs()}
    assert starts[20] == -1
    pair = [(0, job["len"], job["req"]) for job in params["two_jobs_finish_together"]]
    for lingering, running in ((False, "running_after_3_steps"), (True, "original_running_after_3_steps")):
        sim = ReferenceSimulator(replace(physics, lingering=lingering), jobs=pair, steps=9)
        for action in (0, 1, 10, 10, 10):
            sim.step(action)
        assert len(sim.running) == expected[running]


def test_longest_job_and_rejections():
    jobs = [(0, 6, [1, 1]), (0, 7, [1, 1]), (0, 1, [1, 4]), (1, 0, [1, 1])]
    sim = simulator(jobs)
    sim.step(0)
    sim.step(NOOP)
    assert [(job["status"], job["reason"]) for job in sim.jobs()] == [
        ("running", ""),
        ("rejected", "exceeds_horizon"),
        ("rejected", "exceeds_capacity"),
        ("rejected", "zero_duration"),
    ]
    assert sim.jobs()[0]["start_time"] == 0
    assert sim.slots == [None, None]


def test_the_original_lets_them_wait_for_ever():
    sim = simulator([(0, 6, [1, 1]), (0, 1, [1, 4])], off_by_one=True, allow_reservation=True)
    for action in (0, 1, 0, 1):
        sim.step(action)
    assert sim.time == 4
    assert [job["status"] for job in sim.jobs()] == ["waiting", "waiting"]


# ---- Ends -------------------------------------------------------------------------------------------


def test_all_done_waits_for_the_last_arrival_step():
    sim = simulator([(0, 1, [1, 1])], steps=4)
    sim.step(0)
    ends = [sim.step(NOOP)[1:] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(True, False)]


def test_all_done_is_cut_after_the_limit():
    sim = simulator([(0, 1, [1, 1])], episode_max_length=3)
    assert [sim.step(NOOP)[1:] for _ in range(4)] == [(False, False)] * 3 + [(False, True)]


def test_no_new_job_ends_at_step_t_without_arrivals():
    sim = simulator([(0, 5, [1, 1]), (3, 1, [1, 1])], termination="no_new_job", episode_max_length=1)
    ends = [sim.step(NOOP) for _ in range(4)]
    assert [end[1:] for end in ends] == [(False, False)] * 3 + [(True, False)]
    assert [end[0] for end in ends] == pytest.approx([-0.4, -0.2, -1.2, -1.2])


@pytest.mark.parametrize(("limit", "steps", "end"), [(3, 9, 3), (9, 4, 4), (4, 4, 4)])
def test_continuing_is_only_ever_truncated(limit, steps, end):
    sim = simulator([(0, 1, [1, 1])], steps, termination="continuing", episode_max_length=limit)
    sim.step(0)
    ends = [sim.step(NOOP)[1:] for _ in range(end)]
    assert ends == [(False, False)] * (end - 1) + [(False, True)]


def test_nothing_arrives_in_the_step_that_ends_the_episode():
    jobs = [(at, 1, [1, 1]) for at in range(6)]
    sim = simulator(jobs, termination="continuing", episode_max_length=3)
    for _ in range(3):
        sim.step(NOOP)
    assert sim.truncated
    assert [job["arrival_time"] for job in sim.jobs()] == [0, 1, 2]


# ---- Rewards ----------------------------------------------------------------------------------------


def test_reward_terms():
    jobs = [(0, 4, [1, 1]), (0, 2, [1, 1]), (0, 5, [1, 1]), (1, 3, [1, 1])]
    penalties = {"delay_penalty": -1.0, "hold_penalty": -10.0, "dismiss_penalty": -100.0}
    sim = simulator(jobs, **penalties)
    assert sim.step(0)[0] == 0.0
    sim.step(NOOP)
    at_0, at_1 = (0, -10 * (1 / 4 + 1 / 2), -100 / 5), (-1 / 4, -10 * (1 / 5 + 1 / 2), -100 / 3)
    assert sim.reward_terms == pytest.approx((at_1[0], at_0[1] + at_1[1], at_0[2] + at_1[2], 0))
    sim.step(NOOP)
    assert sim.reward_terms == pytest.approx((*at_1, 0))
    counted = simulator(jobs, objective="completion_time", **penalties)
    counted.step(0)
    counted.step(NOOP)
    assert counted.reward_terms == (-1.0, -40.0, -200.0, 0.0)
    counted.step(NOOP)
    assert counted.reward_terms == (-1.0, -20.0, -100.0, 0.0)


def test_a_drop_at_reset_is_charged_in_the_first_time_step():
    sim = simulator([(0, 1, [1, 1])] * 5, drop_penalty=-7.0)
    assert sim.step(0)[0] == 0.0
    sim.step(NOOP)
    assert sim.reward_terms[3] == -7.0
    sim.step(NOOP)
    assert sim.reward_terms[3] == 0.0


# ---- Masks ------------------------------------------------------------------------------------------


def test_masks():
    jobs = [(0, 3, [4, 1]), (0, 3, [1, 1]), (0, 4, [1, 1])]
    now = simulator(jobs, allow_reservation=True)
    anything = simulator(jobs, allow_reservation=True, mask="physics")
    unreserved = simulator(jobs, mask="physics")
    for sim in (now, anything, unreserved):
        assert sim.action_mask().tolist() == [True, True, True]
        sim.step(0)
    assert now.action_mask().tolist() == [False, False, True]
    assert anything.action_mask().tolist() == [False, True, True]  # the longer one would pass the horizon
    assert unreserved.action_mask().tolist() == [False, False, True]


def test_mask_and_the_unreachable_row():
    for quirk in (False, True):
        sim = simulator([(0, 6, [1, 1])], off_by_one=quirk)
        assert sim.action_mask().tolist() == [not quirk, False, True]


@pytest.mark.parametrize("limit", [0, 1, 3, None])
def test_idle_limit(limit):
    """The no-op is legal for `limit` idle steps in a row, then not until the cluster has worked."""
    sim = simulator([(0, 2, [4, 1]), (0, 1, [1, 1])], steps=20, idle_limit=limit)
    for step in range(5):
        assert sim.action_mask()[NOOP] == (limit is None or step < limit)
        sim.step(NOOP)
    assert (sim.idle_run, sim.idle_steps) == (5, 5)
    sim.step(0)
    assert sim.action_mask().tolist() == [False, False, True]  # busy: the other job does not fit
    sim.step(NOOP)
    assert sim.idle_run == 0
    sim.step(NOOP)
    assert sim.action_mask()[NOOP] == (limit != 0)
    assert sim.idle_steps == 5


def test_an_idle_cluster_with_nothing_to_start_may_wait():
    sim = simulator([(2, 1, [1, 1])], idle_limit=0)
    assert sim.action_mask().tolist() == [False, False, True]


# ---- Invariants -------------------------------------------------------------------------------------

PHYSICS = st.builds(
    small,
    allow_reservation=st.booleans(),
    off_by_one=st.booleans(),
    skip_first=st.booleans(),
    mask=st.sampled_from(["fits_now", "physics"]),
    idle_limit=st.sampled_from([None, 0, 2]),
    termination=st.sampled_from(["all_done", "no_new_job", "continuing"]),
    backlog_size=st.integers(0, 3),
)
JOBS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(1, 5), st.tuples(st.integers(0, 4), st.integers(0, 3))),
    max_size=14,
)


def check_state(sim, jobs):
    """Free units follow from the bookings, nothing is negative, no job is in two places."""
    for row, free in enumerate(sim.free):
        at = sim.time + row
        booked = [job for job in sim.running if job.start <= at < job.finish]
        for resource, units in enumerate(free):
            assert units == sim.spec.capacity[resource] - sum(job.demand[resource] for job in booked) >= 0
    places = [id(job) for job in [*sim.slots, *sim.running, *sim.backlog] if job]
    assert len(places) == len(set(places))
    assert not sim.backlog or None not in sim.slots
    assert sim.action_mask().any()
    in_system = sum(job["status"] in ("waiting", "running", "reserved") for job in sim.jobs())
    assert in_system == len(places)
    assert len(sim.jobs()) <= len(jobs)


@settings(max_examples=150, deadline=None)
@given(physics=PHYSICS, jobs=JOBS, seed=st.integers(0, 2**32 - 1))
def test_invariants_along_legal_episodes(physics, jobs, seed):
    """Legal slots are booked without time passing, every other decision takes one step; arrays stay sound."""
    sim = ReferenceSimulator(physics, jobs=jobs, steps=12)
    rng = np.random.default_rng(seed)
    while not (sim.terminated or sim.truncated):
        check_state(sim, jobs)
        mask = sim.action_mask()
        action, before = int(rng.choice(np.flatnonzero(mask))), sim.time
        reward, *_ = sim.step(action)
        assert sim.time == before + (action == NOOP)
        assert reward <= 0
        assert np.isfinite(sim.compact()).all()
        assert 0 <= sim.image().min() <= sim.image().max() <= 1
    for job in sim.jobs():
        if job["start_time"] >= 0:
            assert job["arrival_time"] <= job["start_time"] == job["finish_time"] - job["duration"]


@settings(max_examples=150, deadline=None)
@given(physics=PHYSICS, jobs=JOBS, seed=st.integers(0, 2**32 - 1))
def test_return_is_minus_the_sum_of_slowdowns(physics, jobs, seed):
    """Paper, section 3.2: with `all_done` and no discount; of the times in the system likewise."""
    for objective in ("slowdown", "completion_time"):
        physics = replace(physics, termination="all_done", objective=objective, idle_limit=0)
        sim, total = ReferenceSimulator(physics, jobs=jobs, steps=12), 0.0
        rng = np.random.default_rng(seed)
        while not (sim.terminated or sim.truncated):
            total += sim.step(int(rng.choice(np.flatnonzero(sim.action_mask()))))[0]
        if sim.truncated:
            continue
        recorded = [job for job in sim.jobs() if job["legacy_id"] >= 0]
        times = [
            (job["finish_time"] - job["arrival_time"]) / (job["duration"] if objective == "slowdown" else 1)
            for job in recorded
        ]
        assert math.isclose(total, -sum(times), abs_tol=1e-9)


@settings(max_examples=60, deadline=None)
@given(jobs=JOBS, cut=st.integers(1, 11), seed=st.integers(0, 99))
def test_the_future_is_not_seen(jobs, cut, seed):
    """Jobs that have not arrived change nothing that is seen, given or listed before."""
    past = [job for job in jobs if job[0] < cut]
    sims = [ReferenceSimulator(small(), jobs=some, steps=12) for some in (past, jobs)]
    rng = np.random.default_rng(seed)
    while sims[0].time < cut - 1:
        action = int(rng.integers(3))
        assert sims[0].step(action) == sims[1].step(action)
        assert sims[0].compact().tobytes() == sims[1].compact().tobytes()
        assert sims[0].image().tobytes() == sims[1].image().tobytes()
        assert (sims[0].action_mask() == sims[1].action_mask()).all()
        assert sims[0].jobs() == sims[1].jobs()


def test_any_spec_with_the_same_names_serves():
    class Names:
        pass

    spec = Names()
    for name in ("num_resources", *small().__dataclass_fields__):
        setattr(spec, name, getattr(small(), name))
    sim = ReferenceSimulator(spec, [2], [[1, 1]])
    assert replay.ReferenceAdapter(spec).physics is spec
    assert sim.step(0) == (0.0, False, False)
