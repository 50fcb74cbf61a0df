import json

import pytest

from schedrl.settings import UserError
from schedrl.workload.readers.parsing import json_text
from schedrl.workload.zones import clock_of

DAY = "2017-10-07 "


def attempt(start="01:12:09", end="01:13:23", gpus=(8,)):
    detail = [{"ip": f"m{n}", "gpus": [f"gpu{g}" for g in range(count)]} for n, count in enumerate(gpus)]
    times = {"start_time": start and DAY + start, "end_time": end and DAY + end}
    return times | {"detail": detail}


ONE = [attempt()]


def job(name="application_1", attempts=ONE, submitted=DAY + "01:11:39"):
    held = {"status": "Pass", "vc": "ee9e8c", "jobid": name, "attempts": attempts}
    return held | {"submitted_time": submitted, "user": "ce2f4c"}


def test_times_count_from_the_first_submission(read_text):
    first, second = job(submitted=DAY + "01:12:09"), job("application_2")
    jobs, rejected = read_text(json.dumps([first, second]))
    assert jobs.id.tolist() == ["application_2", "application_1"]
    assert jobs.arrival.tolist() == [0, 30]
    assert jobs.recorded_start.tolist() == [30, 30]
    assert jobs.recorded_finish.tolist() == [104, 104]
    assert jobs.duration.tolist() == [74, 74]
    assert jobs.demand.tolist() == [[8], [8]]
    assert jobs.about["start"] == DAY + "01:11:39"
    assert clock_of(jobs.about).hours(jobs.arrival[:1])[0] == pytest.approx(1 + 11 / 60 + 39 / 3600)
    assert jobs.user.tolist() == ["ce2f4c"] * 2
    assert jobs.extra["vc"].tolist() == ["ee9e8c"] * 2
    assert jobs.extra["status"].tolist() == ["Pass"] * 2
    assert not len(rejected)


def test_several_attempts_are_one_job_as_long_as_it_held_gpus(read_text):
    tries = [attempt("02:00:00", "02:01:00", (8, 4)), attempt("03:00:00", "03:02:00", (8, 4))]
    jobs, rejected = read_text(json.dumps([job(attempts=tries)]))
    assert jobs.duration[0] == 180
    assert jobs.recorded_finish[0] - jobs.recorded_start[0] == 3720
    assert (jobs.demand[0, 0], jobs.extra["machines"][0], jobs.extra["attempts"][0]) == (12, 2, 2)
    assert not rejected.adjusted


def test_attempts_on_other_numbers_of_gpus_are_counted(read_text):
    tries = [attempt(gpus=()), attempt(gpus=(2,)), attempt(gpus=(4,))]
    jobs, rejected = read_text(json.dumps([job(attempts=tries)]))
    assert jobs.demand[0, 0] == 2
    assert sum(rejected.adjusted.values()) == 1


def test_gangs_make_every_gpu_an_instance(read_text):
    jobs, _ = read_text(json.dumps([job()]), gangs=True)
    assert (jobs.demand[0, 0], jobs.instances[0]) == (1, 8)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (job("b", attempts=[]), "runtime_unknown"),
        (job("b", attempts=None), "runtime_unknown"),
        (job("b", [attempt(end=None)]), "unfinished"),
        (job("b", [attempt(end=None), attempt()]), "runtime_unknown"),
        (job("b", [attempt(start="")]), "runtime_unknown"),
        (job("b", [attempt("02:00:00", "01:00:00")]), "negative_runtime"),
        (job("b", [attempt(gpus=())]), "no_demand"),
        (job("b", [{"start_time": DAY + "01:00:00", "end_time": DAY + "02:00:00"}]), "no_demand"),
        (job("b", submitted="None"), "arrival_unknown"),
        (job("b", submitted=None), "arrival_unknown"),
        (job("b", submitted="yesterday"), "not_numeric"),
        (job("b", submitted=12), "not_numeric"),
        (job("b", submitted="2017-10-07T01:11:39+02:00"), "not_numeric"),
        (job("b", attempts="none"), "no_object"),
        (job("b", attempts=[3]), "no_object"),
        (job(None), "id_missing"),
        (job(), "exact_repeat"),
        (7, "no_object"),
    ],
)
@pytest.mark.parametrize("gangs", [False, True])
def test_entries_that_are_no_jobs_are_rejected_with_place_and_reason(read_text, entry, reason, gangs):
    jobs, rejected = read_text(json.dumps([job(), entry]), "philly", gangs=gangs)
    assert len(jobs) == 1
    assert [(r.line, r.reason) for r in rejected] == [(2, reason)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" + json.dumps(job()) + ", {", "entry 2 of its list is damaged or cut off"),
        ("[" + json.dumps(job()), "entry 2 of its list is damaged or cut off"),
        ('{"jobid": 1}', "is no JSON list"),
        ("", "is empty"),
        ("[" * 100_000, "entry 1 of its list is damaged"),
        (json.dumps([job(attempts=[])]), "no jobs; 1 row rejected: 1 runtime_unknown"),
        ("[]", "no jobs"),
    ],
)
def test_what_is_no_list_of_jobs_is_an_error(read_text, content, message):
    with pytest.raises(UserError, match=message):
        read_text(content, "philly")


def test_a_list_is_read_entry_by_entry(read_text, monkeypatch):
    many = [job(f"日志_{n}") for n in range(50)]
    whole, _ = read_text(json.dumps(many, ensure_ascii=False, indent=1))
    monkeypatch.setattr(json_text.Source, "raw", lambda self, size=0: pieces(self.path.read_bytes(), 7))
    assert read_text(json.dumps(many, ensure_ascii=False), "philly")[0].same_as(whole)


def pieces(raw, size):
    return (raw[at : at + size] for at in range(0, len(raw), size))


NIGHT = "2017-11-05 "
"""In it the clocks of US/Pacific went back at 02:00."""


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("00:30:00", "01:30:00", 3600),  # either makes sense: the earlier
        ("00:30:00", "02:30:00", 10800),
        ("01:50:00", "01:10:00", 1200),  # only one does
        ("01:30:00", "03:00:00", 9000),
    ],
)
def test_lengths_are_right_in_the_night_of_the_change(read_text, start, end, seconds):
    one = job("a", attempts=[{**attempt(), "start_time": NIGHT + start, "end_time": NIGHT + end}])
    one["submitted_time"] = NIGHT + "00:10:00"
    jobs, rejected = read_text(json.dumps([one]))
    assert jobs.duration.tolist() == [seconds]
    assert not len(rejected)
    either = (start, end) in (("00:30:00", "01:30:00"), ("01:30:00", "03:00:00"))
    assert bool(rejected.adjusted) == either


def test_without_changes_of_the_clock_some_jobs_of_that_night_end_before_they_start(read_text):
    one = job("a", attempts=[{**attempt(), "start_time": NIGHT + "01:50:00", "end_time": NIGHT + "01:10:00"}])
    with pytest.raises(UserError, match="negative_runtime"):
        read_text(json.dumps([one]), time_zone="-08:00")
    with pytest.raises(UserError, match=r"time zone 'US/Pazific' doesn't exist; names are like US/Pacific"):
        read_text(json.dumps([one]), time_zone="US/Pazific")
