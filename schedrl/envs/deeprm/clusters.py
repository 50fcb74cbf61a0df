"""A batch of DeepRM clusters without any Gymnasium: settings in, arrays out.

The vector environment, the single one and the evaluation are three ways of driving this.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.sim.deeprm import batch
from schedrl.sim.deeprm.kernel import SUMMARY, check_actions
from schedrl.sim.deeprm.outcome import Outcome, outcome_of
from schedrl.sim.deeprm.sequences import Sequences
from schedrl.sim.deeprm.spec import Spec, make_spec
from schedrl.sim.deeprm.state import ENDED, TERM_NAMES, State

from .observation import Observer
from .settings import DeepRMSettings

LENGTHS_TO_DRAIN = 10
"""An episode is cut off after so many times its arrival steps, unless `episode_max_length` says otherwise."""


def spec_of(settings: DeepRMSettings, sequence_length: int | None = None) -> Spec:
    """Translate settings into the physics that the kernels read."""
    quirks = settings.quirks
    steps = sequence_length or settings.sequence_length
    return make_spec(
        num_slots=settings.num_job_slots,
        horizon=settings.time_horizon,
        capacity=settings.capacities,
        backlog_size=settings.backlog_size,
        sequence_length=steps,
        episode_max_length=settings.episode_max_length or LENGTHS_TO_DRAIN * steps,
        termination=settings.termination,
        allow_reservation=settings.allow_reservation,
        lingering=quirks.lingering,
        off_by_one=quirks.horizon_off_by_one,
        skip_first=quirks.skip_first_job,
        drop_penalty=0.0 if quirks.silent_drop else settings.drop_penalty,
        penalties=(settings.delay_penalty, settings.hold_penalty, settings.dismiss_penalty),
        objective=settings.objective,
        mask=settings.mask,
        idle_limit=settings.idle_limit,
        kernel=settings.kernel,
    )


class Clusters:
    """N clusters, each with a job sequence of its own of at most `max_jobs` jobs.

    `rewards` [N], `terms` [4, N] (TERM_NAMES), `terminated` and `truncated` [N] tell of the last step.
    """

    def __init__(
        self, settings: DeepRMSettings, num_envs: int, max_jobs: int, sequence_length: int | None = None
    ) -> None:
        self.settings = settings
        self.spec = spec_of(settings, sequence_length)
        self.state = State(self.spec, settings.capacities, num_envs, max_jobs)
        self.observer = Observer(settings, self.spec)
        self.everyone = np.arange(num_envs)
        self.rewards, self.terms = np.zeros(num_envs), np.zeros((len(TERM_NAMES), num_envs))
        self.terminated, self.truncated = np.zeros(num_envs, bool), np.zeros(num_envs, bool)

    @property
    def ended(self) -> np.ndarray:
        """[N] 0 where the episode goes on, else TERMINATED or TRUNCATED; a view."""
        return self.state.column(ENDED)

    def load(self, envs: np.ndarray, numbers: np.ndarray, jobs: Sequences) -> np.ndarray:
        """Start new episodes in the environments `envs` [K] with the K job sequences given.

        Returns:
            `kernel.SUMMARY` of the episodes they were in, each in its column of [5, N], 0 elsewhere.
        """
        left = np.zeros((len(SUMMARY), len(self.everyone)))
        given, room = jobs.arrival.shape[1], self.state.layout.jobs
        if given > room:
            raise ValueError(f"sequences of {given} jobs don't fit clusters made for {room}")
        batch.load(
            *self.state.arrays, envs, numbers, jobs.arrival, jobs.duration, jobs.demand, left,
            threads=self.settings.threads,
        )  # fmt: skip
        return left

    def step(self, actions: np.ndarray) -> np.ndarray:
        """Take one decision in each environment that goes on; return the rewards [N] (a reused array).

        Raises:
            ValueError: actions that are not N whole numbers, or one outside 0..S.
        """
        actions = check_actions(actions, len(self.rewards), self.spec.num_slots)
        written = (self.rewards, self.terms, self.terminated, self.truncated)
        batch.step(*self.state.arrays, actions, *written, threads=self.settings.threads)
        return self.rewards

    def observe(self, envs: np.ndarray | None = None, out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the observations of `envs` [K] (default: all), in `out` where it is given."""
        envs = self.everyone if envs is None else envs
        return self.observer.write(self.state, envs, out)

    def outcome(self) -> Outcome:
        """Return what has become of every job so far."""
        return outcome_of(self.state)

    def get_state(self) -> dict[str, np.ndarray]:
        """Return copies of everything that a later `set_state` needs."""
        return {name: getattr(self.state, name).copy() for name in ("ints", "reals", "words")}

    def set_state(self, saved: Mapping[str, np.ndarray]) -> None:
        """Go back to a state from `get_state` of a batch of the same settings."""
        for name in ("ints", "reals", "words"):
            getattr(self.state, name)[:] = saved[name]
