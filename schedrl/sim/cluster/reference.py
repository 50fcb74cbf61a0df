"""A cluster of many machines in plain Python: the specification of the kernel, and the oracle in its tests.

Time goes from event to event. At equal times finishes come first, then machines that come up, machines that
go down, arrivals and entries into the queue, and at last one pass over the queue, by the rule. A job that
waits for others enters the queue when the last of them has finished and its think time has gone by. A job
that was found not to fit is looked at again only on machines where something was given back since; nothing
else can have changed its luck.
"""

import heapq
import math
from bisect import insort
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from schedrl.workload.machines import Machines
from schedrl.workload.types import Workload

from . import devices, orders, placements
from .problem import AFTER_FAILED, Problem, prepare
from .rule import CONSERVATIVE, DEFAULT, HOLD, MOST_KEPT, PLANNING, Rule, parse
from .schedule import FAILED, FINISHED, REJECTED, RUNNING, UNFINISHED, WAITING, Placed, Schedule

NEVER = float("inf")
NO, HELD, STARTED = "no", "held", "started"
"""What became of an attempt to start a job."""


def simulate(workload: Workload, machines: Machines, rule: str | Rule = DEFAULT, **options: Any) -> Schedule:
    """Run a workload under a rule; takes and gives what `schedrl.sim.cluster.simulate` does."""
    problem = prepare(workload, machines, rule, **options)
    run = Simulation(problem)
    run.run()
    machine = np.full(problem.offset[-1], -1)
    chosen = np.zeros(problem.offset[-1], np.int64)
    for job, held in run.held_last.items():
        machine[problem.offset[job] : problem.offset[job + 1]] = [m for m, _ in held]
        chosen[problem.offset[job] : problem.offset[job + 1]] = [bits for _, bits in held]
    status = np.array(run.status, np.int8)
    return Schedule(
        np.array(run.start),
        np.array(run.finish),
        status,
        Placed(problem.offset, machine, chosen),
        np.array(run.restarts),
        np.where(status == REJECTED, run.reject, 0).astype(np.int8),
        run.now,
        run.decisions,
        workload,
        machines,
        (parse(rule) if isinstance(rule, str) else rule).name,
        lost=np.array(run.lost),
        entered=np.array(run.entered) if len(problem.left) else None,
    )


