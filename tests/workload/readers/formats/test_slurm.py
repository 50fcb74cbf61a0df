"""Slurm's accounting log as `sacct` prints it: every job once, whatever parts the columns; case 35."""

import gzip

import numpy as np
import pandas as pd
import pytest

from schedrl.settings import UserError
from schedrl.workload.readers import read_trace

MAP = "id=JobID,user=User,arrival=Submit[iso],start=Start[iso],finish=End[iso],cpu=AllocCPUS"
MAPS = (
    MAP,
    f"{MAP},estimate=Timelimit",
    f"{MAP},estimate=Timelimit,memory=ReqMem",
    "id=JobID,arrival=Submit[iso],duration=Elapsed,cpu=AllocCPUS",
    "arrival=Submit,duration=Elapsed[hms],cpu=AllocCPUS,memory=ReqMem[GiB]",
)
HEADER = "JobID|User|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|AllocNodes|ReqMem|AllocTRES|State"


def row(id="7", submit="08:00:00", start="08:10:00", end="09:10:00", elapsed="01:00:00", **other):
    """Return a line of 4 March 2024, two cores."""
    held = {
        "user": "u",
        "limit": "02:00:00",
        "cpus": "2",
        "nodes": "1",
        "mem": "4G",
        "tres": "",
        "state": "COMPLETED",
    }
    held |= other
    day = [f"2024-03-04T{text}" if text[:1].isdigit() else text for text in (submit, start, end)]
    return "|".join(
        [
            id,
            held["user"],
            *day,
            elapsed,
            *(held[n] for n in ("limit", "cpus", "nodes", "mem", "tres", "state")),
        ]
    )


@pytest.fixture
def log(read_text):
    return lambda *rows, header=HEADER, **options: read_text("\n".join([header, *rows]) + "\n", **options)


def check(jobs, rejected, expected):
    assert jobs.id.tolist() == expected["jobs"]
    assert (jobs.duration * jobs.demand[:, 0]).sum() == expected["core_seconds"]
    assert dict(zip(jobs.id, jobs.duration, strict=True)) == expected["duration"]
    told = {reason: [r.id for r in rejected if r.reason == reason] for reason in rejected.counts}
    names = {"step": "steps_not_jobs", "never_ran": "never_ran", "unfinished": "unfinished"}
    assert told == {reason: expected[name] for reason, name in names.items()}
    assert rejected.work_lines() == [
        "lost with them: of 1 row the work is not known"
    ]  # of the unfinished one


@pytest.mark.parametrize("name", ["sacct-P.txt", "sacct.csv"])
def test_case_35_as_it_is(case, name):
    jobs, rejected = read_trace(case("35").folder / name)
    check(jobs, rejected, case("35").expected)
    assert dict(zip(jobs.id, jobs.estimate, strict=True)) == case("35").expected["estimate"]
    assert jobs.demand[:, 1].tolist() == [16, 4000 / 1024, 4]
    assert jobs.resources[1].unit == "GiB"
    if name == "sacct-P.txt":
        assert jobs.demand[:, 2].tolist() == [0, 0, 1]


@pytest.mark.parametrize("map", MAPS)
@pytest.mark.parametrize("name", ["sacct-P.txt", "sacct.csv"])
def test_case_35_by_a_map(case, name, map):
    jobs, rejected = read_trace(case("35").folder / name, map=map)
    check(jobs, rejected, case("35").expected)
    if "estimate" in map:
        assert dict(zip(jobs.id, jobs.estimate, strict=True)) == case("35").expected["estimate"]
    if "memory" in map:
        assert jobs.demand[:, 1].tolist() == [16, 4000 / 1024, 4]


@pytest.mark.parametrize("sign", ["|", "\t", ";", ","])
@pytest.mark.parametrize("end", [False, True], ids=["-P", "-p"])
def test_whatever_parts_the_columns(case, tmp_path, sign, end):
    table = pd.read_csv(case("35").folder / "sacct-P.txt", sep="|", dtype=str, keep_default_na=False)
    if end:
        table[""] = ""
    path = tmp_path / "Log.gz"
    with gzip.open(path, "wt") as file:
        table.to_csv(file, sep=sign, index=False)
    check(*read_trace(path), case("35").expected)


