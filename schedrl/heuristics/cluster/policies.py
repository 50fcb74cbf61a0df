"""Rules as policies of the cluster environment: the simulator's formulas, on what an observation holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from schedrl.settings import UserError, one_of
from schedrl.sim.cluster import devices, orders, placements
from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.rule import parse
from schedrl.sim.jit import leaf, njit

ACTIONS = ("machine", "job_machine", "elastic")
UNSEEN = {"drf": "users", "next_fit": "the last placement"}
"""Part of a rule -> what it needs that no observation shows."""
DISCIPLINES = ("strict", "skip")
ESTIMATE, ARRIVAL, PRIORITY, INSTANCES, DEADLINE, DEMAND = range(6)
"""Columns of the observation's `jobs`; from the last on, one for each resource."""

_order_score, _placement_score, _device_fits = orders.score, placements.score, devices.fits


class ClusterPolicy:
    """A rule as a `Policy` (reads representation "state").

    In `job_machine` it chooses among the visible jobs by its order, and lets later ones pass if it says
    `skip`. In `machine` and `elastic` the environment's `queue_order` chooses the job, not the rule.
    Elastic jobs get all that they ask for. `fgd` takes the visible jobs as typical.

    Args:
        rule: order + placement + discipline; `strict` or `skip`, the others plan ahead: run them with
            `schedrl.sim.cluster.simulate`.
        action: the environment's setting of that name.
        aging_time: of the order `priority`.

    Raises:
        UserError: a rule that needs more than an observation shows.
    """

    representation: ClassVar[str] = "state"

    def __init__(
        self, rule: str = "sjf+best_fit+skip", action: str = "job_machine", aging_time: float = 60.0
    ) -> None:
        self.rule, self.aging_time = parse(rule), aging_time
        self.action = one_of("action", action, ACTIONS)
        if self.rule.discipline not in DISCIPLINES:
            raise UserError(f"{rule}: a policy is strict or skip; run {self.rule.discipline} with simulate")
        for part in self.rule:
            if part in UNSEEN:
                raise UserError(f"{part} needs {UNSEEN[part]}, which no observation shows; take another")

    @property
    def name(self) -> str:
        """Name of the rule."""
        return self.rule.name

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True) -> Any:
        """Return the action for one observation, or the actions [B] of a batch; elastic: tuples of parts."""
        single, leaves = leaves_of(obs)
        mask, share, jobs = leaves["action_mask"].astype(bool), leaves["share"], leaves["jobs"]
        elastic = self.action == "elastic"
        if elastic:
            mask = mask[:, : -share.shape[-1]]
        actions = np.zeros(len(mask), np.int64)
        choose(
            orders.ORDERS[self.rule.order],
            placements.PLACEMENTS[self.rule.placement],
            self.rule.discipline == "strict",
            self.action == "job_machine",
            self.aging_time,
            np.ascontiguousarray(mask),
            micro(leaves["free"].swapaxes(1, 2)),
            micro(leaves["capacity"].swapaxes(1, 2)),
            micro(share),
            micro(jobs[..., DEMAND:]),
            np.ascontiguousarray(jobs, np.float64),
            np.ascontiguousarray(leaves["scalars"], np.float64),
            actions,
        )
        if not elastic:
            return int(actions[0]) if single else actions
        device = _fullest(share, jobs[:, 0, DEMAND:], actions, leaves["scalars"][:, 2].astype(int))
        shares = np.ones((len(mask), 2), np.float32)
        return (int(actions[0]), int(device[0]), shares[0]) if single else (actions, device, shares)


def leaves_of(obs: Mapping[str, Any]) -> tuple[bool, dict[str, np.ndarray]]:
    """Return whether it is a single observation, and what a rule reads of it as a batch."""
    names = ("action_mask", "free", "capacity", "share", "jobs", "scalars")
    single = np.ndim(obs["scalars"]) == 1
    return single, {name: np.asarray(obs[name])[None] if single else np.asarray(obs[name]) for name in names}


def micro(amounts: np.ndarray) -> np.ndarray:
    """Return amounts in whole micro-units, as the simulator has them."""
    return np.ascontiguousarray(np.rint(amounts * ONE), np.int64)


def _fullest(share: np.ndarray, demand: np.ndarray, machine: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return the device that the instance would get anyway, 0 where it needs none or waits. [B]."""
    batch = np.arange(len(share))
    there = share[batch, np.minimum(machine, share.shape[1] - 1)]
    amount = np.where(g >= 0, demand[batch, g], 0.0)
    return np.where(there >= np.minimum(amount, 1.0)[:, None], there, np.inf).argmin(axis=1)


@leaf
def fits(free, share, demand, k, m, g):
    """Tell whether one instance of job k fits on machine m."""
    for r in range(free.shape[0]):
        if free[r, m] < demand[k, r]:
            return False
    return g < 0 or _device_fits(share, m, demand[k, g])


@leaf
def _ranked(order, now, aging_time, jobs, demand):
    """Return the visible jobs in the order, by their slots."""
    there = 0
    while there < len(jobs) and jobs[there, ESTIMATE] >= 0:
        there += 1
    score = np.empty(there)
    for k in range(there):
        job = jobs[k]
        score[k] = _order_score(
            order, now, job[ARRIVAL], job[ESTIMATE], job[INSTANCES] * demand[k, 0] / ONE, job[PRIORITY],
            0.0, aging_time, 0.0,
        )  # fmt: skip
    return np.argsort(score, kind="mergesort")


@leaf
def _machine(placement, k, legal, free, capacity, share, demand, typical, g):
    """Return the machine for job k among the legal ones on which it fits, -1 if there is none."""
    largest = np.empty(len(capacity), np.int64)
    for r in range(len(capacity)):
        largest[r] = max(capacity[r].max(), 1)
    found, lowest = -1, np.inf
    for m in range(free.shape[1]):
        if legal[m] and fits(free, share, demand, k, m, g):
            value = _placement_score(placement, m, k, free, capacity, share, demand, largest, typical, -1, g)
            if value < lowest:
                found, lowest = m, value
    return found


@njit
def choose(
    order, placement, strict, any_job, aging_time, mask, free, capacity, share, demand, jobs, scalars, actions
):
    """Answer a batch of observations [B]; amounts in micro-units, machines last."""
    machines = free.shape[2]
    for b in range(len(actions)):
        actions[b] = mask.shape[1] - 1
        ranked = _ranked(order, scalars[b, 0], aging_time, jobs[b], demand[b])
        typical = np.full((len(ranked), free.shape[1] + 1), 1.0 / max(len(ranked), 1))
        typical[:, :-1] = demand[b, : len(ranked)]
        for k in ranked:
            if not any_job and k > 0:
                continue
            legal = mask[b, k * machines : (k + 1) * machines]
            m = _machine(
                placement, k, legal, free[b], capacity[b], share[b], demand[b], typical, int(scalars[b, 2])
            )
            if m >= 0:
                actions[b] = k * machines + m
            if m >= 0 or strict:
                break
