"""Tetris whole: job and machine chosen together, by alignment and by how little work the job is.

Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014: of all pairs that fit, the one
with the largest alignment - weight (a / p) work. Alignment is sum_k (f_k / C_k)(d_k / C_k) with what is free
on the machine and what it has (the placement `tetris`); work is estimate x instances x sum_k d_k over what
the cluster has of k; a and p are the averages of both over the pairs that fit at the moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from schedrl.settings import UserError
from schedrl.sim.cluster import placements
from schedrl.sim.cluster.placements import TIE
from schedrl.sim.jit import njit

from .policies import DEMAND, ESTIMATE, INSTANCES, fits, leaves_of, micro, permitted

_alignment = placements.alignment


class TetrisPolicy:
    """Tetris as a `Policy` of the environment's `job_machine` actions (reads representation "state").

    Args:
        weight: of the work; 0 = alignment alone.

    Raises:
        UserError: a weight below 0.
    """

    name: ClassVar[str] = "tetris"
    representation: ClassVar[str] = "state"

    def __init__(self, weight: float = 1.0) -> None:
        if not weight >= 0:
            raise UserError(f"weight is {weight}; it must be 0 or more")
        self.weight = weight

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True) -> Any:
        """Return the action for one observation, or the actions [B] of a batch."""
        single, leaves = leaves_of(obs)
        mask = permitted(leaves["action_mask"].astype(bool), leaves["allowed"])
        jobs = leaves["jobs"]
        aligned = np.full((len(jobs), jobs.shape[1], leaves["capacity"].shape[1]), np.nan)
        pairs = mask[:, : aligned[0].size].reshape(aligned.shape) & (jobs[..., :1] >= 0)
        align(
            pairs,
            micro(leaves["free"].swapaxes(1, 2)),
            micro(leaves["capacity"].swapaxes(1, 2)),
            micro(leaves["share"]),
            micro(jobs[..., DEMAND:]),
            leaves["scalars"][:, 2].astype(np.int64),
            aligned,
        )
        value = self._value(aligned, _work(jobs, leaves["capacity"])).reshape(len(jobs), -1)
        first = (value >= value.max(axis=1, keepdims=True) - TIE).argmax(axis=1)  # of equal ones
        actions = np.where(np.isfinite(value).any(axis=1), first, mask.shape[1] - 1)
        return int(actions[0]) if single else actions

    def _value(self, aligned: np.ndarray, work: np.ndarray) -> np.ndarray:
        """Weigh alignment [B, S, M] against work [B, S]; -inf where a pair does not fit."""
        fitting = np.isfinite(aligned)
        work = np.broadcast_to(work[..., None], aligned.shape)
        total = np.where(fitting, aligned, 0).sum(axis=(1, 2))
        of_work = np.where(fitting, work, 0).sum(axis=(1, 2))
        scale = np.divide(total, of_work, out=np.zeros_like(total), where=of_work > 0)
        return np.where(fitting, aligned - self.weight * scale[:, None, None] * work, -np.inf)


def _work(jobs: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return estimate x instances x demand over what the cluster has. [B, S]."""
    total = capacity.sum(axis=1)[:, None]
    part = np.divide(jobs[..., DEMAND:], total, out=np.zeros_like(jobs[..., DEMAND:]), where=total > 0)
    return jobs[..., ESTIMATE] * jobs[..., INSTANCES] * part.sum(axis=2)


@njit
def align(pairs, free, capacity, share, demand, device, aligned):
    """Write the alignment of the pairs [B, S, M] that fit; amounts in micro-units, machines last."""
    for b in range(pairs.shape[0]):
        for k in range(pairs.shape[1]):
            for m in range(pairs.shape[2]):
                if pairs[b, k, m] and fits(free[b], share[b], demand[b], k, m, device[b]):
                    aligned[b, k, m] = _alignment(m, k, free[b], capacity[b], demand[b])
