"""What is said of the constraints of jobs: how many have which, and whether they are honoured.

Apart from `constraints` because it is words: replay, training and `inspect` print them first. Every function
takes the parts of one trace, or one workload.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schedrl.settings import counted
from schedrl.workload.constraints import ABSENT, CIRCLE, ITSELF, LEFT_OUT, REJECTED, Predecessors
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

FAULTS = {
    ITSELF: ("it waits for itself", "they wait for themselves"),
    CIRCLE: ("it waits in a circle", "they wait in a circle"),
    ABSENT: ("it waits for a job that is not there", "they wait for a job that is not there"),
    REJECTED: ("it waits for such a job", "they wait for such a job"),
}
"""Why a job can never enter the queue -> words for one and for several."""
SHOWN = 3


def honoured_lines(*parts: Workload, machines: Machines | None = None) -> Iterator[str]:
    """Yield what the cluster simulators make of the constraints; without machines, what they would."""
    waits_for = [part.predecessors for part in parts if part.predecessors is not None]
    if waiting := _waiting(parts):
        pauses = sum(int((each.think > 0).sum()) for each in waits_for)
        rest = (
            f" and their think time is over ({pauses:,} {'has' if pauses == 1 else 'have'} one)"
            if pauses
            else ""
        )
        yield (
            f"{_jobs(parts, waiting, 'wait')} for others: they enter the queue when these have finished{rest}"
            ", and waits and slowdowns count from there"
        )
    if dropped := sum(each.dropped for each in waits_for):
        what = "1 dependency on a job outside of the selection it is in counts"
        if dropped != 1:
            what = f"{dropped:,} dependencies on jobs outside of the selection they are in count"
        yield f"{what} as fulfilled"
    if machines is None:
        for part in parts:
            yield from _faults(part, part.predecessors)
    if limited := _limited(parts):
        known = machines is None or any(
            part.allowed is not None and part.allowed.on(machines.name, machines.model) is not None
            for part in parts
        )
        yield f"{_jobs(parts, limited, 'name')} the machines or models that will do" + (
            "; only these are used"
            if known
            else ": left out, as no machine of this cluster has a model or one of these names"
        )
    yield from _left_out(parts)


def pool_lines(*parts: Workload) -> Iterator[str]:
    """Yield what a cluster that is one pool, as DeepRM's, leaves out."""
    if waiting := _waiting(parts):
        yield f"{_jobs(parts, waiting, 'wait')} for others: left out, here jobs come when the trace says"
    if limited := _limited(parts):
        count = _jobs(parts, limited, "name")
        yield f"{count} the machines or models that will do: left out, here all machines are one pool"
    yield from _left_out(parts)


def _waiting(parts: tuple[Workload, ...]) -> int:
    return sum(int(part.predecessors.waiting.sum()) for part in parts if part.predecessors is not None)


def _limited(parts: tuple[Workload, ...]) -> int:
    return sum(int(part.allowed.limited.sum()) for part in parts if part.allowed is not None)


def _faults(workload: Workload, waits_for: Predecessors | None) -> Iterator[str]:
    """Yield what can never enter the queue, with the first ids."""
    fault = np.zeros(0) if waits_for is None else waits_for.faults(np.zeros(len(workload), bool))
    for number, words in FAULTS.items():
        jobs = np.flatnonzero(fault == number)
        if jobs.size:
            names = ", ".join(map(str, np.asarray(workload.id)[jobs[:SHOWN]].tolist()))
            more = ", ..." if jobs.size > SHOWN else ""
            yield f"{jobs.size:,} of these can never run, as {words[jobs.size > 1]}: {names}{more}"


def _left_out(parts: tuple[Workload, ...]) -> Iterator[str]:
    """Yield the further columns that say where jobs may run and that nothing honours."""
    for name in dict.fromkeys(name for part in parts for name in part.extra if name.lower() in LEFT_OUT):
        found = [value for part in parts if name in part.extra for value in _stated(part.extra[name])]
        if found:
            words = f"{LEFT_OUT[name.lower()]} ({len(set(found)):,} different)"
            yield f"{_jobs(parts, len(found), 'name')} {words}: left out, no rule looks at it"


def _stated(column: np.ndarray) -> list:
    """Return the values of those jobs that have one."""
    if column.dtype.kind == "f":
        return column[~np.isnan(column)].tolist()
    return column[column != ""].tolist() if column.dtype.kind in "OU" else column.tolist()


def _jobs(parts: tuple[Workload, ...], count: int, what_they_do: str) -> str:
    return f"{count:,} of {counted(sum(map(len, parts)), 'job')} {what_they_do}{'s' if count == 1 else ''}"
