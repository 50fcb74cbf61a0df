"""What is seen of a `ReferenceCluster`, in plain Python: the specification of `observe`."""

import math

from .observe import DECADES, HIGHEST_RATE, HIGHEST_URGENCY
from .pairs import BLOCKED, MOST, OVERDUE, ROUNDING
from .reference import ONE, Job, ReferenceCluster
from .spec import JOB_ON_MACHINE

Rows = list[list[float]]


def slots(cluster: ReferenceCluster) -> tuple[Rows, Rows, list[float], list[Rows]]:
    """Return cluster [M, .], queue [S, .], backlog [.] and pairs [S or 1, M, .]."""
    view = _View(cluster)
    shown = [view.job(job) for job in cluster.waiting[: cluster.spec.num_slots]]
    empty = [0.0] * (8 + len(cluster.resources))
    queue = shown + [empty] * (cluster.spec.num_slots - len(shown))
    return [view.machine(m) for m in cluster.machines], queue, view.backlog(), view.pairs()


def running(cluster: ReferenceCluster) -> Rows:
    """Return the rows of `running` in `state`: instances in the order of start, then of the job's number."""
    view = _View(cluster)
    return [
        [
            job.number,
            m,
            sum(1 << d for d in devices),
            view.expected_finish(job),
            *(amount / ONE for amount in job.demand),
        ]
        for job in sorted(cluster.running, key=lambda job: (job.start, job.number))
        for m, devices in job.placed
    ]


class _View:
    """The features of one cluster at one moment."""

    def __init__(self, cluster: ReferenceCluster) -> None:
        self.c, self.spec = cluster, cluster.spec
        self.holding = [*cluster.running, *([cluster.placing] if cluster.placing else [])]
        self.largest = [max([1, *(row[r] for row in cluster.capacity)]) for r in cluster.resources]

    def _scaled(self, time: float) -> float:
        return math.log1p(max(time, 0.0) / self.spec.tau) / DECADES

    def machine(self, m: int) -> list[float]:
        """Return the features of machine m."""
        c = self.c
        has, free, share = c.capacity[m], c.free[m], c.share[m]
        ends = [
            self.expected_finish(job) for job in self.holding for machine, _ in job.placed if machine == m
        ]
        return [
            *(f / h if h else 0.0 for f, h in zip(free, has, strict=True)),
            *(h / most for h, most in zip(has, self.largest, strict=True)),
            max(share, default=0) / ONE,
            share.count(ONE) / len(share) if share else 0.0,
            c.history[m],
            self._scaled(min(ends) - c.clock) if ends else 1.0,
            _squashed(len(ends) / 4.0),
        ]

    def expected_finish(self, job: Job) -> float:
        """Return when a running job is expected to end: by its estimate, or later if that has passed."""
        end, age = job.start + job.estimate / job.speed, self.c.clock - job.start
        return end if self.c.clock - end <= ROUNDING * age else self.c.clock + OVERDUE * age

    def job(self, job: Job) -> list[float]:
        """Return the features of a visible job."""
        c, wait, limit = self.c, self.c.clock - job.arrival, self.c.limit(job)
        fitting = sum(c.may_place(job, m) for m in c.machines)
        return [
            1.0,
            self._scaled(job.estimate),
            self._scaled(wait),
            _squashed(wait / max(job.estimate, self.spec.tau)),
            math.log1p(c.left(job) - 1.0) / DECADES,
            min(max(job.priority, 1.0), HIGHEST_URGENCY) / HIGHEST_URGENCY,
            fitting / len(c.machines),
            _squashed((wait + job.estimate) / limit) if limit > 0 else 1.0,
            *(a / most for a, most in zip(job.asked, self.largest, strict=True)),
        ]

    def pairs(self) -> list[Rows]:
        """Return the features of each visible job on each machine, 0 where it may not start."""
        c = self.c
        shown = c.waiting[: self.spec.num_slots]
        blocked = [job for job in shown if not any(c.may_place(job, m) for m in c.machines)][:BLOCKED]
        starts = [[self._earliest(job, m, None) for m in c.machines] for job in blocked]
        nothing = [0.0] * (BLOCKED + 1)
        rows = [
            [self._pair(job, m, blocked, starts) if c.may_place(job, m) else nothing for m in c.machines]
            for job in c.visible()
        ]
        slots = self.spec.num_slots if self.spec.action == JOB_ON_MACHINE else 1
        return rows + [[nothing] * len(c.machines)] * (slots - len(rows))

    def _pair(self, job: Job, m: int, blocked: list[Job], starts: Rows) -> list[float]:
        has, free = self.c.capacity[m], self.c.free[m]
        shares = [(f - d) / h for f, d, h in zip(free, job.demand, has, strict=True) if h]
        delays = [self._delay(other, own, job, m) for other, own in zip(blocked, starts, strict=True)]
        return delays + [0.0] * (BLOCKED - len(blocked)) + [sum(shares) / len(shares)]

    def _delay(self, blocked: Job, starts: list[float], job: Job, m: int) -> float:
        """Return how much later a blocked job starts, by estimates, if `job` starts on machine m now.

        `starts` are its earliest on each machine as things are.
        """
        before = min(starts)
        if before == math.inf:
            return 0.0
        after = min(self._earliest(blocked, m, job), *starts[:m], *starts[m + 1 :], math.inf)
        return min(math.log1p((after - before) / max(blocked.estimate, self.spec.tau)), MOST)

    def _earliest(self, blocked: Job, m: int, also: Job | None) -> float:
        """Return when machine m has room for one instance, a device counted as so much of a sum."""
        c = self.c
        if not blocked.allowed[m]:
            return math.inf
        holds = [
            (self.expected_finish(job), job.demand) for job in self.holding for on, _ in job.placed if on == m
        ]
        holds += [(c.clock + also.estimate, also.demand)] if also else []
        for when in sorted({c.clock, *(max(end, c.clock) for end, _ in holds)}):
            left = list(c.capacity[m])
            for end, demand in holds:
                if max(end, c.clock) > when:
                    left = [has - d for has, d in zip(left, demand, strict=True)]
            if all(has >= d for has, d in zip(left, blocked.demand, strict=True)):
                return when
        return math.inf

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
