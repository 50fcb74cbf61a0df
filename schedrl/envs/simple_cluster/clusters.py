"""A batch of clusters without any Gymnasium: settings in, arrays out.

The vector environment, the single one and the evaluation are three ways of driving this.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from schedrl.sim.cluster.problem import Problem
from schedrl.sim.cluster_decisions import batch
from schedrl.sim.cluster_decisions.spec import ACTIONS, QUEUE_ORDERS, TERM_NAMES, Spec
from schedrl.sim.cluster_decisions.state import ENDED, Shape, State

from .actions import decoded
from .jobs import Jobs, Source
from .observation import Observer
from .reward_settings import weights_of
from .scales import Scales
from .settings import SimpleClusterSettings

SUMMARY = ("r", "l", "slowdown", "arrived", "finished", "rejected")
"""Of an episode: return, decisions, mean bounded slowdown of the jobs taken in (unfinished ones up to now)
and counts of jobs."""


def num_choices_of(settings: SimpleClusterSettings, machines: int) -> int:
    """Return the length of the discrete choice: places, rejections where allowed, the wait, which is last."""
    jobs = settings.num_job_slots if settings.action == "job_machine" else 1
    return jobs * (machines + settings.allow_reject) + 1


def spec_of(settings: SimpleClusterSettings, problem: Problem, scales: Scales, names: list[str]) -> Spec:
    """Translate settings into what the kernels read; `names` of the resources."""
    machines = problem.capacity.shape[1]
    elastic, mean_gap = settings.action == "elastic", scales.gap_on(machines)
    return Spec(
        num_slots=settings.num_job_slots,
        order=QUEUE_ORDERS[settings.queue_order],
        action=ACTIONS[settings.action],
        num_choices=num_choices_of(settings, machines),
        num_devices=max(1, int(problem.devices.max())) if elastic else 0,
        allow_reject=settings.allow_reject,
        masked=settings.mask,
        every_event=settings.decide == "every_event",
        wait_when_idle=settings.wait_when_idle,
        continuing=settings.termination == "continuing",
        max_decisions=settings.max_decisions,
        aging_time=settings.aging_time,
        wait_limit=math.inf if settings.wait_limit is None else settings.wait_limit,
        illegal_penalty=settings.illegal_penalty,
        reject_penalty=settings.reject_penalty,
        min_share=settings.min_share,
        cpu=names.index("cpu") if "cpu" in names else -1,
        memory=names.index("memory") if "memory" in names else -1,
        tau=settings.slowdown_floor,
        mean_gap=mean_gap,
        mean_duration=scales.mean_duration,
        sla_factor=settings.sla_factor,
        waiting_rate=settings.waiting_rate,
        history_time=settings.history_time,
        burst_time=settings.rate_gaps * mean_gap,
        burst_level=settings.burst_level,
        **weights_of(settings.reward),
    )


class Clusters:
    """N clusters, each with a job sequence of its own.

    `rewards` [N], `terms` [T, N] (TERM_NAMES), `terminated` and `truncated` [N] tell of the last step.
    """

    def __init__(self, settings: SimpleClusterSettings, num_envs: int, source: Source) -> None:
        self.settings = settings
        problem = source.problem
        self.spec = spec_of(settings, problem, source.scales, source.names)
        shape = Shape(
            num_envs=num_envs,
            jobs=source.max_jobs,
            instances=source.max_instances,
            machines=problem.capacity.shape[1],
            resources=problem.capacity.shape[0],
            devices=max(1, int(problem.devices.max())),
            pairs=source.max_pairs,
        )
        self.state = State(self.spec, shape, problem.capacity, problem.g, source.permitted)
        self.observer = Observer(settings, self.state, self.spec.num_choices, self.spec.num_devices)
        self.everyone = np.arange(num_envs)
        self.rewards, self.terms = np.zeros(num_envs), np.zeros((len(TERM_NAMES), num_envs))
        self.terminated, self.truncated = np.zeros(num_envs, bool), np.zeros(num_envs, bool)
        self._absolute, self._decisions = np.zeros(len(TERM_NAMES)), 0

    @property
    def ended(self) -> np.ndarray:
        """[N] 0 where the episode goes on, else TERMINATED or TRUNCATED; a view."""
        return self.state.arrays.n[:, ENDED]

    def load(self, envs: np.ndarray, numbers: np.ndarray, jobs: Jobs) -> np.ndarray:
        """Start new episodes in the environments `envs` [K] with the K job sequences given.

        Returns:
            SUMMARY of the episodes they were in [K, 6].
        """
        left = self.summary(envs)
        batch.load(self.state.rules, self.state.plain, envs, numbers, self.state.capacity, *jobs)
        return left

    def summary(self, envs: np.ndarray) -> np.ndarray:
        """Return SUMMARY of the present episodes [K, 6]."""
        out = np.zeros((len(envs), len(SUMMARY)))
        batch.summarise(self.state.rules, self.state.plain, envs, out)
        return out

    def step(self, actions: Any) -> np.ndarray:
        """Take one decision in each environment that goes on; return the rewards [N] (a reused array).

        Raises:
            ValueError: actions of another form, or out of range.
        """
        written = (self.rewards, self.terms, self.terminated, self.truncated)
        batch.step(
            self.state.rules, self.state.plain, *decoded(actions, self.spec, len(self.rewards)), *written
        )
        self._absolute += self.terms.sum(axis=1)
        self._decisions += len(self.rewards)
        return self.rewards

    def mean_terms(self) -> dict[str, float]:
        """Return term -> its mean over all decisions so far; the weights are in it."""
        means = self._absolute / max(1, self._decisions)
        return dict(zip(TERM_NAMES, means.tolist(), strict=True))

    def observe(self, envs: np.ndarray | None = None, out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the observations of `envs` [K] (default: all), in `out` where it is given."""
        return self.observer.write(self.state, self.everyone if envs is None else envs, out)
