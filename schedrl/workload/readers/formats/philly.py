"""Microsoft's Philly trace: `cluster_job_log`, a JSON list with one object per job.

Of a job: jobid, user, vc (virtual cluster), status (Pass, Killed, Failed), submitted_time, attempts: each
with start_time, end_time and detail, a list of ip and gpus (names). Times are local (Pacific) times as text,
`2017-10-07 01:11:39`; null, "None" and "" are unknown.

The arrival counts seconds from the earliest submission, which is kept in `about["start"]`. A time in the hour
that winter time repeats is read so that a job's times follow one another. A job that was tried several times
is one job: its duration is the sum of
its attempts' run times, as long as it held GPUs, without the pauses between them (the authors' notebook takes
the first start to the last end, which `recorded_start` and `recorded_finish` keep). Its GPUs are those of the
first attempt that names any, over all machines; attempts with other numbers are counted.

Rejected, by the place in the list from 1: no attempt, or one without start or end, `runtime_unknown`; no end
of the last attempt, `unfinished`; no GPU, `no_demand`. Processors and memory are not in the trace.

Format: https://github.com/msr-fiddle/philly-traces. Cite Jeon et al., "Analysis of Large-Scale Multi-Tenant
GPU Clusters for DNN Training Workloads", USENIX ATC 2019. Built from the published schema; tried on hand-made
rows only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import numpy as np

from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.json_text import entries, json_text
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload
from schedrl.workload.zones import EITHER, zone_of

TITLE = "Philly job log"
SOURCE = "https://github.com/msr-fiddle/philly-traces"
OPTIONS = ("gangs", "time_zone")

UNKNOWN_TIMES = (None, "", "None")


class _Job(NamedTuple):
    """What is read of an entry; times in s since 1970, NaN = unknown."""

    place: int
    id: str
    user: str
    vc: str
    status: str
    submitted: float
    start: float
    finish: float
    duration: float
    gpus: int
    machines: int
    attempts: int


class _Broken(Exception):
    """An entry can't be read: (reason, detail)."""


def recognises(head: Head) -> bool:
    """Whether a file is a JSON list with names that only this format has."""
    return head.text.lstrip().startswith("[") and '"jobid"' in head.text and '"submitted_time"' in head.text


def read(
    source: Source,
    rejected: Rejected,
    *,
    lenient: bool = False,
    gangs: bool = False,
    time_zone: str = "US/Pacific",
) -> Workload:
    """Read the jobs; the resource is `gpu`.

    Args:
        source: the file.
        rejected: collects jobs that can't be used.
        lenient: keep the first of jobs that contradict each other.
        gangs: make every GPU an instance of its own, for clusters of many machines.
        time_zone: of the times.

    Raises:
        UserError: no JSON list, no usable job, or no such zone.
    """
    rejected.place = "entry"
    jobs, zone = [], zone_of(time_zone)
    for place, entry in enumerate(entries(source), 1):
        try:
            jobs.append(_job(place, entry, zone, rejected))
        except _Broken as broken:
            reason, detail = broken.args
            name = json_text(entry.get("jobid")) if isinstance(entry, dict) else ""
            rejected.add(reason, place, [name], [detail])
    if not jobs:
        raise rejected.nothing_left(source.path)
    columns = {
        name: np.array(values) for name, values in zip(_Job._fields, zip(*jobs, strict=True), strict=True)
    }
    texts = {name: columns[name].astype(object) for name in ("id", "user", "vc", "status")}
    submitted, gpus = columns["submitted"], columns["gpus"].astype(float)
    first = np.nanmin(submitted) if not np.isnan(submitted).all() else math.nan
    about = {}
    if not math.isnan(first):
        start = datetime.fromtimestamp(float(first), zone).replace(tzinfo=None)
        about = {"start": str(start), "UnixStartTime": f"{first:.15g}", "TimeZoneString": time_zone}
    return build(
        Columns(
            line=columns["place"],
            id=texts["id"],
            user=texts["user"],
            arrival=submitted - first,
            duration=columns["duration"],
            demand=(np.minimum(gpus, 1) if gangs else gpus)[:, None],
            instances=gpus if gangs else None,
            recorded_start=columns["start"] - first,
            recorded_finish=columns["finish"] - first,
            resources=[Resource("gpu", "gpus")],
            about=about,
            extra={
                "vc": texts["vc"],
                "status": texts["status"],
                "machines": columns["machines"],
                "attempts": columns["attempts"],
            },
        ),
        rejected,
        lenient,
    )


