"""The same decisions in plain Python, written to be read: the specification that the kernels are held to.

One cluster with jobs as objects. Amounts are whole micro-units, times floats, as in the kernels; nothing here
is fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from schedrl.sim.cluster.problem import Problem

from .spec import ELASTIC, JOB_ON_MACHINE, PRIORITY_ORDER, SJF_ORDER, SLA_STEPS, TERM_NAMES, Spec

ONE = 1_000_000


@dataclass
class Job:
    """A job, what it asks for, and what has become of it."""

    number: int
    arrival: float
    duration: float
    estimate: float
    priority: float
    deadline: float
    can_never_run: bool
    asked: list[int]
    instances: int
    status: str = "to come"
    start: float = math.nan
    finish: float = math.nan
    speed: float = 1.0
    demand: list[int] = field(default_factory=list)
    placed: list[tuple[int, set[int]]] = field(default_factory=list)
    """Machine and devices of each instance."""
    allowed: list[bool] = field(default_factory=list)
    """Of each machine, whether the job may run there."""
    waits_for: int = 0
    """Jobs that must have finished before it enters the queue."""
    think: float = 0.0
    ready: float = -math.inf
    """When its think time is over, once it waits for none."""
    behind: list[int] = field(default_factory=list)
    """Numbers of the jobs that wait for it."""


class ReferenceCluster:
    """One cluster, one decision at a time."""

    def __init__(self, spec: Spec, capacity: np.ndarray, device: int) -> None:
        """Take the rules, the capacity [R, M] in micro-units and the resource made of devices (-1: none)."""
        self.spec, self.device = spec, device
        self.capacity = capacity.T.tolist()
        self.machines = range(len(self.capacity))
        self.resources = range(len(self.capacity[0]))

    def reset(
        self,
        columns: np.ndarray,
        demands: np.ndarray,
        instances: np.ndarray,
        problem: Problem | None = None,
    ) -> None:
        """Start with the jobs given (columns [J, 6], demands [J, R], instances [J]) and an empty cluster.

        `problem` says what they wait for and where they may run.
        """
        self.free = [list(row) for row in self.capacity]
        devices = [row[self.device] // ONE if self.device >= 0 else 0 for row in self.capacity]
        self.share = [[ONE] * count for count in devices]
        self.to_come = []
        for number, (row, asked) in enumerate(zip(columns, demands.tolist(), strict=True)):
            arrival, duration, estimate, priority, deadline, reject = row.tolist()
            count = int(instances[number])
            job = Job(number, arrival, duration, estimate, priority, deadline, reject > 0, asked, count)
            job.demand = [
                math.ceil(self.spec.min_share * a) if self._is_elastic(r) else a for r, a in enumerate(asked)
            ]
            self.to_come.append(job)
        self.all_jobs = list(self.to_come)
        self._constrain(problem)
        self.later: list[Job] = []  # whose think time goes by
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.placing: Job | None = None  # first of the queue, a gang of which some instances have a machine
        self.further = 0
        self.clock, self.decisions, self.illegal, self.ended = 0.0, 0, 0, ""
        self.history = [0.0 for _ in self.machines]
        self.rate, self.last_arrival, self.last_burst = 0.0, 0.0, -math.inf
        self.terms = dict.fromkeys(TERM_NAMES, 0.0)
        self._next_event()
        self._to_next_decision()

    def _constrain(self, problem: Problem | None) -> None:
        for j, job in enumerate(self.all_jobs):
            job.allowed = [True] * len(self.capacity)
            if problem is not None and len(problem.set_of):
                job.allowed = problem.permitted[problem.set_of[j]].tolist()
            if problem is not None and len(problem.left):
                job.waits_for, job.think = int(problem.left[j]), float(problem.think[j])
                job.behind = problem.after[problem.after_first[j] : problem.after_first[j + 1]].tolist()

    def _is_elastic(self, r: int) -> bool:
        return self.spec.action == ELASTIC and r in (self.spec.cpu, self.spec.memory)

    # -- what is legal ---------------------------------------------------------------------------------------

    def room(self, job: Job, m: int) -> int:
        """Return how many instances of the job fit on machine m now."""
        times, free = self.left(job) if job.allowed[m] else 0, self.free[m]
        for r, amount in enumerate(job.demand):
            if not amount:
                continue
            if amount > free[r]:
                return 0
            if r != self.device:
                times = min(times, free[r] // amount)
            elif amount <= ONE:
                times = min(times, sum(share // amount for share in self.share[m]))
            else:
                times = min(times, self.share[m].count(ONE) // (amount // ONE))
        return times

    def left(self, job: Job) -> int:
        """Return how many instances have no machine yet."""
        return job.instances - len(job.placed)

    def may_place(self, job: Job, m: int) -> bool:
        """Tell if the job may start from machine m: an instance fits there, and all of them anywhere."""
        if self.room(job, m) == 0:
            return False
        return sum(self.room(job, other) for other in self.machines) >= self.left(job)

    def goes_next(self) -> bool:
        """Tell whether the first job of the queue goes next: it is overdue, or half placed."""
        return bool(self.waiting) and (self.placing is not None or self.overdue(self.waiting[0]))

    def visible(self) -> list[Job]:
        """Return the jobs that an action can be about: the first alone if it goes next."""
        if self.goes_next():
            return self.waiting[:1]
        return self.waiting[: self.spec.num_slots if self.spec.action == JOB_ON_MACHINE else 1]

    def overdue(self, job: Job) -> bool:
        """Tell whether the job has waited longer than any should, and goes next."""
        return self.clock - job.arrival > self.spec.wait_limit

    def can_start(self) -> bool:
        """Tell whether any visible job may start."""
        return any(self.may_place(job, m) for job in self.visible() for m in self.machines)

    def mask(self) -> list[bool]:
        """Return which choices are legal: places, rejections, wait."""
        slots = self.spec.num_slots if self.spec.action == JOB_ON_MACHINE else 1
        jobs: list[Job | None] = [*self.visible()]
        jobs += [None] * (slots - len(jobs))
        places = [job is not None and self.may_place(job, m) for job in jobs for m in self.machines]
        whole = self.placing is None
        rejections = [job is not None and whole for job in jobs] if self.spec.allow_reject else []
        return [*places, *rejections, self._may_wait()]

    def is_legal(self, action: int) -> bool:
        """Tell whether one choice is legal."""
        count = len(self.capacity)
        k, m = divmod(action, count)
        if k < len(self.visible()):  # a place for that job
            return self.may_place(self.waiting[k], m)
        return self.mask()[action]

    def _may_wait(self) -> bool:
        if not self.can_start():
            return True
        if self.goes_next():
            return False
        return bool(self.running) or (self.spec.wait_when_idle and bool(self.to_come or self.later))

    # -- time ------------------------------------------------------------------------------------------------

    def _cost(self, job: Job) -> float:
        return 1.0 / max(job.duration, self.spec.tau)

    def _pass_time(self, until: float) -> None:
        dt, spec = until - self.clock, self.spec
        slowed = sum((1.0 - job.speed) * self._cost(job) for job in self.running)
        values = {
            "slowdown": (sum(map(self._cost, self.waiting)) + slowed) * dt,
            "completion_time": len(self.waiting + self.running) * dt / spec.mean_duration,
            "makespan": dt / spec.mean_gap,
            "utilisation": self.utilisation() * dt / spec.mean_gap,
            "fragmentation": self.stranded() * dt / spec.mean_gap,
            "waiting": sum(
                self._displeasure(until - job.arrival) - self._displeasure(self.clock - job.arrival)
                for job in self.waiting
            ),
        }
        self._earn(values)
        step = 1.0 - math.exp(-dt / spec.history_time)
        self.history = [old + step * (self.used(m) - old) for m, old in enumerate(self.history)]
        self.rate *= math.exp(-dt / spec.burst_time)
        self.clock = until

    def _displeasure(self, wait: float) -> float:
        return 1.0 - math.exp(-self.spec.waiting_rate * wait)

    def _earn(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.terms[name] += getattr(self.spec, name) * value

    def used(self, m: int) -> float:
        """Return the mean over what machine m has of the shares in use."""
        shares = [1.0 - f / c for f, c in zip(self.free[m], self.capacity[m], strict=True) if c]
        return sum(shares) / len(shares)

    def utilisation(self) -> float:
        """Return the mean over resources of the share in use."""
        shares = []
        for r in self.resources:
            total = sum(row[r] for row in self.capacity)
            if total:
                shares.append(1.0 - sum(row[r] for row in self.free) / total)
        return sum(shares) / len(shares)

    def stranded(self) -> float:
        """Return the mean over machines of the mean free share less the scarcest resource's."""
        values = []
        for has, free in zip(self.capacity, self.free, strict=True):
            shares = [f / c for f, c in zip(free, has, strict=True) if c]
            values.append(sum(shares) / len(shares) - min(shares))
        return sum(values) / len(values)

    def limit(self, job: Job) -> float:
        """Return how long the job may take from its arrival on."""
        if not math.isnan(job.deadline):
            return job.deadline - job.arrival
        return self.spec.sla_factor * max(job.estimate, self.spec.tau)

    def severity(self, job: Job) -> float:
        """Return what the job's lateness costs by now."""
        allowed = self.limit(job)
        late = self.clock - job.arrival - allowed
        return max((cost for bound, cost in SLA_STEPS if late > bound * allowed), default=0.0)

    def _next_event(self) -> None:
        times = [job.finish for job in self.running] + [job.arrival for job in self.to_come[:1]]
        times += [job.ready for job in self.later]
        self._pass_time(max(min(times), self.clock))
        for job in [job for job in self.running if job.finish <= self.clock]:
            self._finish(job)
        while self.to_come and self.to_come[0].arrival <= self.clock:
            job = self.to_come.pop(0)
            self.last_arrival = self.clock
            self.rate += 1.0 / self.spec.burst_time
            if self.rate * self.spec.mean_gap >= self.spec.burst_level:
                self.last_burst = self.clock
            job.status = "rejected" if job.can_never_run else "waiting"
            if not job.can_never_run and not job.waits_for:
                self.later.append(job)
        for job in [job for job in self.later if job.ready <= self.clock]:
            self.later.remove(job)
            job.arrival = self.clock
            self.waiting.append(job)
        self.waiting.sort(key=self._place)

    def _place(self, job: Job) -> tuple[float, int]:
        if self.overdue(job):
            return -math.inf, job.number
        if self.spec.order == SJF_ORDER:
            return job.estimate, job.number
        if self.spec.order == PRIORITY_ORDER:
            wait = self.clock - job.arrival
            return -max(job.priority, 1.0) * (1.0 + wait / self.spec.aging_time), job.number
        return 0.0, job.number

    def _finish(self, job: Job) -> None:
        job.status = "finished"
        self.running.remove(job)
        for m, devices in job.placed:
            self._take(job, m, devices, -1)
        for other in map(self.all_jobs.__getitem__, job.behind):
            other.waits_for -= 1
            if not other.waits_for and not other.can_never_run:
                other.ready = self.clock + other.think
                if other.status != "to come":
                    self.later.append(other)
        self._earn({"finished": 1.0, "sla": self.severity(job)})

    def _turn_away(self, job: Job) -> None:
        """Reject what waits for a job, and what waits for that."""
        found = [job]
        while found:
            for other in map(self.all_jobs.__getitem__, found.pop().behind):
                if not other.can_never_run:
                    other.can_never_run = True
                    other.status = "rejected" if other.status != "to come" else other.status
                    found.append(other)

    def over(self) -> str:
        """Return how the episode has ended, nothing if it has not."""
        if not self.to_come:
            if self.spec.continuing:
                return "truncated"
            if not self.waiting and not self.running and not self.later:
                return "terminated"
        return "truncated" if self.decisions - self.further >= self.spec.max_decisions else ""

    def _to_next_decision(self) -> None:
        while not self.over():
            rejecting = self.spec.allow_reject and bool(self.waiting)
            if self.spec.every_event or rejecting or self.can_start():
                break
            self._next_event()

    # -- actions ---------------------------------------------------------------------------------------------

    def step(self, action: int, device: int = 0, ratios: tuple[float, float] = (1.0, 1.0)) -> float:
        """Take one decision; return its reward."""
        self.terms = dict.fromkeys(TERM_NAMES, 0.0)
        self.decisions += 1
        if self.is_legal(action):
            self._act(action, device, ratios)
            self._to_next_decision()
        else:
            self.illegal += 1
            self.terms["illegal"] = self.spec.illegal_penalty
        self.ended = self.over()
        if self.ended == "truncated":
            self._place_forced(anywhere=True)
            self._earn({"sla": sum(map(self.severity, self.waiting))})
        return sum(self.terms.values())

    def _act(self, action: int, device: int, ratios: tuple[float, float]) -> None:
        count = len(self.capacity)
        places = count * (self.spec.num_slots if self.spec.action == JOB_ON_MACHINE else 1)
        if action == self.spec.num_choices - 1:
            if not self.over():
                self._next_event()
        elif action >= places:
            job = self.waiting.pop(action - places)
            job.status = "rejected"
            self._turn_away(job)
            self.terms["rejected"] += self.spec.reject_penalty
        else:
            k, m = divmod(action, count)
            job = self.waiting[k]
            if self.placing:
                self.further += 1
            elif self.spec.action == ELASTIC:
                self._grant(job, m, ratios)
            self._put(job, m, device if self.spec.action == ELASTIC else None)
            self._place_forced(anywhere=False)

    def _put(self, job: Job, m: int, device: int | None) -> None:
        """Place one instance; with the last the job starts."""
        devices = self._devices(job, m, device)
        job.placed.append((m, devices))
        self._take(job, m, devices, 1)
        job.start = self.clock
        self.waiting.remove(job)
        if self.left(job):
            self.placing = job
            self.waiting.insert(0, job)
            return
        self.placing = None
        job.status = "running"
        job.finish = self.clock + job.duration / job.speed
        self.running.append(job)

    def _place_forced(self, anywhere: bool) -> None:
        """Place what is left of a gang where only one machine has room, or on the first that has."""
        while self.placing:
            able = [m for m in self.machines if self.room(self.placing, m) > 0]
            if len(able) > 1 and not anywhere:
                break
            self._put(self.placing, able[0], None)

    def _grant(self, job: Job, m: int, ratios: tuple[float, float]) -> None:
        least = list(job.demand)
        shares = [1.0]
        for r, ratio in zip((self.spec.cpu, self.spec.memory), ratios, strict=True):
            if r >= 0 and job.asked[r]:
                job.demand[r] = min(max(int(ratio * job.asked[r]), least[r]), job.asked[r])
                if job.instances == 1:
                    job.demand[r] = min(job.demand[r], self.free[m][r])
        if not self.may_place(job, m):  # a gang that fits with its least shares only
            job.demand = least
        for r in (self.spec.cpu, self.spec.memory):
            if r >= 0 and job.asked[r]:
                shares.append(job.demand[r] / job.asked[r])
        job.speed = min(shares)

    def _devices(self, job: Job, m: int, wanted: int | None) -> set[int]:
        """Choose the devices of an instance: from `wanted` on, else the fullest that fits, or free ones."""
        amount = job.demand[self.device] if self.device >= 0 else 0
        if not amount:
            return set()
        share = self.share[m]
        able = [d for d in range(len(share)) if share[d] >= min(amount, ONE)]
        if wanted is not None:
            able.sort(key=lambda d: d < wanted)
        elif amount <= ONE:
            able.sort(key=lambda d: share[d])
        return set(able[: max(1, amount // ONE)])

    def _take(self, job: Job, m: int, devices: set[int], sign: int) -> None:
        for r in self.resources:
            self.free[m][r] -= sign * job.demand[r]
        for d in devices:
            self.share[m][d] -= sign * min(job.demand[self.device], ONE)
