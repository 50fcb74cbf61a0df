"""The compiled kernels behind the interface of the replay, one cluster at a time."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from schedrl.sim.deeprm import batch
from schedrl.sim.deeprm.outcome import Outcome, outcome_of
from schedrl.sim.deeprm.reference import ReferencePhysics
from schedrl.sim.deeprm.sequences import NEVER, Sequences, from_steps
from schedrl.sim.deeprm.spec import Spec, make_spec
from schedrl.sim.deeprm.state import ENDED, TERMINATED, TIME, TRUNCATED, State

KERNELS = ("counts", "bitplanes")
Jobs = list[tuple[int, int, tuple[int, ...]]]


def spec_of(physics: ReferencePhysics, steps: int, kernel: str) -> Spec:
    """Translate the reference's physics."""
    same = (
        "num_slots", "horizon", "capacity", "backlog_size", "episode_max_length", "termination",
        "allow_reservation", "lingering", "off_by_one", "skip_first", "objective", "mask", "idle_limit",
    )  # fmt: skip
    return make_spec(
        sequence_length=steps,
        drop_penalty=0.0 if physics.silent_drop else physics.drop_penalty,
        penalties=(physics.delay_penalty, physics.hold_penalty, physics.dismiss_penalty),
        kernel=kernel,
        **{name: getattr(physics, name) for name in same},
    )


def sequences_of(jobs: Jobs, resources: int, steps: int) -> Sequences:
    """Turn one list of jobs, sorted by arrival here, into a batch of one sequence."""
    jobs = sorted(jobs, key=lambda job: job[0])
    return Sequences(
        np.array([[at for at, _, _ in jobs] or [NEVER]], np.int32),
        np.array([[duration for _, duration, _ in jobs] or [0]], np.int32),
        np.array([[demand for _, _, demand in jobs] or [(0,) * resources]], np.int32),
        steps,
    )


class KernelAdapter:
    """A batch of one cluster, driven by the compiled loops directly."""

    def __init__(self, physics: ReferencePhysics, kernel: str) -> None:
        """Keep the physics; jobs come with `reset` or `load`."""
        self.physics, self.kernel = physics, kernel
        self.everyone, self.rewards = np.arange(1), np.zeros(1)
        self.told = (self.rewards, np.zeros((4, 1)), np.zeros(1, bool), np.zeros(1, bool))

    def reset(self, durations: np.ndarray, demands: np.ndarray) -> None:
        """Start on these jobs."""
        self.load(from_steps(durations, demands))

    def load(self, jobs: Sequences) -> None:
        """Start on these jobs."""
        self.spec = spec_of(self.physics, jobs.steps, self.kernel)
        self.state = State(self.spec, tuple(self.physics.capacity), 1, jobs.arrival.shape[1])
        batch.load(*self.state.arrays, self.everyone, np.zeros(1, np.int64), *jobs[:3], np.zeros((5, 1)))

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Take one decision."""
        batch.step(*self.state.arrays, np.array([action]), *self.told)
        ended = self.state.column(ENDED)[0]
        return float(self.rewards[0]), ended == TERMINATED, ended == TRUNCATED

    def outcome(self) -> Outcome:
        """Return what has become of the jobs."""
        return outcome_of(self.state)

    def job_table(self) -> list[list[int]]:
        """List the recorded jobs."""
        jobs = self.outcome().jobs()
        columns = ("arrival_time", "start_time", "finish_time", "duration")
        return np.stack([jobs[name] for name in columns], axis=1)[jobs["legacy_id"] >= 0].tolist()

    def mask(self) -> np.ndarray:
        """Return the legal actions."""
        mask = np.zeros((1, self.spec.num_slots + 1), bool)
        batch.legal_actions(*self.state.arrays, self.everyone, mask)
        return mask[0]

    def compact(self) -> np.ndarray:
        """Return the compact vector."""
        spec = self.spec
        size = spec.horizon * (1 + spec.num_resources) + spec.num_slots * (1 + spec.num_resources) + 1
        mask, out = np.zeros((1, spec.num_slots + 1), bool), np.full((1, size), np.nan, np.float32)
        batch.compact(*self.state.arrays, self.everyone, mask, out)
        assert (mask[0] == self.mask()).all()
        return out[0]

    def image(self, dtype: Any = np.float32) -> np.ndarray:
        """Return the picture."""
        spec, physics = self.spec, self.physics
        width = sum(physics.capacity) + spec.num_resources * spec.num_slots * physics.max_job_demand
        width += -(-spec.backlog_size // spec.horizon) + 1
        mask, out = np.zeros((1, spec.num_slots + 1), bool), np.full((1, spec.horizon, width), 7, dtype)
        one = 255 if dtype is np.uint8 else 1
        scale = np.array([physics.max_job_demand, physics.max_track_since_new, one])
        batch.image(*self.state.arrays, self.everyone, mask, scale, out)
        assert (mask[0] == self.mask()).all()
        return out[0]

    def inner(self) -> dict[str, Any]:
        """Return clock, jobs on the machine by legacy number in booking order, slots and free rows."""
        state, table = self.state, self.outcome()
        recorded = np.isin(table.status[0], [-1, 0, 5, 6], invert=True)
        legacy = np.where(recorded, np.cumsum(recorded) - 1, -1)
        return {
            "time": int(state.column(TIME)[0]),
            "running": [int(legacy[job]) for job in self.running()],
            "slots": [int(legacy[job]) if job >= 0 else None for job in state.slot_job[0]],
            "free": state.free[0].T.tolist(),
        }

    def running(self) -> Iterable[int]:
        """Return the booked jobs in booking order."""
        at, spec = self.state.layout, self.spec
        if spec.lingering:
            return self.state.ints[0, at.run_list : at.run_list + self.state.ints[0, 5]]
        start, finish = self.state.start[0], self.state.finish[0]
        jobs = np.flatnonzero((start >= 0) & (finish > self.state.column(TIME)[0]))
        return jobs[np.argsort(self.state.booking[0][jobs])]


def kernels_for(physics: ReferencePhysics) -> tuple[str, ...]:
    """Name the kernels that can hold these sizes."""
    return KERNELS if physics.horizon <= 64 and max(physics.capacity) <= 64 else KERNELS[:1]


def without(physics: ReferencePhysics, **changes: Any) -> ReferencePhysics:
    """Return the physics with changes."""
    return replace(physics, **changes)
