"""What a schedule of a cluster is worth: every measure with the number of jobs behind it.

Means over jobs are of finished jobs; beside them stand what is not finished, and in `bounded_slowdown` the
mean over all admitted jobs, in which an unfinished one has the lower bound that its time so far gives.
Times are in the workload's unit. What is not defined is None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schedrl.evaluation.cluster import timeline
from schedrl.evaluation.definitions import TAU, bounded_slowdown, jain, mean, over_time, slowdown, spread
from schedrl.sim.cluster.problem import REASONS
from schedrl.sim.cluster.schedule import FAILED, FINISHED, REJECTED, UNFINISHED, Schedule
from schedrl.workload.units import SECONDS

WAIT_LIMIT = 3600.0
"""Seconds after which a waiting job counts as starved, if nothing else is asked for."""


def in_unit(seconds: float, unit: str) -> float:
    """Return a time given in seconds in a workload's unit; steps count as seconds."""
    return seconds / SECONDS.get(unit, 1.0)


def turnaround(schedule: Schedule) -> np.ndarray:
    """Return finish - entry into the queue, [J]; NaN where a job did not finish.

    A job enters the queue with its arrival, or when what it waits for is over (`Schedule.came`).
    """
    return schedule.finish - schedule.came


def waits(schedule: Schedule, censored: bool = False) -> np.ndarray:
    """Return start - entry into the queue, [J]; NaN where a job never started.

    `censored` gives jobs that still wait at the end the wait so far, a lower bound. Jobs that had not come
    when the run was cut, or waited for others, have none.
    """
    start = schedule.start
    if censored:
        start = np.where(_still_waiting(schedule), schedule.end_time, start)
    return start - schedule.came


def bounded_slowdowns(schedule: Schedule, tau: float, bounds: bool = False) -> np.ndarray:
    """Return the bounded slowdown of each job, [J]; NaN where it did not finish.

    Args:
        schedule: what happened.
        tau: in the workload's unit of time.
        bounds: give unfinished and failed jobs the lower bound of their time so far.
    """
    time = turnaround(schedule)
    if bounds:
        so_far = schedule.end_time - schedule.came
        undone = (schedule.status == UNFINISHED) | (schedule.status == FAILED)
        time = np.where(undone & (so_far >= 0), so_far, time)
    return bounded_slowdown(time, schedule.workload.duration, tau)


def measure(
    schedule: Schedule,
    *,
    tau: float = TAU,
    wait_limit: float = WAIT_LIMIT,
    invalid_actions: int | None = None,
    decision_latency: float | None = None,
) -> dict[str, Any]:
    """Measure a schedule, in JSON's types.

    Args:
        schedule: what became of every job.
        tau: of the bounded slowdown [s].
        wait_limit: a job that waits longer is starved [s].
        invalid_actions: illegal decisions of a policy; None: those that the schedule knows of.
        decision_latency: seconds for each decision, where it was taken.

    Returns:
        counts of jobs by what became of them; wait, turnaround, slowdown, bounded_slowdown, utilisation (by
        resource), queue, sla, fairness, starvation as tables of figures; makespan, throughput, restarts;
        lost, what machines that went down cost: run time, and each resource x time.
        `while_arriving` has mean use and queue from the first to the last arrival: a span that is the same
        for every policy, without the running down of the last long job.
    """
    unit, status = schedule.workload.time_unit, schedule.status
    tau, limit = in_unit(tau, unit), in_unit(wait_limit, unit)
    done = status == FINISHED
    values, bounds = bounded_slowdowns(schedule, tau), bounded_slowdowns(schedule, tau, bounds=True)
    plain = slowdown(turnaround(schedule), schedule.workload.duration)
    first, last = timeline.span(schedule)
    per_time = int(done.sum()) / (last - first) if last > first else None
    return {
        "rule": schedule.rule,
        "nb_jobs": len(status),
        "finished": int(done.sum()),
        "unfinished": int((status == UNFINISHED).sum()),
        "failed": int((status == FAILED).sum()),
        "rejected": int((status == REJECTED).sum()),
        "acceptance_rate": float((status != REJECTED).mean()),
        "reject_reasons": _reasons(schedule),
        "success_rate": float(done.mean()),
        "time_unit": unit,
        "window": [first, last],
        "makespan": float(schedule.finish[done].max()) - first if done.any() else None,
        "throughput": per_time,
        "throughput_per_hour": per_time and (per_time * 3600 / SECONDS[unit] if unit in SECONDS else None),
        "wait": spread(waits(schedule)[done]) | {"censored_max": _censored_max(schedule)},
        "turnaround": spread(turnaround(schedule)),
        "slowdown": spread(plain) | {"undefined": int(np.isnan(plain[done]).sum())},
        "bounded_slowdown": spread(values) | {"tau": tau, "mean_with_bounds": mean(bounds)},
        "utilisation": utilisation(schedule),
        "while_arriving": while_arriving(schedule),
        "queue": _queue(schedule),
        "sla": sla(schedule),
        "fairness": _fairness(schedule, values),
        "starvation": _starvation(schedule, limit),
        "restarts": int(schedule.restarts.sum()),
        "jobs_restarted": int((schedule.restarts > 0).sum()),
        "lost": _lost(schedule),
        "decisions": schedule.decisions,
        "invalid_actions": schedule.invalid_actions if invalid_actions is None else invalid_actions,
        "decision_latency": decision_latency,
    }


