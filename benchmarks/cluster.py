"""Speed of whole runs on many machines: against the plain-Python specification, and as the jobs get more.

Both sides play a part of the same jobs by the same algorithm. Growth is the time for ten times as many
jobs; the bound of 13 allows a logarithm. Seconds are the processor's, after compilation, of `simulate` whole.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import job_distribution
from benchmarks.paired import interleaved, per_second, ratio, repeat, verdict
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings
from schedrl.sim.cluster import reference, simulate
from schedrl.workload import Resource, Workload
from schedrl.workload.machines import Machines

MACHINE = (8.0, 32.0, 2.0)
RESOURCES = (Resource("cpu", "cores"), Resource("memory", "GB"), Resource("gpu", "GPUs"))
MOST_GROWTH, MOST_GIGABYTES = 13.0, 1.0
FEW_MACHINES, GANG, MOST_FOR_GANGS = 40, 20, 3.0
"""A cluster that is full from the first jobs on; instances of a gang; the bound on the time of gangs under
conservative over that of as many instances that are jobs of their own."""
BOUNDS = {"first_fit": 30.0, "best_fit": 60.0}
CASES = [
    (load, window, order, placement)
    for load, window in ((0.97, None), (1.1, 64))
    for order in ("fifo", "sjf")
    for placement in ("first_fit", "best_fit")
]


@dataclass(frozen=True)
class ClusterBenchmark(Settings):
    """What to measure, and how long."""

    num_jobs: int = 1_000_000
    """Jobs of the long runs; the short ones have a tenth of them."""
    num_machines: int = 1000
    """Machines of 8 cores, 32 GB and 2 GPUs."""
    reference_jobs: int = 4000
    """Jobs that plain Python runs in each round, after which the cluster has been full for a while."""
    rounds: int = 3
    """Times that compiled and plain runs are compared; the median of the ratios counts."""
    slow: bool = True
    """Also measure backfilling and orders that change with time, with 2 % and 3 % of the jobs, and
    `conservative` on 40 machines with 1 % and 10 % of them and with gangs."""

    only_conservative: bool = False
    """Measure the tables of `conservative` alone."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_jobs", 1000)
        self.in_range("num_machines", 1)
        self.in_range("reference_jobs", 10)
        self.in_range("rounds", 1)


def cluster(count: int) -> Machines:
    """Return so many equal machines."""
    names = np.array([f"m{m}" for m in range(count)], object)
    return Machines(names, np.tile(MACHINE, (count, 1)), RESOURCES, np.full(count, "", object))


def jobs(load: float, count: int, machines: int) -> Workload:
    """Draw jobs that arrive at random for so many machines."""
    capacity = tuple(amount * machines for amount in MACHINE)
    return job_distribution.workload("poisson", load=load, num_jobs=count, capacity=capacity)


def crowd(workload: Workload, share: float = 0.1) -> Workload:
    """Let the first jobs arrive at once: a queue of so many from the first moment on."""
    arrival = np.array(workload.arrival)
    arrival[: int(share * len(arrival))] = arrival[0]
    resources, unit = workload.resources, workload.time_unit
    return Workload(arrival, workload.duration, workload.demand, resources=resources, time_unit=unit)


