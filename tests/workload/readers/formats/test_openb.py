import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
ROW = "p,6000,12288,1,460,V100M16|V100M32,LS,Running,10,100,40"


def test_case_13_pending_pods_stay_and_their_start_is_unknown(case, format_of):
    folder, expected = case("13").folder, case("13").expected["pods.csv"]
    assert format_of(folder / "pods.csv") == "openb"
    jobs, rejected = read_trace(folder / "pods.csv")
    wait = jobs.recorded_start - jobs.arrival
    started = ~np.isnan(wait)
    at_least = np.where(started, wait, jobs.recorded_finish - jobs.arrival)
    assert len(jobs) == expected["n"]
    assert not len(rejected)
    assert (started.sum(), (~started).sum()) == (expected["scheduled"], expected["unscheduled"])
    assert wait[started].mean() == expected["mean_wait"]
    assert at_least.max() == expected["max_wait_including_censored"]
    assert not np.isnan(np.column_stack([jobs.arrival, jobs.duration, jobs.demand])).any()
    assert jobs.duration.tolist() == [100, 125, 50]
    assert list(rejected.adjusted.values()) == [1]


def test_case_13_columns_that_are_not_there_are_named(case, format_of):
    path = case("13").folder / "missing.csv"
    assert format_of(path) == "openb"
    with pytest.raises(UserError) as error:
        read_trace(path)
    for name in case("13").expected["missing.csv"]["error_names"]:
        assert name in str(error.value)


def test_units_and_parts_of_a_gpu(read_text):
    jobs, _ = read_text(
        f"{HEADER}\n{ROW}\nq,500,512,8,1000,,BE,Failed,11,100,11\nr,1,1,0,,,BE,Failed,12,13,12\n"
    )
    assert jobs.demand.tolist() == [[6, 12, 0.46], [0.5, 0.5, 8], [0.001, 1 / 1024, 0]]
    assert [tuple(r) for r in jobs.resources] == [("cpu", "cores"), ("memory", "GiB"), ("gpu", "gpus")]
    assert jobs.extra["gpu_spec"].tolist() == ["V100M16|V100M32", "", ""]
    assert jobs.extra["qos"].tolist() == ["LS", "BE", "BE"]
    assert jobs.extra["pod_phase"].tolist() == ["Running", "Failed", "Failed"]
    assert (jobs.arrival[0], jobs.recorded_start[0], jobs.duration[0]) == (10, 40, 60)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("q,6000,12288,1,460,,LS,Running,10,,40", "unfinished"),
        ("q,6000,12288,1,460,,LS,Running,,100,40", "arrival_unknown"),
        ("q,6000,12288,1,460,,LS,Running,10,30,40", "negative_runtime"),
        ("q,6000,12288,1,,,LS,Running,10,100,40", "demand_unknown"),
        ("q,-1,12288,1,460,,LS,Running,10,100,40", "negative_demand"),
        ("q,0,0,0,460,,LS,Running,10,100,40", "no_demand"),
        ("q,6000,12288,one,460,,LS,Running,10,100,40", "not_numeric"),
        (",6000,12288,1,460,,LS,Running,10,100,40", "id_missing"),
        (ROW, "exact_repeat"),
    ],
)
def test_rows_that_are_no_jobs_are_rejected_with_line_and_reason(read_text, row, reason):
    jobs, rejected = read_text(f"{HEADER}\n{ROW}\n{row}\n")
    assert len(jobs) == 1
    assert [(r.line, r.reason) for r in rejected] == [(3, reason)]


def test_columns_may_stand_in_any_order_among_others(read_text):
    jobs, _ = read_text(
        "note,scheduled_time,deletion_time,creation_time,gpu_milli,num_gpu,memory_mib,cpu_milli,name\n"
        '"a, b",40,100,10,460,1,12288,6000,p\n'
    )
    plain, _ = read_text(f"{HEADER}\n{ROW}\n")
    assert jobs.demand.tolist() == plain.demand.tolist()
    assert not jobs.extra


def test_lines_may_end_with_a_carriage_return(read_text):
    plain, _ = read_text(f"{HEADER}\n{ROW}\n")
    for end in ("\r\n", "\r"):
        assert read_text(f"{HEADER}{end}{ROW}{end}")[0].same_as(plain)


def test_the_real_sample(shared_dir, format_of):
    path = shared_dir / "traces" / "openb_pod_list_default.first1000.csv"
    assert format_of(path) == "openb"
    jobs, rejected = read_trace(path)
    assert (len(jobs), len(rejected)) == (1000, 0)
    assert list(rejected.adjusted.values()) == [88]
    assert int(np.isnan(jobs.recorded_start).sum()) == 88
    assert jobs.demand[1].tolist() == [6, 12, 0.46]
    assert jobs.demand[:, 2].max() == 8
