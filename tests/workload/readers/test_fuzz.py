"""Any file whatever is read or refused with a reason: nothing crashes, no job is invented, counts add up."""

import csv
import gzip
import json
import re
import sqlite3
from contextlib import closing
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload import Resource, Workload
from schedrl.workload.readers import FORMATS, read_trace
from schedrl.workload.writers import write_trace

SWF = [
    "; MaxProcs: 8",
    "1 0 3 30 2 -1 -1 2 60 -1 1 3 1 -1 1 -1 -1 -1",
    "7 5.5 -1 2e1 1 9 1 4 -1 1 0 4 1 -1 1 -1 -1 -1",
]
MOMENTS = [(600000000, 0, 0), (601000000, 0, 1), (600000000, 1, 0), (604500000, 0, 4), (0, 2, 0)]
EVENTS = [f"{time},,7,{index},,{kind},u,2,9,0.5,0.25,0.001,0" for time, index, kind in MOMENTS]
CLOUD = [
    json.dumps({"time": str(t), "type": k, "collection_id": "8", "instance_index": 0} | extra)
    for t, k, extra in [
        (600000000, "0", {"resource_request": {"cpus": 0.5, "memory": 0.25}, "priority": "200"}),
        (601000000, 3, {"collection_type": "0"}),
        (604500000, "FINISH", {"user": "u"}),
    ]
]
SAMPLES = {
    "swf": SWF,
    "csv": ["job_id,submit,run,cpu,state", "a,0,60,2,ok", '"b,""",5.5,3e1,1,', "c,6,0,0.5,x"],
    "alibaba2018": ["task_1,2,j_1,1,Terminated,100,160,100,0.5", "M2_1,1,j_1,1,Failed,160,200,50,0.25"],
    "alibaba_gpu2020": ["4f05,tensorflow,1.0,Terminated,17391.0,17392.5,600.0,29.29,50.0,MISC"] * 2,
    "openb": [
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        "p,6000,12288,1,460,V100M16|V100M32,LS,Running,10,100,40",
        "q,6000,12288,0,0,,BE,Succeeded,10,100,",
    ],
    "gwf": [
        "WorkflowID,JobID,SubmitTime,RunTime,NProcs,ReqNProcs,Dependencies",
        "0,1,0,10,1,1,",
        "0,2,5,1,2,2,1",
    ],
    "batsim": [
        '{"nb_res": 4, "jobs": [{"id": "a", "subtime": 0, "walltime": 9, "res": 2, "profile": "p"},',
        '{"id": 2, "subtime": 1.5, "walltime": -1, "res": 1, "profile": "q"}],',
        '"profiles": {"p": {"type": "delay", "delay": 5}, "q": {"type": "delay", "delay": 2}}}',
    ],
    "philly": [
        '[{"status": "Pass", "vc": "v", "jobid": "a", "user": "u", "submitted_time": "2017-10-07 01:11:39",',
        '"attempts": [{"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 02:00:00",',
        '"detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]}]',
    ],
    "kubernetes": [
        '{"apiVersion": "v1", "items": [{"kind": "Pod", "metadata": {"name": "a", "namespace": "n",',
        '"creationTimestamp": "2023-11-14T22:13:20Z"}, "spec": {"nodeName": "m", "containers": [',
        '{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}, "status": {"phase": "Succeeded",',
        '"startTime": "2023-11-14T22:13:25Z", "containerStatuses": [{"state": {"terminated":',
        '{"startedAt": "2023-11-14T22:13:26Z", "finishedAt": "2023-11-14T22:14:25Z"}}}]}}]}',
    ],
    "slurm": [
        "JobID|User|Submit|Start|End|Timelimit|AllocCPUS|ReqMem|AllocTRES|State",
        "7|u|2024-03-04T08:00:00|2024-03-04T08:00:05|2024-03-04T09:00:05|2-00:00:00|8|2Gc|cpu=8,mem=16G|FAILED",
        "7.batch|||2024-03-04T08:00:05|2024-03-04T09:00:05||8||cpu=8,mem=16G|FAILED",
        "9_1|v|2024-10-27T02:30:00|2024-10-27T02:40:00|2024-10-27T02:10:00|UNLIMITED|2|8G||COMPLETED",
        "9_[2-4%1]|v|2024-10-27T02:30:00|Unknown|Unknown|UNLIMITED|0|8G||PENDING",
    ],
    "google2011": EVENTS,
    "google2019": CLOUD,
    "azure2019": [
        "71f==,G==,2s==,300,900,91.7,0.72,20.7,Delay-insensitive,8,32",
        "xz==,G==,7a==,0,600,9,3,8,Unknown,>24,4",
    ],
}  # fmt: skip
CSV_2019 = ["time,type,collection_id,cpu,mem", "600000000,SUBMIT,1,0.5,0.1", "660500000,FINISH,1,0.5,0.1"]
HEADERS = {"csv": 1, "slurm": 1, "openb": 1, "gwf": 1, "swf": 1}
ROW_PER_JOB = ("swf", "csv", "slurm", "azure2019")
SIGNS = {"swf": " ", "slurm": "|"}

