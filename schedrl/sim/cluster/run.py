"""Whole runs in one compiled loop, and the front door to them, `simulate`."""

from typing import Any

import numpy as np

from schedrl.sim.handle import hold
from schedrl.sim.jit import leaf, njit
from schedrl.sim.lasting import wait_for
from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

from . import aging, conservative, orders, plan, queue, waiting
from .kernel import mark_changed, release
from .problem import AFTER_FAILED, Problem, prepare
from .rule import CONSERVATIVE, DEFAULT, Rule, parse
from .schedule import FAILED, FINISHED, REJECTED, RUNNING, UNFINISHED, Placed, Schedule
from .state import (
    ARRIVAL,
    ARRIVED,
    CHANGED,
    CHOSEN,
    CLOCK,
    DECISIONS,
    END,
    FINISH,
    FIRST,
    HAPPENED,
    HEAD,
    HEAP,
    IS_CHANGED,
    LATER_JOBS,
    LEFT,
    LOST,
    MACHINE,
    NUM_CHANGED,
    NUM_RESERVED,
    OFFLINE,
    OWNER,
    R_LIST,
    R_MACHINE,
    READY,
    REJECT,
    REPLAN,
    REQUEUE,
    RESTARTS,
    RUNNING_JOBS,
    START,
    STATIC,
    STATUS,
    STOP,
    UNTIL,
    UP,
    VIEWED,
    WAITING_JOBS,
    Cluster,
    new_cluster,
)  # fmt: skip

FEW_LOOKS, FEW_LONG_LOOKS = 10**8, 2 * 10**6
"""Looks of each instance at each machine, as often as a job ends, that can take no longer than a second;
fewer where an order changes with time or a plan is kept. 1,000 jobs on 100 machines are 0.1 s at worst."""
_order_score = orders.score
_enqueue_static, _enqueue_aging = queue.enqueue, aging.enqueue
_let_go, _must_wait, _next_ready = waiting.let_go, waiting.must_wait, waiting.next_ready
_ready, _turn_away = waiting.ready, waiting.turn_away
_static_pass, _aging_pass, _conservative_pass = queue.one_pass, aging.one_pass, conservative.one_pass
_clear_plan, _keeps_plan, _ends, _give_back = plan.clear, plan.keeps, plan.ends, conservative.give_back


@leaf
def _enqueue(c, job):
    if c.n[STATIC] > 0:
        _enqueue_static(c, job)
    else:
        _enqueue_aging(c, job)


@leaf
def _take_off(c, job):
    """Take a running job off its machines; what it does not need of its estimate is given back."""
    for i in range(c.jobs[job, FIRST], c.jobs[job, END]):
        if _keeps_plan(c) and c.event_at[2 * i + 1] > c.x[CLOCK]:
            _give_back(c, c.instances[i, MACHINE], c.x[CLOCK], c.event_at[2 * i + 1])
        _ends(c, i)
    release(c, job)


@leaf
def _finish_jobs(c):
    n = c.n
    while n[RUNNING_JOBS] > 0 and c.times[c.jobs[0, HEAP], FINISH] <= c.x[CLOCK]:
        job = c.jobs[0, HEAP]
        c.jobs[job, STATUS] = FINISHED
        _take_off(c, job)
        _let_go(c, job)


@leaf
def _go_down(c, m):
    while c.machines[m, HEAD] >= 0:
        job = c.instances[c.machines[m, HEAD], OWNER]
        _take_off(c, job)
        c.times[job, LOST] += c.x[CLOCK] - c.times[job, START]
        c.times[job, FINISH] = np.nan
        c.jobs[job, STATUS] = FAILED
        if c.n[REQUEUE] > 0:
            c.jobs[job, RESTARTS] += 1
            c.times[job, START] = np.nan
            for i in range(c.jobs[job, FIRST], c.jobs[job, END]):
                c.instances[i, MACHINE], c.instances[i, CHOSEN] = -1, 0
            _enqueue(c, job)
        else:
            _turn_away(c, job, AFTER_FAILED)


@leaf
def _switch_machines(c):
    n = c.n
    while n[HAPPENED] < c.event_time.shape[0] and c.event_time[n[HAPPENED]] <= c.x[CLOCK]:
        m, up = c.event[n[HAPPENED], 0], c.event[n[HAPPENED], 1]
        n[HAPPENED] += 1
        if up == c.machines[m, UP]:
            continue
        c.machines[m, UP] = up
        c.machines[m, VIEWED] = 0
        if up > 0:
            mark_changed(c, m)
            if _keeps_plan(c):
                _give_back(c, m, c.x[CLOCK], np.inf)
        else:
            _go_down(c, m)
            n[REPLAN] = 1
        for r in range(c.free.shape[0]):
            c.free[r, m] += OFFLINE if up > 0 else -OFFLINE
            c.used[-1, r] -= c.capacity[r, m] if up > 0 else -c.capacity[r, m]


@leaf
def _take_arrivals(c):
    n = c.n
    while n[ARRIVED] < c.times.shape[0] and c.times[n[ARRIVED], ARRIVAL] <= c.x[CLOCK]:
        job = n[ARRIVED]
        n[ARRIVED] += 1
        if c.jobs[job, REJECT] > 0:
            c.jobs[job, STATUS] = REJECTED
        elif not _must_wait(c, job):
            _enqueue(c, job)
    job = _ready(c)
    while job >= 0:
        _enqueue(c, job)
        job = _ready(c)


