"""Job sequences drawn by blocks, out of a run of a generator or out of a trace, at a load of the cluster."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedrl.envs.deeprm.generated import daily
from schedrl.envs.deeprm.placed import stream
from schedrl.envs.workload_choice import TRACE
from schedrl.settings import UserError
from schedrl.sim.cluster.problem import FITS, REASONS, Problem, prepare, with_faults
from schedrl.sim.cluster.problem import links as linked
from schedrl.workload.cluster_file import default_cluster, read_cluster
from schedrl.workload.generators import generate
from schedrl.workload.generators.clocks import DAY
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

from .scales import Scales
from .settings import SimpleClusterSettings

SAMPLE, APART = 20_000, 2**31
"""Jobs by which scales are chosen, and the number of their workload: sequences stay far below."""
MOST_SKIPPED = 200_000
"""Jobs that a daily cycle is let run at most before the first sequence begins."""


class Jobs(NamedTuple):
    """Jobs of X sequences; rows behind a sequence's last job hold nothing."""

    counts: np.ndarray  # [X]
    columns: np.ndarray  # [X, J, 6] arrival, duration, estimate, priority, deadline, number of a reason
    demands: np.ndarray  # [X, J, R] micro-units
    instances: np.ndarray  # [X, J]
    machines: np.ndarray  # [X] how many of the machines there are, the first ones
    links: (
        np.ndarray
    )  # [X, J, 3] set of allowed machines, jobs it waits for, how many wait for it; or [X, 0, 3]
    think: np.ndarray  # [X, J] think times; [X, 0] where no job waits for another
    after: np.ndarray  # [X, P] jobs that wait for the first, for the second, and so on

    def rows(self, index: Any) -> "Jobs":
        """Return some of the sequences."""
        return Jobs(*(column[index] for column in self))


class Limits(NamedTuple):
    """What constrains the jobs of a source: the same for all of its sequences, whatever is in them."""

    pairs: int
    """Most pairs of a job and one that waits for it."""
    machines: bool
    """Whether some jobs may not run everywhere."""


def files_of(settings: SimpleClusterSettings) -> tuple[tuple[str, int, int], ...]:
    """Return path, time of change and size of the files: what tells a changed one from one that was read."""
    trace = getattr(settings.workload_settings, "trace_file", "")
    found = [Path(path) for path in (settings.cluster, trace) if path]
    return tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in found if p.is_file())


def machines_of(settings: SimpleClusterSettings) -> Machines:
    """Return the machines.

    Raises:
        UserError: the cluster's file can't be read, or has a machine that makes no sense.
    """
    if settings.cluster:
        return read_cluster(settings.cluster)
    return default_cluster(settings.num_servers, settings.server)


def of_generator(
    settings: SimpleClusterSettings,
    machines: Machines,
    load: float | None,
    block: tuple[int, str, int],
    count: int,
) -> tuple[Workload, np.ndarray]:
    """Return the jobs of a block (seed, family, number) of `count` sequences and the first job of each."""
    own, skipped = _rated(settings.workload_settings, machines, load), 0
    if daily(own):  # a run begins at midnight, sequences must not
        skipped = int(stream(*block, 1).uniform(0, min(DAY * own.rate(), MOST_SKIPPED)))
    whole = generate(own, skipped + count * settings.num_jobs, *block)
    return whole, skipped + np.arange(count) * settings.num_jobs


def _rated(own: Any, machines: Machines, load: float | None) -> Any:
    """Return the generator's settings with the rate that gives this load on the machines."""
    if load is None:
        return own
    total = {r.name: float(a) for r, a in zip(machines.resources, machines.capacity.sum(0), strict=True)}
    if hasattr(own, "num_nodes"):  # its processors are the cluster's cores
        return own.replace(load=load * total.get("cpu", 0.0) / own.num_nodes)
    return own.replace(load=load, capacity=tuple(total.get(name) or 1e12 for name in own.resources))


def of_trace(
    settings: SimpleClusterSettings,
    machines: Machines,
    load: float | None,
    block: tuple[int, str, int],
    count: int,
) -> tuple[Workload, np.ndarray]:
    """Return the family's part of the trace at this load, and where `count` sequences begin in it."""
    part, family = settings.workload_settings.part(block[1]), block[1]
    if len(part) < settings.num_jobs:
        raise UserError(
            f"the {family} part of {settings.workload_settings.trace_file} has {len(part)} jobs, num_jobs is "
            f"{settings.num_jobs}; lower num_jobs, or take a longer trace"
        )
    starts = stream(*block, 0).integers(len(part) - settings.num_jobs + 1, size=count)
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
    if span <= 0:
        raise UserError("the jobs of the trace arrive all at once, so they have no load; give load none")
    if not able.any():
        require_some([problem], "the trace")
    if not work[there].any():
        raise UserError("the jobs of the trace take no time, so they have no load; give load none")
    now = float((work[there] / problem.total[there]).max()) / span
    return from_zero_of(part, float(part.arrival[0]), now / load)


def from_zero_of(jobs: Workload, start: float, stretch: float = 1.0) -> Workload:
    """Return jobs with the times since `start`, their gaps stretched."""
    arrival = (jobs.arrival - start) * stretch
    return replace(
        jobs,
        arrival=arrival,
        deadline=arrival + (np.asarray(jobs.deadline) - jobs.arrival),
        recorded_start=None,
        recorded_finish=None,
    )


