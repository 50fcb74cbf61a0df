"""Any CSV: columns by usual names or by a map, units, times as text, odd headers; cases 12, 15 and 16."""

import json
import subprocess
import sys

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload import Resource
from schedrl.workload.readers import read_trace
from schedrl.workload.readers.formats.csv import parse_map


def named(case):
    return json.loads((case("12").folder / "mapping.json").read_text())


def test_case_12_byte_order_mark_names_and_full_width_digits(case):
    jobs, rejected = read_trace(case("12").folder / "trace.csv", map=named(case))
    expected = case("12").expected
    assert not len(rejected)
    assert (len(jobs), jobs.id.tolist()) == (expected["n_jobs"], expected["ids"])
    assert jobs.demand[:, 0].tolist() == expected["cpu"]


def test_case_12_without_a_map_both_sides_are_named(case):
    with pytest.raises(UserError, match="作业编号, 提交时间, .*needed: arrival, duration"):
        read_trace(case("12").folder / "trace.csv")


def test_case_12_gbk(case):
    utf8, _ = read_trace(case("12").folder / "trace.csv", map=named(case))
    jobs, _ = read_trace(case("12").folder / "gbk.csv", map=named(case), encoding="gbk")
    assert jobs.same_as(utf8)
    with pytest.raises(UserError, match=r"not in utf-8 .*gbk"):
        read_trace(case("12").folder / "gbk.csv", map=named(case))
    with pytest.raises(UserError, match="no-such"):
        read_trace(case("12").folder / "gbk.csv", encoding="no-such")
    with pytest.raises(UserError, match="utf-16.*convert"):
        read_trace(case("12").folder / "gbk.csv", encoding="utf-16")


MEASURE = """
import json, sys, time
from schedrl.workload.readers import read_trace

def peak():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

def timed(path):
    start = time.process_time()
    jobs, rejected = read_trace(path)
    assert not len(rejected)
    return time.process_time() - start, jobs

_, jobs = timed(sys.argv[1])
ratios = []
for _ in range(4):
    short, _ = timed(sys.argv[1])
    long, jobs = timed(sys.argv[2])
    ratios.append(long / short)
print(json.dumps({
    "n_jobs": len(jobs),
    "sum_run": int(jobs.duration.sum()),
    "sum_core_seconds": int((jobs.duration * jobs.demand[:, 0]).sum()),
    "last_submit": jobs.arrival[-1],
    "max_run": jobs.duration.max(),
    "mean_run": jobs.duration.mean(),
    "last_id": jobs.id[-1],
    "ratio": min(ratios),  # neighbours slow single rounds; what grows too fast does so in every round
    "peak_bytes": peak(),  # not ru_maxrss: that one begins with what the test process has
}))
"""


@pytest.mark.slow
def test_case_16_a_million_rows(case, tmp_path, root):
    for rows in (10**5, 10**6):
        lines = (f"{i},{i // 3},{1 + (i * 7919) % 3600},{1 + (i * 104729) % 64}\n" for i in range(rows))
        (tmp_path / f"{rows}.csv").write_text("job_id,submit,run,cpu\n" + "".join(lines))
    files = [str(tmp_path / "100000.csv"), str(tmp_path / "1000000.csv")]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *files], cwd=root, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout), case("16").expected
    assert {key: found[key] for key in expected if key in found} == {
        key: expected[key] for key in expected if not key.endswith("_check")
    }
    assert found["last_id"] == "999999"
    assert found["ratio"] <= 15
    assert found["peak_bytes"] < 2 * 2**30


def test_usual_names_units_in_brackets_and_times_as_text(read_text):
    text = "Job ID,Submit Time[ms],walltime[min],start[iso],end[iso],CPUs,ram[MiB],mem_bw\n"
    jobs, _ = read_text(text + "a,1500,2,2020-01-01T00:00:00Z,2020-01-01 00:01:00.250+00:00,2,1024,x\n")
    assert jobs.id.tolist() == ["a"]
    assert (jobs.arrival[0], jobs.duration[0], jobs.estimate[0]) == (1.5, 60.25, 120)
    assert jobs.recorded_start[0] == 1577836800
    assert jobs.demand.tolist() == [[2, 1]]
    assert jobs.resources == (Resource("cpu", "cores"), Resource("memory", "GiB"))


