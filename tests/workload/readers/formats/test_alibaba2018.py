import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

ROW = "task_1,2,j_1,1,Terminated,100,160,100,0.5"


def test_case_08_plans_are_hundredths_of_a_core_and_of_one_instance(case, format_of):
    path = case("08").folder / "batch_task_2018.csv"
    assert format_of(path) == "alibaba2018"
    jobs, rejected = read_trace(path)
    assert not len(rejected)
    for job, expected in zip(range(2), case("08").expected["2018"], strict=True):
        assert jobs.extra["job"][job] == expected["job"]
        assert jobs.instances[job] == expected["instances"]
        assert jobs.demand[job, 0] == expected["cpu_cores_per_instance"]
        assert jobs.demand[job, 0] * jobs.instances[job] == expected["cpu_cores_total"]
        assert jobs.demand[job, 1] == pytest.approx(expected["mem_fraction_per_instance"], rel=1e-12)
        assert jobs.duration[job] == expected["run"]


def test_the_id_is_job_and_task_and_the_start_stands_for_the_arrival(read_text):
    jobs, _ = read_text(ROW + "\n")
    assert jobs.id.tolist() == ["j_1/task_1"]
    assert (jobs.arrival[0], jobs.recorded_start[0], jobs.recorded_finish[0]) == (100, 100, 160)
    assert [tuple(r) for r in jobs.resources] == [
        ("cpu", "cores"),
        ("memory", "fraction of the largest machine"),
    ]


@pytest.mark.parametrize(
    ("task", "number", "depends_on"),
    [
        ("M1", "1", ""),
        ("R4_2", "4", "2"),
        ("M5_3_4", "5", "3 4"),
        ("J12_10_Stg11", "12", "10"),
        ("task_Nzg3ODAwNDgzMTAwNTc2NTQ2Mw==", "", ""),
        ("MergeTask", "", ""),
    ],
)
def test_the_graph_is_in_the_names_of_tasks(read_text, task, number, depends_on):
    jobs, _ = read_text(ROW.replace("task_1", task) + "\n")
    assert (jobs.extra["number"][0], jobs.extra["depends_on"][0]) == (number, depends_on)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("M1,1,j_2,1,Running,100,0,100,0.5", "unfinished"),
        ("M1,1,j_2,1,Terminated,0,160,100,0.5", "pre_trace"),
        ("M1,1,j_2,1,Waiting,0,0,100,0.5", "arrival_unknown"),
        ("M1,1,j_2,1,Terminated,,160,100,0.5", "arrival_unknown"),
        ("M1,1,j_2,1,Terminated,160,100,100,0.5", "negative_runtime"),
        ("M1,1,j_2,1,Terminated,100,160,,", "demand_unknown"),
        ("M1,1,j_2,1,Terminated,100,160,-1,0.5", "demand_unknown"),
        ("M1,1,j_2,1,Terminated,100,160,100,101", "demand_unknown"),
        ("M1,1,j_2,1,Terminated,100,160,100,-1", "demand_unknown"),
        ("M1,0,j_2,1,Terminated,100,160,100,0.5", "bad_instances"),
        ("M1,,j_2,1,Terminated,100,160,100,0.5", "bad_instances"),
        ("M1,1,,1,Terminated,100,160,100,0.5", "id_missing"),
        ("M1,1,j_2,1,Terminated,100,160,0,0", "no_demand"),
        ("M1,1,j_2,1,Terminated,soon,160,100,0.5", "not_numeric"),
        ("M1,1,j_2,1,Terminated,100,inf,100,0.5", "not_finite"),
        ("M1,1,j_2", "too_few_fields"),
        ("M1,1,j_2,1,Terminated,100,160,100,0.5,7", "too_many_fields"),
        (ROW, "exact_repeat"),
    ],
)
def test_rows_that_are_no_jobs_are_rejected_with_line_and_reason(read_text, row, reason):
    jobs, rejected = read_text(f"{ROW}\n{row}\n")
    assert len(jobs) == 1
    assert [(r.line, r.reason) for r in rejected] == [(2, reason)]


def test_a_header_row_may_be_there_in_any_order(read_text):
    jobs, _ = read_text(
        "job_name,task_name,instance_num,plan_mem,plan_cpu,end_time,start_time,status,task_type\n"
        "j_1,M1,2,0.5,100,160,100,Failed,3\n"
    )
    assert (jobs.id[0], jobs.duration[0], jobs.demand[0].tolist()) == ("j_1/M1", 60, [1.0, 0.005])
    assert (jobs.extra["status"][0], jobs.extra["task_type"][0]) == ("Failed", "3")


def test_the_same_task_with_other_values_is_an_error_unless_lenient(read_text):
    text = f"{ROW}\n{ROW.replace(',160,', ',170,')}\n"
    with pytest.raises(UserError, match=r"line 2: job j_1/task_1 .*duration 60 and 70"):
        read_text(text)
    jobs, rejected = read_text(text, lenient=True)
    assert np.array_equal(jobs.duration, [60])
    assert rejected.counts == {"conflict": 1}
