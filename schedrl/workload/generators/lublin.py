"""`lublin`: the model of Lublin and Feitelson, the field's standard for rigid parallel jobs.

Its laws and their source are in `lublin_model`; here are the settings and the drawing.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from schedrl.settings import Settings
from schedrl.workload.types import Resource, Workload
from schedrl.workload.units import LOADS

from .clocks import Clock, DailyClock
from .estimates import estimate_model
from .exact import Part, scaled_to

if TYPE_CHECKING:
    from .lublin_model import JobClass

BLOCK = 32_768
"""Jobs drawn at once: their arrays stay in the processor's cache. Changes no result."""


@dataclass(frozen=True)
class LublinSettings(Settings):
    """Rigid parallel jobs of a supercomputer: processors, run times and a daily cycle as published."""

    num_nodes: int = 128
    """Processors of the machine, at least 32; the largest jobs take them all."""

    job_classes: Literal["both", "interactive", "batch", "all"] = "both"
    """"both": interactive and batch jobs side by side, each with its parameters; or one of the two; "all":
    the parameters that the paper fits to all jobs together."""

    arrival_rate: float | None = None
    """Jobs per minute, on average; above 0. None: as published."""

    load: float | None = None
    """Expected load (0.9 = 90 % of `num_nodes`); above 0; replaces `arrival_rate`. None: not given."""

    exact_load: bool = False
    """Shift the arrivals so that the drawn jobs have exactly this load; needs `load`."""

    estimates: str = "exact"
    """What users say a job takes: exact, unknown, factor:f (uniform from 1 to f + 1 times the duration),
    round (20 popular round values, never too short) or noise:sigma (times lognormal(0, sigma))."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.in_range("num_nodes", 32)
        self.in_range("arrival_rate", 0, open_low=True)
        self.in_range("load", *LOADS)
        self.check(
            not self.exact_load or self.load is not None,
            "exact_load needs a load to hit; give load, for example 0.9",
        )
        estimate_model(self.estimates)

    @property
    def capacity(self) -> tuple[float]:
        """What the machine has of its one resource."""
        return (float(self.num_nodes),)

    def classes(self) -> "tuple[JobClass, ...]":
        """Return the classes whose jobs come side by side."""
        from .lublin_model import CLASSES

        return CLASSES[self.job_classes]

    def published_rate(self) -> float:
        """Return the mean number of arrivals per second with the published parameters."""
        return sum(1 / jobs.mean_gap() for jobs in self.classes())

    def rate(self) -> float:
        """Return the mean number of arrivals per second that `load`, `arrival_rate` or the paper asks for."""
        if self.load is not None:
            published = self.published_rate()
            return self.load * published / float(self.expected_load(published)[0])
        return self.published_rate() if self.arrival_rate is None else self.arrival_rate / 60

    def expected_load(self, rate: float | None = None) -> np.ndarray:
        """Return the load [1]: E[processors x run time] x arrivals per second / processors."""
        rate = self.rate() if rate is None else rate
        work = sum(jobs.mean_work(self.num_nodes) / jobs.mean_gap() for jobs in self.classes())
        return np.array([work * rate / self.published_rate() / self.num_nodes])

    def draw(self, rng: np.random.Generator, num_jobs: int) -> Workload:
        """Draw `num_jobs` jobs."""
        of_arrivals, of_jobs, of_estimates = rng.spawn(3)
        stretch = self.published_rate() / self.rate()
        parts, arrivals = _first(num_jobs, self.classes(), of_arrivals, stretch)
        nodes, duration = np.empty(num_jobs), np.empty(num_jobs)
        start = 0
        for jobs, (even, _), own in zip(
            self.classes(), parts, of_jobs.spawn(len(self.classes())), strict=True
        ):
            rows = slice(start, start + len(even))
            _fill(nodes[rows], duration[rows], jobs, self.num_nodes, own)
            start += len(even)
        if self.exact_load and self.load is not None:
            arrivals = scaled_to(float(nodes @ duration) / self.num_nodes / self.load, parts)
        arrival = np.concatenate(arrivals)
        queue = np.full(num_jobs, float(self.job_classes == "batch"))
        if self.job_classes == "both":
            order = np.argsort(arrival, kind="stable")
            arrival, nodes, duration = arrival[order], nodes[order], duration[order]
            queue = (order >= len(arrivals[0])).astype(float)
        return Workload(
            arrival,
            duration,
            nodes[:, None],
            [Resource("cpu", "processors")],
            "s",
            estimate_model(self.estimates).draw(of_estimates, duration),
            capacity=self.capacity,
            extra={} if self.job_classes == "all" else {"queue": queue},
        )


def _fill(
    nodes: np.ndarray, duration: np.ndarray, jobs: "JobClass", num_nodes: int, rng: np.random.Generator
) -> None:
    """Draw processors and durations of one class into arrays of one length."""
    streams = rng.spawn(5)
    for start in range(0, len(nodes), BLOCK):
        rows = slice(start, start + BLOCK)
        nodes[rows] = jobs.draw_sizes(num_nodes, len(nodes[rows]), streams[:2])
        duration[rows] = jobs.draw_durations(nodes[rows], streams[2:])


def _first(
    num_jobs: int, classes: "tuple[JobClass, ...]", rng: np.random.Generator, stretch: float
) -> tuple[list[Part], list[np.ndarray]]:
    """Draw even and real arrival times of each class, cut to the first `num_jobs` of all together."""
    clocks: list[Clock] = [DailyClock(jobs.daily_rates()) for jobs in classes]
    streams = [own.spawn(2) for own in rng.spawn(len(classes))]
    rate = sum(1 / jobs.mean_gap() for jobs in classes)
    even = [np.zeros(0) for _ in classes]
    wanted = [1.05 * num_jobs / (rate * jobs.mean_gap()) + 50 for jobs in classes]
    while True:
        for index, jobs in enumerate(classes):
            missing = math.ceil(wanted[index]) - len(even[index])
            if missing > 0:
                gaps = _gaps(jobs, missing, *streams[index])
                gaps *= stretch
                gaps[0] += even[index][-1] if len(even[index]) else 0.0
                more = np.cumsum(gaps, out=gaps)
                even[index] = np.append(even[index], more) if len(even[index]) else more
        real = [clock.real(times) for times, clock in zip(even, clocks, strict=True)]
        together = np.sort(np.concatenate(real), kind="stable")
        last = together[num_jobs - 1] if len(together) >= num_jobs else np.inf
        if last <= min(times[-1] for times in real):  # no class has come to its end before
            counts = [np.searchsorted(at, last, side="right") for at in real]
            parts = [(times[:n], clock) for times, n, clock in zip(even, counts, clocks, strict=True)]
            return parts, [at[:n] for at, n in zip(real, counts, strict=True)]
        behind = int(np.argmin([times[-1] for times in real]))
        wanted[behind] = len(even[behind]) * 1.05 + 50


def _gaps(
    jobs: "JobClass", count: int, rng: np.random.Generator, of_redraw: np.random.Generator
) -> np.ndarray:
    """Draw [count] even gaps between jobs of one class, in seconds."""
    from .lublin_model import LONGEST_GAP

    law = jobs.day_gap()
    log_seconds = rng.standard_gamma(law.shape, count)
    log_seconds *= law.scale
    anew = np.flatnonzero(log_seconds > LONGEST_GAP)
    log_seconds[anew] = law.redraw(of_redraw.random(len(anew)), LONGEST_GAP)
    return np.exp(log_seconds, out=log_seconds)
