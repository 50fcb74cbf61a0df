"""Numbered job sequences of a generator or a trace, as the cluster environment reads them.

Sequence number i is a pure function of the settings, the seed, the family and i. A block of sequences is
one run of the generator, cut after every `num_jobs` jobs; each begins with an empty cluster, and its time 0
is the arrival of the job before its first. Of a trace, each is a run of jobs from a random place of the part
that the family has.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from schedrl.envs.declared import EVERYTHING, LOAD, RUN_TIMES, Declared
from schedrl.envs.in_turn import InTurn
from schedrl.envs.workload_choice import TRACE
from schedrl.settings import UserError, counted, one_of
from schedrl.sim.cluster.problem import FITS, REASONS, Problem, own_reasons, prepare
from schedrl.workload.constraint_lines import honoured_lines
from schedrl.workload.estimates import Told, told
from schedrl.workload.streams import FAMILIES
from schedrl.workload.types import Workload

from .drawing import (
    Jobs,
    Limits,
    cut,
    files_of,
    from_zero_of,
    machines_of,
    measured,
    most_pairs,
    of_generator,
    of_trace,
    own_scales,
    require_some,
    start_of,
    with_common_sets,
)
from .scales import Scales, as_scales
from .settings import SimpleClusterSettings

BLOCK, BLOCK_JOBS = 256, 50_000
"""Sequences drawn together, fewer where they are long: about so many jobs."""
CACHED_BLOCKS = 4


class Source(InTurn):
    """Sequences of one family; subclasses say which workload a sequence is.

    `problem` holds the machines as the simulator reads them (and some jobs).
    """

    def __init__(self, settings: SimpleClusterSettings, problem: Problem, scales: Scales) -> None:
        self.settings, self.problem, self.scales = settings, problem, scales
        self.machines = machines_of(settings)
        self.names = [resource.name for resource in self.machines.resources]
        """Resources of the machines: the first of those that the problem has."""
        self.max_jobs = self.max_instances = settings.num_jobs
        self.max_pairs = 0
        """Most pairs of a job and one that waits for it."""
        self.permitted: np.ndarray | None = None
        """Where jobs may run, [sets, M]; None: everywhere."""

    @abstractmethod
    def workload(self, number: int) -> Workload:
        """Return one sequence as a workload, for `schedrl.sim.cluster.simulate`."""

    def told(self) -> Told:
        """Return what the jobs tell a scheduler of run times."""
        return told_of(self.settings, [self.workload(0)])

    def declares(self) -> tuple[Declared, ...]:
        """Return what is shown of the future by design."""
        told, known = self.told(), self.settings.declares()
        if not (told.lacking or told.true):
            return known
        text = "true run times, where jobs have no estimate or all estimates are exact"
        return (Declared(RUN_TIMES, EVERYTHING, (), text), *known)


class Streamed(Source):
    """Sequences without end, drawn by blocks."""

    def __init__(
        self, settings: SimpleClusterSettings, seed: int, family: str, scales: Scales | None = None
    ) -> None:
        if seed < 0:
            raise UserError(f"seed is {seed}; it must be 0 or more")
        self.servers = settings.train_servers if family == "train" else ()
        if self.servers:
            settings = settings.replace(num_servers=max(self.servers))
        problem, own = measured(settings, files_of(settings))
        super().__init__(settings, problem, scales or own)
        self.seed, self.family = seed, one_of("family", family, FAMILIES)
        loads = settings.train_loads if family == "train" else ()
        self.loads = loads or (settings.load,)
        self.block = max(16, min(BLOCK, BLOCK_JOBS // settings.num_jobs))
        self._blocks: dict[int, tuple[Workload, np.ndarray, Jobs]] = {}
        if settings.workload == TRACE:
            part = settings.workload_settings.part(self.family)
            whole = prepare(part, self.machines)
            able = np.where(own_reasons(whole.reject) == FITS, np.asarray(part.instances), 0)
            most = np.concatenate([[0], np.cumsum(able)])
            self.max_instances = int((most[settings.num_jobs :] - most[: -settings.num_jobs]).max(initial=1))
            self.max_pairs = most_pairs(part, settings.num_jobs)
            self.permitted = whole.permitted if len(whole.permitted) else None

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
        return from_zero_of(jobs, start_of(whole.arrival, first))

    def _drawn(self, number: int) -> tuple[Workload, np.ndarray, Jobs]:
        if number not in self._blocks:
            if len(self._blocks) >= CACHED_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            load, machines = self.loads[number % len(self.loads)], self.machines
            if self.servers:
                count = self.servers[number // len(self.loads) % len(self.servers)]
                machines = machines_of(self.settings.replace(num_servers=count))
            draw = of_trace if self.settings.workload == TRACE else of_generator
            whole, starts = draw(self.settings, machines, load, (self.seed, self.family, number), self.block)
            problem = prepare(whole, machines)
            limits = Limits(self.max_pairs, self.permitted is not None)
            jobs = cut(problem, whole, starts, self.settings.num_jobs, limits)
            self._blocks[number] = (whole, starts, jobs)
        return self._blocks[number]


class Given(Source):
    """Workloads that the user gave, in turn."""

    def __init__(
        self,
        settings: SimpleClusterSettings,
        workloads: Sequence[Workload],
        scales: Scales | None = None,
    ) -> None:
        self._workloads = list(workloads)
        self.total = len(self._workloads)
        machines = machines_of(settings)
        longest = max(self._workloads, key=len)
        problems = [prepare(workload, machines) for workload in self._workloads]
        if len({problem.demand.shape[1] for problem in problems}) > 1:
            raise UserError("the workloads given have different resources; give them all the same")
        require_some(problems, "the workload given")
        super().__init__(settings, problems[0], scales or own_scales(settings))
        self.max_jobs = len(longest)
        self.max_instances = max(int(problem.offset[-1]) for problem in problems)
        self.max_pairs = max(most_pairs(workload, len(workload)) for workload in self._workloads)
        problems, self.permitted = with_common_sets(problems)
        first, limits = np.zeros(1, np.int64), Limits(self.max_pairs, self.permitted is not None)
        parts = [
            cut(problem, workload, first, self.max_jobs, limits, from_zero=False)
            for problem, workload in zip(problems, self._workloads, strict=True)
        ]
        self._jobs = Jobs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def at(self, numbers: np.ndarray) -> Jobs:
        """Return the sequences of these numbers, see the base."""
        wrong = numbers[(numbers < 0) | (numbers >= len(self._workloads))]
        if wrong.size:
            raise UserError(f"sequence {wrong[0]} does not exist; there are 0..{len(self._workloads) - 1}")
        return self._jobs.rows(numbers)

    def workload(self, number: int) -> Workload:
        """Return one sequence as a workload."""
        return self._workloads[number]

    def told(self) -> Told:
        """Return what the jobs tell a scheduler of run times, see the base."""
        return added(map(told, self._workloads))

    def declares(self) -> tuple[Declared, ...]:
        """Return what is shown of the future by design, see the base; nobody scaled these arrivals."""
        return tuple(each for each in super().declares() if each.what != LOAD)


def jobs_of(
    settings: SimpleClusterSettings, seed: int, family: str, workload: Any = None, scales: Any = None
) -> Source:
    """Choose the source: `workload` is None (or a name, which the settings have), a `Workload` or several.

    `scales` are those of a policy that is to play, see `scales.as_scales`; None: of the settings' jobs.

    Raises:
        UserError: none of the jobs can run on these machines, or a file can't be read; no such scales.
    """
    found = None if scales is None else as_scales(scales)
    if workload is None or isinstance(workload, str):
        return Streamed(settings, seed, family, found)
    several = [workload] if isinstance(workload, Workload) else workload
    if not (isinstance(several, list | tuple) and several and all(isinstance(w, Workload) for w in several)):
        raise UserError(
            f"workload is a {type(workload).__name__}; give the name of a workload, a Workload or a list of "
            "them"
        )
    return Given(settings, several, found)


def workloads_of(
    settings: SimpleClusterSettings, num_sequences: int, seed: int = 0, family: str = "test"
) -> list[Workload]:
    """Return the first job sequences of a family as workloads, for the simulator and its rules."""
    source = Streamed(settings, seed, family)
    return [source.workload(number) for number in range(num_sequences)]


def told_of(settings: SimpleClusterSettings, sequences: Sequence[Workload]) -> Told:
    """Return what these job sequences tell a scheduler of run times; of a trace, what all its jobs tell."""
    if settings.workload == TRACE:
        return settings.workload_settings.told()
    return added(map(told, sequences))


def added(parts: Iterable[Told]) -> Told:
    """Return what several lists of jobs tell together."""
    found = list(parts)
    jobs, lacking = sum(each.jobs for each in found), sum(each.lacking for each in found)
    return Told(jobs, lacking, all(each.true for each in found))


def described(settings: SimpleClusterSettings) -> list[str]:
    """Say in a few lines what comes and to what machines."""
    machines, source = machines_of(settings), Streamed(settings, 0, "test")
    total = machines.capacity.sum(0)
    has = ", ".join(f"{a:g} {r.unit} of {r.name}" for a, r in zip(total, machines.resources, strict=True))
    problem, scales = source.problem, source.scales
    traced = settings.workload == TRACE
    parts = [settings.workload_settings.part(family) for family in FAMILIES] if traced else []
    lines = [
        *told_of(settings, [source.workload(0)]).lines(),
        f"{counted(len(machines), 'machine')} with {has}",
        *(settings.workload_settings.rejected().lines() if traced else ()),
        *honoured_lines(*parts, machines=machines),
        f"{settings.workload}: a job every {scales.mean_gap:.3g}, {scales.mean_duration:.3g} long on average",
    ]
    for reason in range(1, len(REASONS)):
        count = int((problem.reject == reason).sum())
        if count:
            lines.append(f"{count / len(problem.reject):.1%} of the jobs are rejected: {REASONS[reason]}")
    return lines
