"""A quote too many or too few costs the row it is in: rows read + rejected = rows of the file, always."""

import csv
import gzip
import io
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload import Workload
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.readers import read_trace
from schedrl.workload.readers.parsing.quotes import quoted_rows
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.writers import write_trace

TABLES = {
    "csv": ("job_id,submit,run,cpu,user,note", '{n},{n},60,2,"u, {n}",ok'),
    "csv, text last": ("job_id,submit,run,cpu,user", "{n},{n},60,2,bob"),
    "csv, quoted": ('"job_id","submit","run","cpu","user"', '"{n}","{n}","60","2","bob"'),
    "alibaba2018": ("", "task_{n},1,j_{n},1,Terminated,1{n},160000,100,0.5"),
    "alibaba_gpu2020": ("", "j{n},tensorflow,1.0,Terminated,1{n}.0,170000.5,600.0,29.29,50.0,MISC"),
    "openb": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time",
        "p{n},6000,12288,1,460,V100M16|V100M32,LS,Running,{n},100000,40000",
    ),
    "gwf": ("WorkflowID,JobID,SubmitTime,RunTime,NProcs,ReqNProcs,Dependencies", "0,{n},{n},10,1,1,"),
    "azure2019": ("", "71f{n}==,G==,2s==,3{n},900000,91.7,0.72,20.7,Delay-insensitive,8,32"),
}


def table(name, count):
    head, row = TABLES[name]
    return ([head] if head else []), [row.format(n=n) for n in range(count)]


def read(path, lines, name, end="\n"):
    path.write_bytes((end.join(lines) + end).encode())
    jobs, rejected = read_trace(path, name.split(",")[0])
    return jobs, rejected


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_row_is_lost_to_stray_quotes(tmp_path, name, data):
    head, rows = table(name, 12)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(1, len(rows) - 1))  # the first row says where the format begins
        places = [n for n, sign in enumerate(rows[at]) if sign == '"']
        if places and data.draw(st.booleans()):
            place = data.draw(st.sampled_from(places))
            rows[at] = rows[at][:place] + rows[at][place + 1 :]
        else:
            starts = [0, *(n + 1 for n, sign in enumerate(rows[at]) if sign == ","), len(rows[at])]
            place = data.draw(st.sampled_from(starts) | st.integers(0, len(rows[at])))
            rows[at] = rows[at][:place] + '"' + rows[at][place:]
    jobs, rejected = read(tmp_path / "t", [*head, *rows], name, data.draw(st.sampled_from(["\n", "\r\n"])))
    assert len(jobs) + len(rejected) == len(rows)
    told = [row.line for row in rejected]
    assert sorted(set(told)) == told
    untouched = {n for n, row in enumerate(rows) if row == table(name, 12)[1][n]}
    assert not {line - 1 - len(head) for line in told} & untouched


EVENTS = {
    "google2019": (
        "time,type,collection_id,instance_index,resource_request.cpus,resource_request.memory,user",
        "{t},{kind},7{n},0,0.5,0.25,bob",
        ("SUBMIT", "SCHEDULE", "FINISH"),
    ),
    "google2011": ("", "{t},,7{n},0,,{kind},bob,0,9,0.5,0.25,0,0", ("0", "1", "4")),
}


