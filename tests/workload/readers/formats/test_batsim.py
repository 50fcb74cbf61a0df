import json

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

PROFILES = {
    "d10": {"type": "delay", "delay": 10},
    "d20": {"type": "DelayProfile", "delay": 20.5},
    "twice": {"type": "composed", "repeat": 2, "seq": ["d10", "d20"]},
    "nested": {"type": "SequentialCompositionProfile", "seq": ["twice", "d10"]},
    "endless": {"type": "composed", "seq": ["endless", "endless"]},
    "mpi": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    "half": {"type": "composed", "seq": ["d10", "mpi"]},
    "odd": {"type": "delay", "delay": "soon"},
    "backwards": {"type": "delay", "delay": -1},
}


def job(name=1, **changes):
    held = {"id": name, "subtime": 5, "walltime": 100, "res": 4, "profile": "d10"} | changes
    return {key: value for key, value in held.items() if value is not ...}


def text(*jobs):
    return json.dumps({"description": "made by hand", "nb_res": 8, "jobs": jobs, "profiles": PROFILES})


def test_a_job_has_the_duration_of_its_profile_and_the_walltime_as_estimate(read_text):
    names = ["d10", "d20", "twice", "nested"]
    jobs, rejected = read_text(text(*(job(name, profile=name) for name in names)))
    assert jobs.id.tolist() == names
    assert jobs.duration.tolist() == [10, 20.5, 61, 71]
    assert jobs.estimate.tolist() == [100] * 4
    assert jobs.demand[:, 0].tolist() == [4] * 4
    assert jobs.capacity.tolist() == [8]
    assert dict(jobs.about) == {"description": "made by hand"}
    assert not len(rejected)


def test_batsim_stops_a_job_at_its_walltime(read_text):
    jobs, rejected = read_text(text(job(1, walltime=3), job(2, walltime=-1), job(3, walltime=...)))
    assert jobs.duration.tolist() == [3, 10, 10]
    assert jobs.estimate[0] == 3
    assert np.isnan(jobs.estimate[1:]).all()
    assert rejected.adjusted == {"the job was longer than its walltime, so it is cut there": 1}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (job(2, profile="mpi"), "runtime_unknown"),
        (job(2, profile="half"), "runtime_unknown"),
        (job(2, profile="endless"), "runtime_unknown"),
        (job(2, profile="absent"), "runtime_unknown"),
        (job(2, profile="odd"), "runtime_unknown"),
        (job(2, profile=["d10"]), "runtime_unknown"),
        (job(2, profile=...), "runtime_unknown"),
        (job(2, profile="backwards"), "negative_runtime"),
        (job(2, subtime=...), "arrival_unknown"),
        (job(2, subtime="now"), "not_numeric"),
        (job(2, subtime=True), "not_numeric"),
        (job(2, subtime=10**400), "not_finite"),
        (job(2, res=...), "demand_unknown"),
        (job(2, res=0), "no_demand"),
        (job(2, res=-1), "negative_demand"),
        (job(...), "id_missing"),
        (job({"a": 1}), "id_missing"),
        (job(1), "exact_repeat"),
        ([1, 2], "no_object"),
    ],
)
def test_entries_that_are_no_jobs_are_rejected_with_place_and_reason(read_text, entry, reason):
    jobs, rejected = read_text(text(job(1), entry))
    assert len(jobs) == 1
    assert [(r.line, r.reason) for r in rejected] == [(2, reason)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"nb_res": 4, "jobs": [', "is no JSON"),
        ('{"nb_res": 4}', "no jobs; Batsim's JSON has"),
        ('{"nb_res": 4, "jobs": [], "profiles": {}}', "no jobs"),
        ('{"nb_res": 4, "jobs": {}, "profiles": []}', "no jobs"),
        ('{"nb_res": ' + "[" * 100_000, "is no JSON"),
        (b'{"nb_res": "\xff"}', "is not in utf-8"),
        (text(job(1, profile="mpi")), "no jobs; 1 row rejected: 1 runtime_unknown"),
    ],
)
def test_what_is_no_workload_is_an_error(read_text, content, message):
    with pytest.raises(UserError, match=message):
        read_text(content)


def test_gangs_make_every_resource_an_instance(read_text):
    jobs, rejected = read_text(text(job(1), job(2, res=1.5)), gangs=True)
    assert (jobs.demand[0, 0], jobs.instances[0]) == (1, 4)
    assert rejected.counts == {"bad_instances": 1}


def test_the_real_sample(shared_dir, format_of):
    path = shared_dir / "traces" / "batsim_example_workload_hpc_seed1_jobs250.json"
    assert format_of(path) == "batsim"
    jobs, rejected = read_trace(path)
    assert (len(jobs), len(rejected)) == (250, 0)
    assert jobs.capacity.tolist() == [128]
    assert (jobs.arrival[0], jobs.duration[0], jobs.estimate[0]) == (57.245384205516594, 172.94, 300)
    assert set(jobs.demand[:, 0]) == {4, 8, 16, 32, 64, 128}
    assert (jobs.duration <= jobs.estimate).all()