@pytest.mark.parametrize("seed", range(3))
def test_jobs_work_and_rejections_are_those_that_pandas_counts(log, seed):
    """A log of a thousand rows of every kind, counted another way."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(300):
        cpus, hours = str(2 ** rng.integers(6)), rng.integers(80)
        elapsed = f"{hours // 24}-{hours % 24:02}:00:00" if hours >= 24 else f"{hours:02}:00:00"
        end = str(pd.Timestamp("2024-03-04T10:00") + pd.Timedelta(hours=int(hours))).replace(" ", "T")
        id = f"{number}_{rng.integers(9)}" if rng.random() < 0.3 else f"{number}"
        kind = rng.choice(["job", "never", "running", "array"], p=[0.7, 0.1, 0.1, 0.1])
        held = {
            "cpus": cpus,
            "elapsed": elapsed,
            "limit": rng.choice(["UNLIMITED", "Partition_Limit", "4-00:00:00"]),
        }
        if kind == "job":
            rows.append(row(id, start="10:00:00", end="x", **held).replace("|x|", f"|{end}|"))
            rows += [
                row(f"{id}.{step}", user="", **held | {"limit": ""})
                for step in ("batch", "extern", "0")[: rng.integers(4)]
            ]
        elif kind == "running":
            rows.append(row(id, end="Unknown", state="RUNNING", **held))
        else:
            name = f"{number}_[3-9%2]" if kind == "array" else id
            held |= {"cpus": "0", "elapsed": "00:00:00"}
            rows.append(row(name, start="None", end="Unknown", state="CANCELLED by 5", **held))
    jobs, rejected = log(*rows)
    table = pd.DataFrame([text.split("|") for text in rows], columns=HEADER.split("|"))
    whole = table[~table.JobID.str.contains(".", regex=False)]
    ran = whole[~whole.Start.isin(["None", "Unknown"])]
    ended = ran[ran.End != "Unknown"]
    run = pd.to_datetime(ended.End) - pd.to_datetime(ended.Start)
    assert jobs.id.tolist() == ended.JobID.tolist()
    assert jobs.duration.tolist() == run.dt.total_seconds().tolist()
    assert jobs.duration @ jobs.demand[:, 0] == run.dt.total_seconds() @ ended.AllocCPUS.astype(int)
    assert rejected.counts == {
        "step": len(table) - len(whole),
        "never_ran": len(whole) - len(ran),
        "unfinished": len(ran) - len(ended),
    }
    assert (~np.isnan(jobs.estimate)).sum() == (ended.Timelimit == "4-00:00:00").sum()


def test_requeued_jobs_count_once_the_last_record_is_the_job(log):
    first = row("5", start="08:10:00", end="08:40:00", elapsed="00:30:00", state="REQUEUED")
    last = row("5", submit="08:40:00", start="08:50:00", end="09:50:00")
    for rows in ([first, last], [last, first], [first, first, last]):
        jobs, rejected = log(*rows)
        assert jobs.duration.tolist() == [3600]
        assert rejected.counts["earlier_record"] == len(rows) - 1
    jobs, rejected = log(
        first, row("5", submit="08:40:00", start="Unknown", end="Unknown", state="PENDING"), row("6")
    )
    assert jobs.id.tolist() == ["6"]
    assert rejected.counts == {"earlier_record": 1, "never_ran": 1}
    assert log(last, last)[1].counts == {"exact_repeat": 1}
    with pytest.raises(UserError, match="there twice with different values"):
        log(last, row("5", user="another", cpus="4"))


def test_a_job_that_was_cancelled_in_the_queue_never_ran(log):
    gone = row("5", start="08:30:00", end="08:30:00", elapsed="00:00:00", cpus="0", state="CANCELLED by 7")
    short = row("6", start="08:30:00", end="08:30:00", elapsed="00:00:00", state="COMPLETED")
    jobs, rejected = log(gone, short)
    assert (jobs.id.tolist(), jobs.duration.tolist()) == (["6"], [0])
    assert [(r.id, r.reason, r.detail) for r in rejected] == [("5", "never_ran", "CANCELLED by 7")]


def test_tasks_of_an_array_that_wait_are_told_by_number(log):
    names = ("9_[2-4%1]", "10_[0-10:5,12]", "11_[1,2,7-9]", "12_[...]")
    _, rejected = log(row(), *(row(n, start="Unknown", end="Unknown", state="PENDING") for n in names))
    told = [r.detail.removeprefix("PENDING ") for r in rejected]
    assert told == [f"({n} tasks of an array)" for n in (3, 4, 5)] + ["(tasks of an array)"]


def test_components_of_heterogeneous_jobs_are_jobs_and_their_steps_are_none(log):
    jobs, rejected = log(
        row("5+0"), row("5+0.batch"), row("5+1", cpus="8"), row("5+1.0"), row("6.0+1"), row("8_3.extern")
    )
    assert jobs.id.tolist() == ["5+0", "5+1"]
    assert rejected.counts == {"step": 4}
    assert "components of heterogeneous jobs" in rejected.remarks[-1]


@pytest.mark.parametrize(
    ("held", "cpu", "memory", "gpu"),
    [
        ({"tres": "billing=8,cpu=8,mem=16G,node=2,gres/gpu=4,gres/gpu:a100=4"}, 2, 16, 4),
        ({"tres": "cpu=8,mem=512M,gres/gpu:a100=1,gres/gpu:t4=2", "cpus": ""}, 8, 0.5, 3),
        ({"mem": "2Gc"}, 2, 4, 0),
        ({"mem": "2Gn", "nodes": "3"}, 2, 6, 0),
        ({"mem": "4000Mc"}, 2, 2 * 4000 / 1024, 0),
        ({"mem": "1.5T"}, 2, 1536, 0),
        ({"mem": "1048576K"}, 2, 1, 0),
        ({"mem": "2048"}, 2, 2, 0),
    ],
)
def test_amounts(log, held, cpu, memory, gpu):
    jobs, _ = log(row(**held), row("8", tres="gres/gpu=1", mem="1G"))
    assert jobs.demand[0].tolist() == [cpu, memory, gpu]


def test_nodes_may_be_instances(log):
    rows = [row(cpus="8", nodes="4", mem="2Gn"), row("8", "08:05:00", cpus="1")]
    jobs, _ = log(*rows, gangs=True)
    assert (jobs.instances.tolist(), jobs.demand.tolist()) == ([4, 1], [[2, 2], [1, 4]])
    assert log(*rows)[0].load(1.0) == pytest.approx(jobs.load(1.0))


@pytest.mark.parametrize(
    ("elapsed", "seconds"),
    [("1-02:00:00", 93600), ("02:00:00", 7200), ("12:34.567", 754.567), ("00:05", 5), ("100:00:00", 360000)],
)
def test_lengths(log, elapsed, seconds):
    assert log(row(elapsed=elapsed))[0].duration.tolist() == [seconds]


def test_estimates_below_the_run_time_are_raised_and_counted(log):
    jobs, rejected = log(row(elapsed="01:00:07", limit="01:00:00"), row("8", limit="UNLIMITED"))
    np.testing.assert_array_equal(jobs.estimate, [3607, np.nan])
    assert sum(rejected.adjusted.values()) == 1


def test_raw_columns_and_seconds_since_1970(log):
    header = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NCPUS"
    jobs, _ = log(
        "1|1709539200|1709539260|1709542860|3600|120|4", "2|1709539200|Unknown|Unknown|0|120|0", header=header
    )
    assert (jobs.arrival[0], jobs.duration[0], jobs.estimate[0], jobs.demand[0, 0]) == (
        1709539200,
        3600,
        7200,
        4,
    )


def test_quotes_in_names_are_signs_like_any_other(log):
    header = HEADER + "|JobName"
    jobs, rejected = log(row("5") + '|say "hi', row("6") + '|"a', row("7") + '|b"c" d', header=header)
    assert len(jobs) == 3
    assert not len(rejected)


def test_local_times_take_a_zone_and_the_run_time_tells_which_hour_is_meant(log):
    """In the night of 27 October 2024 the clocks of Berlin show 02:30 twice."""

    def night(id, start, end, elapsed):
        return (
            row(id, "x", start, end, elapsed)
            .replace("2024-03-04", "2024-10-27")
            .replace("|x|", "|2024-10-27T01:00:00|")
        )

    rows = [night("1", "02:30:00", "02:40:00", "01:10:00"), night("2", "02:30:00", "02:40:00", "00:10:00")]
    jobs, rejected = log(*rows, time_zone="Europe/Berlin")
    assert (jobs.recorded_finish - jobs.recorded_start).tolist() == [4200, 600]
    assert jobs.duration.tolist() == [4200, 600]
    assert "either reading makes sense" in next(iter(rejected.adjusted))
    assert any("1 settled" in remark for remark in rejected.remarks)
    assert dict(jobs.about) == {"UnixStartTime": "0", "TimeZoneString": "Europe/Berlin"}


FIXED = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
9001               wrap        cpu       root          8  COMPLETED      0:0
"""


def test_what_can_not_be_read_is_answered_with_the_command_that_prints_it(log, read_text):
    with pytest.raises(UserError, match=r"fixed width.*sacct -a -P"):
        read_text(FIXED)
    with pytest.raises(UserError, match=r"lacks the columns Submit.*sacct -a -P"):
        log("7|u|08|COMPLETED|cpu", header="JobID|User|AllocCPUS|State|Partition", format="slurm")
    with pytest.raises(UserError, match=r"sacct.*JSON.*sacct -a -P"):
        read_text(
            '{"meta": {"plugins": {}}, "jobs": [{"job_id": 5, "allocation_nodes": 1, "association": {}}]}'
        )
    with pytest.raises(UserError, match="no jobs; 1 row rejected: 1 step"):
        log(row("7.batch"))