@pytest.mark.parametrize("name", EVENTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_event_is_lost_to_stray_quotes(tmp_path, name, data):
    """Three rows are a task; a row with a quote too many takes its own task along at most."""
    head, row, kinds = EVENTS[name]
    rows = [
        row.format(t=600_000_000 + 1_000_000 * (100 * step + n), kind=kind, n=n)
        for step, kind in enumerate(kinds)
        for n in range(8)
    ]
    hit = data.draw(st.sets(st.integers(1, len(rows) - 1), min_size=1, max_size=3))
    for at in hit:
        place = data.draw(st.integers(0, len(rows[at])))
        rows[at] = rows[at][:place] + '"' + rows[at][place:]
    jobs, rejected = read(tmp_path / "t", [*([head] if head else []), *rows], name)
    whole = {f"7{n}/0" for n in range(8)} - {f"7{at % 8}/0" for at in hit}
    assert whole <= set(jobs.id.tolist())
    assert {jobs.duration[jobs.id.tolist().index(task)] for task in whole} <= {100.0}
    first = 1 + bool(head)
    broken = {each.line - first for each in rejected if each.reason in ("unclosed_quote", "too_few_fields")}
    assert broken <= hit


@pytest.mark.parametrize(("count", "at"), [(3000, 10), (30_000, 21_807), (300_000, 5)])
def test_one_quote_that_is_never_closed_costs_one_row(tmp_path, count, at):
    path = tmp_path / "jobs.csv"
    rows = [f"{n},{n},60,2,a user with a name" for n in range(count)]
    rows[at] = f'{at},{at},60,2,"a user with a name'
    path.write_text("\n".join(["job_id,submit,run,cpu,user", *rows]) + "\n")
    jobs, rejected = read_trace(path)
    (row,) = rejected
    assert (len(jobs), row.line, row.reason) == (count - 1, at + 2, "unclosed_quote")
    assert row.detail == rows[at]
    with pytest.raises(UserError, match=rf"line {at + 2}: unclosed_quote"):
        read_trace(path, strict=True)


def test_a_quote_that_the_next_stray_one_seems_to_close(tmp_path):
    lines = ["id,submit,run,cpu,user", *(f"{n},{n},60,2,bob" for n in range(9))]
    lines[3], lines[7] = '2,2,60,2,"bob', '6,6,60,2,bob"'
    jobs, rejected = read(tmp_path / "t.csv", lines, "csv")
    assert [row.line for row in rejected] == [4]
    assert len(jobs) == 8  # a quote that begins no field is a sign like others
    assert "6" in jobs.id


def test_texts_over_several_lines_are_still_one_row(tmp_path):
    text = 'id,submit,run,cpu,user\n"a\nb",0,60,2,x\nc,1,60,2,"y, \n\n""z"""\n"d",2,60,2,"\n"\n'
    path = tmp_path / "t.csv"
    path.write_text(text)
    jobs, rejected = read_trace(path, strict=True)
    assert jobs.id.tolist() == ["a\nb", "c", "d"]
    assert jobs.user.tolist() == ["x", 'y, \n\n"z"', "\n"]
    assert not len(rejected)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.text('ab", \n', max_size=6), min_size=3, max_size=3), min_size=1, max_size=6)
)
def test_of_ours_any_text_comes_back(rows):
    held = io.StringIO(newline="")
    csv.writer(held, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    found = list(quoted_rows(held.getvalue(), ",", 3, bool, ours=True))
    assert [row for _, row, _ in found] == rows
    assert not any(broken for *_, broken in found)


def test_our_own_file_says_how_many_rows_it_has_where_lines_do_not_tell(tmp_path):
    path = tmp_path / "ours.csv"
    jobs = Workload(
        arrival=np.arange(4.0),
        duration=np.ones(4),
        demand=np.ones((4, 1)),
        resources=["cpu"],
        id=["a", "b\n1,2,3", "c", "d"],
    )
    write_trace(jobs, path)
    assert read_trace(path, strict=True)[0].same_as(jobs)
    text = path.read_text()
    path.write_text(text.replace('"c"', '"c'))
    with pytest.raises(UserError, match="holds 3 rows and says that it has 4|unclosed|changed or cut"):
        read_trace(path, strict=True)
    plain = jobs.take(np.array([0, 2, 3]))
    write_trace(plain, path)
    assert '"rows"' not in path.read_text()
    path.write_text(path.read_text().replace('"c"', '"c'))
    kept, rejected = read_trace(path)
    assert kept.id.tolist() == ["a", "d"]
    assert [row.reason for row in rejected] == ["unclosed_quote"]


@pytest.mark.parametrize("kind", ["pipe", "device", "zeros", "zeros in a table", "packed zeros", "no name"])
def test_what_is_no_file_of_lines_is_refused_at_once(tmp_path, kind):
    path, head = tmp_path / "t.csv", b"id,submit,run,cpu\na,0,1,1\n"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "no name":
        path = "a\0b"
    elif kind == "packed zeros":
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(head)
            for _ in range(48):
                file.write(bytes(1 << 20))
    else:
        with open(path, "wb") as file:
            file.write(head if "table" in kind else b"")
            file.truncate(10 << 30)
    with pytest.raises(UserError, match="a pipe|a device|no format|a line of more than 32 MB|embedded null"):
        read_trace(path)
    if kind == "zeros":
        for name in ("swf", "alibaba2018", "gwf", "batsim", "philly", "google2011", "google2019", "slurm"):
            with pytest.raises(UserError):
                read_trace(path, name)
    if kind not in ("packed zeros", "zeros in a table"):
        with pytest.raises(UserError, match="a pipe|a device|larger than 256 MB|embedded null"):
            read_cluster(path)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("swf", "; MaxProcs: 4\n1 0 0 1 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n2 "),
        ("slurm", "JobID|Submit|Start|End|State|AllocCPUS\n1|"),
        ("google2019", '{"time": 0, "collection_id": 1, "user": "'),
        ("alibaba2018", "task_1,1,j_1,1,Terminated,1,16,100,0.5\ntask_2,"),
        ("gwf", "WorkflowID,JobID,SubmitTime,RunTime,NProcs,ReqNProcs,Dependencies\n0,"),
    ],
)
def test_a_line_of_gigabytes_is_refused_before_it_is_read(tmp_path, name, head):
    path = tmp_path / "t"
    with open(path, "wb") as file:
        file.write(head.encode())
        file.truncate(3 << 30)
    begin = time.process_time()
    with pytest.raises(UserError, match="a line of more than 32 MB"):
        read_trace(path, name)
    assert time.process_time() - begin < 10  # of some 60 seconds that reading it all takes


def test_blocks_go_on_where_a_quote_is_never_closed(tmp_path):
    path = tmp_path / "t"
    data = b'a,"b\n' + b"c,d\n" * 40_000
    path.write_bytes(data)
    blocks = list(Source(path).blocks(quoted=True, size=1000))
    assert b"".join(blocks) == data
    assert max(map(len, blocks)) < 70_000