NASTY = [
    b'"',
    b"\0",
    b"\r",
    b"\n",
    b",",
    b";",
    b"[",
    b"}",
    b" ",
    b"\xff",
    b"\xef\xbb\xbf",
    "é２".encode(),
    b"\x85",
]
NASTY += [
    b"1e400",
    b"-1",
    b"nan",
    b"inf",
    b"9" * 400,
    b"9" * 5000,
    b"-0",
    b"1_0",
    b"null",
    b'{"a":',
    b"'",
    b"0x1",
    b"\t",
]
FIELDS = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "-inf",
    "9" * 40,
    "1e-320",
    "x",
    '"',
    '"a',
    "é",
    "２",
    "None",
    "5.5",
    "-0",
    "\0",
    "NA",
]


def settled(examples):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks)


@st.composite
def damaged(draw, data):
    """Bytes with some cut out, put in, doubled or moved."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        new = draw(st.sampled_from([*NASTY, b"", data[at : at + length] * 2]) | st.binary(max_size=4))
        data = data[:at] + new + data[at + length :]
    return data


@st.composite
def odd_rows(draw, rows, separator):
    """Rows with fields replaced, dropped, added or shuffled; rows repeated."""
    found = []
    for row in draw(st.lists(st.sampled_from(rows), min_size=1, max_size=6)):
        fields = row.split(separator)
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.integers(0, len(fields) - 1))
            action = draw(st.sampled_from(["replace"] * 4 + ["drop", "add", "shuffle"]))
            if action == "replace":
                fields[place] = draw(st.sampled_from(FIELDS))
            elif action == "drop" and len(fields) > 1:
                del fields[place]
            elif action == "add":
                fields.insert(place, draw(st.sampled_from(FIELDS)))
            elif action == "shuffle":
                fields = draw(st.permutations(fields))
        found.append(separator.join(fields))
    return draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n"])).join(found) + draw(st.sampled_from(["", "\n"]))


def check(path, data, format=None, **options):
    """Read; refuse anything but a `UserError` or jobs that make sense."""
    path.write_bytes(data)
    try:
        jobs, rejected = read_trace(path, format, lenient=True, **options)
    except UserError:
        return None
    for column in (jobs.arrival, jobs.duration, jobs.demand, jobs.instances):
        assert (np.isfinite(column) & (column >= 0)).all()
    assert all(name.strip() for name in jobs.id)
    assert len(set(jobs.id)) == len(jobs) > 0
    rows = list(rejected)
    assert rows == sorted(rows)
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    if not text.startswith(b"SQLite"):  # its lines are row ids, which a damaged page may make up
        assert all(1 <= row.line <= text.count(b"\n") + text.count(b"\r") + 2 for row in rows)
    assert rejected.counts == {reason: count for reason, count in rejected.counts.items() if count > 0}
    return jobs, rejected


def data_rows(format, text):
    """Number of rows, counted another way."""
    if format in ("swf",):
        return sum(
            bool(re.split(r"[ \t\r]+", line.split(";")[0].strip(" \t\r"))[0]) for line in text.split("\n")
        )
    if format == "slurm":
        return sum(bool(line.strip(" \t\r\n|")) or "|" in line for line in text.split("\n"))
    rows = [next(csv.reader([line], skipinitialspace=True), []) for line in text.split("\n")]
    return sum(len(row) > 1 or any(field.strip(" \t\r") for field in row) for row in rows)


@pytest.mark.parametrize("format", SAMPLES)
def test_the_samples_are_recognised_and_read(tmp_path, format):
    path = tmp_path / "trace"
    path.write_text("\n".join(SAMPLES[format]))
    by_content, _ = read_trace(path, lenient=True)
    by_name, _ = read_trace(path, format, lenient=True)
    assert by_content.same_as(by_name)
    assert set(FORMATS) == {*SAMPLES, "azure2020"}


@pytest.mark.parametrize("format", FORMATS)
@settled(40)
@given(data=st.data())
def test_damaged_files(tmp_path, format, data):
    check(tmp_path / "trace", data.draw(damaged(sample(format))), data.draw(st.sampled_from([format, None])))


@pytest.mark.parametrize("format", ROW_PER_JOB)
@settled(40)
@given(data=st.data())
def test_rows_are_jobs_or_rejected(tmp_path, format, data):
    head, rows = SAMPLES[format][: HEADERS.get(format, 0)], SAMPLES[format][HEADERS.get(format, 0) :]
    text = data.draw(odd_rows(rows, SIGNS.get(format, ",")))
    found = check(tmp_path / "trace", "\n".join([*head, text]).encode(), format)
    if found:
        jobs, rejected = found
        assert len(jobs) + len(rejected) == data_rows(format, text)
        parts = [
            part for name in jobs.id for part in (name.split("/") if format.startswith("ali") else [name])
        ]
        stripped = re.sub(r'[\s"]', "", text)
        assert all(re.sub(r'[\s"]', "", part) in stripped for part in parts)


@pytest.mark.parametrize("rows", [EVENTS, CLOUD, CSV_2019], ids=["2011", "2019 JSON", "2019 CSV"])
@settled(40)
@given(data=st.data())
def test_events_give_each_task_once(tmp_path, rows, data):
    head = rows[:1] if rows is CSV_2019 else []
    text = data.draw(odd_rows(rows[len(head) :], ","))
    found = check(
        tmp_path / "trace",
        "\n".join([*head, text]).encode(),
        "google2011" if rows is EVENTS else "google2019",
    )
    if found:
        jobs, rejected = found
        told = [
            row.id
            for row in rejected
            if row.reason not in ("not_numeric", "too_few_fields", "too_many_fields")
        ]
        told = [name for name in told if name]
        assert len({*jobs.id, *told}) == len(jobs) + len(told), "a task is a job, or rejected for one reason"
        assert all(part in text for name in jobs.id for part in name.split("/"))


@settled(100)
@given(
    data=st.binary(max_size=200) | st.text(max_size=100).map(str.encode),
    format=st.sampled_from([*FORMATS, None]),
)
def test_random_bytes(tmp_path, data, format):
    check(tmp_path / "trace", data, format)


@settled(60)
@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_gzip_that_is_cut_or_damaged(tmp_path, data, format):
    packed = gzip.compress(sample(format), mtime=0)
    kind = data.draw(st.sampled_from(["cut", "damaged", "whole"]))
    if kind == "cut":
        packed = packed[: data.draw(st.integers(3, len(packed) - 1))]
    elif kind == "damaged":
        packed = data.draw(damaged(packed))
    check(tmp_path / "trace", packed, data.draw(st.sampled_from([format, None])))


@settled(20)
@given(data=st.data())
@pytest.mark.parametrize("encoding", ["gbk", "utf-16", "latin-1", "utf-7", "idna", "hex", "no such"])
def test_any_encoding(tmp_path, data, encoding):
    check(tmp_path / "trace", data.draw(damaged(sample("csv"))), "csv", encoding=encoding)


@pytest.mark.parametrize("format", ["swf", "csv", "google2011", "azure2019"])
def test_lines_that_end_as_of_old_are_lines(tmp_path, format):
    rows = [row for row in SAMPLES[format] if "\n" not in row]
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes("\r".join(rows).encode())
    new.write_bytes("\n".join(rows).encode())
    (a, rejected_a), (b, rejected_b) = read_trace(old, format), read_trace(new, format)
    assert a.same_as(b)
    assert list(rejected_a) == list(rejected_b)


@settled(60)
@given(data=st.data())
def test_files_of_our_own(tmp_path, data):
    check(tmp_path / "trace", data.draw(damaged(own())), data.draw(st.sampled_from(["csv", None])))


def sample(format):
    return database() if format == "azure2020" else "\n".join(SAMPLES[format]).encode()


@cache
def database():
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("PRAGMA page_size = 512")
        base.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        base.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        base.executemany(
            "INSERT INTO vm VALUES (?, 1, 0, 0, ?, ?)", [(n, n / 8 - 1, n / 4 or None) for n in range(60)]
        )
        base.execute("INSERT INTO vmType VALUES (0, 0, 16, 0.5, 0.25, NULL, 0.1, 0.01)")
        base.commit()
        return base.serialize()


@cache
def own():
    import tempfile
    from pathlib import Path

    jobs = Workload(
        [0, 1.5],
        [3, 4],
        [[1, 0], [0.5, 2]],
        [Resource("cpu", "cores"), Resource("gpu", "gpus")],
        "s",
        user=["a", 'b,"'],
        capacity=[8, np.nan],
        extra={
            "n": np.array([1, 2**60]),
            "f": np.array([0.1, np.nan]),
            "b": np.array([True, False]),
            "t": ["x", "y\n"],
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        write_trace(jobs, Path(folder) / "own.csv")
        return (Path(folder) / "own.csv").read_bytes()
