"""Numbered job sequences of a generator or a trace, as the cluster environment reads them.

Sequence number i is a pure function of the settings, the seed, the family and i. A block of sequences is one
run of the generator, cut after every `num_jobs` jobs; each begins with an empty cluster, and its time 0 is the
arrival of the job before its first. Of a trace, each is a run of jobs from a random place of the part that the
family has.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.deeprm.generated import daily
from schedrl.envs.deeprm.placed import stream
from schedrl.envs.workload_choice import TRACE
from schedrl.settings import UserError, one_of
from schedrl.sim.cluster.problem import REASONS, Problem, prepare
from schedrl.workload.cluster_file import default_cluster, read_cluster
from schedrl.workload.generators import generate
from schedrl.workload.generators.clocks import DAY
from schedrl.workload.machines import Machines
from schedrl.workload.streams import FAMILIES
from schedrl.workload.types import Workload

from .settings import SimpleClusterSettings

BLOCK, BLOCK_JOBS = 256, 50_000
"""Sequences drawn together, fewer where they are long: about so many jobs."""
CACHED_BLOCKS = 4
SAMPLE, APART = 20_000, 2**31
"""Jobs by which scales are chosen, and the number of their workload: sequences stay far below."""


class Jobs(NamedTuple):
    """Jobs of X sequences; rows behind a sequence's last job hold nothing."""

    counts: np.ndarray  # [X]
    columns: np.ndarray  # [X, J, 6] arrival, duration, estimate, priority, deadline, number of a reason
    demands: np.ndarray  # [X, J, R] micro-units
    instances: np.ndarray  # [X, J]

    def rows(self, index: Any) -> "Jobs":
        """Return some of the sequences."""
        return Jobs(*(column[index] for column in self))


class Scales(NamedTuple):
    """What times are measured in by rewards and observations."""

    mean_gap: float
    mean_duration: float


def machines_of(settings: SimpleClusterSettings) -> Machines:
    """Return the machines.

    Raises:
        UserError: the cluster's file can't be read, or has a machine that makes no sense.
    """
    if settings.cluster:
        return read_cluster(settings.cluster)
    return default_cluster(settings.num_servers, settings.server)


class Source:
    """Sequences of one family; subclasses say which workload a sequence is.

    `problem` holds the machines as the simulator reads them (and some jobs).
    """

    def __init__(self, settings: SimpleClusterSettings, problem: Problem, scales: Scales) -> None:
        self.settings, self.problem, self.scales = settings, problem, scales
        self.machines = machines_of(settings)
        self.names = [resource.name for resource in self.machines.resources]
        """Resources of the machines: the first of those that the problem has."""
        self.max_jobs = self.max_instances = settings.num_jobs
        self.cursor = 0
        """Number of the sequence that comes next."""

    def next(self, count: int) -> tuple[np.ndarray, Jobs]:
        """Return the numbers [count] of the next sequences, and the sequences."""
        numbers = np.arange(self.cursor, self.cursor + count)
        self.cursor += count
        return numbers, self.at(numbers)

    def at(self, numbers: np.ndarray) -> Jobs:
        """Return the sequences of these numbers.

        Raises:
            UserError: a number that there isn't.
        """
        raise NotImplementedError

    def workload(self, number: int) -> Workload:
        """Return one sequence as a workload, for `schedrl.sim.cluster.simulate`."""
        raise NotImplementedError