def test_a_map_names_columns_units_and_resources(read_text):
    text = "t,len,c,m,disk,who\n1000,2,500,2048,7,ann\n"
    map = "arrival=t[ms],duration=len[h],cpu=c[milli],memory=m[MB],disk=disk[GB],user=who"
    jobs, _ = read_text(text, map=map)
    assert (jobs.arrival[0], jobs.duration[0]) == (1, 7200)
    assert jobs.demand.tolist() == [[0.5, 2.048, 7]]
    assert [tuple(r) for r in jobs.resources] == [("cpu", "cores"), ("memory", "GB"), ("disk", "GB")]
    assert jobs.user.tolist() == ["ann"]
    assert jobs.id.tolist() == ["2"], "a job without an id is called by its line"
    assert read_text(text, map=parse_map(map))[0].same_as(jobs)


@pytest.mark.parametrize(
    ("map", "what"),
    [
        ("arrival", "field=column"),
        ("arrival=,cpu=c", "field=column"),
        ("arrival=nowhere,duration=len,cpu=c", "nowhere"),
        ("arrival=t[days],duration=len,cpu=c", "'days' is no unit"),
        ("arrival=t,cpu=c", "needed: duration"),
        ("arrival=t,duration=len", "a resource"),
    ],
)
def test_a_map_that_can_not_be_meant_is_told(read_text, map, what):
    with pytest.raises(UserError, match=what):
        read_text("t,len,c\n1,2,3\n", map=map)


def test_a_column_may_serve_twice(read_text):
    jobs, rejected = read_text("t,c\n5,1\n6,1\nx,1\n", map="id=t,arrival=t,duration=t,cpu=c")
    assert jobs.id.tolist() == ["5", "6"]
    assert jobs.arrival.tolist() == [5, 6]
    assert [(r.line, r.reason, r.detail) for r in rejected] == [(4, "not_numeric", "t is 'x'")]


def test_times_as_text_that_are_none_are_rejected(read_text):
    rows = (
        "start[iso],end[iso],arrival,cpu\n2020-01-01,2020-01-02,0,1\n,2020-01-02,0,1\nnoon,2020-01-02,0,1\n"
    )
    jobs, rejected = read_text(rows)
    assert jobs.duration.tolist() == [86400]
    assert [(r.line, r.reason) for r in rejected] == [(3, "runtime_unknown"), (4, "not_numeric")]


def test_ids_are_never_changed(read_text):
    names = [
        "007",
        "+5",
        "1e3",
        " 5",
        "5.0",
        "NA",
        "nan",
        "-1",
        "٣",
        "12345678901234567890",
        "a b",
        "x\u3000",
        "1,5",
    ]
    text = "job_id,submit,run,cpu\n" + "".join(f'"{name}",{n},1,1\n' for n, name in enumerate(names))
    assert read_text(text)[0].id.tolist() == names
    for name in ("007", "-0", "+5", "5.0", "5"):
        assert read_text(f"job_id,submit,run,cpu\n1,0,1,1\n{name},1,1,1\n")[0].id.tolist() == ["1", name]


