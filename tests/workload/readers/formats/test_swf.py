"""SWF: unknown fields, run times, headers, encodings, short rows; cases 01, 02, 05, 06, 07 and 15."""

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace
from schedrl.workload.readers.formats.swf import parse_header, read_header, write_header
from schedrl.workload.readers.parsing.source import Source

ROW = "{id} {submit} -1 {run} 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n"


def row(id, submit=0, run=10):
    return ROW.format(id=id, submit=submit, run=run)


def test_case_01_minus_one_is_unknown(case):
    jobs, rejected = read_trace(case("01").folder / "in.swf")
    expected = case("01").expected
    assert (len(jobs), len(rejected)) == (expected["n_jobs"], expected["rejected"])
    assert jobs.capacity.tolist() == [expected["capacity"]]
    for n, job in enumerate(expected["jobs"]):
        assert jobs.id[n] == job["id"]
        assert (jobs.arrival[n], jobs.duration[n]) == (job["submit"], job["run"])
        assert jobs.demand[n, 0] == job["procs"]
        assert jobs.estimate_or_duration[n] == job["estimate"]
    assert np.isnan(jobs.estimate[:3]).all(), "unknown is unknown, not 0 and not the run time"


def test_case_01_an_estimate_below_the_run_time_is_raised_and_counted(case):
    _, rejected = read_trace(case("01").folder / "in.swf")
    assert [(what, count) for what, count in rejected.adjusted.items() if "estimate" in what] == [
        ("the estimate was below the run time, so it is raised to it", 1)
    ]


def test_case_02_no_run_time_and_a_run_time_of_zero(case):
    jobs, rejected = read_trace(case("02").folder / "in.swf")
    expected = case("02").expected
    assert len(jobs) == expected["n_jobs"]
    assert jobs.id.tolist() == expected["kept_ids"]
    assert [{"id": r.id, "reason": r.reason} for r in rejected] == expected["rejected"]
    assert [r.line for r in rejected] == [3, 4]
    bounded = {
        name: float(max(run / max(run, 10.0), 1.0)) for name, run in zip(jobs.id, jobs.duration, strict=True)
    }
    assert bounded == expected["bounded_slowdown_if_started_at_submit_tau10"]
    assert jobs.duration[0] == 0, "plain slowdown of job 1 is undefined"


def test_case_05_headers_and_comments(case):
    jobs, rejected = read_trace(case("05").folder / "in.swf")
    expected = case("05").expected
    assert not len(rejected)
    assert len(jobs) == expected["n_jobs"]
    assert jobs.id.tolist() == expected["ids"]
    assert jobs.capacity.tolist() == [expected["capacity"]]
    assert int(jobs.about["MaxNodes"]) == expected["max_nodes"]
    assert jobs.about["MaxProcs"] == "128 (64 batch, 64 interactive)"


@pytest.mark.parametrize(
    "name", ["lf.swf", "crlf.swf", "latin1.swf", "tabs.swf", "lf.swf.gz", "no-final-newline.swf"]
)
def test_case_06_however_it_is_encoded(case, name):
    expected = case("06").expected
    jobs, rejected = read_trace(case("06").folder / name)
    first, _ = read_trace(case("06").folder / "lf.swf")
    assert not len(rejected)
    assert jobs.same_as(first) == expected["same_result_for_all_files"]
    assert (len(jobs), jobs.id.tolist()) == (expected["n_jobs"], expected["ids"])
    assert jobs.demand[:, 0].tolist() == expected["procs"]
    assert jobs.about["Computer"] == "Größe"


def test_case_07_short_rows_floats_and_stray_text(case):
    path, expected = case("07").folder / "in.swf", case("07").expected
    jobs, rejected = read_trace(path)
    assert len(jobs) == expected["lenient"]["n_jobs"]
    assert [{"line": r.line, "reason": r.reason} for r in rejected] == expected["lenient"]["rejected"]
    for n, name in enumerate(jobs.id):
        found = {
            "submit": jobs.arrival[n],
            "run": jobs.duration[n],
            "procs": jobs.demand[n, 0],
            "estimate": jobs.estimate_or_duration[n],
        }
        wanted = expected["lenient"]["jobs"][name]
        assert {key: found[key] for key in wanted} == wanted
    with pytest.raises(UserError, match=f"line {expected['strict']['error_names_line']}"):
        read_trace(path, strict=True)


def test_case_07_strict_refuses_a_short_row_alone(read_text):
    with pytest.raises(UserError, match="line 2.*short"):
        read_text(row(1) + "3 7 -1 10 1\n", "swf", strict=True)


