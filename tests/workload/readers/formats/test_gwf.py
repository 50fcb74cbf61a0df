import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

HEADER = "WorkflowID, JobID     , SubmitTime, RunTime   , NProcs    , ReqNProcs , Dependencies\n"
ROW = "0         , 7         , 87        , 11        , 1         , 2         , 4 5 6     \n"


def flat(job="1", submit="5", wait="2", run="30", procs="4", asked="-1", estimate="60", tail="U1 G1 X1"):
    user = f"{tail} Q1 -1 S1 -1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"
    return f"{job}\t{submit}\t{wait}\t{run}\t{procs}\t-1\t-1\t{asked}\t{estimate}\t-1\t1\t{user}\n"


def test_workflows_are_padded_tables(read_text):
    jobs, rejected = read_text(HEADER + ROW)
    assert (jobs.id.tolist(), jobs.arrival[0], jobs.duration[0], jobs.demand[0, 0]) == (["7"], 87, 11, 2)
    assert (jobs.extra["workflow"][0], jobs.extra["depends_on"][0]) == ("0", "4 5 6")
    assert np.isnan([jobs.estimate[0], jobs.recorded_start[0]]).all()
    assert not len(rejected)


def test_the_archives_text_has_29_fields(read_text):
    head = '# The Grid Workloads Archive, "Zürich\n' + "".join(f"# {n} a field\n" for n in range(1, 40))
    text = head + flat() + flat("2", estimate="10", asked="8", tail="-1 -1 -1")
    jobs, rejected = read_text(text.encode("latin-1"))
    assert jobs.id.tolist() == ["1", "2"]
    assert jobs.demand[:, 0].tolist() == [4, 8]
    assert jobs.estimate.tolist() == [60, 30]
    assert jobs.recorded_start.tolist() == [7, 7]
    assert jobs.recorded_finish.tolist() == [37, 37]
    assert jobs.user.tolist() == ["U1", ""]
    assert jobs.extra["site"].tolist() == ["S1", "S1"]
    assert "structure_id" not in jobs.extra
    assert list(rejected.adjusted.values()) == [1]


def test_gangs_make_every_processor_an_instance(read_text):
    jobs, _ = read_text(HEADER + ROW, gangs=True)
    assert (jobs.demand[0, 0], jobs.instances[0]) == (1, 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ROW.replace(" 11 ", " -1 "), "runtime_unknown"),
        (ROW.replace(" 11 ", " -2 "), "negative_runtime"),
        (ROW.replace("87", "-1"), "arrival_unknown"),
        (ROW.replace(" 1 ", "-1 ").replace(" 2 ", "-1 "), "demand_unknown"),
        (ROW.replace("87", "??"), "not_numeric"),
        (ROW.replace(" 7 ", "   "), "id_missing"),
        (ROW.replace(" 7 ", " 1 "), "exact_repeat"),
    ],
)
def test_rows_that_are_no_jobs_are_rejected_with_line_and_reason(read_text, row, reason):
    jobs, rejected = read_text(HEADER + ROW.replace(" 7 ", " 1 ") + row)
    assert len(jobs) == 1
    assert [(r.line, r.reason) for r in rejected] == [(3, reason)]


def test_a_column_that_is_not_there_is_named(read_text):
    with pytest.raises(UserError, match="lacks the columns NProcs, ReqNProcs;"):
        read_text("WorkflowID,JobID,SubmitTime,RunTime\n0,1,2,3\n")


def test_the_real_sample(shared_dir, format_of):
    path = shared_dir / "traces" / "opendc" / "trace.gwf"
    assert format_of(path) == "gwf"
    jobs, rejected = read_trace(path)
    assert (len(jobs), len(rejected)) == (70, 0)
    assert set(jobs.duration) == {0, 11}
    assert jobs.extra["depends_on"][jobs.id.tolist().index("70")] == "68 69 67"
    assert jobs.arrival.max() == 87
