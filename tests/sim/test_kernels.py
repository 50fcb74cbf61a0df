"""The kernels do what the reference does, on any settings and any actions; threads change nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import KERNELS, KernelAdapter, kernels_for, sequences_of

from schedrl.sim.deeprm.reference import ReferencePhysics, ReferenceSimulator

LIMIT = 120  # decisions of a property test's episode


@st.composite
def any_physics(draw):
    """Draw any cluster: sizes up to a machine word and beyond, every switch."""
    horizon = draw(st.one_of(st.integers(1, 12), st.sampled_from([20, 63, 64, 65, 80])))
    capacity = draw(
        st.lists(st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65])), min_size=1, max_size=4)
    )
    penalties = {
        name: draw(st.sampled_from([-1.0, 0.0, -0.25]))
        for name in ("delay_penalty", "hold_penalty", "dismiss_penalty")
    }
    switches = {
        name: draw(st.booleans())
        for name in ("allow_reservation", "lingering", "off_by_one", "skip_first", "silent_drop")
    }
    return ReferencePhysics(
        num_slots=draw(st.integers(1, 5)),
        horizon=horizon,
        capacity=tuple(capacity),
        backlog_size=draw(st.integers(0, 7)),
        episode_max_length=draw(st.integers(1, 40)),
        termination=draw(st.sampled_from(["all_done", "no_new_job", "continuing"])),
        objective=draw(st.sampled_from(["slowdown", "completion_time"])),
        drop_penalty=draw(st.sampled_from([0.0, -3.0])),
        mask=draw(st.sampled_from(["fits_now", "physics"])),
        idle_limit=draw(st.sampled_from([None, 0, 1, 3])),
        max_track_since_new=draw(st.integers(1, 10)),
        max_job_demand=draw(st.integers(1, max(capacity))),
        **penalties,
        **switches,
    )


@st.composite
def any_jobs(draw, physics, most=60):
    """Draw jobs, several to a step, some that can never run, and the number of arrival steps.

    From a seed, not one by one: Hypothesis prefers short lists, which fill no backlog.
    """
    steps, count = draw(st.integers(1, 14)), draw(st.integers(0, most))
    longest = draw(st.sampled_from([1, 3, physics.horizon + 2]))
    share = draw(st.sampled_from([0.3, 1.0, 1.2]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    demands = rng.integers(0, np.array(physics.capacity) * share + 1, (count, physics.num_resources))
    arrivals, durations = rng.integers(0, steps, count), rng.integers(1, longest + 1, count)
    return list(zip(arrivals.tolist(), durations.tolist(), map(tuple, demands.tolist()), strict=True)), steps


@st.composite
def any_case(draw):
    """Draw physics, jobs, steps, and a seed for the actions."""
    physics = draw(any_physics())
    return physics, *draw(any_jobs(physics)), draw(st.integers(0, 2**32 - 1))


def status_table(sim):
    """List the jobs that have come as the reference and an outcome both know them."""
    names = ("job_id", "legacy_id", "arrival_time", "start_time", "finish_time", "duration", "status")
    table = sim.jobs()
    if isinstance(table, dict):
        return [tuple(row) for row in zip(*(np.asarray(table[name]).tolist() for name in names), strict=True)]
    return [tuple(job[name] for name in names) for job in table]


def assert_same(reference, kernel):
    """Compare everything that can be seen."""
    assert (reference.action_mask() == kernel.mask()).all()
    np.testing.assert_array_equal(reference.compact(), kernel.compact())
    np.testing.assert_array_equal(reference.image().astype(np.float32), kernel.image())
    np.testing.assert_array_equal((255 * (reference.image() > 0))[:, :-1], kernel.image(np.uint8)[:, :-1])
    table = kernel.outcome()
    assert status_table(reference) == status_table(table)
    assert table.decisions[0] == reference.decisions
    assert table.idle_steps[0] == reference.idle_steps


@settings(max_examples=250, deadline=None)
@given(case=any_case())
def test_kernels_do_what_the_reference_does(case):
    """Random actions, legal or not: rewards and their terms, ends, masks, observations, the job table."""
    physics, jobs, steps, seed = case
    rng = np.random.default_rng(seed)
    reference = ReferenceSimulator(physics, jobs=sorted(jobs, key=lambda job: job[0]), steps=steps)
    kernels = [KernelAdapter(physics, kernel) for kernel in kernels_for(physics)]
    for kernel in kernels:
        kernel.load(sequences_of(jobs, physics.num_resources, steps))
        assert_same(reference, kernel)
    total = 0.0
    for _ in range(LIMIT):
        if reference.terminated or reference.truncated:
            break
        # Mostly legal ones: many bookings are what makes a difference.
        anything = rng.random() < 0.3
        action = int(
            rng.choice(np.arange(physics.num_slots + 1) if anything else reference.action_mask().nonzero()[0])
        )
        reward, terminated, truncated = reference.step(action)
        total += reward
        for kernel in kernels:
            got = kernel.step(action)
            assert got[0] == pytest.approx(reward, abs=1e-9)
            assert got[1:] == (terminated, truncated)
            assert kernel.state.terms[0] == pytest.approx(reference.reward_terms, abs=1e-9)
            assert_same(reference, kernel)
    for kernel in kernels:
        assert kernel.outcome().ret[0] == pytest.approx(total, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(case=any_case(), kernel=st.sampled_from(KERNELS))
def test_invariants(case, kernel):
    """Capacity is never exceeded, work is conserved, time is monotone, the return is minus the slowdowns."""
    physics, jobs, steps, seed = case
    physics = replace(
        physics, termination="all_done", lingering=False, off_by_one=False, idle_limit=0, mask="fits_now",
        delay_penalty=-1.0, hold_penalty=-1.0, dismiss_penalty=-1.0, silent_drop=True, objective="slowdown",
        episode_max_length=10_000,
    )  # fmt: skip
    sim = KernelAdapter(physics, kernel if kernel in kernels_for(physics) else "counts")
    sim.load(sequences_of(jobs, physics.num_resources, steps))
    rng, capacity, time, ended = np.random.default_rng(seed), np.array(physics.capacity), 0, False
    while not ended:
        legal = np.flatnonzero(sim.mask())
        before = sim.state.free[0]
        action = int(rng.choice(legal))
        _, *ends = sim.step(action)
        ended = any(ends)
        free, now = sim.state.free[0], sim.inner()["time"]
        assert (free >= 0).all()
        assert (free <= capacity[:, None]).all()
        assert now == time + (action == physics.num_slots)
        assert free.sum() <= before.sum() or now > time
        time = now
    outcome = sim.outcome()
    done = outcome.status[0] == 1
    assert set(outcome.status[0][outcome.arrived[0]].tolist()) <= {1, 5, 6}
    assert (outcome.start[0][done] >= outcome.arrival[0][done]).all()
    assert (outcome.finish[0][done] - outcome.start[0][done] == outcome.duration[0][done]).all()
    slowdown = (outcome.finish[0] - outcome.arrival[0])[done] / outcome.duration[0][done]
    assert outcome.ret[0] == pytest.approx(-slowdown.sum(), abs=1e-9)
    for step in range(time):  # units in use, from the table alone
        running = done & (outcome.start[0] <= step) & (outcome.finish[0] > step)
        assert (outcome.demand[0][running].sum(axis=0) <= capacity).all()