def start_of(arrival: np.ndarray, first: Any) -> Any:
    """Return time 0 of the sequences that begin with the jobs `first`."""
    return np.where(np.asarray(first) > 0, arrival[np.asarray(first) - 1], 0.0)


def cut(
    problem: Problem,
    jobs: Workload,
    starts: np.ndarray,
    num_jobs: int,
    limits: Limits,
    *,
    from_zero: bool = True,
) -> Jobs:
    """Cut sequences of `num_jobs` jobs out of a list, each with times of its own.

    What a job waits for and is not in its sequence counts as finished.
    """
    index = np.minimum(starts[:, None] + np.arange(num_jobs), len(jobs) - 1)
    begin = start_of(problem.arrival, starts)[:, None] if from_zero else np.zeros((len(starts), 1))
    counts = np.minimum(num_jobs, len(jobs) - starts)
    reject, links, think, after = _constraints(problem, jobs, index, counts, limits)
    columns = np.stack(
        [
            problem.arrival[index] - begin,
            problem.duration[index],
            problem.estimate[index],
            problem.priority[index],
            np.asarray(jobs.deadline)[index] - begin,
            reject,
        ],
        axis=2,
    )
    machines = np.full(len(starts), problem.capacity.shape[1])
    instances = np.where(reject == FITS, np.asarray(jobs.instances)[index], 0)
    return Jobs(counts, columns, problem.demand[index], instances, machines, links, think, after)


def _constraints(
    problem: Problem, jobs: Workload, index: np.ndarray, counts: np.ndarray, limits: Limits
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the reasons to reject [X, J], and `links`, `think` and `after` of `Jobs`."""
    waits_for, (size, length), pairs = jobs.predecessors, index.shape, limits.pairs
    reject, waits = problem.reject[index], pairs > 0 and waits_for is not None
    links = np.zeros((size, length if pairs or limits.machines else 0, 3), np.int64)
    think, after = np.zeros((size, length if pairs else 0)), np.zeros((size, pairs), np.int64)
    if len(problem.set_of):
        links[:, :, 0] = problem.set_of[index]
    for x in range(size if waits else 0):
        first, count = index[x, 0], counts[x]
        part = waits_for.between(first, first + count)  # type: ignore[union-attr]
        reject[x, :count] = with_faults(part, reject[x, :count])
        if len(part.job):
            own = linked(part)
            links[x, :count, 1], links[x, :count, 2] = own["left"], np.diff(own["after_first"])
            think[x, :count], after[x, : len(own["after"])] = part.think, own["after"]
    return reject, links, think, after


def with_common_sets(problems: list[Problem]) -> tuple[list[Problem], np.ndarray | None]:
    """Number the sets of allowed machines through over all problems; return these and the sets, if any."""
    if not any(len(problem.set_of) for problem in problems):
        return problems, None
    everywhere = np.ones((1, problems[0].capacity.shape[1]), bool)
    found, tables, row = [], [everywhere], 1
    for problem in problems:
        set_of = problem.set_of if len(problem.set_of) else np.zeros(len(problem.arrival), np.int64)
        table = problem.permitted[1:]
        found.append(problem._replace(set_of=np.where(set_of > 0, set_of + row - 1, 0)))
        tables.append(table)
        row += len(table)
    return found, np.concatenate(tables)


def most_pairs(jobs: Workload, num_jobs: int) -> int:
    """Return the most pairs of a job and one that it waits for, of so many jobs in a row."""
    if jobs.predecessors is None:
        return 0
    offset = jobs.predecessors.offset
    return int((offset[min(num_jobs, len(jobs)) :] - offset[: max(len(jobs) - num_jobs, 0) + 1]).max())


@functools.cache
def measured(settings: SimpleClusterSettings, files: tuple) -> tuple[Problem, Scales]:
    """Prepare a sample of the training jobs; learn the scales from it. `files`: their hashes.

    Raises:
        UserError: none of them can run.
    """
    machines = machines_of(settings)
    if settings.workload == TRACE:
        sample, _ = of_trace(settings, machines, settings.load, (0, "train", 0), 1)
        rate = None
    else:
        own = _rated(settings.workload_settings, machines, settings.load)
        sample, rate = generate(own, SAMPLE, number=APART), own.rate()
    problem = prepare(sample, machines)
    require_some([problem], f"workload {settings.workload}")
    return problem, scales_of(sample, rate, len(machines))


def require_some(problems: list[Problem], what: str) -> None:
    """Refuse jobs of which none can run.

    Raises:
        UserError: it names the reason.
    """
    if all((problem.reject > 0).all() for problem in problems):
        reason = int(np.bincount(problems[0].reject).argmax())
        raise UserError(f"no job of {what} can run on these machines: {REASONS[reason]}")


def scales_of(jobs: Workload, rate: float | None, machines: int) -> Scales:
    """Return the mean gap and the mean duration; where all arrive at once or take no time, one of a unit."""
    duration = float(jobs.duration.mean()) or 1.0
    span = float(jobs.arrival[-1] - jobs.arrival[0])
    gap = 1.0 / rate if rate else span / max(1, len(jobs) - 1)
    return Scales(gap or duration, duration, machines)


def own_scales(settings: SimpleClusterSettings) -> Scales:
    """Return the scales of the jobs that the settings draw; what jobs are given, nobody looks at.

    Where none can be drawn (their trace is gone, none fits these machines), both are `slowdown_floor`.
    """
    try:
        return measured(settings, files_of(settings))[1]
    except UserError:
        floor = settings.slowdown_floor
        return Scales(floor, floor, len(machines_of(settings)))