def seconds(workload: Workload, machines: Machines, rule: str, times: int = 2, **options: Any) -> float:
    """Return the processor seconds of a run, the best of so many."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        simulate(workload, machines, rule, **options)
        spent.append(time.process_time() - start)
    return min(spent)


def run(settings: ClusterBenchmark) -> int:
    """Measure and print the tables; 1 if a bound is missed."""
    simulate(jobs(0.97, 100, 5), cluster(5))  # compiles, or loads what is compiled
    if settings.only_conservative:
        return int(_conservative(settings) + _gangs() > 0)
    missed = _growth(settings) + _against_reference(settings)
    if settings.slow:
        _slow(settings)
        missed += _conservative(settings) + _gangs()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    limit = "met" if peak <= MOST_GIGABYTES else "MISSED"
    print(f"Peak memory of this process: {peak:.2f} GB ({limit}: {MOST_GIGABYTES:g} GB).")
    return int(missed > 0 or limit == "MISSED")


def _growth(settings: ClusterBenchmark) -> int:
    """Return how many rows are beyond the bound."""
    rows, machines = [], cluster(settings.num_machines)
    for load, window in ((0.97, None), (1.1, 64)):
        long = jobs(load, settings.num_jobs, settings.num_machines)
        short = jobs(load, settings.num_jobs // 10, settings.num_machines)
        for crowded in (False, True):
            pair = [crowd(w) if crowded else w for w in (short, long)]
            for order, placement in ((o, p) for o in ("fifo", "sjf") for p in ("first_fit", "best_fit")):
                # By turns, so that both see the same noise; the best of each.
                rule = f"{order}+{placement}"
                turns = [[seconds(w, machines, rule, times=1, window=window) for w in pair] for _ in range(3)]
                few, many = (min(side) for side in zip(*turns, strict=True))
                growth = many / few
                rows.append(
                    (
                        f"{load:g}{', a tenth at once' if crowded else ''}", str(window or "all"),
                        rule, f"{few:.2f} s", f"{many:.2f} s", f"{growth:.1f}x",
                        "met" if growth <= MOST_GROWTH else "MISSED",
                    )
                )  # fmt: skip
    print_table(
        f"{settings.num_machines} machines, {settings.num_jobs // 10:,} and {settings.num_jobs:,} jobs",
        ("load", "window", "rule", "tenth", "all", "growth", f"bound ({MOST_GROWTH:g}x)"),
        rows,
    )
    return sum(row[-1] == "MISSED" for row in rows)


def _against_reference(settings: ClusterBenchmark) -> int:
    """Return how many rows are below the bound."""
    rows, machines = [], cluster(settings.num_machines)
    for load, window, order, placement in CASES:
        # A crowd at the start, so that the part that plain Python can play is of a full cluster too.
        part = crowd(jobs(load, settings.reference_jobs, settings.num_machines), 0.9)
        rule = f"{order}+{placement}"

        def compiled(part: Workload = part, rule: str = rule, window: int | None = window) -> int:
            return len(simulate(part, machines, rule, window=window).start)

        def plain(part: Workload = part, rule: str = rule, window: int | None = window) -> int:
            return len(reference.simulate(part, machines, rule, window=window).start)

        rates = interleaved(
            {"compiled": lambda s, f=compiled: repeat(f, s), "plain": lambda s, f=plain: repeat(f, s)},
            settings.rounds,
            0.5,
        )
        got = ratio(rates, "compiled", "plain")
        speeds = [per_second(float(np.median(rates[side]))) for side in ("compiled", "plain")]
        rows.append(
            (
                f"{load:g}",
                str(window or "all"),
                rule,
                *speeds,
                str(got),
                verdict(got.median, BOUNDS[placement]),
            )
        )
    print_table(
        f"{settings.num_machines} machines, {settings.reference_jobs:,} jobs, most at once, jobs/s",
        ("load", "window", "rule", "compiled", "plain Python", "ratio", "bound"),
        rows,
    )
    return sum("MISSED" in row[-1] for row in rows)


SLOW = (
    "fifo+first_fit+easy",
    "sjf+best_fit+easy",
    "sjf+best_fit+conservative",
    "wfp3+best_fit+skip",
    "drf+best_fit+skip",
    "priority+best_fit+easy",
)


def _slow(settings: ClusterBenchmark) -> None:
    rows, machines = [], cluster(settings.num_machines)
    counts = (settings.num_jobs // 50, settings.num_jobs * 3 // 100)
    for load, window in ((0.97, None), (1.1, 64)):
        for rule in SLOW:
            few, many = (
                seconds(jobs(load, count, settings.num_machines), machines, rule, times=1, window=window)
                for count in counts
            )
            later = f"{1e6 * (many - few) / (counts[1] - counts[0]):,.0f} us"
            rows.append((f"{load:g}", str(window or "all"), rule, f"{few:.2f} s", f"{many:.2f} s", later))
    print_table(
        f"The same with {counts[0]:,} and {counts[1]:,} jobs; the later ones come to a full cluster",
        ("load", "window", "rule", "few", "many", "each later job"),
        rows,
    )


def _conservative(settings: ClusterBenchmark) -> int:
    """Measure conservative beside EASY; return how many rows with a window are beyond the bound on growth."""
    rows, machines = [], cluster(FEW_MACHINES)
    counts = [settings.num_jobs // part for part in (100, 10)]
    for load, window, rule in (
        *((load, 64, rule) for load in (1.0, 1.1) for rule in ("fifo+first_fit", "sjf+best_fit")),
        (1.0, None, "fifo+first_fit"),
    ):
        pair = [jobs(load, count, FEW_MACHINES) for count in counts]
        for discipline in ("easy", "conservative"):
            name = f"{rule}+{discipline}"
            few, many = (seconds(work, machines, name, window=window) for work in pair)
            # Without a window the queue that is planned gets ten times as long too.
            bound = "" if window is None else "met" if many <= MOST_GROWTH * few else "MISSED"
            each = f"{1e6 * many / counts[1]:,.0f} us"
            rows.append(
                (
                    f"{load:g}",
                    str(window or "all"),
                    name,
                    f"{few:.2f} s",
                    f"{many:.2f} s",
                    each,
                    f"{many / few:.1f}x",
                    bound,
                )
            )
    print_table(
        f"{FEW_MACHINES} machines, {counts[0]:,} and {counts[1]:,} jobs",
        ("load", "window", "rule", "tenth", "all", "each job", "growth", f"bound ({MOST_GROWTH:g}x)"),
        rows,
    )
    return sum(row[-1] == "MISSED" for row in rows)


def gangs(count: int, apart: bool = False) -> Workload:
    """Draw jobs that come at once, every second one a gang; `apart`: each instance is a job of its own."""
    rng = np.random.default_rng(0)
    instances = np.where(np.arange(count) % 2 == 0, GANG, 1)
    cpu, length = rng.integers(1, 5, (count, 1)).astype(float), rng.integers(1, 100, count).astype(float)
    if apart:
        cpu, length = np.repeat(cpu, instances, axis=0), np.repeat(length, instances)
        instances = np.ones(len(length), int)
    return Workload(np.zeros(len(length)), length, cpu, RESOURCES[:1], "s", instances=instances)


def _gangs() -> int:
    """Measure gangs under conservative and EASY; return how many rows are beyond the bound."""
    machines, rows = cluster(FEW_MACHINES), []
    for count in (50, 100, 200, 400):
        conservative, easy = (
            seconds(gangs(count), machines, f"fifo+{discipline}", times=3)
            for discipline in ("conservative", "easy")
        )
        apart = seconds(gangs(count, apart=True), machines, "fifo+conservative", times=3)
        rows.append(
            (
                str(count), f"{1e3 * conservative:.1f} ms", f"{1e3 * easy:.1f} ms", f"{1e3 * apart:.1f} ms",
                f"{conservative / apart:.2f}", "met" if conservative <= MOST_FOR_GANGS * apart else "MISSED",
            )
        )  # fmt: skip
    print_table(
        f"{FEW_MACHINES} machines, jobs at time 0, every second one a gang of {GANG}",
        ("jobs", "conservative", "easy", "instances as jobs", "ratio", f"bound ({MOST_FOR_GANGS:g})"),
        rows,
    )
    return sum(row[-1] == "MISSED" for row in rows)
