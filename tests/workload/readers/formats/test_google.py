"""Google's traces of 2011 and 2019: lives of tasks put together from events, times in microseconds."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

CASES = Path(__file__).parent.parent / "cases"
SECOND = 10**6
AFTER = 2**63 - 1


def event(time, job, kind, index=0, cpu="0.5", memory="0.25", user="u", priority=9):
    """A row of task_events; `time` in seconds."""
    stamp = time if time in (0, AFTER) else round(time * SECOND)
    return f"{stamp},,{job},{index},,{kind},{user},2,{priority},{cpu},{memory},0.001,0"


def write(path, *rows):
    path.write_text("\n".join(rows) + "\n")
    return path


def table(rejected):
    return {row.id: row.reason for row in rejected}


def test_case_10_microseconds_offset_and_sentinels():
    case = CASES / "10"
    expected = json.loads((case / "expected.json").read_text())["expected"]
    absolute, _ = read_trace(case / "collection_events.csv", rebase=False)
    rebased, rejected = read_trace(case / "collection_events.csv")
    rows = {row.id: row for row in rejected}
    assert rebased.id.tolist() == ["1003"]
    assert absolute.arrival[0] == expected["seconds"]["1003"]
    assert rows["1002"].detail == f"submitted at {expected['seconds']['1002']:g} s"
    assert rebased.arrival[0] == expected["rebased_to_first_in_window"]["1003"]
    assert expected["seconds"]["1002"] - float(rebased.about["offset_s"]) == 0.0
    assert rebased.duration[0] == expected["run"]["1003"]
    assert [n for n, row in rows.items() if row.reason == "pre_trace"] == expected["pre_trace"]
    assert [n for n, row in rows.items() if row.reason == "unfinished"] == expected["unfinished"]
    assert float(rebased.about["last_event_s"]) == expected["max_finite_time_s"]
    assert rebased.resources[0].unit == "fraction of the largest machine"


def test_2011_a_task_runs_from_its_last_schedule_to_its_end(tmp_path):
    path = write(
        tmp_path / "part-00000-of-00500.csv",
        event(600, 1, 0),
        event(601, 1, 0, index=1, cpu="", priority=""),
        event(602, 1, 7, index=1, cpu="0.125"),
        event(610.5, 1, 1),
        event(620, 1, 2),  # evicted, and started again
        event(620, 1, 0),
        event(630, 1, 1),
        event(640.25, 1, 4),
        event(650, 1, 1, index=1),
        event(650, 1, 5, index=1),  # killed at once
    )
    jobs, rejected = read_trace(path)
    assert len(rejected) == 0
    assert jobs.id.tolist() == ["1/0", "1/1"]
    np.testing.assert_array_equal(jobs.arrival, [0, 1])
    np.testing.assert_array_equal(jobs.duration, [10.25, 0])
    np.testing.assert_array_equal(jobs.recorded_start, [30, 50])
    np.testing.assert_array_equal(jobs.recorded_finish, [40.25, 50])
    np.testing.assert_array_equal(jobs.demand, [[0.5, 0.25], [0.125, 0.25]])
    np.testing.assert_array_equal(jobs.priority, [9, 0])
    assert jobs.extra["end"].tolist() == ["FINISH", "KILL"]
    assert jobs.user.tolist() == ["u", "u"]


def test_2011_what_is_no_job_is_told(tmp_path):
    rows = [
        event(0, 1, 0),  # there before the record
        event(0, 1, 1),
        event(700, 1, 4),
        event(600, 2, 0),  # runs on when the record ends
        event(601, 2, 1),
        event(600, 3, 0),  # evicted and not started again
        event(601, 3, 1),
        event(602, 3, 2),
        event(600, 4, 0),  # killed while it waited
        event(610, 4, 5),
        event(601, 5, 1),  # no SUBMIT
        event(602, 5, 4),
        event(600, 6, 0, cpu="", memory=""),  # asks for nothing that is known
        event(601, 6, 1, cpu="", memory=""),
        event(602, 6, 4, cpu="", memory=""),
        event(600, 7, 0),  # ends after the record
        event(601, 7, 1),
        event(AFTER, 7, 4),
        event(600, 8, 0),
        event(601, 8, 1),
        event(602, 8, 3),  # failed: it did run
        event(600, "", 0),
        event(600, 9, 0).replace("600000000", "soon"),
        event(600, 10, 0),
        event(600, 10, 17),
    ]
    jobs, rejected = read_trace(write(tmp_path / "events.csv", *rows), "google2011")
    assert jobs.id.tolist() == ["8/0"]
    assert jobs.extra["end"].tolist() == ["FAIL"]
    assert table(rejected) == {
        "1/0": "pre_trace",
        "2/0": "unfinished",
        "3/0": "unfinished",
        "4/0": "runtime_unknown",
        "5/0": "arrival_unknown",
        "6/0": "demand_unknown",
        "7/0": "unfinished",
        "10/0": "runtime_unknown",
        "": "not_numeric",
    }
    assert rejected.counts["id_missing"] == 1
    assert [row.line for row in rejected if row.reason == "id_missing"] == [22]
    assert [row.detail for row in rejected if row.id == "3/0"] == ["submitted at 600 s, EVICT"]
    assert sum(rejected.adjusted.values()) == 1


def test_2011_a_kill_in_the_queue_does_not_lengthen_the_run_before(tmp_path):
    rows = [event(600, 1, 0), event(601, 1, 1), event(605, 1, 3), event(605, 1, 0), event(900, 1, 5)]
    jobs, _ = read_trace(write(tmp_path / "events.csv", *rows))
    assert jobs.duration.tolist() == [4.0]
    assert jobs.extra["end"].tolist() == ["FAIL"]


def test_2011_is_recognised_zipped_and_with_bad_rows(tmp_path):
    path = tmp_path / "part-00001-of-00500.csv.gz"
    rows = [event(600, 1, 0), event(601, 1, 1), event(605, 1, 4)]
    path.write_bytes(gzip.compress("\r\n".join(rows).encode()))
    jobs, _ = read_trace(path)
    assert jobs.id.tolist() == ["1/0"]


def test_times_near_the_end_of_the_record_are_exact(tmp_path):
    start = 2_506_199_602_822  # microseconds, about 29 days
    rows = [event(600, 0, 0), event(600, 0, 1), event(600.000001, 0, 4)]
    rows += [event(600, 1, kind).replace("600000000", str(start + n)) for n, kind in enumerate((0, 1, 4))]
    jobs, _ = read_trace(write(tmp_path / "events.csv", *rows), rebase=False)
    assert jobs.duration.tolist() == [1e-6, 1e-6]
    assert jobs.arrival[1] == 2_506_199.602822


CLOUD = [
    {"time": "0", "type": "0", "collection_id": "7", "instance_index": "0"},
    {"time": "600000000", "type": "0", "collection_id": "8", "instance_index": "0", "priority": "200"},
    {"time": "601000000", "type": "3", "collection_id": "8", "instance_index": "0"},
    {"time": "604500000", "type": "6", "collection_id": "8", "instance_index": "0"},
    {"time": "600000000", "type": "0", "collection_id": "8", "instance_index": "1"},
    {"time": "600000000", "type": "0", "collection_id": "9", "instance_index": "0", "collection_type": "1"},
]


@pytest.mark.parametrize("kind", ["json", "json of names and numbers", "csv", "csv of names"])
def test_2019_in_every_form_gives_the_same(tmp_path, kind):
    rows = [row | {"resource_request": {"cpus": 0.03, "memory": 0.01}} for row in CLOUD]
    names = {"0": "SUBMIT", "3": "SCHEDULE", "6": "FINISH"}
    if "names" in kind:
        rows = [row | {"type": names[row["type"]]} for row in rows]
        rows = [
            r | {"collection_type": {"1": "ALLOC_SET"}.get(r.get("collection_type"), "JOB")} for r in rows
        ]
    if "numbers" in kind:
        rows = [row | {"time": int(row["time"]), "collection_id": int(row["collection_id"])} for row in rows]
    if "json" in kind:
        path = write(tmp_path / "instance_events-000000000000.json", *map(json.dumps, rows))
    else:
        fields = ["time", "type", "collection_id", "collection_type", "instance_index", "priority", "note"]
        lines = [",".join([str(row.get(f, "")) for f in fields] + ["0.03", "0.01"]) for row in rows]
        header = ",".join([*fields, "resource_request.cpus", "resource_request.memory"])
        path = write(tmp_path / "instance_events.csv", header, *lines)
    jobs, rejected = read_trace(path)
    assert jobs.id.tolist() == ["8/0"]
    assert (jobs.arrival[0], jobs.duration[0], jobs.priority[0]) == (0.0, 3.5, 200.0)
    assert jobs.demand.tolist() == [[0.03, 0.01]]
    assert table(rejected) == {"7/0": "pre_trace", "8/1": "runtime_unknown", "9/0": "alloc_set"}


def test_2019_broken_objects_are_told_with_their_lines(tmp_path):
    good = [json.dumps(r | {"resource_request": {"cpus": 1, "memory": 1}}) for r in CLOUD[1:4]]
    rows = [good[0], "", "{broken", "[1]", json.dumps({"time": "noon", "collection_id": 5}), "{}", *good[1:]]
    jobs, rejected = read_trace(write(tmp_path / "events.json", *rows))
    assert jobs.id.tolist() == ["8/0"]
    reasons = [(row.line, row.reason) for row in rejected]
    assert reasons == [(3, "no_object"), (4, "no_object"), (5, "not_numeric"), (6, "id_missing")]


def test_2019_collections_state_no_resources_and_that_is_said(tmp_path):
    path = write(tmp_path / "collection_events.json", *(json.dumps(row) for row in CLOUD[:3]))
    with pytest.raises(UserError, match="cpu or memory"):
        read_trace(path)


def test_2019_names_the_columns_that_are_missing(tmp_path):
    path = write(tmp_path / "events.csv", "time,collection_id,cpu", "1,2,3")
    with pytest.raises(UserError, match="type missing"):
        read_trace(path, "google2019")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("600025907,,3418309,0,70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,aBc=,dEf=", "job events"),
        ("0,5,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493", "machine events"),
        ("600000000,900000000,3418309,0,4155527081,0.001562,0.06787," + ",".join("0" * 13), "usage of tasks"),
    ],
)
def test_2011_the_other_tables_are_named(tmp_path, row, what):
    with pytest.raises(UserError, match=f"{what}.*task_events"):
        read_trace(write(tmp_path / "part-00000-of-00500.csv", row, row))


def test_2011_is_recognised_beside_a_damaged_row(tmp_path):
    path = write(tmp_path / "t.csv", "damaged", event(600, 1, 0), event(601, 1, 1), event(602, 1, 4))
    jobs, rejected = read_trace(path)
    assert (len(jobs), rejected.counts) == (1, {"not_numeric": 1})
