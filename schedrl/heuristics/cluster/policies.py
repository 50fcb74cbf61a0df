"""Rules as policies of the cluster environment: the simulator's formulas, on what an observation holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from schedrl.settings import UserError, one_of
from schedrl.sim.cluster import devices, orders, placements
from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.placements import TIE
from schedrl.sim.cluster.rule import parse
from schedrl.sim.jit import leaf, njit

ACTIONS = ("machine", "job_machine", "elastic")
UNSEEN = {"drf": "users", "next_fit": "the last placement"}
"""Part of a rule -> what it needs that no observation shows."""
DISCIPLINES = ("strict", "skip")
ESTIMATE, ARRIVAL, PRIORITY, INSTANCES, DEADLINE, DEMAND = range(6)
"""Columns of the observation's `jobs`; from the last on, one for each resource."""

_order_score, _placement_score = orders.score, placements.score
_device_fits, _device_room = devices.fits, devices.room


class ClusterPolicy:
    """A rule as a `Policy` (reads representation "state").

    In `job_machine` it chooses among the visible jobs by its order, and lets later ones pass if it says
    `skip`. In `machine` and `elastic` the environment's `queue_order` chooses the job, not the rule.
    Elastic jobs get all that they ask for, unless they have to start with less. `fgd` takes the visible jobs
    as typical, `simulate` those of the whole workload.

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
        slots = jobs.shape[1] if self.action == "job_machine" else 1
        mask = permitted(mask, leaves["allowed"][:, :slots])
        if self.rule.order not in orders.STATIC:
            jobs = jobs.copy()
            jobs[..., ARRIVAL] = leaves["entered"]
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
    """Return whether it is a single observation, and what a rule reads of it as a batch.

    Without the leaves of constraints, as older environments gave it, jobs enter when they arrive and may
    run everywhere.
    """
    names = ("action_mask", "free", "capacity", "share", "jobs", "scalars", "entered", "allowed")
    jobs = np.asarray(obs["jobs"])
    places = (*jobs.shape[:-1], np.shape(obs["free"])[-2])
    whole = {"entered": jobs[..., ARRIVAL], "allowed": np.ones(places), **obs}
    single = np.ndim(obs["scalars"]) == 1
    return single, {
        name: np.asarray(whole[name])[None] if single else np.asarray(whole[name]) for name in names
    }


def permitted(mask: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the mask [B, A] without places [B, S, M] that jobs may not run on: an unmasked one has them."""
    places = allowed.reshape(len(allowed), -1) > 0
    found = mask.copy()
    found[:, : places.shape[1]] &= places
    return found


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
def _whole(legal, free, share, demand, k, instances, g):
    """Tell whether so many instances of job k fit at once where legal, with all that they ask for."""
    left = instances
    for m in range(free.shape[1]):
        if legal[m] and fits(free, share, demand, k, m, g):
            times = left
            for r in range(free.shape[0]):
                if demand[k, r] > 0:
                    there = _device_room(share, m, demand[k, r]) if r == g else free[r, m] // demand[k, r]
                    times = min(times, there)
            left -= times
        if left <= 0:
            return True
    return False


@leaf
def _machine(placement, k, legal, asked, free, capacity, share, demand, largest, typical, g):
    """Return the machine for job k among the legal ones, -1 if there is none.

    `asked` says to take those alone on which an instance fits with all that it asks for.
    """
    found, lowest = -1, np.inf
    for m in range(free.shape[1]):
        if legal[m] and (not asked or fits(free, share, demand, k, m, g)):
            value = _placement_score(placement, m, k, free, capacity, share, demand, largest, typical, -1, g)
            if value < lowest - TIE:
                found, lowest = m, value
    return found


@njit
def choose(
    order, placement, strict, any_job, aging_time, mask, free, capacity, share, demand, jobs, scalars, actions
):
    """Answer a batch of observations [B]; amounts in micro-units, machines last."""
    machines = free.shape[2]
    largest = np.empty(free.shape[1], np.int64)
    for b in range(len(actions)):
        wait = mask.shape[1] - 1
        actions[b], g = wait, int(scalars[b, 2])
        for r in range(len(largest)):
            largest[r] = max(capacity[b, r].max(), 1)
        ranked = _ranked(order, scalars[b, 0], aging_time, jobs[b], demand[b])
        typical = np.full((len(ranked), free.shape[1] + 1), 1.0 / max(len(ranked), 1))
        typical[:, :-1] = demand[b, : len(ranked)]
        # A second time where waiting is not legal: a gang half placed, or a job that has waited too long.
        for asked in (True, False):
            if actions[b] < wait or (mask[b, wait] and not asked):
                continue
            for k in ranked:
                if not any_job and k > 0:
                    continue
                legal = mask[b, k * machines : (k + 1) * machines]
                m = -1
                if not asked or _whole(legal, free[b], share[b], demand[b], k, jobs[b, k, INSTANCES], g):
                    m = _machine(
                        placement, k, legal, asked, free[b], capacity[b], share[b], demand[b], largest,
                        typical, g,
                    )  # fmt: skip
                if m >= 0:
                    actions[b] = k * machines + m
                if m >= 0 or (strict and asked):
                    break
