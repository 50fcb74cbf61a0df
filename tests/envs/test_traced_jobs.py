"""Job sequences of a trace: parts that never meet, windows that wrap, loads that are met."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import environment
from schedrl.envs.deeprm import jobs
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.settings import UserError
from schedrl.sim.deeprm.sequences import NEVER

LONG = {"max_job_duration": 200, "time_horizon": 200, "time_step": 1}


def write(path, count=150, gap=3, procs=lambda number: 1 + number % 4, max_procs=8):
    """Write an SWF file whose job number n lasts n seconds, so that it can be told from the others."""
    rows = [f"{n} {gap * n} -1 {n} {procs(n)} -1 -1 -1 -1 -1 1 1 1 1 0 -1 -1 -1" for n in range(1, count + 1)]
    path.write_text("\n".join([f"; MaxProcs: {max_procs}", *rows, "bad row"]) + "\n")
    return str(path)


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "jobs.swf")


def settings_of(trace, **more):
    return DeepRMSettings().replace(trace=trace, num_resources=1, **{**LONG, **more})


def test_families_never_share_a_job(trace):
    seen = {}
    for family in ("train", "validation", "test"):
        drawn = jobs.sequences_of(settings_of(trace), 300, 0, family)
        seen[family] = set(np.unique(drawn.duration[drawn.arrival != NEVER]).tolist())
    assert seen["train"] == set(range(1, 91))
    assert seen["validation"] == set(range(91, 121))
    assert seen["test"] == set(range(121, 151))


def test_a_sequence_is_a_window_of_its_part_as_it_was(trace):
    source = jobs.jobs_of(settings_of(trace), 1, "train")
    drawn = source.at(np.arange(300))
    inside = 0
    for arrival, duration, demand in zip(*drawn[:3], strict=True):
        there = arrival != NEVER
        arrival, duration, demand = arrival[there], duration[there], demand[there]
        assert demand[:, 0].tolist() == np.ceil((1 + duration % 4) * 10 / 8).tolist()
        if (np.diff(duration) == 1).all():
            inside += 1
            assert (np.diff(arrival) == 3).all()
    assert 200 < inside < 300, "a window that runs over the end goes on at the beginning"
    again = jobs.jobs_of(settings_of(trace), 1, "train").at(np.arange(250, 270))
    assert np.array_equal(again.arrival, drawn.arrival[250:270])
    other = jobs.jobs_of(settings_of(trace), 2, "train").at(np.arange(300))
    assert not np.array_equal(other.arrival, drawn.arrival)


def test_the_load_is_met_in_each_part_after_rounding(trace):
    settings = settings_of(
        trace, load=0.6, train_loads=(0.3, 0.9), max_job_duration=15, time_horizon=20, time_step=None
    )
    for family, wanted in (("train", [0.3, 0.9]), ("validation", [0.6]), ("test", [0.6])):
        drawn = jobs.sequences_of(settings, 3000, 0, family)
        work = (drawn.duration * drawn.demand[:, :, 0]).sum(axis=1) / 10 / 50
        for turn, load in enumerate(wanted):
            assert work[turn :: len(wanted)].mean() == pytest.approx(load, rel=0.06)


def test_a_part_shorter_than_a_sequence_repeats(tmp_path):
    settings = settings_of(write(tmp_path / "short.swf", count=10), sequence_length=500)
    drawn = jobs.sequences_of(settings, 5, 0, "test")
    durations, counts = np.unique(drawn.duration[drawn.arrival != NEVER], return_counts=True)
    assert durations.tolist() == [9, 10]
    assert counts.min() >= 5 * 500 // 6 - 5
    assert "a sequence repeats it" in "\n".join(jobs.described(settings))


def test_it_is_said_what_was_read_and_rounded(tmp_path):
    trace = write(tmp_path / "jobs.swf", procs=lambda number: 1 if number % 10 else 9)
    text = "\n".join(jobs.described(settings_of(trace, load=0.5, long_jobs="reject", max_job_duration=149)))
    for part in (
        "jobs.swf: 150 jobs; a step is 1 s; 10 units stand for 8 processors of cpu",
        "1 row rejected: 1 ",
        "135 of 150 jobs kept, 15 rejected (demands more than the cluster has)",
        "train: 81 jobs in ",
        "load after rounding cpu 50.",
    ):
        assert part in text
    own = {"capacity": "cpu=16"}
    more = "\n".join(jobs.described(settings_of(trace, workload_settings=own)))
    assert "10 units stand for 16 processors" in more
    assert "150 of 150 jobs kept" in more


def test_make_takes_a_trace_and_its_options(trace, tmp_path):
    packed = tmp_path / "jobs.swf.gz"
    packed.write_bytes(gzip.compress(Path(trace).read_bytes()))
    one = environment.make(trace=trace, load=0.5, window=(0, 300), family="test")
    two = environment.make(
        workload="real_trace", trace_file=str(packed), load=0.5, window=(0, 300), family="test"
    )
    for env in (one, two):
        env.reset(seed=3)
    assert one.settings.workload_settings.window == (0.0, 300.0)
    assert {**one.jobs(), "demand": 0}.keys() == two.jobs().keys()
    assert np.array_equal(one.jobs()["arrival_time"], two.jobs()["arrival_time"])
    batch = environment.make_vec(
        num_envs=4, trace=trace, load=0.9, termination="continuing", sequence_length=40
    )
    obs, _ = batch.reset(seed=0)
    for _ in range(200):
        obs, *_ = batch.step(obs["action_mask"].argmax(axis=1))


def test_another_file_of_the_same_name_is_read_anew(trace, tmp_path):
    settings = settings_of(trace)
    before, data = jobs.sequences_of(settings, 8), settings.data()
    write(tmp_path / "jobs.swf", gap=2)
    assert settings.data() != data
    assert not np.array_equal(before.arrival, jobs.sequences_of(settings, 8).arrival)


def test_what_cannot_be_used_is_refused(tmp_path):
    empty = tmp_path / "empty.swf"
    empty.write_text("; MaxProcs: 8\n")
    wrong = {
        "is no file; check the path": settings_of(str(tmp_path / "missing.swf")),
        "no ": settings_of(str(empty)),
        "can't be split by time": settings_of(write(tmp_path / "few.swf", count=2)),
        "arrive at once": settings_of(write(tmp_path / "one.swf", count=5)),
        "no job of the train part": settings_of(write(tmp_path / "large.swf", procs=lambda number: 9)),
    }
    for says, settings in wrong.items():
        with pytest.raises(UserError, match=says):
            jobs.described(settings)
        with pytest.raises(UserError, match=says):
            environment.make(**settings.to_dict(), family="validation" if "arrive" in says else "train")
    with pytest.raises(UserError, match="real_trace needs a file; give --trace FILE"):
        DeepRMSettings().replace(workload="real_trace")


def test_a_capacity_that_the_cluster_would_not_look_at_is_refused(trace):
    with pytest.raises(UserError, match="capacity has no effect on simple_cluster"):
        environment.make("simple_cluster", trace=trace, workload_settings={"capacity": "cpu=4"})


def test_a_bare_amount_is_no_capacity(trace):
    with pytest.raises(UserError, match="write RESOURCE=AMOUNT, as cpu=4"):
        jobs.jobs_of(settings_of(trace, workload_settings={"capacity": "4"}), 1, "train")
