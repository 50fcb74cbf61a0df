"""`Schedule`: what became of every job, the one result of every simulator of clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

if TYPE_CHECKING:
    from .problem import Problem

WAITING, RUNNING, FINISHED, REJECTED, FAILED, UNFINISHED = range(6)
STATUS = ("waiting", "running", "finished", "rejected", "failed", "unfinished")
"""Names of the states; a schedule has the last four only."""


class Placed(NamedTuple):
    """Machines of the instances: of job j, `machine[offset[j]:offset[j + 1]]`; -1 if it never ran."""

    offset: np.ndarray  # [J + 1]
    machine: np.ndarray  # [I]
    devices: np.ndarray  # [I] of that machine, as a set of bits


class Schedule(NamedTuple):
    """Jobs in the order of the workload, times in its unit."""

    start: np.ndarray  # [J] NaN = never, or not any more
    finish: np.ndarray  # [J] NaN = not
    status: np.ndarray  # [J] int8, a number of STATUS
    placed: Placed  # the last placement of each job
    restarts: np.ndarray  # [J] how often a machine went down under it
    reject_reason: np.ndarray  # [J] int8, a number of schedrl.sim.cluster.problem.REASONS
    end_time: float  # of the last event, or where the run was cut
    decisions: int  # passes over the queue
    workload: Workload
    machines: Machines
    rule: str
    granted: np.ndarray | None = None  # [J, R] of the workload's resources; None: what the jobs ask for
    invalid_actions: int = 0  # illegal decisions of a policy; a compiled rule makes none
    lost: np.ndarray | None = None  # [J] time of runs that a machine ended by going down; None: none did
    entered: np.ndarray | None = None  # [J] entry into the queue, NaN = not; None: all with their arrival

    @property
    def came(self) -> np.ndarray:
        """When each job entered the queue, [J]: at its arrival or when what it waits for was over; NaN = not.

        Waits and slowdowns are measured from here: no scheduler could have started a job before.
        """
        return self.workload.arrival if self.entered is None else self.entered

    @property
    def demand(self) -> np.ndarray:
        """What an instance of each job holds while it runs, [J, R]."""
        return self.workload.demand if self.granted is None else self.granted


def check(schedule: Schedule) -> None:
    """Check that a schedule could have happened: states, times, and no machine ever over-allocated.

    Raises:
        UserError: what is wrong, with the job or the machine.
    """
    from .problem import prepare

    problem = prepare(schedule.workload, schedule.machines)
    status = schedule.status
    for job in np.flatnonzero((status < FINISHED) | (status > UNFINISHED))[:1]:
        raise UserError(f"job {job} ends as {STATUS[status[job]]}")
    finished = status == FINISHED
    demand, duration = _granted(schedule, problem)
    on_time = schedule.finish == schedule.start + duration
    _check_constraints(schedule, problem)
    wrong = finished & ~((schedule.start >= problem.arrival) & on_time)
    wrong |= ~finished & ~np.isnan(schedule.finish)
    for job in np.flatnonzero(wrong)[:1]:
        raise UserError(
            f"job {job} arrived at {problem.arrival[job]}, started at {schedule.start[job]} and finished at "
            f"{schedule.finish[job]}, {problem.duration[job]} long, {STATUS[status[job]]}"
        )
    _check_machines(schedule, demand, problem.capacity, problem.g)


def _check_constraints(schedule: Schedule, problem: Problem) -> None:
    """Check that no job started before what it waits for was over, nor ran where it may not."""
    waits_for, started = schedule.workload.predecessors, ~np.isnan(schedule.start)
    if waits_for is not None:
        waiter = waits_for.waiter
        there = waits_for.job >= 0
        over = np.where(there, schedule.finish[waits_for.job], np.nan) + waits_for.think[waiter]
        for pair in np.flatnonzero(started[waiter] & ~(schedule.start[waiter] >= over))[:1]:
            job = waiter[pair]
            raise UserError(
                f"job {job} started at {schedule.start[job]}, what it waits for was over at {over[pair]}"
            )
    if len(problem.permitted):
        offset, machine = schedule.placed.offset, schedule.placed.machine
        jobs = np.repeat(np.arange(len(started)), np.diff(offset))
        wrong = (machine >= 0) & ~problem.permitted[problem.set_of[jobs], machine]
        for i in np.flatnonzero(wrong)[:1]:
            raise UserError(f"job {jobs[i]} ran on machine {machine[i]}, which it does not allow")


def _granted(schedule: Schedule, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return what the jobs hold in micro-units [J, R] and how long they run [J], elastic ones longer."""
    if schedule.granted is None:
        return problem.demand, problem.duration
    from .problem import prepare

    demand = prepare(replace(schedule.workload, demand=schedule.granted), schedule.machines).demand
    share = demand / np.maximum(problem.demand, 1)
    return demand, problem.duration / share.min(axis=1, where=problem.demand > 0, initial=1.0)


def _check_machines(schedule: Schedule, demand: np.ndarray, capacity: np.ndarray, g: int) -> None:
    """Add up what the jobs held in their last run, machine by machine and device by device."""
    from .devices import ONE

    jobs = np.repeat(np.arange(len(schedule.status)), np.diff(schedule.placed.offset))
    stop = np.where(schedule.status == FINISHED, schedule.finish, schedule.end_time)
    kept = (schedule.status == FINISHED) | ((schedule.status == UNFINISHED) & ~np.isnan(schedule.start))
    kept = (kept & (stop > schedule.start))[jobs]
    jobs, machine, bits = jobs[kept], schedule.placed.machine[kept], schedule.placed.devices[kept]
    held = [(demand[jobs, r], machine, capacity[r], f"resource {r}") for r in range(len(capacity))]
    for d in range(int(capacity[g].max()) // ONE if g >= 0 else 0):
        each = np.where(bits >> d & 1, np.minimum(demand[jobs, g], ONE), 0)
        held.append((each, machine, np.minimum(np.maximum(capacity[g] - d * ONE, 0), ONE), f"device {d}"))
    times = np.concatenate([stop[jobs], schedule.start[jobs]])
    for amount, where, limit, name in held:
        order = np.lexsort((times, np.concatenate([where, where])))  # finishes stand before starts
        places = np.concatenate([where, where])[order]
        running = np.cumsum(np.concatenate([-amount, amount])[order])  # a machine's sum over all time is 0
        for at in np.flatnonzero(running > limit[places])[:1]:
            raise UserError(
                f"machine {places[at]} holds {running[at]} micro-units of {name}, has {limit[places[at]]}"
            )