class Streamed(Source):
    """Sequences without end, drawn by blocks."""

    def __init__(self, settings: SimpleClusterSettings, seed: int, family: str) -> None:
        if seed < 0:
            raise UserError(f"seed is {seed}; it must be 0 or more")
        problem, scales = _measured(settings, tuple(settings.data().items()))
        super().__init__(settings, problem, scales)
        self.seed, self.family = seed, one_of("family", family, FAMILIES)
        loads = settings.train_loads if family == "train" else ()
        self.loads = loads or (settings.load,)
        self.block = max(16, min(BLOCK, BLOCK_JOBS // settings.num_jobs))
        self._blocks: dict[int, tuple[Workload, np.ndarray, Jobs]] = {}
        if settings.workload == TRACE:
            part = settings.workload_settings.part(self.family)
            most = np.concatenate([[0], np.cumsum(part.instances)])
            self.max_instances = int((most[settings.num_jobs :] - most[: -settings.num_jobs]).max(initial=1))

    def at(self, numbers: np.ndarray) -> Jobs:
        """Return the sequences of these numbers, see the base."""
        if numbers.size and numbers.min() < 0:
            raise UserError(f"sequence {numbers.min()} does not exist; they are numbered from 0")
        blocks, rows = np.divmod(numbers, self.block)
        first = int(blocks[0]) if numbers.size else 0
        if (blocks == first).all():
            return self._drawn(first)[2].rows(rows)
        parts = [self._drawn(block)[2].rows(rows[blocks == block]) for block in np.unique(blocks).tolist()]
        order = np.argsort(np.argsort(blocks, kind="stable"), kind="stable")
        return Jobs(*(np.concatenate(columns)[order] for columns in zip(*parts, strict=True)))

    def workload(self, number: int) -> Workload:
        """Return one sequence as a workload, see the base."""
        block, row = divmod(number, self.block)
        whole, starts, _ = self._drawn(block)
        first = int(starts[row])
        jobs = whole.take(slice(first, first + self.settings.num_jobs))
        return _from_zero(jobs, _start_of(whole.arrival, first))

    def _drawn(self, number: int) -> tuple[Workload, np.ndarray, Jobs]:
        if number not in self._blocks:
            if len(self._blocks) >= CACHED_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            load = self.loads[number % len(self.loads)]
            draw = _of_trace if self.settings.workload == TRACE else _of_generator
            whole, starts = draw(self.settings, self.machines, load, self.seed, self.family, number, self.block)
            jobs = _cut(prepare(whole, self.machines), whole, starts, self.settings.num_jobs)
            self._blocks[number] = (whole, starts, jobs)
        return self._blocks[number]


class Given(Source):
    """Workloads that the user gave, in turn."""

    def __init__(self, settings: SimpleClusterSettings, workloads: Sequence[Workload]) -> None:
        self._workloads = list(workloads)
        machines = machines_of(settings)
        longest = max(self._workloads, key=len)
        problems = [prepare(workload, machines) for workload in self._workloads]
        if len({problem.demand.shape[1] for problem in problems}) > 1:
            raise UserError("the workloads given have different resources; give them all the same")
        _require_some(problems, "the workload given")
        super().__init__(settings, problems[0], _scales(longest, None))
        self.max_jobs = len(longest)
        self.max_instances = max(int(problem.offset[-1]) for problem in problems)
        parts = [
            _cut(problem, workload, np.zeros(1, np.int64), self.max_jobs, from_zero=False)
            for problem, workload in zip(problems, self._workloads, strict=True)
        ]
        self._jobs = Jobs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def next(self, count: int) -> tuple[np.ndarray, Jobs]:
        """Return the numbers [count] of the next sequences, and the sequences."""
        numbers = np.arange(self.cursor, self.cursor + count) % len(self._workloads)
        self.cursor += count
        return numbers, self.at(numbers)

    def at(self, numbers: np.ndarray) -> Jobs:
        """Return the sequences of these numbers, see the base."""
        wrong = numbers[(numbers < 0) | (numbers >= len(self._workloads))]
        if wrong.size:
            raise UserError(
                f"sequence {wrong[0]} does not exist; there are 0..{len(self._workloads) - 1}"
            )
        return self._jobs.rows(numbers)

    def workload(self, number: int) -> Workload:
        """Return one sequence as a workload."""
        return self._workloads[number]


def jobs_of(settings: SimpleClusterSettings, seed: int, family: str, workload: Any = None) -> Source:
    """Choose the source: `workload` is None (or a name, which the settings have), a `Workload` or several.

    Raises:
        UserError: none of the jobs can run on these machines, or a file can't be read.
    """
    if workload is None or isinstance(workload, str):
        return Streamed(settings, seed, family)
    return Given(settings, [workload] if isinstance(workload, Workload) else workload)


def workloads_of(
    settings: SimpleClusterSettings, num_sequences: int, seed: int = 0, family: str = "test"
) -> list[Workload]:
    """Return the first job sequences of a family as workloads, for the simulator and its rules."""
    source = Streamed(settings, seed, family)
    return [source.workload(number) for number in range(num_sequences)]


def described(settings: SimpleClusterSettings) -> list[str]:
    """Say in a few lines what comes and to what machines."""
    machines, source = machines_of(settings), Streamed(settings, 0, "test")
    total = machines.capacity.sum(0)
    has = ", ".join(f"{a:g} {r.unit} of {r.name}" for a, r in zip(total, machines.resources, strict=True))
    problem, scales = source.problem, source.scales
    lines = [
        f"{len(machines)} machines with {has}",
        f"{settings.workload}: a job every {scales.mean_gap:.3g}, {scales.mean_duration:.3g} long on average",
    ]
    for reason in range(1, len(REASONS)):
        count = int((problem.reject == reason).sum())
        if count:
            lines.append(f"{count / len(problem.reject):.1%} of the jobs are rejected: one {REASONS[reason]}")
    return lines


# -- drawing -------------------------------------------------------------------------------------------------


def _of_generator(
    settings: SimpleClusterSettings,
    machines: Machines,
    load: float | None,
    seed: int,
    family: str,
    number: int,
    count: int,
) -> tuple[Workload, np.ndarray]:
    """Return the jobs of `count` sequences and the first job of each."""
    own, skipped = _rated(settings.workload_settings, machines, load), 0
    if daily(own):  # a run begins at midnight, sequences must not
        skipped = int(stream(seed, family, number, 1).uniform(0, min(DAY * own.rate(), 4 * BLOCK_JOBS)))
    whole = generate(own, skipped + count * settings.num_jobs, seed, family, number)
    return whole, skipped + np.arange(count) * settings.num_jobs


def _rated(own: Any, machines: Machines, load: float | None) -> Any:
    """Return the generator's settings with the rate that gives this load on the machines."""
    if load is None:
        return own
    total = {r.name: float(a) for r, a in zip(machines.resources, machines.capacity.sum(0), strict=True)}
    if hasattr(own, "num_nodes"):  # its processors are the cluster's cores
        return own.replace(load=load * total.get("cpu", 0.0) / own.num_nodes)
    return own.replace(load=load, capacity=tuple(total.get(name) or 1e12 for name in own.resources))


def _of_trace(
    settings: SimpleClusterSettings,
    machines: Machines,
    load: float | None,
    seed: int,
    family: str,
    number: int,
    count: int,
) -> tuple[Workload, np.ndarray]:
    """Return the family's part of the trace at this load, and where `count` sequences begin in it."""
    part = settings.workload_settings.part(family)
    if len(part) < settings.num_jobs:
        raise UserError(
            f"the {family} part of {settings.workload_settings.trace_file} has {len(part)} jobs, num_jobs is "
            f"{settings.num_jobs}; lower num_jobs, or take a longer trace"
        )
    starts = stream(seed, family, number, 0).integers(len(part) - settings.num_jobs + 1, size=count)
    return _at_load(part, machines, load), starts


def _at_load(part: Workload, machines: Machines, load: float | None) -> Workload:
    """Scale the gaps so that the jobs that can run here have this load."""
    if load is None:
        return part
    problem = prepare(part, machines)
    able = problem.reject == 0
    work = (np.asarray(part.instances) * part.duration)[able] @ problem.demand[able].astype(float)
    span = (part.arrival[-1] - part.arrival[0]) * len(part) / max(1, len(part) - 1)
    there = problem.total > 0
    if span <= 0 or not work[there].any():
        raise UserError("the jobs of the trace arrive all at once or can't run here; give load none")
    now = float((work[there] / problem.total[there]).max()) / span
    return _from_zero(part, float(part.arrival[0]), now / load)


def _from_zero(jobs: Workload, start: float, stretch: float = 1.0) -> Workload:
    """Return jobs with the times since `start`, their gaps stretched."""
    arrival = (jobs.arrival - start) * stretch
    return replace(
        jobs,
        arrival=arrival,
        deadline=arrival + (np.asarray(jobs.deadline) - jobs.arrival),
        recorded_start=None,
        recorded_finish=None,
    )


def _start_of(arrival: np.ndarray, first: Any) -> Any:
    """Return time 0 of the sequences that begin with the jobs `first`."""
    return np.where(np.asarray(first) > 0, arrival[np.asarray(first) - 1], 0.0)


def _cut(
    problem: Problem, jobs: Workload, starts: np.ndarray, num_jobs: int, *, from_zero: bool = True
) -> Jobs:
    """Cut sequences of `num_jobs` jobs out of a list, each with times of its own."""
    index = np.minimum(starts[:, None] + np.arange(num_jobs), len(jobs) - 1)
    begin = _start_of(problem.arrival, starts)[:, None] if from_zero else np.zeros((len(starts), 1))
    columns = np.stack(
        [
            problem.arrival[index] - begin,
            problem.duration[index],
            problem.estimate[index],
            problem.priority[index],
            np.asarray(jobs.deadline)[index] - begin,
            problem.reject[index],
        ],
        axis=2,
    )
    counts = np.minimum(num_jobs, len(jobs) - starts)
    return Jobs(counts, columns, problem.demand[index], np.diff(problem.offset)[index])


# -- scales --------------------------------------------------------------------------------------------------


@functools.cache
def _measured(settings: SimpleClusterSettings, files: tuple) -> tuple[Problem, Scales]:
    """Prepare a sample of the training jobs; learn the scales from it. `files`: their hashes.

    Raises:
        UserError: none of them can run.
    """
    machines = machines_of(settings)
    if settings.workload == TRACE:
        sample, _ = _of_trace(settings, machines, settings.load, 0, "train", 0, 1)
        rate = None
    else:
        own = _rated(settings.workload_settings, machines, settings.load)
        sample, rate = generate(own, SAMPLE, number=APART), own.rate()
    problem = prepare(sample, machines)
    _require_some([problem], f"workload {settings.workload}")
    return problem, _scales(sample, rate)


def _require_some(problems: list[Problem], what: str) -> None:
    if all((problem.reject > 0).all() for problem in problems):
        reason = int(np.bincount(problems[0].reject).argmax())
        raise UserError(f"no job of {what} can run on these machines: one {REASONS[reason]}")


def _scales(jobs: Workload, rate: float | None) -> Scales:
    """Return the mean gap and the mean duration; where all arrive at once or take no time, one of a unit."""
    duration = float(jobs.duration.mean()) or 1.0
    span = float(jobs.arrival[-1] - jobs.arrival[0])
    gap = 1.0 / rate if rate else span / max(1, len(jobs) - 1)
    return Scales(gap or duration, duration)
