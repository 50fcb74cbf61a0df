"""One field, one row (case 38): what a row lacks it takes from no other; what no rule needs rejects none."""

import numpy as np
import pytest

from job_distribution import main as job_distribution
from schedrl.sim.cluster import simulate
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.readers import read_trace
from schedrl.workload.writers import write_trace

NONE = "memory was not stated, so the job asks for none of it"


@pytest.mark.parametrize("name", ["all-state-it.swf", "a-rejected-row-does-not.swf"])
def test_a_rejected_row_decides_nothing(case, name):
    folder, expected = case("38")
    jobs, _ = read_trace(folder / name)
    assert [r.name for r in jobs.resources] == expected["resources"][name]
    machines = read_cluster(folder / "cluster.toml")
    end = simulate(jobs.take(np.arange(9)), machines, "fifo+first_fit+strict").finish.max()
    assert end <= expected["makespan_until"]


@pytest.mark.parametrize("name", ["one-job-does-not.swf", "one-job-does-not.csv"])
def test_every_format_takes_the_same_choice_and_says_it(case, name, capsys):
    path = case("38").folder / name
    jobs, rejected = read_trace(path)
    assert [r.name for r in jobs.resources] == ["cpu", "memory"]
    assert (jobs.demand[:, 1] == 0).sum() == 1
    assert (jobs.demand[:, 0] > 0).all()
    assert dict(rejected.adjusted) == {NONE: 1}
    assert not len(rejected)
    assert job_distribution(["inspect", str(path)]) == 0
    assert f"1 row: {NONE}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "id,submit,run,cpu,memory,disk\na,0,5,2,4,1\nb,1,5,2,,\nc,2,5,,4,1\n"),
        ("alibaba2018", "task_1,1,j_1,1,Terminated,1,6,100,50\ntask_1,1,j_2,1,Terminated,1,6,100,\n"
         "task_1,1,j_3,1,Terminated,1,6,,50\n"),
        ("alibaba_gpu2020", "a,w,1.0,Terminated,5,6,600,29,50,T4\nb,w,1.0,Terminated,5,6,600,,50,T4\n"
         "c,w,1.0,Terminated,5,6,,29,50,T4\n"),
    ],
)  # fmt: skip
def test_a_resource_that_a_row_does_not_state(read_text, format, text):
    jobs, rejected = read_text(text, format)
    assert jobs.demand.shape[0] == 2
    assert (jobs.demand[0] > 0).all()
    assert jobs.demand[1, 1] == 0
    assert [r.reason for r in rejected] == ["demand_unknown"], "nothing runs without a processor"
    assert rejected.adjusted[NONE] == 1


def test_a_resource_that_no_row_states_is_left_out(read_text):
    jobs, rejected = read_text("id,submit,run,cpu,memory\na,0,5,2,\nb,1,5,2,\nc,1,-5,2,4\n")
    assert [r.name for r in jobs.resources] == ["cpu"]
    assert not rejected.adjusted


@pytest.mark.parametrize(
    ("format", "text", "names"),
    [
        (
            "csv",
            "id,submit,run,cpu,start,finish,time_limit,priority,deadline\na,0,5,2,0,5,60,1,9\n"
            "b,1,5,2,early,later,for ever,high,never\n",
            ("start", "finish", "time_limit", "priority", "deadline"),
        ),
        (
            "swf",
            "1 0 0 5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n2 0 x 5 1 y -1 1 z -1 ok 1 staff a.out batch p q r\n",
            ("wait", "cpu_time", "requested_time", "status", "group", "executable", "queue", "partition"),
        ),
        (
            "azure2019",
            "a,s,d,300,900,91.7,0.72,20.7,Unknown,8,32\nb,s,d,300,900,?,0.72,x,Unknown,8,32\n",
            ("maxcpu", "p95maxcpu"),
        ),
    ],
)
def test_what_no_rule_needs_rejects_no_row(read_text, format, text, names):
    jobs, rejected = read_text(text, format)
    assert len(jobs) == 2
    assert not len(rejected)
    for name in names:
        assert rejected.adjusted[f"{name} was no number, so it is unknown"] == 1


def test_start_and_finish_are_needed_where_they_are_the_run_time(read_text):
    jobs, rejected = read_text("id,submit,cpu,start,finish\na,0,1,2,3\nb,0,1,2,never\n")
    assert [r.reason for r in rejected] == ["not_numeric"]
    assert jobs.id.tolist() == ["a"]


def test_what_was_lost_is_said_in_work(read_text, tmp_path, capsys):
    text = (
        "id,submit,run,cpu,memory\na,0,100,2,4\nb,,300,2,4\nc,1,,8,8\nd,2,50,-1,4\na,0,100,2,4\ne,x,5,1,1\n"
    )
    jobs, rejected = read_text(text, name="t.csv")
    assert rejected.lost == {"cpu": 600, "memory": 1200 + 200}
    assert rejected.unmeasured == 2
    (line,) = rejected.work_lines(jobs)
    assert line == (
        "lost with them: 600 core-seconds of cpu (75.00% of what is stated); 1,400 GB-seconds of memory "
        "(77.78% of what is stated); of 2 rows the work is not known"
    )
    for command in (["inspect", "t.csv"], ["convert", "t.csv", "out.csv"]):
        assert job_distribution([command[0], *(str(tmp_path / name) for name in command[1:])]) == 0
        assert line in capsys.readouterr().out


def test_parts_of_jobs_in_swf_are_told_in_work(read_text):
    jobs, rejected = read_text(
        "1 0 0 50 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n2 0 0 30 2 -1 -1 2 60 -1 2 1 1 1 1 1 -1 -1\n"
    )
    assert (rejected.lost, rejected.unmeasured) == ({"cpu": 60.0}, 0)


def test_swf_holds_jobs_without_memory_beside_others(case, tmp_path):
    jobs, _ = read_trace(case("38").folder / "one-job-does-not.swf")
    write_trace(jobs, tmp_path / "out.swf")
    assert read_trace(tmp_path / "out.swf")[0].same_as(jobs)
