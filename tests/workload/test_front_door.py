"""`job_distribution`: the workload factory, its tour and its command."""

import re
import subprocess
import sys

import numpy as np
import pytest

import job_distribution
from job_distribution import workload
from schedrl.settings import UserError


def test_table_and_all_agree():
    named = re.findall(r"^\| `(\w+)`", job_distribution.__doc__, re.MULTILINE)
    assert sorted(named) == sorted(job_distribution.__all__)
    assert all(hasattr(job_distribution, name) for name in job_distribution.__all__)


@pytest.mark.parametrize("name", ["deeprm", "uniform"])
def test_load_is_met_within_three_standard_errors(name):
    jobs = workload(name, load=1.3, num_jobs=20_000, seed=1)
    work = jobs.duration[:, None] * jobs.demand / 10
    gaps = np.diff(jobs.arrival)
    # Delta method for a ratio of independent means: work per job over time per job.
    relative = np.hypot(work.std(0) / work.mean(0), gaps.std() / gaps.mean()) / np.sqrt(len(jobs))
    assert (np.abs(jobs.load(10) - 1.3) <= 3 * 1.3 * relative).all()


def test_deeprm_is_bimodal_and_reproducible():
    jobs = workload("deeprm", num_jobs=300, seed=5)
    assert len(jobs) == 300
    assert jobs.same_as(workload("bimodal", num_jobs=300, seed=5))
    assert jobs.take(slice(0, 100)).same_as(workload(num_jobs=100, seed=5))
    assert not jobs.same_as(workload("uniform", num_jobs=300, seed=5))
    assert not jobs.same_as(workload("deeprm", num_jobs=300, seed=6))
    assert not jobs.same_as(workload("deeprm", num_jobs=300, seed=5, family="test"))


def test_settings_are_passed_on():
    jobs = workload("uniform", num_jobs=200, num_resources=3, capacity=(4, 5, 6), max_job_demand=4)
    assert jobs.demand.shape == (200, 3)
    assert jobs.demand.max() == 4
    assert [resource.name for resource in jobs.resources] == ["resource 0", "resource 1", "resource 2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "unifrom"}, "uniform"),
        ({"max_job_len_": 3}, "unknown setting"),
        ({"load": 9}, "more than one arrival per step"),
        ({"num_jobs": 0}, "num_jobs is 0"),
        ({"arrival_rate": 0}, "no job ever arrives"),
        ({"arrival_rate": 1e-9}, "arrival_rate is 1e-09, so no job ever arrives"),
    ],
    ids=str,
)
def test_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        workload(**arguments)


def test_tour(capsys):
    assert job_distribution.main([]) == 0
    shown = capsys.readouterr().out
    assert "expected:             130 %, 130 %" in shown
    assert len(shown.splitlines()) < 25


@pytest.mark.parametrize(
    "arguments",
    [["generate", "--load", "99"], ["generate", "--lod", "1"], ["generate", "--seed", "-1"], ["--load", "1"]],
)
def test_bad_input_is_one_line_and_exit_code_2(root, arguments):
    command = [sys.executable, "job_distribution.py", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
