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

    In `job_machine` it chooses among the visible jobs by its order, and lets later ones pass if it says `skip`.
    In `machine` and `elastic` the environment's `queue_order` chooses the job, and the rule's order is not asked.
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
        single = np.ndim(obs["scalars"]) == 1
        leaves = {
            name: np.asarray(obs[name])
            for name in ("action_mask", "free", "capacity", "share", "jobs", "scalars")
        }
        if single:
            leaves = {name: leaf[None] for name, leaf in leaves.items()}
        mask, share, jobs = leaves["action_mask"].astype(bool), leaves["share"], leaves["jobs"]
        elastic = self.action == "elastic"
        if elastic:
            mask = mask[:, : -share.shape[-1]]
        actions = np.zeros(len(mask), np.int64)
        choose(
            orders.ORDERS[self.rule.order],
            placements.PLACEMENTS[self.rule.placement],
            np.array([self.rule.discipline == "strict", self.action == "job_machine"]),
            self.aging_time,
            np.ascontiguousarray(mask),
            _micro(leaves["free"].swapaxes(1, 2)),
            _micro(leaves["capacity"].swapaxes(1, 2)),
            _micro(share),
            _micro(jobs[..., DEMAND:]),
            np.ascontiguousarray(jobs, np.float64),
            np.ascontiguousarray(leaves["scalars"], np.float64),
            actions,
        )
        if not elastic:
            return int(actions[0]) if single else actions
        device = _fullest(share, jobs[:, 0, DEMAND:], actions, leaves["scalars"][:, 2].astype(int))
        shares = np.ones((len(mask), 2), np.float32)
        return (int(actions[0]), int(device[0]), shares[0]) if single else (actions, device, shares)


def _micro(amounts: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.rint(amounts * ONE), np.int64)


def _fullest(share: np.ndarray, demand: np.ndarray, machine: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return the device that the instance would get anyway, 0 where it needs none or waits. [B]."""
    batch = np.arange(len(share))
    there = share[batch, np.minimum(machine, share.shape[1] - 1)]
    amount = np.where(g >= 0, demand[batch, g], 0.0)
    return np.where(there >= np.minimum(amount, 1.0)[:, None], there, np.inf).argmin(axis=1)


@leaf
def _fits(free, share, demand, k, m, g):
    for r in range(free.shape[0]):
        if free[r, m] < demand[k, r]:
            return False
    return g < 0 or _device_fits(share, m, demand[k, g])


@njit
def choose(order, placement, how, aging_time, mask, free, capacity, share, demand, jobs, scalars, actions):
    """Answer a batch of observations [B]; `how` = strict, job_machine; amounts in micro-units."""
    slots, machines = jobs.shape[1], free.shape[2]
    score = np.empty(slots)
    typical = np.empty((slots, free.shape[1] + 1))
    largest = np.empty(free.shape[1], np.int64)
    for b in range(actions.shape[0]):
        now, g = scalars[b, 0], int(scalars[b, 2])
        there = 0
        while there < slots and jobs[b, there, ESTIMATE] >= 0:
            job = jobs[b, there]
            procs = job[INSTANCES] * demand[b, there, 0] / ONE
            score[there] = _order_score(
                order, now, job[ARRIVAL], job[ESTIMATE], procs, job[PRIORITY], 0.0, aging_time, 0.0
            )
            there += 1
        for k in range(there):
            typical[k, :-1] = demand[b, k]
            typical[k, -1] = 1.0 / there
        for r in range(free.shape[1]):
            largest[r] = max(capacity[b, r].max(), 1)
        actions[b] = mask.shape[1] - 1
        for k in np.argsort(score[:there], kind="mergesort") if how[1] else np.arange(min(there, 1)):
            lowest, found = np.inf, -1
            for m in range(machines):
                if mask[b, k * machines + m] and _fits(free[b], share[b], demand[b], k, m, g):
                    value = _placement_score(
                        placement,
                        m,
                        k,
                        free[b],
                        capacity[b],
                        share[b],
                        demand[b],
                        largest,
                        typical[:there],
                        -1,
                        g,
                    )
                    if value < lowest:
                        lowest, found = value, m
            if found >= 0:
                actions[b] = k * machines + found
                break
            if how[0]:
                break
