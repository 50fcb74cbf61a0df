import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

HEADER = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
ROW = "4f057009,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC"


def test_case_08_plans_are_per_cent_and_of_one_instance(case, format_of):
    path = case("08").folder / "pai_task_table.csv"
    assert format_of(path) == "alibaba_gpu2020"
    jobs, rejected = read_trace(path)
    assert not len(rejected)
    for job, expected in zip(range(2), case("08").expected["2020"], strict=True):
        cpu, memory, gpu = (jobs.demand[job] * jobs.instances[job]).tolist()
        assert jobs.extra["job"][job] == expected["job"]
        assert (cpu, gpu, memory) == (
            expected["cpu_cores_total"],
            expected["gpu_total"],
            expected["mem_gb_total"],
        )


def test_it_needs_no_header_row(read_text):
    jobs, _ = read_text(ROW + "\n")
    assert jobs.id.tolist() == ["4f057009/tensorflow"]
    assert (jobs.arrival[0], jobs.duration[0]) == (1739162, 38)
    assert [tuple(r) for r in jobs.resources] == [("cpu", "cores"), ("memory", "GB"), ("gpu", "gpus")]
    assert jobs.extra["gpu_type"].tolist() == ["MISC"]
    with_header, _ = read_text(f"{HEADER}\n{ROW}\n")
    assert with_header.same_as(jobs)


def test_no_plan_of_gpus_is_no_gpu_and_is_counted(read_text):
    jobs, rejected = read_text("a,ps,1.0,Terminated,1.0,2.0,600.0,29.0,,\n")
    assert jobs.demand[0].tolist() == [6, 29, 0]
    assert sum(rejected.adjusted.values()) == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,w,1.0,Running,5.0,,600.0,29.0,50.0,T4", "unfinished"),
        ("a,w,1.0,Running,5.0,0.0,600.0,29.0,50.0,T4", "unfinished"),
        ("a,w,1.0,Waiting,,,600.0,29.0,50.0,T4", "arrival_unknown"),
        ("a,w,1.0,Waiting,0.0,0.0,600.0,29.0,50.0,T4", "arrival_unknown"),
        ("a,w,1.0,Terminated,5.0,4.0,600.0,29.0,50.0,T4", "negative_runtime"),
        ("a,w,1.0,Terminated,5.0,6.0,,29.0,50.0,T4", "demand_unknown"),
        ("a,w,1.0,Terminated,5.0,6.0,600.0,-2,50.0,T4", "negative_demand"),
        ("a,w,1.5,Terminated,5.0,6.0,600.0,29.0,50.0,T4", "bad_instances"),
        ("a,w,,Terminated,5.0,6.0,600.0,29.0,50.0,T4", "bad_instances"),
        (",w,1.0,Terminated,5.0,6.0,600.0,29.0,50.0,T4", "id_missing"),
        ("a,w,1.0,Terminated", "arrival_unknown"),
        ("a,w,1.0,Terminated,5.0,6.0,all,29.0,50.0,T4", "not_numeric"),
        (ROW, "exact_repeat"),
    ],
)
def test_rows_that_are_no_jobs_are_rejected_with_line_and_reason(read_text, row, reason):
    jobs, rejected = read_text(f"{ROW}\n{row}\n")
    assert len(jobs) == 1
    assert [(r.line, r.reason) for r in rejected] == [(2, reason)]


def test_a_column_that_is_not_in_the_header_is_named(read_text):
    with pytest.raises(UserError, match="lacks the columns plan_mem;"):
        read_text(f"{HEADER.replace('plan_mem', 'memory')}\n{ROW}\n")
