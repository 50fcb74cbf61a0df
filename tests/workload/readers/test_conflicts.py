"""Case 14, rows that repeat or contradict each other, through the reader of any CSV."""

import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

MAP = {"id": "instance_id", "arrival": "timestamp", "duration": "timestamp", "cpu": "cpu", "mem": "mem"}


def test_case_14_rows_that_disagree_are_an_error(case):
    folder, expected = case("14").folder, case("14").expected
    with pytest.raises(UserError) as error:
        read_trace(folder / "container_event.csv", map=MAP)
    (conflict,) = expected["conflicts"]
    assert f"job {conflict['id']} " in str(error.value)
    for value in conflict["values"]:
        assert f"{conflict['field']}" in str(error.value)
        assert str(value) in str(error.value)


def test_case_14_lenient_keeps_the_first_and_drops_exact_repeats(case):
    folder, expected = case("14").folder, case("14").expected
    jobs, rejected = read_trace(folder / "container_event.csv", map=MAP, lenient=True)
    assert rejected.counts["exact_repeat"] == expected["exact_duplicates_dropped"]
    assert [row.id for row in rejected if row.reason == "conflict"] == [
        conflict["id"] for conflict in expected["conflicts"]
    ]
    assert jobs.id.tolist() == ["1681", "2000"]
    assert jobs.demand[0, 1] == expected["lenient"]["kept_mem"]


def test_columns_that_nothing_is_read_from_may_hold_anything(read_text):
    text = "remark,job_id,submit,run,cpu,state\nfine,a,0,1,2,ok\n,b,1,2,3,\n12,c,2,3,4\n"
    jobs, rejected = read_text(text)
    assert not len(rejected)
    assert jobs.id.tolist() == ["a", "b", "c"]
    jobs, rejected = read_text(text + "x,d,?,3,4,\n")
    assert [(row.line, row.reason) for row in rejected] == [(5, "not_numeric")]
    assert len(jobs) == 3
