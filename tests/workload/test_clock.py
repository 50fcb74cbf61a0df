"""Which hour of the day a time of a trace was; case 39."""

import json
import zoneinfo
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.settings import UserError
from schedrl.workload.command import picture
from schedrl.workload.readers import read_trace
from schedrl.workload.transform import stretched, window
from schedrl.workload.zones import clock_of, zone_of

ROWS = "".join(f"{i} {60 * i} 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n" for i in range(3))
WORDS = ("UnixStartTime", "TimeZone", "TimeZoneString", "StartTime")
CLOCKS = {
    (1700000000, 3600, "US/Pacific", "Tue Nov 14 14:13:20 PST 2023"): 14.2222,
    (1700000000, None, "Asia/Tokyo", "Wed Nov 15 07:13:20 JST 2023"): 7.2222,
    (1688385600, 3600, "Europe/Stockholm", "Mon Jul 03 14:00:00 CEST 2023"): 14.0,
    # The headers of LLNL Atlas, KTH SP2 and NASA iPSC.
    (None, 3600, "US/Pacific", "Fri Nov 10 15:05:01 PST 2006"): 15.0836,
    (None, 3600, "Europe/Stockholm", "Mon Sep 23 14:00:31 CEST 1996"): 14.0086,
    (None, -28800, "US/Pacific", "Fri Oct 01 00:00:03 PDT 1993"): 0.0008,
    # Less is known.
    (None, None, None, "Fri Oct 01 06:30:00 1993"): 6.5,
    (1700000000, 3600, None, None): 23.2222,
    (1700000000, None, "US/Pacific", None): 14.2222,
}


def about(*values):
    return {word: str(value) for word, value in zip(WORDS, values, strict=True) if value is not None}


@pytest.mark.parametrize(("header", "hour"), CLOCKS.items())
def test_the_hour_at_time_0(header, hour, tmp_path):
    path = tmp_path / "log.swf"
    path.write_text("".join(f"; {word}: {text}\n" for word, text in about(*header).items()) + ROWS)
    jobs, _ = read_trace(path)
    assert clock_of(jobs.about).hours(jobs.arrival[:1])[0] == pytest.approx(hour, abs=1e-4)


FOLDER = Path(__file__).parent / "readers" / "cases" / "39"
HOURS = json.loads((FOLDER / "expected.json").read_text())["expected"]["clock_at_time_0_hours"]


@pytest.mark.parametrize("name", HOURS)
def test_case_39_as_it_is(name):
    jobs, _ = read_trace(FOLDER / name)
    assert clock_of(jobs.about).hours(jobs.arrival[:1])[0] == pytest.approx(HOURS[name], abs=1e-4)


@pytest.mark.parametrize(
    "header",
    [
        (None, None, None, None),
        (1700000000, None, None, None),  # no word of where that was
        (1700000000, None, "US/Pacific", "Tue Nov 14 09:13:20 PST 2023"),  # contradict each other
        (None, 3600, "Mars/Olympus", None),
        ("soon", "x", "US/Pacific", "yesterday"),
        (1e300, 3600, None, None),
    ],
)
def test_what_is_not_known_or_contradicts_itself_is_no_clock(header):
    assert clock_of(about(*header)) is None


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    st.integers(0, 2_000_000_000),
    st.integers(0, 40_000_000),
)
def test_clocks_change_with_the_zone(zone, start, after):
    clock = clock_of({"UnixStartTime": str(start), "TimeZoneString": zone})
    moment = datetime.fromtimestamp(start, ZoneInfo(zone))
    local = (moment.astimezone(ZoneInfo("UTC")) + timedelta(seconds=after)).astimezone(ZoneInfo(zone))
    hour = local.hour + local.minute / 60 + local.second / 3600
    assert clock.hours(np.array([float(after)]))[0] == pytest.approx(hour, abs=1e-6)


@pytest.mark.parametrize("header", CLOCKS)
def test_a_window_keeps_the_clock_and_other_gaps_have_none(header, tmp_path):
    path = tmp_path / "log.swf"
    path.write_text("".join(f"; {word}: {text}\n" for word, text in about(*header).items()) + ROWS)
    jobs, _ = read_trace(path)
    later = window(jobs, 60, 200)
    before, now = (clock_of(w.about).hours(w.arrival) for w in (jobs, later))
    np.testing.assert_allclose(now, before[1:], atol=1e-4)
    assert clock_of(stretched(jobs, 2.0).about) is None
    assert clock_of(stretched(jobs, 1.0).about) is not None


def test_the_title_says_what_the_hours_are(tmp_path):
    from matplotlib.figure import Figure

    path = tmp_path / "log.swf"
    for header, title in (
        (about(1688385600, 3600, "Europe/Stockholm", None), "hours of the day (Europe/Stockholm)"),
        ({}, "hours since the start, modulo 24"),
    ):
        path.write_text("".join(f"; {word}: {text}\n" for word, text in header.items()) + ROWS)
        panel = Figure().add_subplot()
        picture._hours(panel, read_trace(path)[0])
        assert panel.get_title() == title


def test_zones_are_known_where_the_system_has_none():
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    try:
        summer = datetime(2024, 7, 1, tzinfo=zone_of("US/Pacific"))
        assert summer.utcoffset() == timedelta(hours=-7)
        with pytest.raises(UserError, match="Europe/Berlin"):
            zone_of("Europe/Berlinn")
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()