@pytest.mark.parametrize("name", ["empty.swf", "comments.swf", "all-bad.swf", "header-only.csv"])
def test_case_15_nothing_to_do_is_told(case, name):
    with pytest.raises(UserError, match=case("15").expected["message_contains"]):
        read_trace(case("15").folder / name)
    with pytest.raises(UserError, match=case("15").expected["message_contains"]):
        read_trace(case("15").folder / name, name.rpartition(".")[2])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2 -1 -1 5 1", "arrival_unknown"),
        ("2 inf -1 5 1", "not_finite"),
        ("2 0 -1 1e999 1", "not_finite"),
        ("2 0 -1 5 0", "demand_unknown"),
        ("2 0 -1 5 -1", "demand_unknown"),
        ("2 0 -1 5", "too_few_fields"),
        (row(2).strip() + " 9", "too_many_fields"),
        ("2 0 -1 5 1 -1 -1 1 9 -1 3", "partial_execution"),
        ("2 0 -1 5 1_0", "not_numeric"),
    ],
)
def test_what_is_no_job_is_rejected_with_its_line(read_text, text, reason):
    _, rejected = read_text(row(1) + "\n; note\n" + text + "\n", "swf")
    assert [(r.line, r.reason) for r in rejected] == [(4, reason)]


def test_clamped_sorted_and_stable(read_text):
    jobs, rejected = read_text(row("b", 7) + row("a", 7) + row("007", -5) + row("7", 3), "swf")
    assert jobs.id.tolist() == ["007", "7", "b", "a"]
    assert jobs.arrival.tolist() == [0, 3, 7, 7]
    assert "negative" in next(iter(rejected.adjusted))


def test_memory_is_a_resource_where_any_job_states_it(read_text):
    text = "1 0 2 10 4 -1 100 2 60 -1 1 9 1 -1 1 -1 -1 -1\n2 1 2 10 4 -1 100 4 60 50 1 9 1 -1 1 -1 -1 -1\n"
    jobs, _ = read_text(text, "swf")
    assert jobs.demand.tolist() == [[2, 200], [4, 200]]
    assert [tuple(r) for r in jobs.resources] == [("cpu", "processors"), ("memory", "KB")]
    assert (jobs.recorded_start[0], jobs.recorded_finish[0]) == (2, 12)
    assert jobs.user.tolist() == ["9", "9"]
    assert jobs.extra["allocated"].tolist() == [4, 4], "other than what was asked for"
    without, _ = read_text(text + row(3, 2), "swf")
    assert without.demand.tolist() == [[2, 200], [4, 200], [1, 0]]
    none, _ = read_text(row(3, 2), "swf")
    assert [r.name for r in none.resources] == ["cpu"]
    gangs, _ = read_text(text, "swf", gangs=True)
    assert gangs.instances.tolist() == [2, 4]
    assert gangs.demand.tolist() == [[1, 100], [1, 50]]


@pytest.mark.parametrize(
    ("line", "capacity"),
    [
        ("; MaxProcs: 64", 64),
        (";MaxProcs:64", 64),
        (";  MaxProcs  :  64 nodes", 64),
        ("; MaxNodes: 9", 9),
        ("; MaxNodes: 9\n; MaxProcs: 64", 64),
        ("; MaxProcs: unknown", None),
        ("; nothing", None),
    ],
)
def test_the_capacity_is_the_first_whole_number_of_its_key(read_text, line, capacity):
    jobs, _ = read_text(f"{line}\n{row(1)}")
    assert jobs.capacity.tolist() == [capacity] if capacity else np.isnan(jobs.capacity).all()


def test_a_header_is_read_back_as_it_is_written():
    about = {"Computer": "a b", "Note": "first\nsecond: none\nthird", "MaxProcs": "8"}
    assert parse_header(write_header({"Computer": "a b", "Note": "first\nsecond"})) == {
        "Computer": "a b",
        "Note": "first\nsecond",
    }
    assert parse_header(write_header(about)) != about, "`second:` looks like a key, so writers refuse it"


def test_the_header_of_a_real_log(shared_dir):
    header = read_header(Source(shared_dir / "traces" / "NASA-iPSC-1993-3.1-cln.first2000.swf"))
    assert header["MaxProcs"] == "128"
    assert parse_header(write_header(header)) == header


def test_real_logs(shared_dir):
    nasa, rejected = read_trace(shared_dir / "traces" / "NASA-iPSC-1993-3.1-cln.first2000.swf")
    rows = [
        line.split()
        for line in (shared_dir / "traces" / "NASA-iPSC-1993-3.1-cln.first2000.swf")
        .read_text("latin-1")
        .split("\n")
        if line.strip() and not line.startswith(";")
    ]
    assert len(nasa) + len(rejected) == len(rows)
    assert nasa.duration.sum() == sum(float(fields[3]) for fields in rows if float(fields[3]) >= 0)
    lublin, rejected = read_trace(shared_dir / "traces" / "lublin_256.swf")
    assert (len(lublin), len(rejected)) == (10000, 0)
    assert lublin.capacity.tolist() == [256]
    assert np.isnan(lublin.estimate).all()
