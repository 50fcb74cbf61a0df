"""`real_trace`: the jobs of a recorded file, cut into workloads; nothing is drawn.

Training, validation and test take parts of the record that follow one another, so that nobody learns from
what will be asked. Within a part, workload number 0 is its first jobs, number 1 the next ones, and so on;
when the part is used up, the next pass cuts at other places, by the seed.
"""

import functools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedrl.settings import Settings, UserError
from schedrl.workload.estimates import CLASS_MEDIAN, Told, class_medians, read_model, told, with_model
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.streams import FAMILIES
from schedrl.workload.types import Workload
from schedrl.workload.units import LOADS


@dataclass(frozen=True)
class RealTraceSettings(Settings):
    """Jobs of a trace in any format that can be read (docs/workloads.md), in its own units.

    Rows that are no jobs are left out; `python job_distribution.py inspect FILE` lists them.
    """

    trace_file: str = ""
    """The file, plain or gzip; must be given."""

    trace_format: str | None = None
    """Its format, for example swf. None: by its content."""

    map: str = ""
    """Columns of a CSV, for example arrival=submit_ms[ms],duration=run_s,cpu=cores; empty: by their names."""

    trace_options: tuple[str, ...] = ()
    """What that format's reader can be told besides, each NAME=VALUE, for example gangs=true."""

    strict: bool = False
    """Any row that is rejected or mended is an error."""

    lenient: bool = False
    """Of rows that contradict each other keep the first; else they are an error."""

    window: tuple[float, ...] = ()
    """Start and end of the time to use, in the trace's unit of time; empty: all of it."""

    shares: tuple[float, ...] = (0.6, 0.2)
    """Shares of the jobs that come first and are for training, and that follow and are for validation; the
    rest is for testing. Above 0, together below 1."""

    load: float | None = None
    """Load of the busiest resource (0.9 = 90 % of the capacity); above 0, at most 1000. Gaps between arrivals
    are scaled so that the jobs of the family's part have it together. None: as recorded."""

    exact_load: bool = False
    """Scale every workload by itself, so that each has exactly this load; needs `load`."""

    capacity: str = ""
    """What the cluster has, where the file doesn't say, for example cpu=256,memory=1024."""

    estimates: str | None = None
    """What stands for every job's estimate: class-median (of the jobs of its user and size that have finished
    in the training part), limit:SECONDS, noise:SIGMA or true (the run time). None: as recorded, and the true
    run time of a job that has none."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.in_range("load", *LOADS)
        self.check(
            not self.exact_load or self.load is not None,
            "exact_load needs a load to hit; give load, for example 0.9",
        )
        self.in_range("shares", 0, 1, open_low=True, open_high=True)
        self.in_range("window", 0)
        self.check(
            len(self.shares) == 2 and sum(self.shares) < 1,
            f"shares is {self.shares}; give two, of training and validation, together below 1",
        )
        self.check(
            not self.window or (len(self.window) == 2 and self.window[0] < self.window[1]),
            f"window is {self.window}; give start and end, the end after the start",
        )
        if self.estimates is not None:
            read_model(self.estimates)

    def part(self, family: str) -> Workload:
        """Return the jobs of one family; a file that did not change is read once.

        Raises:
            UserError: no file, one that can't be read, or too few jobs for three parts.
        """
        return self._read()[0][family]

    def rejected(self) -> Rejected:
        """Return the rows that are no jobs; raises as `part`."""
        return self._read()[1]

    def told(self) -> Told:
        """Return what the jobs tell a scheduler of run times, over all parts; raises as `part`."""
        return self._read()[2]

    def _read(self) -> tuple[dict[str, Workload], Rejected, Told]:
        if not self.trace_file:
            raise UserError("real_trace needs a file; give trace_file, for example jobs.swf")
        if not os.path.isfile(self.trace_file):
            raise UserError(f"trace_file {self.trace_file!r} is no file; check the path")
        state = os.stat(self.trace_file)
        return _parts(self, state.st_mtime_ns, state.st_size)

    def cut(self, num_jobs: int, seed: int, family: str, number: int) -> Workload:
        """Return `num_jobs` jobs in a row; the first arrives at 0.

        Raises:
            UserError: that part of the trace has fewer.
        """
        from schedrl.workload.transform import scaled_to_load, window

        part = self.part(family)
        if num_jobs > len(part):
            raise UserError(
                f"num_jobs is {num_jobs}, and the {family} part of {self.trace_file} has {len(part)} jobs; "
                "lower num_jobs or change shares"
            )
        turn, place = divmod(number, len(part) // num_jobs)
        seeds = np.random.SeedSequence(seed, spawn_key=(FAMILIES.index(family), turn))
        starts = len(part) - num_jobs + 1
        shift = int(np.random.default_rng(seeds).integers(starts)) if turn else 0
        start = (shift + place * num_jobs) % starts
        jobs = part.take(slice(start, start + num_jobs))
        jobs = window(jobs, jobs.arrival[0], np.inf)
        return scaled_to_load(jobs, self.load) if self.exact_load and self.load is not None else jobs


@functools.lru_cache(maxsize=4)
def _parts(
    settings: RealTraceSettings, changed: int, size: int
) -> tuple[dict[str, Workload], Rejected, Told]:
    """Read and split the file as it is now: `changed` and `size` tell an old one from a new one."""
    from schedrl.workload.transform import scaled_to_load

    workload, rejected = _read(settings)
    model = None if settings.estimates is None else read_model(settings.estimates)
    known = told(workload, model)
    if model is not None:
        workload = with_model(workload, model)
    parts = _split(workload, settings.shares)
    if model is not None and model.name == CLASS_MEDIAN:
        parts = _split(_with_medians(workload, len(parts[0])), settings.shares)
    if settings.load is not None:
        parts = [scaled_to_load(part, settings.load) for part in parts]
    return dict(zip(FAMILIES, parts, strict=True)), rejected, known


def _split(workload: Workload, shares: tuple[float, ...]) -> list[Workload]:
    """Return the jobs for training, for validation and for testing."""
    from schedrl.workload.transform import split

    train, validation = shares
    before, test = split(workload, train + validation)
    return [*split(before, train / (train + validation)), test]


def _with_medians(workload: Workload, num_training: int) -> Workload:
    """Give every job the median of those of its class that had finished when the training part was over.

    When a job finished is what the trace says; where it says nothing, its arrival and run time together.
    """
    recorded = np.asarray(workload.recorded_finish)
    ended = np.where(np.isnan(recorded), workload.arrival + workload.duration, recorded)
    known = (np.arange(len(workload)) < num_training) & (ended <= workload.arrival[num_training])
    return workload.estimated(class_medians(workload, known))


def _read(settings: RealTraceSettings) -> tuple[Workload, Rejected]:
    """Return all jobs that may be used, and the rows that are none."""
    from schedrl.workload.command.reading import capacity_of
    from schedrl.workload.readers import read_trace
    from schedrl.workload.transform import window

    options: dict[str, Any] = {"map": settings.map} if settings.map else {}
    for text in settings.trace_options:
        name, sign, value = text.partition("=")
        if not sign:
            raise UserError(f"trace_options has {text!r}; write NAME=VALUE")
        options[name] = {"true": True, "false": False}.get(value.lower(), value)
    workload, rejected = read_trace(
        settings.trace_file,
        settings.trace_format,
        strict=settings.strict,
        lenient=settings.lenient,
        **options,
    )
    if settings.capacity:
        workload = workload.on(capacity_of(settings.capacity, workload))
    return window(workload, *settings.window) if settings.window else workload, rejected
