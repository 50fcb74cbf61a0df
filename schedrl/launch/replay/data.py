"""The files of a replay: jobs, machines, the load that is asked for, jobs that can never run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from schedrl.launch.replay.load import at_load, load_lines
from schedrl.launch.replay.settings import ReplaySettings
from schedrl.settings import UserError, counted, line_of
from schedrl.sim.cluster.problem import REASONS, prepare
from schedrl.workload.cluster_file import read_cluster
from schedrl.workload.command.reading import read_given, rejected_lines
from schedrl.workload.constraint_lines import honoured_lines
from schedrl.workload.estimates import CLASS_MEDIAN, Told, read_model, told, with_model
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

WHOLE = "cluster"
"""Name of the one machine that is all the capacity that a trace states."""
SHOWN = 3
"""Jobs that are named for each reason."""


class Data(NamedTuple):
    """What is replayed."""

    workload: Workload
    machines: Machines
    facts: tuple[str, ...]
    """Sentences about both, for the terminal and the report."""
    told: Told
    """What the jobs tell a scheduler of run times."""
    own_medians: bool = False
    """Whether each policy's estimates are the medians of what has finished under it (`estimating`)."""


def load_data(settings: ReplaySettings, reading: argparse.Namespace) -> Data:
    """Read both files and scale the arrivals.

    Raises:
        UserError: a file that can't be used, or jobs of which none can ever run on these machines.
    """
    if settings.cluster is not None and reading.capacity:
        raise UserError("--capacity has no effect beside --cluster, which says what there is; leave one out")
    machines = read_cluster(settings.cluster) if settings.cluster is not None else None
    workload, rejected = read_given(reading)
    model = None if settings.estimates is None else read_model(settings.estimates)
    known = told(workload, model)
    if model is not None:
        workload = with_model(workload, model, settings.seed)
    lines = [f"{counted(len(workload), 'job')} of {settings.trace}", *known.lines()]
    lines += rejected_lines(rejected, SHOWN, workload)
    if machines is None:
        machines = as_one_machine(workload)
    if settings.num_machines is not None:
        machines = thinned(machines, settings.num_machines)
    lines += [_described(machines), *_other_units(workload, machines), *_unmatched(workload, machines)]
    lines += honoured_lines(workload, machines=machines)
    reject = prepare(workload, machines).reject
    lines += unfit_lines(workload, reject, machines)
    fitting = workload.take(reject == 0) if reject.any() else workload
    capacity = _totals(workload, machines)
    if settings.load is not None:
        workload = at_load(workload, fitting, settings.load, capacity)
        fitting = workload.take(reject == 0) if reject.any() else workload

    def on_fewer(count: int) -> tuple[Workload | None, np.ndarray]:
        few = thinned(machines, count)
        able = prepare(workload, few).reject == 0
        return workload.take(able) if able.any() else None, _totals(workload, few)

    lines += [*load_lines(fitting, capacity, settings.load, len(machines), on_fewer)]
    own_medians = model is not None and model.name == CLASS_MEDIAN
    return Data(workload, machines, tuple(lines), known, own_medians)


def thinned(machines: Machines, count: int) -> Machines:
    """Return so many of the machines, evenly spread over the list.

    Raises:
        UserError: there are fewer.
    """
    if count > len(machines):
        raise UserError(f"num_machines is {count}; the cluster has {len(machines)}")
    kept = np.arange(count) * len(machines) // count
    return Machines(machines.name[kept], machines.capacity[kept], machines.resources, machines.model[kept])


def as_one_machine(workload: Workload) -> Machines:
    """Return the cluster that a trace states the capacity of, as one machine.

    Raises:
        UserError: it states none, or not of every resource.
    """
    capacity = np.asarray(workload.capacity)
    missing = [resource.name for resource, c in zip(workload.resources, capacity, strict=True) if np.isnan(c)]
    if missing:
        raise UserError(
            f"no --cluster, and the trace states no capacity of {', '.join(missing)}; give --cluster FILE, "
            f"or --capacity {missing[0]}=... for one machine"
        )
    text = np.array([WHOLE], object), np.array([""], object)
    return Machines(text[0], capacity[None].copy(), workload.resources, text[1])


def unfit_lines(workload: Workload, reject: np.ndarray, machines: Machines) -> Iterator[str]:
    """Yield what is said of jobs that can never run: how many, why, the first ones.

    Raises:
        UserError: that is all of them.
    """
    counts = np.bincount(reject, minlength=len(REASONS))
    reasons = [f"{counts[code]:,} x {REASONS[code]}" for code in range(1, len(REASONS)) if counts[code]]
    if not counts[0]:
        said = [*reasons, *(line.removeprefix("note: ") for line in _unmatched(workload, machines))]
        has, given = _described(machines), "--capacity" if machines.name[0] == WHOLE else "--cluster"
        raise UserError(f"no job of the trace can ever run on {has}: {'; '.join(said)}; check {given}")
    if reasons:
        many = int(counts[1:].sum())
        yield (
            f"{counted(many, 'job')} can never run here and {'is' if many == 1 else 'are'} rejected: "
            f"{'; '.join(reasons)}"
        )
    for code in range(1, len(REASONS)):
        for job in np.flatnonzero(reject == code)[:SHOWN]:
            demand = ", ".join(
                f"{amount:g} {resource.name}"
                for amount, resource in zip(workload.demand[job], workload.resources, strict=True)
                if amount
            )
            times = int(np.asarray(workload.instances)[job])
            yield f"  job {line_of(workload.id[job])}: {times} x ({demand}): {REASONS[code]}"


def _totals(workload: Workload, machines: Machines) -> np.ndarray:
    """Return what the machines have of each of the workload's resources; unknown of others."""
    total = dict(zip((r.name for r in machines.resources), machines.capacity.sum(0), strict=True))
    amounts = [total.get(resource.name, 0.0) for resource in workload.resources]
    return np.array([amount if amount > 0 else np.nan for amount in amounts])


def _described(machines: Machines) -> str:
    amounts = ", ".join(
        f"{total:,.6g} {resource.name} [{resource.unit}]"
        for resource, total in zip(machines.resources, machines.capacity.sum(0), strict=True)
    )
    return f"{counted(len(machines), 'machine')} with {amounts}"


def _unmatched(workload: Workload, machines: Machines) -> Iterator[str]:
    """Yield what one side has and the other doesn't know: often a name that was meant otherwise."""
    asked = [r.name for r, most in zip(workload.resources, workload.demand.max(0), strict=True) if most > 0]
    there = [r.name for r, most in zip(machines.resources, machines.capacity.max(0), strict=True) if most > 0]
    if lacking := [name for name in asked if name not in there]:
        yield f"note: no machine has {', '.join(lacking)}, which jobs ask for"
    if unasked := [name for name in there if name not in asked]:
        yield f"note: no job asks for {', '.join(unasked)}, which machines have"


def _other_units(workload: Workload, machines: Machines) -> Iterator[str]:
    units = {resource.name: resource.unit for resource in machines.resources}
    for name, unit in workload.resources:
        if units.get(name, unit).lower() != unit.lower():
            yield f"note: {name} is in {unit} in the trace, in {units[name]} in the cluster; taken as equal"
