"""Workloads of the Batsim simulator: JSON with `nb_res`, `jobs` and `profiles`.

A job has id (text or number), subtime [s], res (number of resources: hosts), walltime [s] (none, or 0 and
less: no limit), profile (a name in `profiles`). The walltime is the estimate.

The duration is that of the profile where it has one: `delay` [s] of a `DelayProfile` (`delay` in older
files), or the sum over a `SequentialCompositionProfile` (`composed`: `seq`, `repeat`) of such. Batsim stops a
job at its walltime, so a longer duration is cut there, and counted. What other profiles take (parallel tasks,
MPI replays, storage) depends on the simulated platform: such jobs are rejected as `runtime_unknown`, and so
are those whose profile is not in the file. Rejected jobs are named by their place in `jobs`, from 1.

Format: https://batsim.readthedocs.io/en/latest/input-workload.html. Cite Dutot et al., "Batsim: a Realistic
Language-Independent Resources and Jobs Management Systems Simulator", JSSPP 2016.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.json_text import json_number, json_text, whole
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

TITLE = "Batsim JSON"
SOURCE = "https://batsim.readthedocs.io/en/latest/input-workload.html"
OPTIONS = ("gangs",)

DELAYS = ("DelayProfile", "delay")
SEQUENCES = ("SequentialCompositionProfile", "composed")
NUMBERS = ("subtime", "walltime", "res")
DEEPEST = 100
"""Sequences of sequences of ... that are followed."""


def recognises(head: Head) -> bool:
    """Whether a file is a JSON object with names that only this format has."""
    names = ('"subtime"', '"nb_res"', '"profiles"')
    return head.text.lstrip().startswith("{") and any(name in head.text for name in names)


def read(source: Source, rejected: Rejected, *, lenient: bool = False, gangs: bool = False) -> Workload:
    """Read the jobs; the resource is `cpu` [processors].

    Args:
        source: the file.
        rejected: collects jobs that can't be used.
        lenient: keep the first of jobs that contradict each other.
        gangs: make every resource of a job an instance of its own, for clusters of many machines.

    Raises:
        UserError: no JSON of this form, or no usable job.
    """
    rejected.place = "entry"
    held = whole(source)
    jobs = held.get("jobs") if isinstance(held, dict) else None
    profiles = held.get("profiles") if isinstance(held, dict) else None
    if not isinstance(jobs, list) or not isinstance(profiles, dict) or not jobs:
        raise UserError(f"{source.path}: no jobs; Batsim's JSON has a list `jobs` and an object `profiles`")
    good = [(place, job) for place, job in enumerate(jobs, 1) if _usable(place, job, rejected)]
    subtime, walltime, res = (
        np.array([json_number(job.get(name)) for _, job in good], float) for name in NUMBERS
    )
    lengths = _Lengths(profiles)
    names = [json_text(job.get("profile")) for _, job in good]
    length = np.array([lengths.of(name) for name in names], float)
    estimate = np.where(walltime > 0, walltime, np.nan)
    line = np.array([place for place, _ in good], np.int64)
    rejected.adjust("the job was longer than its walltime, so it is cut there", line[length > estimate])
    nodes = json_number(held.get("nb_res"))
    if nodes is None or not 0 < nodes < math.inf:
        rejected.remark("nb_res is no number of hosts, so the capacity is not known; give --capacity cpu=...")
    return build(
        Columns(
            line=line,
            id=np.array([json_text(job.get("id")) for _, job in good], object),
            arrival=subtime,
            duration=np.fmin(length, np.where(np.isnan(length), length, estimate)),
            demand=(np.ones_like(res) if gangs else res)[:, None],
            instances=res if gangs else None,
            estimate=estimate,
            resources=[Resource("cpu", "processors")],
            capacity=[nodes if nodes is not None and 0 < nodes < math.inf else np.nan],
            about={key: text for key, text in held.items() if isinstance(text, str)},
            extra={"profile": np.array(names, object)},
        ),
        rejected,
        lenient,
    )


def _usable(place: int, job: Any, rejected: Rejected) -> bool:
    """Whether an entry is an object with numbers where numbers belong; reject it if not."""
    if not isinstance(job, dict):
        rejected.add("no_object", place, details=[str(job)[:60]])
        return False
    wrong = [f"{name} is {job[name]!r}"[:60] for name in NUMBERS if json_number(job.get(name)) is None]
    if wrong:
        rejected.add("not_numeric", place, [json_text(job.get("id"))], wrong[:1])
    return not wrong


class _Lengths:
    """Durations of profiles, worked out once each; NaN where they depend on the platform."""

    def __init__(self, profiles: dict[str, Any]) -> None:
        self._profiles = profiles
        self._known: dict[str, float] = {}

    def of(self, name: Any, depth: int = 0) -> float:
        """Return the duration [s] of the profile called `name`."""
        if not isinstance(name, str) or depth > DEEPEST:
            return math.nan
        if name not in self._known:
            self._known[name] = math.nan  # what a sequence that contains itself finds
            self._known[name] = self._length(self._profiles.get(name), depth)
        return self._known[name]

    def _length(self, profile: Any, depth: int) -> float:
        kind = profile.get("type") if isinstance(profile, dict) else None
        if kind in DELAYS:
            delay = json_number(profile.get("delay"))
            return math.nan if delay is None else delay
        parts = profile.get("seq") if kind in SEQUENCES else None
        repeat = json_number(profile.get("repeat", 1)) if isinstance(parts, list) else None
        if repeat is None or not parts:
            return math.nan
        return repeat * sum(self.of(part, depth + 1) for part in parts)