def test_headers_with_quotes_repeats_and_gaps(read_text):
    jobs, _ = read_text('"job_id","submit","run",cpu,cpu,,"a\nb"\nx,0,1,2,3,,\n')
    assert jobs.demand.tolist() == [[2]]
    assert jobs.id.tolist() == ["x"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("b,,1,1", "arrival_unknown"),
        ("b,nan,1,1", "arrival_unknown"),
        ("b,0,,1", "runtime_unknown"),
        ("b,0,-1,1", "negative_runtime"),
        ("b,0,inf,1", "not_finite"),
        ("b,0,1e300,1", "not_finite"),
        ("b,1e16,1,1", "not_finite"),
        ("b,0,1,", "demand_unknown"),
        ("b,0,1,-1", "negative_demand"),
        ("b,0,1,0", "no_demand"),
        (",0,1,1", "id_missing"),
        ("b,0,1,1,5", "too_many_fields"),
        ("b,0,1,one", "not_numeric"),
        ("b,0,0x1,1", "not_numeric"),
        ("a,0,1,1", "exact_repeat"),
        (",,,", "arrival_unknown"),
    ],
)
def test_what_is_no_job_is_rejected_with_its_line(read_text, row, reason):
    jobs, rejected = read_text("job_id,submit,run,cpu\na,0,1,1\n" + row + "\n")
    assert jobs.id.tolist() == ["a"]
    assert [(r.line, r.reason) for r in rejected] == [(3, reason)]
    with pytest.raises(UserError, match="line 3"):
        read_text("job_id,submit,run,cpu\na,0,1,1\n" + row + "\n", strict=True)


def test_rejections_are_counted_and_summed_up(read_text):
    _, rejected = read_text("job_id,submit,run,cpu\na,0,1,1\nb,0,,1\nc,0,,1\nd,0,-1,1\n")
    assert rejected.counts == {"runtime_unknown": 2, "negative_runtime": 1}
    assert rejected.summary() == "3 rows rejected: 2 runtime_unknown, 1 negative_runtime"


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_out_of_range_are_rejected_in_silence(read_text):
    rows = "start,end,arrival,cpu,walltime[h]\n0,1,0,1,\n1e999,1e999,0,1,\n0,1e308,0,1,\n0,2,0,1,1e308\n"
    jobs, rejected = read_text(rows)
    assert jobs.duration.tolist() == [1, 2]
    assert [(r.line, r.reason) for r in rejected] == [(3, "runtime_unknown"), (4, "not_finite")]
    assert np.isnan(jobs.estimate[1])


def test_unknown_estimates_stay_unknown(read_text):
    jobs, _ = read_text("job_id,submit,run,cpu,walltime\na,0,1,1,\nb,0,1,1,7\n")
    np.testing.assert_array_equal(jobs.estimate, [np.nan, 7])


@pytest.mark.parametrize("wrong", ["arrival=a,arrival=b,duration=d,cpu=c", "arrival=a,submit=b,cpu=c"])
def test_two_columns_for_one_field_are_an_error_not_the_last_of_them(wrong):
    with pytest.raises(UserError, match="a column for arrival twice"):
        parse_map(wrong)


@pytest.mark.parametrize("sign", [";", "\t", "|"])
@pytest.mark.parametrize("end", ["", ","], ids=["", "with one at the end"])
def test_columns_may_be_parted_by_other_signs(read_text, sign, end):
    text = f"id,arrival,duration,cpu,note{end}\na,0,1,1,x{end}\nb,1,2,3,y{end}\n"
    jobs, _ = read_text(text)
    assert read_text(text.replace(",", sign))[0].same_as(jobs)
    map = "arrival=arrival,duration=duration[h],cpu=cpu"
    assert read_text(text.replace(",", sign), map=map)[0].same_as(read_text(text, map=map)[0])


def test_an_index_without_a_name_before_semicolons_is_no_comment(read_text, format_of, tmp_path):
    (tmp_path / "table").write_text(";id;arrival;duration;cpu\n0;a;0;1;1\n1;b;5;2;3\n")
    assert format_of(tmp_path / "table") == "csv"
    assert read_trace(tmp_path / "table")[0].id.tolist() == ["a", "b"]


def test_text_in_a_column_that_nothing_reads_costs_no_row_and_no_word(read_text):
    rows = "\n".join(f"{i},{i},1,1,anything {i}" for i in range(9))
    jobs, rejected = read_text("job_id,submit,run,cpu,note\n" + rows + "\n", strict=True)
    assert len(jobs) == 9
    assert not len(rejected)
    assert not rejected.adjusted