def _lost(schedule: Schedule) -> dict[str, float]:
    """Return what machines that went down cost: time of runs that they ended, and of each resource x time."""
    lost = np.zeros(len(schedule.status)) if schedule.lost is None else schedule.lost
    held = np.asarray(schedule.workload.instances) * lost @ schedule.demand
    names = [resource.name for resource in schedule.workload.resources]
    return {"time": float(lost.sum()), **dict(zip(names, map(float, held), strict=True))}


def utilisation(schedule: Schedule, until: float | None = None) -> dict[str, dict[str, float | None]]:
    """Return resource -> mean, P50, P95, max over time of the share in use; None of what no machine has.

    `until` is where the time ends that is looked at; None: with the run.
    """
    used, total = timeline.usage(schedule), timeline.capacities(schedule).sum(0)
    used = used if until is None else timeline.cut(used, until)
    return {
        resource.name: over_time(used.value[:, r] / max(total[r], 1e-9), used.lasted * (total[r] > 0))
        for r, resource in enumerate(schedule.workload.resources)
    }


def while_arriving(schedule: Schedule) -> dict[str, Any]:
    """Return the mean use of each resource and the mean queue between first and last arrival."""
    last = float(schedule.workload.arrival[-1])
    shares = {name: found["mean"] for name, found in utilisation(schedule, last).items()}
    waiting = timeline.cut(timeline.queue(schedule), last)
    return {"utilisation": shares, "queue": over_time(waiting.value, waiting.lasted)["mean"]}


def sla(schedule: Schedule) -> dict[str, Any]:
    """Return how many finished jobs missed their deadline, by priority too, and by how much.

    `violation_rate_counting_unfinished` has the jobs that were not finished when their deadline passed, too.
    """
    deadline = np.asarray(schedule.workload.deadline)
    known = ~np.isnan(deadline) & (schedule.status == FINISHED)
    undone = (schedule.status == UNFINISHED) | (schedule.status == FAILED)
    overdue = int((undone & (deadline <= schedule.end_time)).sum())
    late = schedule.finish[known] - deadline[known]
    missed, priority = late > 0, np.asarray(schedule.workload.priority)[known]
    by_priority = {
        f"{level:g}": {"n": int((priority == level).sum()), "violation_rate": mean(missed[priority == level])}
        for level in np.unique(priority).tolist()
    }
    decided = len(late) + overdue
    return {
        "n": len(late),
        "violation_rate_all": mean(missed),
        "by_priority": by_priority,
        "severity_max": float(late[missed].max()) if missed.any() else None,
        "severity_mean_over_violations": mean(late[missed]),
        "unfinished_past_deadline": overdue,
        "violation_rate_counting_unfinished": (int(missed.sum()) + overdue) / decided if decided else None,
    }


def user_means(schedule: Schedule, values: np.ndarray) -> dict[str, float]:
    """Return user -> mean of the values [J] that are defined; jobs without a user are left out."""
    names, number = np.unique(np.asarray(schedule.workload.user).astype(str), return_inverse=True)
    known = ~np.isnan(values)
    count = np.bincount(number[known], minlength=len(names))
    sums = np.bincount(number[known], values[known], len(names))
    return {name: float(s / n) for name, s, n in zip(names.tolist(), sums, count, strict=True) if name and n}


def _fairness(schedule: Schedule, values: np.ndarray) -> dict[str, Any]:
    means = user_means(schedule, values)
    index = jain(np.array(list(means.values())))
    return {"users": len(means), "jain_over_user_mean_bsld": index, "user_mean_bsld": means}


def reason_of(number: int) -> str:
    """Return why a job was rejected, in words."""
    return REASONS[number] or "the policy turned it away"


def _reasons(schedule: Schedule) -> dict[str, int]:
    number, count = np.unique(schedule.reject_reason[schedule.status == REJECTED], return_counts=True)
    return {reason_of(n): int(c) for n, c in zip(number, count, strict=True)}


def _censored_max(schedule: Schedule) -> float | None:
    """Return the longest wait of a job that still waits at the end."""
    waiting = _still_waiting(schedule)
    return float((schedule.end_time - schedule.came[waiting]).max()) if waiting.any() else None


def _still_waiting(schedule: Schedule) -> np.ndarray:
    """Mark the jobs that had come and wait at the end, [J]."""
    came = schedule.came <= schedule.end_time
    return came & (schedule.status == UNFINISHED) & np.isnan(schedule.start)


def _starvation(schedule: Schedule, limit: float) -> dict[str, Any]:
    found = waits(schedule, censored=True)
    longest = float(np.nanmax(found)) if (~np.isnan(found)).any() else None
    return {"max_wait": longest, "limit": limit, "beyond_limit": int((found > limit).sum())}


def _queue(schedule: Schedule) -> dict[str, float | None]:
    waiting = timeline.queue(schedule)
    return over_time(waiting.value, waiting.lasted)
