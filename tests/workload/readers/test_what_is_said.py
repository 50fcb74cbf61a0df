"""What readers say beside the jobs: one row or several, what a map leaves out, times of another size."""

import numpy as np
import pytest

from job_distribution import main as job_distribution
from schedrl.settings import UserError
from schedrl.workload.constraint_lines import honoured_lines
from schedrl.workload.estimates import told


@pytest.fixture
def inspected(tmp_path, capsys):
    """Return a function: the text of a file -> what `inspect` prints."""

    def of(text, *flags, name="trace"):
        path = tmp_path / name
        path.write_text(text)
        assert job_distribution(["inspect", str(path), *flags]) == 0
        return capsys.readouterr().out

    return of


def table(header, *rows):
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize("word", ["", "NaN", "None", "-1", "-", "[]", "null", "N/A"])
def test_a_word_for_nothing_is_no_dependency_and_no_machine(read_text, word):
    text = table("id,arrival,duration,cpu,depends_on,allowed", "a,0,1,1,,", f"b,0,1,1,{word},{word}")
    jobs, _ = read_text(text, "csv")
    assert jobs.predecessors is None
    assert jobs.allowed is None or not jobs.allowed.limited.any()


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("depends_on", "a", "depends_on says what a job waits for in 1 row: left out, as the map"),
        ("gpu_spec", "A100|T4", "gpu_spec says where a job may run in 1 row: left out, as the map"),
    ],
)
def test_a_constraint_that_a_map_leaves_out_is_said(read_text, column, cell, said):
    text = table(f"n,t,run,cores,{column}", "a,0,1,1,", f"b,0,1,1,{cell}")
    where = "id=n,arrival=t,duration=run,cpu=cores"
    jobs, rejected = read_text(text, "csv", map=where)
    assert jobs.predecessors is None
    assert jobs.allowed is None
    assert any(remark.startswith(said) for remark in rejected.remarks)
    field = "waits_for" if column == "depends_on" else "allowed"
    jobs, rejected = read_text(text, "csv", map=f"{where},{field}={column}")
    assert not rejected.remarks
    assert jobs.predecessors is not None or jobs.allowed is not None


@pytest.mark.parametrize(("unit", "parts"), [("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("odd", [0, 5, 1_700_000_000])
def test_a_time_of_another_size_is_said(read_text, unit, parts, odd):
    times = [(1_700_000_000 + i) * parts for i in range(9)]
    rows = [f"{i},{time},1,1" for i, time in enumerate([*times, odd])]
    _, rejected = read_text(table("id,arrival,duration,cpu", *rows), "csv")
    alike = unit == "s" and odd > 1e9
    said = [remark for remark in rejected.remarks if "another size in 1 row (first in line 11)" in remark]
    assert bool(said) != alike


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1;0,5;1;2", "The first: line 2: not_numeric (job 1, arrival is '0,5')"),
        ("1;0;-1;2", "The first: line 2: negative_runtime (job 1, -1)"),
    ],
)
def test_where_no_job_is_left_the_first_row_is_shown(read_text, row, said):
    with pytest.raises(UserError) as caught:
        read_text(table("id;arrival;duration;cpu", row), "csv")
    assert said in str(caught.value)


def test_what_is_not_stated_is_named_and_is_no_nan(read_text):
    text = table("id,arrival,duration,cpu,memory", "a,0,1,1,1", "b,0,1,,1", "c,0,1,,")
    _, rejected = read_text(text, "csv")
    assert [row.detail for row in rejected] == ["cpu not stated", "cpu, memory not stated"]


@pytest.mark.parametrize(("header", "size"), [(4, 8), (2, 3)])
def test_jobs_that_all_exceed_the_machines_have_no_load(inspected, header, size):
    row = "{0} {0} 0 10 " + f"{size} -1 -1 {size} -1 -1 1 1 1 1 -1 -1 -1 -1"
    text = f"; MaxProcs: {header}\n" + "".join(row.format(i) + "\n" for i in range(1, 4))
    printed = inspected(text)
    assert f"{header} processors, load not defined; " in printed
    assert "capacity not known" not in printed
    assert "3 jobs ask for more than all of that, can never run, and are not in the load" in printed


def test_one_job_is_not_several(read_text):
    jobs, _ = read_text(table("id,arrival,duration,cpu,depends_on", "a,0,1,1,a"), "csv")
    assert next(told(jobs).lines()).startswith("1 of 1 job has no estimate: its true run time is used")
    assert list(honoured_lines(jobs))[1] == "1 of these can never run, as it waits for itself: a"
    both, _ = read_text(table("id,arrival,duration,cpu,estimate", "a,0,1,1,", "b,0,1,1,9"), "csv")
    assert "1 of 2 jobs has no estimate" in (line := next(told(both).lines()))
    assert "this job is favoured over the others" in line
    assert np.isnan(np.asarray(both.estimate)[0])
