"""The rules of the DeepRM cluster in plain Python: the specification of the kernels beside it.

Written to be read; the tests hold every kernel to it, and hold it to traces of the original program
(hongzimao/deeprm, MIT; Mao et al., "Resource Management with Deep Reinforcement Learning", HotNets 2016,
section 3). Where the original has a quirk there is a switch, off by default.

One decision, `step(action)`:

1. Slot `action` holds a job that can be booked: it is booked, the head of the backlog moves into that very
   slot, the clock stands still, the reward is 0.
2. Anything else (the no-op, an empty slot, a job that cannot be booked) is a time step: the clock moves,
   finished jobs leave, the end of the episode is tested, new jobs arrive (never in the step that ends the
   episode), and every job in the system costs its penalty.

A job that arrives at `t` and finishes at `f` so costs its penalty at t, ..., f - 1: its slowdown. The jobs of
step 0 come at `reset`, where there is no reward to give: the first time step also charges their step 0.

Time is counted in steps from 0. Row `h` of the horizon is the step `time + h`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add, lt
from typing import Any

import numpy as np

from . import reference_views as views

REWARD_TERMS = ("running", "slots", "backlog", "drop")
NOTHING = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ReferencePhysics:
    """Physics by name. Any object with these attributes serves; the defaults are ours, quirks off."""

    num_slots: int = 10
    horizon: int = 20
    capacity: Sequence[int] = (10, 10)
    backlog_size: int = 60
    episode_max_length: int = 500
    termination: str = "all_done"
    allow_reservation: bool = False
    lingering: bool = False
    """Original: jobs are removed from the list being looped over, so the one after a removed job stays on."""
    off_by_one: bool = False
    """Original: the last start row is never tried, and a job that can never start waits for ever."""
    skip_first: bool = False
    """Original: the clock moves before the first look at the sequence, so the jobs of step 0 never come."""
    silent_drop: bool = False
    """Original: a drop costs nothing, whatever `drop_penalty` says."""
    objective: str = "slowdown"
    delay_penalty: float = -1.0
    hold_penalty: float = -1.0
    dismiss_penalty: float = -1.0
    drop_penalty: float = 0.0
    mask: str = "fits_now"
    idle_limit: int | None = None
    max_track_since_new: int = 10
    max_job_demand: int = 10

    @property
    def num_resources(self) -> int:
        """Number of resources R."""
        return len(self.capacity)


@dataclass(slots=True, eq=False)
class Job:
    """One job. Times in steps, -1 while unknown; `demand` in units of each resource."""

    arrival: int
    duration: int
    demand: tuple[int, ...]
    reason: str = ""  # why it never ran: exceeds_horizon, exceeds_capacity, zero_duration, backlog_full
    legacy_id: int = -1  # number of recorded jobs before it: a dropped job's number is used again
    start: int = -1
    finish: int = -1
    colour: float = 1.0

    def status(self, time: int) -> str:
        """Tell what the job is doing at `time`."""
        if self.reason:
            return "dropped" if self.reason == "backlog_full" else "rejected"
        if self.start < 0:
            return "waiting"
        if self.start > time:
            return "reserved"
        return "running" if self.finish > time else "finished"


class ReferenceSimulator:
    """One cluster and one job sequence, ready for the first `step`.

    Attributes (read them, do not write them): `time`; `slots`, a `Job` or None each; `backlog`, oldest
    first; `running`, booked jobs in booking order, reserved ones included; `free[h][r]`, units free in row
    `h`; `since_new`, steps since a job came, capped; `idle_run`, idle steps in a row beside a startable job,
    and `idle_steps`, all of them; `arrived`, every job that has come; `terminated`, `truncated`;
    `reward_terms` of the last step, in the order of `REWARD_TERMS`.
    """

    def __init__(
        self,
        spec: Any,
        durations: Iterable[int] | None = None,
        demands: Iterable[Iterable[int]] | None = None,
        *,
        jobs: Iterable[tuple[int, int, Iterable[int]]] | None = None,
        steps: int | None = None,
        palette: Sequence[float] | None = None,
    ) -> None:
        """Take the jobs, as arrays over time steps or as a list, and reset.

        Args:
            spec: the physics, an object with the attributes of `ReferencePhysics`.
            durations: [T] steps, 0 = no arrival in that step.
            demands: [T, R] units.
            jobs: instead of the arrays, `(arrival, duration, demand)`; jobs of one step keep their order.
            steps: T for `jobs`; by default the last arrival + 1.
            palette: colours of `image(colours=True)`, see `reference_views.shuffled_palette`.

        Raises:
            ValueError: no jobs given or both forms, a demand not of length R, an arrival outside [0, T).
        """
        if (jobs is None) == (durations is None or demands is None):
            raise ValueError("give either durations [T] and demands [T, R], or jobs")
        if jobs is None:
            lengths = [int(duration) for duration in durations]  # type: ignore[union-attr]
            steps = len(lengths)
            rows = zip(range(steps), lengths, demands, strict=True)  # type: ignore[arg-type]
            jobs = [row for row in rows if row[1] > 0]
        self.spec = spec
        self.palette = views.PALETTE if palette is None else palette
        self._given = [(int(at), int(duration), tuple(map(int, demand))) for at, duration, demand in jobs]
        self.steps = max((at for at, _, _ in self._given), default=0) + 1 if steps is None else steps
        for at, _, demand in self._given:
            if not 0 <= at < self.steps or len(demand) != spec.num_resources:
                raise ValueError(
                    f"job arriving at {at} with demand {demand}: arrivals lie in [0, {self.steps}) "
                    f"and {spec.num_resources} demands are needed"
                )
        self.reset()

    def reset(self) -> None:
        """Empty the cluster, turn the clock back to 0 and admit the jobs of step 0."""
        spec = self.spec
        self.time = self.since_new = self.idle_run = self.idle_steps = self.decisions = 0
        self.terminated = self.truncated = False
        self.reward_terms: tuple[float, ...] = NOTHING
        self.slots: list[Job | None] = [None] * spec.num_slots
        self.backlog: list[Job] = []
        self.running: list[Job] = []
        self.arrived: list[Job] = []
        self.free = [list(map(int, spec.capacity)) for _ in range(spec.horizon)]
        self._recorded = 0
        self._coming: dict[int, list[Job]] = {}
        for arrival, duration, demand in self._given:
            job = Job(arrival, duration, demand, self._impossible(duration, demand))
            self._coming.setdefault(arrival, []).append(job)
        self._owed: tuple[float, ...] = NOTHING
        if not spec.skip_first:
            self._owed = self._cost(self._admit())

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Take one decision and return reward, terminated, truncated.

        Raises:
            ValueError: `action` outside [0, S], S being the no-op.
            RuntimeError: the episode has ended.
        """
        if not 0 <= action <= self.spec.num_slots:
            raise ValueError(f"action {action} is outside [0, {self.spec.num_slots}]")
        if self.terminated or self.truncated:
            raise RuntimeError(f"the episode ended at time {self.time}; call reset()")
        self.decisions += 1
        job = self.slots[action] if action < self.spec.num_slots else None
        row = -1 if job is None else self.first_row(job)
        if job is None or row < 0:
            return self._pass_time(), self.terminated, self.truncated
        self._book(job, row)
        self.slots[action] = self.backlog.pop(0) if self.backlog else None
        self.reward_terms = NOTHING
        return 0.0, False, False

    # ---- What can be booked -------------------------------------------------------------------------

    def fits(self, job: Job, row: int = 0) -> bool:
        """Tell whether the job's demand is free in every row of `[row, row + duration)`."""
        # Half the time goes here; a generator would double it.
        for free in self.free[row : row + job.duration]:  # noqa: SIM110
            if any(map(lt, free, job.demand)):
                return False
        return True

    def fits_now(self, job: Job | None) -> bool:
        """Tell whether the job could run from now to its end (the quirk: end before the last row)."""
        return job is not None and job.duration + self.spec.off_by_one <= self.spec.horizon and self.fits(job)

    def first_row(self, job: Job) -> int:
        """Find the row the job would be booked from: the first that fits, or only row 0; -1 = none."""
        rows = self.spec.horizon - job.duration + (not self.spec.off_by_one)
        if not self.spec.allow_reservation:
            rows = min(rows, 1)
        return next((row for row in range(rows) if self.fits(job, row)), -1)

    def idling(self) -> bool:
        """Tell whether nothing is booked although a job in a visible slot could start."""
        return not self.running and any(map(self.fits_now, self.slots))

    def action_mask(self) -> np.ndarray:
        """Return the legal actions, [S + 1] bool, the no-op last; at least one is legal.

        A slot is legal if its job can start now (`mask="fits_now"`) or can be booked at all (`"physics"`).
        The no-op is illegal once the cluster has been `idling` for `idle_limit` steps in a row and still is.
        """
        if self.spec.mask == "physics":
            legal = [job is not None and self.first_row(job) >= 0 for job in self.slots]
        else:
            legal = [self.fits_now(job) for job in self.slots]
        limit = self.spec.idle_limit
        return np.array([*legal, limit is None or self.idle_run < limit or not self.idling()])

    # ---- What happens -------------------------------------------------------------------------------

    def _impossible(self, duration: int, demand: tuple[int, ...]) -> str:
        """Say why no cluster of this kind could ever run the job; the original never asks."""
        if duration < 1:
            return "zero_duration"
        if self.spec.off_by_one:
            return ""
        if duration > self.spec.horizon:
            return "exceeds_horizon"
        too_big = any(want > have for want, have in zip(demand, self.spec.capacity, strict=True))
        return "exceeds_capacity" if too_big else ""

    def _book(self, job: Job, row: int) -> None:
        job.start = self.time + row
        job.finish = job.start + job.duration
        job.colour = views.next_colour(self)
        for free in self.free[row : row + job.duration]:
            for resource, units in enumerate(job.demand):
                free[resource] -= units
        self.running.append(job)

    def _pass_time(self) -> float:
        idling = self.idling()
        self.idle_run = self.idle_run + 1 if idling else 0
        self.idle_steps += idling
        self.time += 1
        self.free.append(list(map(int, self.spec.capacity)))
        del self.free[0]
        self._remove_finished()
        self.since_new = min(self.since_new + 1, self.spec.max_track_since_new)
        self._test_end()
        dropped = 0 if self.terminated or self.truncated else self._admit()
        self.reward_terms = tuple(map(add, self._cost(dropped), self._owed))
        self._owed = NOTHING
        return sum(self.reward_terms)

    def _remove_finished(self) -> None:
        if not self.spec.lingering:
            self.running = [job for job in self.running if job.finish > self.time]
            return
        at = 0
        while at < len(self.running):
            if self.running[at].finish <= self.time:
                del self.running[at]  # the next job slides to this place and is skipped
            at += 1

    def _test_end(self) -> None:
        kind, limit = self.spec.termination, self.spec.episode_max_length
        if kind == "no_new_job":
            self.terminated = self.time >= self.steps
        elif kind == "continuing":
            self.truncated = self.time >= min(limit, self.steps)
        else:
            # A refilled slot means that the backlog can only hold jobs while no slot is free.
            empty = not self.running and not any(self.slots)
            self.terminated = empty and self.time >= self.steps
            self.truncated = not self.terminated and self.time > limit

    def _admit(self) -> int:
        """Place the jobs of this step: lowest free slot, else backlog, else dropped. Count the dropped."""
        dropped = 0
        for job in self._coming.get(self.time, ()):
            self.arrived.append(job)
            if job.reason:
                continue
            self.since_new = 0
            if None in self.slots:
                self.slots[self.slots.index(None)] = job
            elif len(self.backlog) < self.spec.backlog_size:
                self.backlog.append(job)
            else:
                job.reason = "backlog_full"
                dropped += 1
                continue
            job.legacy_id = self._recorded
            self._recorded += 1
        return dropped

    def _cost(self, dropped: int) -> tuple[float, ...]:
        """Charge every job in the system: paper section 3.2, -sum(1 / duration) or -(number of jobs)."""
        spec = self.spec
        groups = (self.running, [job for job in self.slots if job], self.backlog)
        if spec.objective == "completion_time":
            running, slots, backlog = (float(len(jobs)) for jobs in groups)
        else:
            running, slots, backlog = (sum([1 / job.duration for job in jobs], 0.0) for jobs in groups)
        return (
            spec.delay_penalty * running,
            spec.hold_penalty * slots,
            spec.dismiss_penalty * backlog,
            0.0 if spec.silent_drop else spec.drop_penalty * dropped,
        )

    # ---- What is seen -------------------------------------------------------------------------------

    def jobs(self) -> list[dict[str, Any]]:
        """List the jobs that have come, in order of arrival.

        `job_id` counts arrivals, `legacy_id` is the original's number (-1 for a dropped or rejected job);
        a time that is not known is -1. `status` is finished, running, reserved, waiting, dropped or rejected.
        """
        return [
            {
                "job_id": number,
                "legacy_id": job.legacy_id,
                "arrival_time": job.arrival,
                "start_time": job.start,
                "finish_time": job.finish,
                "duration": job.duration,
                "demand": list(job.demand),
                "status": job.status(self.time),
                "reason": job.reason,
            }
            for number, job in enumerate(self.arrived)
        ]

    def compact(self) -> np.ndarray:
        """Return the original's compact vector, see `reference_views.compact`."""
        return views.compact(self)

    def image(self, colours: bool = False) -> np.ndarray:
        """Return the original's picture, see `reference_views.image`."""
        return views.image(self, colours)