@leaf
def _next_time(c):
    n, time = c.n, _next_ready(c)
    if n[ARRIVED] < c.times.shape[0]:
        time = min(time, c.times[n[ARRIVED], ARRIVAL])
    if n[RUNNING_JOBS] > 0:
        time = min(time, c.times[c.jobs[0, HEAP], FINISH])
    if n[HAPPENED] < c.event_time.shape[0]:
        time = min(time, c.event_time[n[HAPPENED]])
    return time


@leaf
def _end_pass(c):
    n = c.n
    n[DECISIONS] += 1
    for k in range(n[NUM_CHANGED]):
        c.machines[c.machines[k, CHANGED], IS_CHANGED] = False
    n[NUM_CHANGED] = 0
    if _keeps_plan(c):
        return
    # What reservations kept off a machine may start there when they are gone or have moved.
    for k in range(n[NUM_RESERVED]):
        mark_changed(c, c.reserved[c.reserved[k, R_LIST], R_MACHINE])
    _clear_plan(c)


@njit(nogil=True)
def play(cluster):
    """Go from event to event until nothing is left to happen, to the cut, or until it is asked to stop."""
    c = hold(cluster)
    n = c.n
    while n[STOP] == 0 and (
        n[ARRIVED] < c.times.shape[0] or n[RUNNING_JOBS] + n[WAITING_JOBS] + n[LATER_JOBS] > 0
    ):
        time = _next_time(c)
        if not time <= c.x[UNTIL] or time == np.inf:
            c.x[CLOCK] = c.x[UNTIL] if time < np.inf else c.x[CLOCK]
            break
        c.x[CLOCK] = time
        _finish_jobs(c)
        _switch_machines(c)
        _take_arrivals(c)
        if _keeps_plan(c):
            _conservative_pass(c)
        elif n[STATIC] > 0:
            _static_pass(c)
        else:
            _aging_pass(c)
        _end_pass(c)


@njit
def scores(order, arrival, estimate, procs, priority, aging_time, epoch, out):
    """Write the scores of all jobs by an order that stays. [J]."""
    for j in range(out.shape[0]):
        out[j] = _order_score(
            order, 0.0, arrival[j], estimate[j], procs[j], priority[j], 0.0, aging_time, epoch
        )


def places_of(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each job in the order of all, and its inverse; by arrival if the order changes."""
    jobs = len(problem.arrival)
    if not problem.static:
        return np.arange(jobs), np.arange(jobs)
    score = np.empty(jobs)
    p = problem
    scores(p.order, p.arrival, p.estimate, p.procs, p.priority, p.aging_time, p.epoch, score)
    job_at = np.argsort(score, kind="stable")
    place = np.empty(jobs, np.int64)
    place[job_at] = np.arange(jobs)
    return place, job_at


def _is_short(p: Problem) -> bool:
    """Tell whether a run is over so soon (a second at worst) that Ctrl-C may wait for its end."""
    looks = len(p.arrival) * int(p.offset[-1]) * len(p.devices)
    return looks <= (FEW_LOOKS if p.static and p.discipline != CONSERVATIVE else FEW_LONG_LOOKS)


def simulate(workload: Workload, machines: Machines, rule: str | Rule = DEFAULT, **options: Any) -> Schedule:
    """Run a workload on machines under a rule, compiled.

    Args:
        workload: the jobs.
        machines: the cluster.
        rule: order, placement and discipline as `sjf+best_fit+easy`.
        **options: window, events, until, on_down, aging_time, epoch, device, see
            `schedrl.sim.cluster.problem.prepare`.

    Raises:
        UserError: an unknown rule, or an option out of range.
    """
    problem = prepare(workload, machines, rule, **options)
    cluster = new_cluster(problem, *places_of(problem))
    if _is_short(problem):
        play(cluster)
    else:
        wait_for(play, cluster, stop=cluster.n[STOP : STOP + 1])
    status = cluster.jobs[:, STATUS].astype(np.int8)
    status[status <= RUNNING] = UNFINISHED
    return Schedule(
        cluster.times[:, START].copy(),
        np.where(status == FINISHED, cluster.times[:, FINISH], np.nan),
        status,
        Placed(problem.offset, cluster.instances[:, MACHINE].copy(), cluster.instances[:, CHOSEN].copy()),
        cluster.jobs[:, RESTARTS].copy(),
        np.where(status == REJECTED, cluster.jobs[:, REJECT], 0).astype(np.int8),
        float(cluster.x[CLOCK]),
        int(cluster.n[DECISIONS]),
        workload,
        machines,
        (parse(rule) if isinstance(rule, str) else rule).name,
        lost=cluster.times[:, LOST].copy(),
        entered=_entered(problem, cluster),
    )


def _entered(problem: Problem, cluster: Cluster) -> np.ndarray | None:
    """Return when each job entered the queue, NaN = not; None: all with their arrival."""
    if not len(problem.left):
        return None
    still = (cluster.links[:, LEFT] > 0) | (cluster.pauses[:, READY] > cluster.x[CLOCK])
    still |= (np.arange(len(still)) >= cluster.n[ARRIVED]) | (cluster.jobs[:, STATUS] == REJECTED)
    return np.where(still & (problem.left > 0), np.nan, cluster.times[:, ARRIVAL])