def _job(place: int, entry: Any, zone: tzinfo, rejected: Rejected) -> _Job:
    """Read an entry, or say why it can't be read."""
    if not isinstance(entry, dict):
        raise _Broken("no_object", str(entry)[:60])
    attempts = _objects(entry.get("attempts"), "attempts")
    names = ["submitted_time", *("start_time", "end_time") * len(attempts)]
    stated = [entry, *(attempt for attempt in attempts for _ in range(2))]
    readings = [_readings(each.get(name), name, zone) for each, name in zip(stated, names, strict=True)]
    submitted, *times = _in_order(readings, place, rejected)
    starts, ends = times[::2], times[1::2]
    if not attempts:
        raise _Broken("runtime_unknown", "no attempt")
    if math.isnan(ends[-1]):
        raise _Broken("unfinished", "the last attempt has no end")
    runs = [end - start for start, end in zip(starts, ends, strict=True)]
    for number, run in enumerate(runs, 1):
        if math.isnan(run):
            raise _Broken("runtime_unknown", f"attempt {number} of {len(runs)} has no start or no end")
        if run < 0:
            raise _Broken("negative_runtime", f"attempt {number} of {len(runs)} ends before it starts")
    used = [_gpus(attempt) for attempt in attempts]
    gpus, machines = next((pair for pair in used if pair[0]), (0, 0))
    if any(number not in (0, gpus) for number, _ in used):
        rejected.adjust("attempts held different numbers of GPUs, those of the first are taken", place)
    name, user, vc, status = (json_text(entry.get(key)) for key in ("jobid", "user", "vc", "status"))
    return _Job(
        place,
        name,
        user,
        vc,
        status,
        submitted,
        start=starts[0],
        finish=max(ends),
        duration=math.fsum(runs),
        gpus=gpus,
        machines=machines,
        attempts=len(attempts),
    )


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return a list of objects; none at all stands for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _Broken("no_object", f"{name} is {value!r}"[:60])
    return value


def _gpus(attempt: dict[str, Any]) -> tuple[int, int]:
    """Return how many GPUs an attempt held, and on how many machines."""
    used = [part.get("gpus") for part in _objects(attempt.get("detail"), "detail")]
    held = [len(names) for names in used if isinstance(names, list) and names]
    return sum(held), len(held)


def _readings(value: Any, name: str, zone: tzinfo) -> tuple[float, ...]:
    """Return seconds since 1970 by the clocks of a zone: two in an hour that is there twice, or none."""
    if value in UNKNOWN_TIMES:
        return ()
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            raise ValueError(value)
        earlier, later = (moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    except (TypeError, ValueError, OverflowError):  # no text, no time, or one with a time zone
        raise _Broken("not_numeric", f"{name} is {value!r}"[:60]) from None
    return (
        (earlier, later) if earlier < later else (earlier,)
    )  # a time that no clock showed: by the one before


def _in_order(readings: Sequence[tuple[float, ...]], place: int, rejected: Rejected) -> list[float]:
    """Choose a reading of each time: the earliest that is not before the time before it; NaN if unknown."""
    found: list[float] = []
    latest = -math.inf
    for number, each in enumerate(readings):
        fitting = [time for time in each if time >= latest]
        found.append(fitting[0] if fitting else each[-1] if each else math.nan)
        latest = found[-1] if each else latest
        after = next((other[-1] for other in readings[number + 1 :] if other), math.inf)
        if len(fitting) == 2 and fitting[1] <= after:
            rejected.adjust(EITHER, place)
    return found
