"""What became of the jobs of an episode: as a table, and as the `Schedule` that the metrics read."""

import numpy as np

from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.schedule import FINISHED, REJECTED, RUNNING, STATUS, UNFINISHED, Placed, Schedule
from schedrl.sim.cluster.state import (
    ARRIVAL,
    ARRIVED,
    CHOSEN,
    CLOCK,
    DECISIONS,
    END,
    FINISH,
    FIRST,
    LEFT,
    MACHINE,
    READY,
    REJECT,
    START,
)
from schedrl.sim.cluster.state import STATUS as STATUS_COLUMN
from schedrl.sim.cluster_decisions.spec import ELASTIC
from schedrl.sim.cluster_decisions.state import (
    ILLEGAL,
    LENGTH,
    NUM_JOBS,
    REJECTED_BY_POLICY,
    SPEED,
    SUBMITTED,
    State,
)
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

from .clusters import Clusters


def jobs(state: State, env: int) -> dict[str, np.ndarray]:
    """Return the table of the jobs that have arrived in one environment, by column."""
    a = state.arrays
    count = int(a.n[env, ARRIVED])
    times, more, status = a.times[env, :count], a.more[env, :count], a.jobs[env, :count, STATUS_COLUMN]
    first = np.minimum(a.jobs[env, :count, FIRST], a.instances.shape[1] - 1)  # rejected ones have none
    began = (status == RUNNING) | (status == FINISHED)
    return {
        "job_id": np.arange(count),
        "arrival_time": more[:, SUBMITTED].copy(),
        "entered_time": np.nan_to_num(_entered(state, env, count), nan=-1.0),
        "start_time": np.where(began, times[:, START], -1.0),
        "finish_time": np.where(status == FINISHED, times[:, FINISH], -1.0),
        "duration": more[:, LENGTH].copy(),
        "demand": a.asked[env, :count] / ONE,
        "machine": np.where(began, a.instances[env, first, MACHINE], -1),
        "speed": np.where(began, more[:, SPEED], -1.0),
        "status": np.array(STATUS, object)[status],
    }


def schedule(clusters: Clusters, env: int, workload: Workload, machines: Machines) -> Schedule:
    """Return the jobs of one environment's episode as a `Schedule`; what hasn't ended is unfinished.

    Elastic jobs finish later than start + duration, and hold less than they asked for.
    """
    a = clusters.state.arrays
    count = int(a.n[env, NUM_JOBS])
    rows = a.jobs[env, :count]
    status = np.where(np.arange(count) < a.n[env, ARRIVED], rows[:, STATUS_COLUMN], UNFINISHED)
    status = np.where(status <= RUNNING, UNFINISHED, status).astype(np.int8)
    offset = np.concatenate([[0], rows[:, END]])
    by_rule = (status == REJECTED) & (rows[:, REJECT] != REJECTED_BY_POLICY)  # 0: the policy did it
    held = a.instances[env, : offset[-1]]
    return Schedule(
        start=a.times[env, :count, START].copy(),
        finish=np.where(status == FINISHED, a.times[env, :count, FINISH], np.nan),
        status=status,
        placed=Placed(offset, held[:, MACHINE].copy(), held[:, CHOSEN].copy()),
        restarts=np.zeros(count, np.int64),
        reject_reason=np.where(by_rule, rows[:, REJECT], 0).astype(np.int8),
        end_time=float(a.x[env, CLOCK]),
        decisions=int(a.n[env, DECISIONS]),
        workload=workload,
        machines=machines,
        rule="",
        granted=_granted(clusters, env, workload, machines) if clusters.spec.action == ELASTIC else None,
        invalid_actions=int(a.n[env, ILLEGAL]),
        entered=None if workload.predecessors is None else _entered(clusters.state, env, count),
    )


def _entered(state: State, env: int, count: int) -> np.ndarray:
    """Return when each of the first jobs entered the queue, NaN = not."""
    a = state.arrays
    entered = a.times[env, :count, ARRIVAL].copy()
    if a.pauses.shape[1]:
        links, ready, numbers = a.links[env, :count], a.pauses[env, :count, READY], np.arange(count)
        out = (links[:, LEFT] > 0) | (ready > a.x[env, CLOCK]) | (numbers >= a.n[env, ARRIVED])
        out |= a.jobs[env, :count, STATUS_COLUMN] == REJECTED
        entered[(ready >= 0) & out] = np.nan
    return entered


def _granted(clusters: Clusters, env: int, workload: Workload, machines: Machines) -> np.ndarray:
    """Return what each job was granted of the workload's resources, [J, R]."""
    names = [r.name for r in machines.resources]
    names += [r.name for r in workload.resources if r.name not in names]
    columns = [names.index(resource.name) for resource in workload.resources]
    return clusters.state.arrays.demand[env, : len(workload)][:, columns] / ONE