class Amounts(dict):
    """A table by (row, column), read as an array would be, of numbers that Python reads faster."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__(((i, j), x) for i, row in enumerate(table.tolist()) for j, x in enumerate(row))
        self.shape = table.shape


class Cluster:
    """The machines, and what runs on them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.g, self.size = problem.g, len(problem.devices)
        self.capacity, self.demand = Amounts(problem.capacity), Amounts(problem.demand)
        self.free = Amounts(problem.capacity)
        whole = np.arange(max(int(problem.devices.max()), 1)) < problem.devices[:, None]
        self.share = Amounts(whole * devices.ONE)
        self.needs = problem.demand.tolist()
        self.gang = np.diff(problem.offset).tolist()
        self.largest = problem.largest.tolist()
        self.up = [True] * self.size
        self.on: list[set[int]] = [set() for _ in range(self.size)]  # running jobs with an instance there
        self.held: dict[int, list[tuple[int, int]]] = {}  # running job -> (machine, devices) of its instances
        self.used: dict[int, list[int]] = {}  # user -> running amounts
        self.ends: dict[int, float] = {}  # running job -> end by estimate
        self.last = -1
        self.plan = Plan(self)

    def permits(self, job: int, m: int) -> bool:
        """Tell whether a job may run on a machine at all."""
        p = self.problem
        return not len(p.set_of) or bool(p.permitted[p.set_of[job], m])

    def fits(self, job: int, m: int) -> bool:
        """Tell whether one instance fits on a machine now, and may run there."""
        free, need = self.free, self.needs[job]
        for r, amount in enumerate(need):
            if free[r, m] < amount:
                return False
        return (
            self.up[m] and self.permits(job, m) and (self.g < 0 or devices.fits(self.share, m, need[self.g]))
        )

    def room(self, job: int, m: int) -> int:
        """Return how many instances fit on a machine now."""
        if not self.fits(job, m):
            return 0
        need = self.needs[job]
        times = [self.free[r, m] // amount for r, amount in enumerate(need) if amount and r != self.g]
        if self.g >= 0 and need[self.g]:
            times.append(devices.room(self.share, m, need[self.g]))
        return min(times)

    def fits_whole(self, job: int) -> bool:
        """Tell whether all instances of a job fit at once."""
        left = self.gang[job]
        for m in range(self.size):
            left -= self.room(job, m)
            if left <= 0:
                return True
        return False

    def best(self, job: int, machines: Iterable[int]) -> int:
        """Return the machine for one instance by the placement; -1: it fits on none of these."""
        p, best, lowest = self.problem, -1, NEVER
        for m in machines:
            if not self.fits(job, m) or not self.plan.allows(job, m):
                continue
            if p.placement == placements.FIRST_FIT:
                return m
            score = placements.score(
                p.placement, m, job, self.free, self.capacity, self.share, self.demand,
                self.largest, p.typical, self.last, self.g,
            )  # fmt: skip
            if score < lowest - placements.TIE:
                best, lowest = m, score
        return best

    def put(self, job: int, m: int) -> None:
        """Place one instance."""
        chosen = self.plan.choose(job, m)
        self.held.setdefault(job, []).append((m, chosen))
        self.on[m].add(job)
        self.last = m
        self._change(job, m, chosen, -1)

    def release(self, job: int) -> list[int]:
        """Take all instances of a job away; returns their machines."""
        for m, chosen in self.held[job]:
            self._change(job, m, chosen, +1)
            self.on[m].discard(job)
        self.ends.pop(job)
        return [m for m, _ in self.held.pop(job)]

    def _change(self, job: int, m: int, chosen: int, sign: int) -> None:
        need = self.needs[job]
        used = self.used.setdefault(self.problem.user[job], [0] * len(need))
        for r, amount in enumerate(need):
            self.free[r, m] += sign * amount
            used[r] -= sign * amount
        if self.g >= 0:
            devices.change(self.share, m, chosen, sign * need[self.g])

    def dominant_share(self, job: int) -> float:
        """Return the largest share of any resource that the job's user has now."""
        used = self.used.get(self.problem.user[job], ())
        return max((x / has for x, has in zip(used, self.problem.total, strict=False) if has), default=0.0)


class Reservation(NamedTuple):
    """An instance that is to run on a machine."""

    start: float
    end: float
    job: int
    machine: int
    chosen: int


class Plan:
    """Reservations of jobs that can't start now, made by estimates, anew in every pass."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.now = cluster, 0.0
        self.reserved: list[Reservation] = []

    def spare(self, m: int, when: float) -> tuple[list[int], list[int]]:
        """Return what machine m has free at a moment, of each resource and device."""
        c = self.cluster
        free = [c.capacity[r, m] for r in range(c.capacity.shape[0])]
        share = [int(d < c.problem.devices[m]) * devices.ONE for d in range(c.share.shape[1])]
        there = [(job, k) for job in c.on[m] if c.ends[job] > when for at, k in c.held[job] if at == m]
        there += [(x.job, x.chosen) for x in self.reserved if x.machine == m and x.start <= when < x.end]
        for job, chosen in there:
            self._take(free, share, job, chosen)
        return free, share

    def _take(self, free: list[int], share: list[int], job: int, chosen: int) -> None:
        need, g = self.cluster.needs[job], self.cluster.g
        for r, amount in enumerate(need):
            free[r] -= amount
        for d in range(len(share)):
            if chosen >> d & 1:
                share[d] -= min(need[g], devices.ONE)

    def least(self, job: int, m: int, when: float) -> tuple[list[int], list[int]]:
        """Return the least that machine m has free while the job would run there from `when` on.

        Running jobs only give back, so that it is enough to look where something is reserved to begin.
        """
        until = when + self.cluster.problem.estimate[job]
        moments = [when] + [x.start for x in self.reserved if x.machine == m and when < x.start < until]
        frees, shares = zip(*(self.spare(m, moment) for moment in moments), strict=True)
        return list(map(min, zip(*frees, strict=True))), list(map(min, zip(*shares, strict=True)))

    def room(self, job: int, m: int, when: float) -> int:
        """Return how many instances machine m can take from `when` on, whatever runs there by mistake now."""
        c = self.cluster
        if not c.up[m] or not c.permits(job, m):
            return 0
        free, share = self.least(job, m, when)
        times = [free[r] // amount for r, amount in enumerate(c.needs[job]) if amount and r != c.g]
        if c.g >= 0 and c.needs[job][c.g]:
            times.append(devices.room(Amounts(np.array([share])), 0, c.needs[job][c.g]))
        return max(min(times), 0)

    def allows(self, job: int, m: int) -> bool:
        """Tell whether an instance that fits on machine m now may start there: no reservation suffers."""
        if all(x.machine != m for x in self.reserved):
            return True
        return self.room(job, m, self.now) > 0 and self.choose(job, m) >= 0

    def choose(self, job: int, m: int) -> int:
        """Return the devices for an instance that starts now on machine m; -1: a reservation would suffer.

        They are those that `devices.pick` takes of all on which no reservation suffers.
        """
        c = self.cluster
        if c.g < 0:
            return 0
        amount, least = c.needs[job][c.g], self.least(job, m, self.now)[1]
        share = [c.share[m, d] for d in range(c.share.shape[1])]
        if any(x.machine == m for x in self.reserved):
            share = [
                has if there >= min(amount, devices.ONE) else 0
                for has, there in zip(share, least, strict=True)
            ]
        able = Amounts(np.array([share]))
        return devices.pick(able, 0, amount) if devices.fits(able, 0, amount) else -1

    def reserve(self, job: int) -> None:
        """Reserve the earliest start of the whole gang, first fit by machine; none if it never fits."""
        c = self.cluster
        ends = [*c.ends.values(), *(x.end for x in self.reserved)]
        for when in sorted({max(time, self.now) for time in [self.now, *ends]}):
            rooms = [self.room(job, m, when) for m in range(c.size)]
            if sum(rooms) >= c.gang[job]:
                break
        else:
            return
        end = max(when + float(c.problem.estimate[job]), float(np.nextafter(when, NEVER)))
        left, new = c.gang[job], []
        for m, room in enumerate(rooms):
            free, share = self.least(job, m, when)
            for _ in range(min(room, left)):
                chosen = devices.pick(Amounts(np.array([share])), 0, c.needs[job][c.g]) if c.g >= 0 else 0
                self._take(free, share, job, chosen)
                new.append(Reservation(when, end, job, m, chosen))
            left -= min(room, left)
        self.reserved += new


class Simulation:
    """One run of one cluster."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.cluster = Cluster(problem)
        jobs = len(problem.arrival)
        self.now = 0.0
        self.status = [WAITING] * jobs
        self.start = [float("nan")] * jobs
        self.finish = [float("nan")] * jobs
        self.restarts = [0] * jobs
        self.lost = [0.0] * jobs
        self.held_last: dict[int, list[tuple[int, int]]] = {}
        self.queue: list[tuple[float, int]] = []  # waiting jobs as (score, job), in order
        self.finishes: list[tuple[float, int]] = []  # heap of (time, job)
        waits = len(problem.left) > 0
        self.arrived = 0
        self.reject = problem.reject.tolist()
        self.left = problem.left.tolist() if waits else [0] * jobs  # jobs that each still waits for
        self.ready = [0.0] * jobs  # end of the think time of those that wait for none any more
        self.later: list[tuple[float, int]] = []  # heap of (ready, job) of jobs that have come
        self.entered = np.where(self.left, float("nan"), problem.arrival).tolist()
        self.changed: set[int] = set()  # machines where something was given back since the last pass
        self.unfit: set[int] = set()  # jobs that the last pass found not to fit anywhere
        self.decisions = 0

    # ---- Events --------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go from event to event until nothing is left to happen, or to the cut."""
        p = self.problem
        arrivals, switches = p.arrival.tolist() + [NEVER], p.event_time.tolist() + [NEVER]
        happened = 0
        while self.arrived < len(p.arrival) or self.finishes or self.queue or self.later:
            ends = self.finishes[0][0] if self.finishes else NEVER
            ready = self.later[0][0] if self.later else NEVER
            time = min(arrivals[self.arrived], switches[happened], ends, ready)
            if time == NEVER or time > p.until:
                self.now = p.until if time < NEVER else self.now
                break
            self.now = time
            while self.finishes and self.finishes[0][0] <= time:
                self.end(heapq.heappop(self.finishes)[1])
            while switches[happened] <= time:
                self.switch(int(p.event_machine[happened]), bool(p.event_up[happened]))
                happened += 1
            while arrivals[self.arrived] <= time:
                self.arrived += 1
                self.arrive(self.arrived - 1)
            while self.later and self.later[0][0] <= time:
                self.enter(heapq.heappop(self.later)[1])
            self.schedule()
        self.status = [UNFINISHED if s in (WAITING, RUNNING) else s for s in self.status]

    def end(self, job: int) -> None:
        """Let a job finish."""
        self.finish[job] = self.now
        self.status[job] = FINISHED
        self.changed.update(self.cluster.release(job))
        for other in self.waiting_for(job):
            self.left[other] -= 1
            if not self.left[other] and not self.reject[other]:
                self.ready[other] = self.now + float(self.problem.think[other])
                if other < self.arrived:
                    heapq.heappush(self.later, (self.ready[other], other))

    def waiting_for(self, job: int) -> list[int]:
        """Return the jobs that wait for a job, one as often as it does."""
        p = self.problem
        return p.after[p.after_first[job] : p.after_first[job + 1]].tolist() if len(p.left) else []

    def turn_away(self, job: int) -> None:
        """Reject what waits for a job that failed, and what waits for that."""
        found = [job]
        while found:
            for other in self.waiting_for(found.pop()):
                if not self.reject[other]:
                    self.reject[other] = AFTER_FAILED
                    self.status[other] = REJECTED if other < self.arrived else WAITING
                    found.append(other)

    def switch(self, m: int, up: bool) -> None:
        """Let a machine come up, or go down with every job that has an instance there."""
        if up == self.cluster.up[m]:
            return
        self.cluster.up[m] = up
        self.changed.add(m)
        stopped = sorted(self.cluster.on[m])
        self.finishes = [(time, job) for time, job in self.finishes if job not in stopped]
        heapq.heapify(self.finishes)
        for job in stopped:
            self.changed.update(self.cluster.release(job))
            self.status[job] = FAILED
            self.lost[job] += self.now - self.start[job]
            if self.problem.requeue:
                self.restarts[job] += 1
                self.start[job] = float("nan")
                del self.held_last[job]
                self.enqueue(job)
            else:
                self.turn_away(job)

    def arrive(self, job: int) -> None:
        """Let a job join the queue, now or later, or reject it if it can never run."""
        if self.reject[job]:
            self.status[job] = REJECTED
        elif not self.left[job]:
            heapq.heappush(self.later, (max(self.ready[job], self.now), job))

    def enter(self, job: int) -> None:
        """Let a job that waits for nothing any more join the queue."""
        self.entered[job] = self.now
        self.enqueue(job)

    def enqueue(self, job: int) -> None:
        """Add a waiting job."""
        self.status[job] = WAITING
        insort(self.queue, (self.score(job), job))

    def score(self, job: int) -> float:
        """Return the job's score by the order, now."""
        p = self.problem
        share = self.cluster.dominant_share(job) if p.shares else 0.0
        return orders.score(
            p.order, self.now, self.seen(job), p.estimate[job], p.procs[job], p.priority[job],
            share, p.aging_time, p.epoch,
        )  # fmt: skip

    def seen(self, job: int) -> float:
        """Return the arrival as orders see it: those that change count the time in the queue."""
        return self.problem.arrival[job] if self.problem.static else self.entered[job]

    # ---- One pass over the queue ---------------------------------------------------------------------------

    def schedule(self) -> None:
        """Start the first visible job that may start, again and again, until there is none."""
        self.decisions += 1
        plan, discipline = self.cluster.plan, self.problem.discipline
        plan.now, plan.reserved = self.now, []
        self.sort()
        tried: set[int] = set()  # found not to start in this pass: room only shrinks while it lasts
        at = 0
        while at < min(len(self.queue), self.problem.window):
            job = self.queue[at][1]
            result = NO if job in tried else self.try_start(job)
            if result == STARTED:
                del self.queue[at]
                at = 0 if self.sort() else at
                continue
            if result == HELD and not tried:
                break
            if job not in tried and (
                discipline == CONSERVATIVE or (discipline in PLANNING and result == NO and not plan.reserved)
            ):
                plan.reserve(job)
            tried.add(job)
            at += 1
        # What is held, or kept off a machine by a reservation, may start without anything having ended.
        self.unfit = set() if discipline == HOLD else tried
        self.changed = {x.machine for x in plan.reserved}

    def sort(self) -> bool:
        """Bring the queue in order where scores change as time goes by or jobs start; tells whether so."""
        if not self.problem.static:
            self.queue = sorted((self.score(job), job) for _, job in self.queue)
        return not self.problem.static

    def try_start(self, job: int) -> str:
        """Start a job if it may; one that the pass before found unfit is tried where that may be over."""
        cluster, everywhere = self.cluster, range(self.cluster.size)
        single, last = cluster.gang[job] == 1, cluster.last
        m = cluster.best(job, sorted(self.changed) if job in self.unfit else everywhere)
        if m < 0 or not (single or cluster.fits_whole(job)):
            return NO
        if self.is_held(job):
            return HELD
        cluster.ends[job] = self.now + float(self.problem.estimate[job])
        for _ in range(cluster.gang[job]):
            m = m if single else cluster.best(job, everywhere)
            if m < 0:  # one by one, reservations do not let all of them in
                cluster.release(job)
                cluster.last = last
                return NO
            cluster.put(job, m)
        self.held_last[job] = cluster.held[job]
        self.status[job] = RUNNING
        self.start[job] = self.now
        heapq.heappush(self.finishes, (self.now + float(self.problem.duration[job]), job))
        return STARTED

    def is_held(self, job: int) -> bool:
        """Tell whether `hold` makes a job wait that fits: it is long and would leave too little free."""
        p, cluster = self.problem, self.cluster
        if p.discipline != HOLD or not self.finishes or p.estimate[job] <= p.hold.long_from:
            return False
        kept = min(p.hold.keep + p.hold.slope * math.log(p.estimate[job] / p.hold.long_from), MOST_KEPT)
        for r, need in enumerate(cluster.needs[job]):
            free = sum(cluster.free[r, m] for m in range(cluster.size) if cluster.up[m])
            if need and free - cluster.gang[job] * need < kept * p.total[r]:
                return True
        return False
