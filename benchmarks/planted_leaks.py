"""Environments that know what they must not: what the leak test has to find, or it tests nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schedrl.envs.deeprm.environment import DeepRMEnv
from schedrl.envs.simple_cluster.drawing import scales_of
from schedrl.envs.simple_cluster.environment import SimpleClusterEnv
from schedrl.evaluation.checks.samples import Draw, cluster_world, deeprm_world


class NextArrival(DeepRMEnv):
    """Shows in `backlog` the time to the next arrival instead of the time since the last."""

    def _observe(self) -> dict[str, np.ndarray]:
        obs, now = super()._observe(), self.time
        coming = [arrival for arrival in self._workload.arrival.tolist() if arrival > now]
        obs["backlog"][4] = (coming[0] - now) / 10.0 if coming else 1.0
        return obs


class ByTrueFinish(SimpleClusterEnv):
    """Has the rows of `running` in the order in which jobs will really finish, as a heap has them."""

    def _observe(self) -> dict[str, np.ndarray]:
        obs = super()._observe()
        rows = obs["running"][obs["running"][:, 0] >= 0]
        finish = self.jobs()["start_time"] + self._workload.duration[: len(self.jobs()["start_time"])]
        obs["running"][: len(rows)] = rows[np.argsort(finish[rows[:, 0].astype(int)], kind="stable")]
        return obs


class MeanOfAll(SimpleClusterEnv):
    """Measures times in the mean gap of all jobs, those to come included."""

    def __init__(self, settings: Any, workload: Any) -> None:
        super().__init__(settings, workload=workload, scales=scales_of(workload, None, settings.num_servers))


class KnowingMask(SimpleClusterEnv):
    """Forbids to wait beside a job that fits once the last job has come."""

    def _observe(self) -> dict[str, np.ndarray]:
        obs = super()._observe()
        wait = self.num_choices - 1
        if obs["action_mask"][:wait].any() and self.time >= self._workload.arrival[-1]:
            obs["action_mask"][wait] = False
        return obs


class RowsOfAll(SimpleClusterEnv):
    """Has as many rows for running jobs as jobs come in all."""

    def __init__(self, settings: Any, workload: Any) -> None:
        super().__init__(settings.replace(running_rows=len(workload)), workload=workload)


PLANTED: dict[str, Draw] = {
    "time to the next arrival": partial(deeprm_world, representation="slots", env=NextArrival),
    "rows in the order of true finishes": partial(cluster_world, representation="state", env=ByTrueFinish),
    "scales of the whole workload": partial(cluster_world, representation="slots", env=MeanOfAll),
    "a mask that knows of jobs to come": partial(cluster_world, representation="slots", env=KnowingMask),
    "rows for all jobs to come": partial(cluster_world, representation="state", env=RowsOfAll),
}
"""Leak -> worlds that have it."""
