"""What all generators of independent jobs share: arrivals x durations x sizes x estimates, rate or load.

Each generator is a class of settings that says what is its own: a clock for the arrivals, a law of durations
or of sizes. Streams are parted by column, so that another estimate model leaves the jobs as they are, and the
first 100 of 1,000 jobs are the same as 100 jobs (unless `exact_load` shifts them).
"""

from dataclasses import dataclass

import numpy as np

from schedrl.settings import Settings
from schedrl.workload.types import Resource, Workload
from schedrl.workload.units import LOADS

from .clocks import Clock, EvenClock
from .estimates import estimate_model
from .exact import scaled_to
from .laws import LAWS, Law, parse
from .sizes import SizeLaw, size_law

UNITS = {"cpu": "cores", "memory": "GB", "gpu": "gpus"}


@dataclass(frozen=True)
class JobSettings(Settings):
    """Independent jobs: when they come, how long they run, what they demand, what their users estimate."""

    arrival_rate: float = 5.0
    """Jobs per minute, on average; above 0."""

    load: float | None = None
    """Load of the busiest resource (0.9 = 90 % of `capacity`); above 0; replaces `arrival_rate`. The expected
    one: a sample scatters around it. None: not given."""

    exact_load: bool = False
    """Shift the arrivals so that the drawn jobs have exactly this load; needs `load`."""

    resources: tuple[str, ...] = ("cpu", "memory", "gpu")
    """Names of the resources; cpu is in cores, memory in GB, gpu in GPUs."""

    capacity: tuple[float, ...] = (40.0, 160.0, 10.0)
    """What the cluster has of each resource, for `load`; above 0. The default is 5 servers of 8 cores, 32 GB
    and 2 GPUs."""

    durations: str = "lognormal"
    """Law of the durations, in seconds: lognormal:median:sigma:low:high (60:1.2:1:7200),
    pareto:alpha:low:high (1.1:10:20000), exponential:average:high, uniform:low:high, whole:low:high or
    constant:value. What is left out keeps its default."""

    sizes: tuple[str, ...] = ("cluster_mix",)
    """Demands: cluster_mix (1 to 8 cores, memory with the cores, 30 % with GPUs), uniform, or one law per
    resource as in `durations`, for example whole:1:8,uniform:1:32,constant:0."""

    estimates: str = "exact"
    """What users say a job takes: exact, unknown, factor:f (uniform from 1 to f + 1 times the duration),
    round (20 popular round values, never too short) or noise:sigma (times lognormal(0, sigma))."""

    def __post_init__(self) -> None:
        """Validate."""
        super().__post_init__()
        self.check_own()
        self.in_range("arrival_rate", 0, open_low=True)
        self.in_range("load", *LOADS)
        self.in_range("capacity", 0, open_low=True)
        self.check(
            not self.exact_load or self.load is not None,
            "exact_load needs a load to hit; give load, for example 0.9",
        )
        self.check(
            0 < len(self.resources) == len(set(self.resources)) and all(self.resources),
            f"resources is {','.join(self.resources)!r}; give one name or more, each once",
        )
        self.check(
            len(self.capacity) == len(self.resources),
            f"capacity has {len(self.capacity)} values for {len(self.resources)} resources; "
            "give one per resource",
        )
        estimate_model(self.estimates)
        self.size_law()
        self.check(self.duration_law().mean() > 0, "every job would last 0 seconds; raise the durations")

    def check_own(self) -> None:
        """Refuse what a generator's own settings can't be; before the laws are made of them."""

    def duration_law(self) -> Law:
        """Return the law of the durations, in seconds."""
        return parse("durations", self.durations, LAWS)

    def size_law(self) -> SizeLaw:
        """Return the law of the demands."""
        return size_law(self.sizes, len(self.resources))

    def clock(self, rng: np.random.Generator) -> Clock:
        """Return how the rate of the arrivals changes in time."""
        return EvenClock()

    def rate(self) -> float:
        """Return the mean number of arrivals per second that `load` or `arrival_rate` asks for."""
        if self.load is None:
            return self.arrival_rate / 60
        return self.load / float(self.expected_load(1.0).max())

    def expected_load(self, rate: float | None = None) -> np.ndarray:
        """Return the load of each resource, [R]: E[duration] x E[demand] x arrivals per second / capacity."""
        rate = self.rate() if rate is None else rate
        return self.duration_law().mean() * self.size_law().mean() * rate / np.array(self.capacity)

    def draw(self, rng: np.random.Generator, num_jobs: int) -> Workload:
        """Draw `num_jobs` jobs."""
        gaps, of_clock, of_durations, of_sizes, of_estimates = rng.spawn(5)
        duration = self.duration_law().draw(of_durations, num_jobs)
        demand = self.size_law().draw(of_sizes, num_jobs)
        estimate = estimate_model(self.estimates).draw(of_estimates, duration)
        even = gaps.standard_exponential(num_jobs)
        np.cumsum(even, out=even)
        even /= self.rate()
        clock = self.clock(of_clock)
        if self.exact_load and self.load is not None:
            span = float(np.max(duration @ demand / self.capacity)) / self.load
            (arrival,) = scaled_to(span, [(even, clock)])
        else:
            arrival = clock.real(even)
        resources = [Resource(name, UNITS.get(name, "units")) for name in self.resources]
        return Workload(arrival, duration, demand, resources, "s", estimate, capacity=self.capacity)
