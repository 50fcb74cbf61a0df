"""What is seen of a `ReferenceCluster`, in plain Python: the specification of `observe.slots`."""

import math

from .observe import DECADES, HIGHEST_RATE, HIGHEST_URGENCY
from .reference import ONE, Job, ReferenceCluster

Rows = list[list[float]]


def slots(cluster: ReferenceCluster) -> tuple[Rows, Rows, list[float]]:
    """Return cluster [M, .], queue [S, .] and backlog [.]."""
    view = _View(cluster)
    shown = [view.job(job) for job in cluster.waiting[: cluster.spec.num_slots]]
    empty = [0.0] * (8 + len(cluster.resources))
    queue = shown + [empty] * (cluster.spec.num_slots - len(shown))
    return [view.machine(m) for m in cluster.machines], queue, view.backlog()


class _View:
    """The features of one cluster at one moment."""

    def __init__(self, cluster: ReferenceCluster) -> None:
        self.c, self.spec = cluster, cluster.spec
        self.largest = [max([1, *(row[r] for row in cluster.capacity)]) for r in cluster.resources]

    def _scaled(self, time: float) -> float:
        return math.log1p(max(time, 0.0) / self.spec.tau) / DECADES

    def machine(self, m: int) -> list[float]:
        """Return the features of machine m."""
        c = self.c
        has, free, share = c.capacity[m], c.free[m], c.share[m]
        ends = [self._end(job) for job in c.running for machine, _ in job.placed if machine == m]
        return [
            *(f / h if h else 0.0 for f, h in zip(free, has, strict=True)),
            *(h / most for h, most in zip(has, self.largest, strict=True)),
            max(share, default=0) / ONE,
            share.count(ONE) / len(share) if share else 0.0,
            c.history[m],
            self._scaled(min(ends) - c.clock) if ends else 1.0,
            _squashed(len(ends) / 4.0),
        ]

    def _end(self, job: Job) -> float:
        return job.start + job.estimate / job.speed

    def job(self, job: Job) -> list[float]:
        """Return the features of a visible job."""
        c, wait, limit = self.c, self.c.clock - job.arrival, self.c.limit(job)
        fitting = sum(c.may_place(job, m) for m in c.machines)
        return [
            1.0,
            self._scaled(job.estimate),
            self._scaled(wait),
            _squashed(wait / max(job.estimate, self.spec.tau)),
            math.log1p(job.instances - 1.0) / DECADES,
            min(max(job.priority, 1.0), HIGHEST_URGENCY) / HIGHEST_URGENCY,
            fitting / len(c.machines),
            _squashed((wait + job.estimate) / limit) if limit > 0 else 1.0,
            *(a / most for a, most in zip(job.asked, self.largest, strict=True)),
        ]

    def backlog(self) -> list[float]:
        """Return the features of the cluster as a whole."""
        c, spec = self.c, self.spec
        since = c.clock - c.last_arrival
        burst = (c.clock - c.last_burst) / spec.burst_time
        used = []
        for r in c.resources:
            total = sum(row[r] for row in c.capacity)
            used.append(1.0 - sum(row[r] for row in c.free) / total if total else 0.0)
        return [
            _squashed(max(len(c.waiting) - spec.num_slots, 0) / (2.0 * len(c.machines))),
            self._scaled(max((c.clock - job.arrival for job in c.waiting), default=0.0)),
            min(c.rate * spec.mean_gap / HIGHEST_RATE, 1.0),
            _squashed(since / spec.mean_gap),
            _squashed(burst) if math.isfinite(burst) else 1.0,
            1.0 if spec.continuing else len(c.to_come) / len(c.all_jobs),
            sum(c.history) / len(c.machines),
            float(not c.running),
            *used,
        ]


def _squashed(x: float) -> float:
    return x / (1.0 + x)
