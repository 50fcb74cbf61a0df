"""Local times over a change of the clock, and times that count from 1970 in any unit; cases 40, 50 and 54."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import job_distribution
from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

MAP = "id=id,arrival=submit[iso],start=start[iso],finish=end[iso],cpu=cpu"
ZONED = "id=id,arrival=submit[iso:{0}],start=start[iso:{0}],finish=end[iso:{0}],cpu=cpu"
FILES = ("berlin-autumn.csv", "berlin-spring.csv")
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("how", ["option", "map", "usual names"])
def test_case_40_lengths_are_right_over_both_changes_of_the_clock(case, how):
    options = {
        "option": {"map": MAP, "time_zone": "Europe/Berlin"},
        "map": {"map": ZONED.format("Europe/Berlin")},
        "usual names": {"time_zone": "Europe/Berlin"},
    }[how]
    found = {}
    for name in FILES:
        jobs, rejected = read_trace(case("40").folder / name, **options)
        found |= dict(zip(jobs.id, jobs.duration, strict=True))
        assert not len(rejected)
        assert not [remark for remark in rejected.remarks if "taken as UTC" in remark]
    expected = case("40").expected["duration"]
    assert {name: found[name] for name in expected} == expected


def test_case_40_what_was_settled_and_what_was_not_is_counted(case):
    _, rejected = read_trace(case("40").folder / FILES[0], map=MAP, time_zone="Europe/Berlin")
    assert [remark.partition("repeats: ")[2][:9] for remark in rejected.remarks] == ["1 settled"]
    assert {what[-20:]: count for what, count in rejected.adjusted.items()} == {"the earlier is taken": 1}


@pytest.mark.parametrize("name", FILES)
def test_case_40_without_a_zone_it_is_said(case, capsys, name):
    """An hour that a job ends before it starts hints at the change of the clock."""
    assert job_distribution.main(["inspect", str(case("40").folder / name), "--map", MAP]) == 0
    printed = capsys.readouterr().out
    assert "note: times have no zone, so they are taken as UTC" in printed
    assert "--time_zone Europe/Berlin" in printed
    assert ("end up to an hour before they start: 1" in printed) == (name == FILES[0])


@QUICK
@given(
    zone=st.sampled_from(
        ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Europe/Dublin"]
    ),
    start=st.datetimes(datetime(2023, 1, 1), datetime(2025, 1, 1)),
    minutes=st.lists(st.integers(0, 300), min_size=1, max_size=5),
    near=st.booleans(),
)
def test_lengths_that_a_log_states_bring_back_true_times(read_text, zone, start, minutes, near):
    """A log in local times with the run times beside them: starts and ends differ by these, always."""
    start = start.replace(second=0, microsecond=0)
    if near:  # the night of a change in Berlin
        start = datetime(2023, 10, 28, 23) + timedelta(minutes=start.minute * 4)
    rows, utc = [], start.replace(tzinfo=ZoneInfo("UTC"))
    for number, length in enumerate(minutes):
        ends = utc + timedelta(minutes=length)
        local = [moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S") for moment in (utc, ends)]
        rows.append(f"{number},{local[0]},{local[0]},{local[1]},{length},1")
    jobs, rejected = read_text("id,submit,start,end,run[min],cpu\n" + "\n".join(rows) + "\n", time_zone=zone)
    assert not len(rejected)
    assert (jobs.recorded_finish - jobs.recorded_start).tolist() == [60.0 * length for length in minutes]
    assert np.isin((jobs.recorded_start - utc.timestamp()) % 1800, 0).all()


def test_a_time_that_no_clock_showed_is_counted(read_text):
    text = "id,submit,run,cpu\na,2023-03-26T02:30:00,60,1\nb,2023-03-26T01:30:00,60,1\n"
    jobs, rejected = read_text(text, time_zone="Europe/Berlin")
    assert np.diff(jobs.arrival).tolist() == [3600]
    assert list(rejected.adjusted.values()) == [1]
    with pytest.raises(
        UserError, match="line 2: a time lies in the hour that a change of the clock leaves out"
    ):
        read_text(text, time_zone="Europe/Berlin", strict=True)


@pytest.mark.parametrize(
    ("moment", "unit"),
    [
        ("2024-03-04T08:00:00+01:00", "iso"),
        ("2024-03-04 07:00:00Z", "iso"),
        ("2024-03-04T08:00:00.000", "iso:Europe/Berlin"),
        ("20240304T080000+0100", "iso"),
        ("2024-03-04T02:00:00-05", "iso:Europe/Berlin"),
        ("Mon Mar  4 08:00:00 2024", "iso:+01:00"),
        ("Mar 4 08:00:00 2024", "iso:Europe/Berlin"),
        ("04.03.2024 08:00", "%d.%m.%Y %H:%M"),
        ("1709535600", "iso"),
        ("1709535600000", "iso"),
    ],
)
def test_ways_to_write_a_moment(read_text, moment, unit):
    zone = {"time_zone": "Europe/Berlin"} if unit.startswith("%") else {}
    jobs, _ = read_text(f"t,run,cpu\n{moment},1,1\n", map=f"arrival=t[{unit}],duration=run,cpu=cpu", **zone)
    assert jobs.arrival[0] == 1709535600


@pytest.mark.parametrize(
    "zone", ["Europe/Berln", "", "..", "/etc/passwd", "Europe", "CEST/x", "+99:00", "UTC+30"]
)
def test_a_zone_that_does_not_exist_is_refused(case, capsys, zone):
    path = str(case("40").folder / FILES[0])
    asked = ["--time_zone", zone] if zone else ["--map", ZONED.format("Mars/Base")]
    assert job_distribution.main(["inspect", path, *asked]) == 2
    error = capsys.readouterr().err
    assert f"error: time zone {(zone or 'Mars/Base')!r} doesn't exist; names are like " in error
    assert error.count("\n") == 1


def test_a_zone_that_nothing_needs_is_refused(read_text):
    with pytest.raises(UserError, match="no column holds times of a calendar"):
        read_text("id,submit,run,cpu\na,0,1,1\n", time_zone="Europe/Berlin")


def test_case_50_milliseconds_are_told_by_their_size(case):
    (scaled, said), (plain, _) = (read_trace(case("50").folder / f"epoch-{unit}.csv") for unit in ("ms", "s"))
    assert scaled.same_as(plain)
    assert any("milliseconds since 1970" in remark for remark in said.remarks) == case("50").expected["said"]


@pytest.mark.parametrize(("unit", "parts"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_case_54_moments_in_any_unit_are_the_same_jobs(read_text, unit, parts):
    seconds = 1700000000 + np.cumsum(np.random.default_rng(0).integers(1, 90, 200))
    rows = [
        f"{n},{s * parts},{(s + 5) * parts},{(s + 5 + n) * parts},2" for n, s in enumerate(seconds.tolist())
    ]
    text = "id,submit,start,end,cpu\n" + "\n".join(rows) + "\n"
    jobs, rejected = read_text(text)
    assert jobs.arrival.tolist() == seconds.tolist()
    assert jobs.duration.tolist() == list(range(200))
    named, _ = read_text(
        text, map=f"id=id,arrival=submit[{unit}],start=start[{unit}],finish=end[{unit}],cpu=cpu"
    )
    np.testing.assert_allclose(named.arrival, jobs.arrival, rtol=0, atol=1e-6)
    np.testing.assert_allclose(named.duration, jobs.duration, rtol=0, atol=1e-6)
    assert len(rejected.remarks) == 3
    if unit == "ms":
        kept, rejected = read_text(text, map="arrival=submit[s],start=start[s],finish=end[s],cpu=cpu")
        assert kept.arrival[0] == seconds[0] * parts
        assert not rejected.remarks


def test_two_columns_on_different_clocks_meet(read_text):
    jobs, _ = read_text("id,submit,start,end,cpu\na,1700000000000,1700000060,1700000120000000,1\n")
    assert (jobs.arrival[0], jobs.recorded_start[0], jobs.duration[0]) == (1700000000, 1700000060, 60)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("memory", "65536", "memory=COLUMN[MB]"),
        ("gpu", "100", "gpu=COLUMN[percent]"),
        ("cpu", "4000", "cpu=COLUMN[milli]"),
        ("memory", "512", ""),
        ("gpu", "8", ""),
        ("cpu", "64", ""),
    ],
)
def test_amounts_that_no_machine_has_are_questioned(read_text, column, values, said):
    _, rejected = read_text(f"id,submit,run,{column}\na,0,1,{values}\nb,1,1,{values}\n")
    assert [said in remark for remark in rejected.remarks] == [True] * bool(said)


@pytest.mark.parametrize(
    ("cell", "unit", "gigabytes"),
    [
        ("16G", "", 16),
        ("4000M", "", 4),
        ("2Gi", "", 2.147483648),
        ("512 MB", "", 0.512),
        ("3", "", 3),
        ("1T", "GiB", 1024),
    ],
)
def test_a_suffix_in_a_cell_counts_for_it(read_text, cell, unit, gigabytes):
    text = f"submit,run,mem,cpu\n0,02:00:00,{cell},500m\n1,1-00:00:00,1K,2\n"
    jobs, _ = read_text(text, map=f"arrival=submit,duration=run,memory=mem{unit and f'[{unit}]'},cpu=cpu")
    assert jobs.demand[0].tolist() == [gigabytes, 0.5]
    assert jobs.duration.tolist() == [7200, 86400]


def test_minutes_or_hours_need_a_word(read_text):
    text = "submit,run,cpu\n0,02:30,1\n1,01:00:00,1\n"
    assert [r.detail for r in read_text(text)[1]] == ["run is '02:30'"]
    for unit, seconds in (("hms", 150), ("hm", 9000)):
        assert read_text(text, map=f"arrival=submit,duration=run[{unit}],cpu=cpu")[0].duration.tolist() == [
            seconds,
            3600,
        ]


@pytest.mark.parametrize(("unit", "parts"), [("milliseconds", 10**3), ("microseconds", 10**6)])
def test_a_format_of_seconds_says_where_arrivals_have_another_size(read_text, unit, parts):
    rows = "".join(
        f"{i} {(1_700_000_000 + 60 * i) * parts} 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n" for i in range(5)
    )
    names = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
    created, ended, placed = ((1_700_000_000 + after) * parts for after in (0, 100, 50))
    pods = f"{names},creation_time,deletion_time,scheduled_time\np,6000,12288,0,0,,LS,Running,"
    pods += f"{created},{ended},{placed}\n"
    for text, format in ((rows, "swf"), (pods, "openb")):
        said = f"the size of {unit} since 1970"
        if parts == 10**3:
            assert any(said in remark for remark in read_text(text, format)[1].remarks)
        else:  # later than any time can be
            with pytest.raises(UserError, match=said):
                read_text(text, format)
    assert not read_text(rows.replace("17000", "0"), "swf")[1].remarks
