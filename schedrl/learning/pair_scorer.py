"""One scorer for every pair of a waiting job and a machine: the policy network of clusters.

No weight knows how many machines or job slots there are, so one trained policy works on other numbers of
both. Apart from `networks` because what a choice means (a pair, a job turned away, the wait) is its matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from schedrl.learning.layers import POLICY_GAIN, RELU_GAIN, VALUE_GAIN, Drop, Layer, dense, flat, hidden, keep
from schedrl.policy import PRIVILEGED
from schedrl.settings import UserError

CRITIC = (64, 64)
"""Widths of the critic's layers where none are given."""
PRIVATE = tuple(PRIVILEGED + name for name in ("queue", "cluster", "arrivals"))
"""Leaves that only a simulator can fill, `[S, .]`, `[M, .]` and any shape: together or not at all."""
JOBS_PER_MACHINE = 2.0
"""The sum over jobs is counted against so many for each machine: then it means the same on other clusters."""


class PairScorer:
    """score(relu(job + machine + pair + state)), two layers; heads for the wait, rejections and all else.

    Reads `queue [S, F]` (its first feature says whether a job is there), `cluster [M, G]`, optionally
    `pairs [S, M, P]`, and any other leaf as the state. Choices are those of the cluster environment: places
    (of the first job, or of each), rejections where there are any, the wait. Only legal places are scored
    where the leaf `legal` says which those are; the others get 0. Only the critic reads leaves of PRIVATE.

    Args:
        leaves: their shapes, without the batch axis.
        num_actions: outputs in all.
        hidden: widths of the scorer's two layers, then of the critic's.
        num_values: outputs of the critic.
        choices: length of the first discrete part; None = num_actions.
        joint: outputs are combinations of that part and others, in place of one after the other.
        layer_norm: normalise the hidden layers.
        prior: strength of what is added to the scores of places, which is what EASY would prefer; needs
            `pairs`, whose first feature is how much the first job that can't start would be delayed, and the
            last one the room left on the machine.
    """

    name = "pair_scorer"
    extra: tuple[str, ...] = ("there", "up")

    def __init__(
        self,
        leaves: Mapping[str, tuple[int, ...]],
        num_actions: int,
        hidden: Sequence[int],
        num_values: int = 1,
        *,
        choices: int | None = None,
        joint: bool = False,
        layer_norm: bool = False,
        prior: float = 0.0,
    ):
        if prior and "pairs" not in leaves:
            raise UserError("prior needs the observation's leaf 'pairs' (simple_cluster); set prior 0")
        self.prior = prior
        if prior:
            self.extra = (*self.extra, "prior")
        if any(len(leaves.get(name, ())) != 2 for name in ("queue", "cluster")):
            raise UserError(
                f"the network 'pair_scorer' needs leaves queue [slots, features] and cluster [machines, "
                f"features], got {dict(leaves)}; use representation 'slots' or the network 'mlp'"
            )
        choices = num_actions if choices is None else choices
        self.any_job, self.rejects = layout(choices, leaves["queue"][0], leaves["cluster"][0])
        self.per_choice = num_actions // choices if joint else 1
        self.rest = 0 if joint else num_actions - choices
        self.others = sorted(set(leaves) - {"queue", "cluster", "pairs", *PRIVATE})
        self.private = tuple(name for name in PRIVATE if name in leaves)
        state = sum(prod(leaves[name]) for name in self.others)
        features = (leaves["queue"][-1], leaves["cluster"][-1], leaves.get("pairs", (0,))[-1])
        first, second = hidden[0], hidden[1 % len(hidden)]
        critic = tuple(hidden[2:]) or CRITIC
        self.depth = len(critic)
        policy = self._policy_layers(features, state, first, second, layer_norm)
        told = [leaves.get(name, (0,)) for name in PRIVATE]
        known = (features[0] + told[0][-1], features[1] + told[1][-1], state + prod(told[2]))
        self.layers = (*policy, *self._critic_layers(known, critic, num_values, layer_norm))

    def _policy_layers(
        self, features: tuple[int, int, int], state: int, first: int, second: int, norm: bool
    ) -> list[Layer]:
        job, machine, pair = features
        layers = [
            Layer("job", job, first, RELU_GAIN, norm=norm),
            Layer("machine", machine, first, RELU_GAIN, norm=norm),
            Layer("state", state + 3 * first, first, RELU_GAIN, norm=norm),
            Layer("job_part", first, first, RELU_GAIN, bias=False),
            Layer("machine_part", first, first, RELU_GAIN, bias=False),
            Layer("state_part", first, first, RELU_GAIN),
            Layer("scorer", first, second, RELU_GAIN, norm=norm),
            Layer("score", second, self.per_choice, POLICY_GAIN),
            Layer("wait_hidden", first, second, RELU_GAIN, norm=norm),
            Layer("wait", second, self.per_choice, POLICY_GAIN),
        ]
        if pair:
            layers.append(Layer("pair_part", pair, first, RELU_GAIN, bias=False))
        if self.rejects:
            layers.append(Layer("reject_hidden", first, second, RELU_GAIN, norm=norm))
            layers.append(Layer("reject", second, self.per_choice, POLICY_GAIN))
        if self.rest:
            layers.append(Layer("rest_hidden", first, second, RELU_GAIN, norm=norm))
            layers.append(Layer("rest", second, self.rest, POLICY_GAIN))
        return layers

    def _critic_layers(
        self, features: tuple[int, int, int], widths: tuple[int, ...], values: int, norm: bool
    ) -> list[Layer]:
        job, machine, state = features
        inputs = (state + 3 * widths[0], *widths)
        body = [
            Layer(f"value_hidden_{i}", inputs[i], width, RELU_GAIN, norm=norm)
            for i, width in enumerate(widths)
        ]
        return [
            Layer("value_job", job, widths[0], RELU_GAIN, norm=norm),
            Layer("value_machine", machine, widths[0], RELU_GAIN, norm=norm),
            *body,
            Layer("value", widths[-1], values, VALUE_GAIN),
        ]

    def seen(self, ops: Any, obs: Mapping[str, Any]) -> dict[str, Any]:
        """Return what must be read off an observation before it is normalised.

        `there [B, S]` and `up [B, M]`: 1 where there is a job or a machine, else 0; `prior [B, places]`.
        """
        found = {
            "there": ops.float(obs["queue"][..., 0] > 0),
            "up": ops.float(ops.sum(obs["cluster"], axis=-1) > 0),
        }
        return found | {"prior": self._prior(ops, obs["pairs"])} if self.prior else found

    def _prior(self, ops: Any, pairs: Any) -> Any:
        """Return what EASY prefers: to start, the first job, where little is left over; not to delay."""
        slots, machines = (pairs.shape[1] if self.any_job else 1), pairs.shape[2]
        later = (np.arange(slots, dtype=np.float32) / np.float32(slots))[:, None]
        delays = ops.float(pairs[:, :slots, :, 0] > 0)
        liked = 1.0 - 2.0 * delays - later - 0.5 * pairs[:, :slots, :, -1]
        return ops.reshape(self.prior * liked, (-1, slots * machines))

    def choices_on(self, slots: int, machines: int) -> int:
        """Return the length of the first discrete part on so many slots and machines."""
        return (slots if self.any_job else 1) * (machines + self.rejects) + 1

    def forward(
        self,
        ops: Any,
        w: Mapping[str, Any],
        obs: Mapping[str, Any],
        drop: Drop = keep,
        values: bool = True,
    ) -> tuple[Any, Any]:
        """Return logits `[B, A]` and values `[B, V]` (None unless wanted) from float leaves of a batch."""
        job, machine, state = self._described(ops, w, obs, ("job", "machine"))
        state = hidden(ops, w, "state", state)
        shared = dense(ops, w, "state_part", state)
        acted = job if self.any_job else job[:, :1]
        jobs = _each(ops, acted) @ w["job_part/kernel"]
        parts = [self._preferred(ops, obs, self._places(ops, w, obs, jobs, machine, shared))]
        alone = ops.reshape(jobs, (-1, acted.shape[1], jobs.shape[-1])) + shared[:, None]
        if self.rejects:
            away = dense(ops, w, "reject", hidden(ops, w, "reject_hidden", ops.relu(_each(ops, alone))))
            parts.append(ops.reshape(away, (-1, acted.shape[1] * self.per_choice)))
        parts.append(dense(ops, w, "wait", hidden(ops, w, "wait_hidden", state)))
        if self.rest:
            parts.append(dense(ops, w, "rest", hidden(ops, w, "rest_hidden", ops.relu(alone[:, 0]))))
        return ops.concat(parts), self._value(ops, w, obs, drop) if values else None

    def _preferred(self, ops: Any, obs: Mapping[str, Any], scores: Any) -> Any:
        if not self.prior:
            return scores
        places = obs["prior"].shape[1]
        each = ops.reshape(scores, (-1, places, self.per_choice)) + obs["prior"][:, :, None]
        return ops.reshape(each, (-1, places * self.per_choice))

    def _described(
        self, ops: Any, w: Mapping[str, Any], obs: Mapping[str, Any], names: tuple[str, str]
    ) -> tuple[Any, Any, Any]:
        """Return jobs `[B, S, width]`, machines `[B, M, width]` and the state before its first layer."""
        queue, cluster, there = obs["queue"], obs["cluster"], obs["there"]
        job = hidden(ops, w, names[0], _each(ops, queue))
        machine = hidden(ops, w, names[1], _each(ops, cluster))
        job = ops.reshape(job, (-1, queue.shape[1], job.shape[-1]))
        machine = ops.reshape(machine, (-1, cluster.shape[1], machine.shape[-1]))
        total = ops.middle_sum(there, job)
        count = ops.reshape(ops.maximum(ops.sum(there, axis=1), 1.0), (-1, 1))
        machines = ops.reshape(ops.maximum(ops.sum(obs["up"], axis=1), 1.0), (-1, 1))
        several = total / (JOBS_PER_MACHINE * machines)
        mean = ops.middle_sum(obs["up"], machine) / machines
        known = [*flat(ops, obs, self.others), total / count, several, mean]
        return job, machine, ops.concat(known)

    def _places(
        self, ops: Any, w: Mapping[str, Any], obs: Mapping[str, Any], jobs: Any, machine: Any, shared: Any
    ) -> Any:
        """Return the scores `[B, places * per_choice]`."""
        machines, width = machine.shape[1], machine.shape[-1]
        of_machines = _each(ops, machine) @ w["machine_part/kernel"]
        slots = obs["queue"].shape[1] if self.any_job else 1
        places = slots * machines
        pairs = None
        if "pairs" in obs:
            features = obs["pairs"].shape[-1]
            pairs = ops.reshape(obs["pairs"][:, :slots], (-1, features))
        if "legal" not in obs:
            total = ops.reshape(jobs, (-1, slots, 1, width)) + ops.reshape(
                of_machines, (-1, 1, machines, width)
            )
            total = ops.reshape(total + shared[:, None, None], (-1, width))
            if pairs is not None:
                total = total + pairs @ w["pair_part/kernel"]
            score = dense(ops, w, "score", hidden(ops, w, "scorer", ops.relu(total)))
            return ops.reshape(score, (-1, places * self.per_choice))
        rows = ops.true_places(obs["legal"][:, :places])
        env = rows // places
        total = ops.gather(jobs, rows // machines) + ops.gather(of_machines, env * machines + rows % machines)
        total = total + ops.gather(shared, env)
        if pairs is not None:
            total = total + ops.gather(pairs, rows) @ w["pair_part/kernel"]
        score = dense(ops, w, "score", hidden(ops, w, "scorer", ops.relu(total)))
        spread = ops.scatter(score, rows, ops.rows(shared) * places)
        return ops.reshape(spread, (-1, places * self.per_choice))

    def _value(self, ops: Any, w: Mapping[str, Any], obs: Mapping[str, Any], drop: Drop) -> Any:
        told = [obs[name] for name in self.private]
        if told:
            of_jobs, of_machines = (obs["queue"], told[0]), (obs["cluster"], told[1])
            obs = dict(obs) | {"queue": ops.concat(of_jobs), "cluster": ops.concat(of_machines)}
        x = self._described(ops, w, obs, ("value_job", "value_machine"))[2]
        if told:
            x = ops.concat([x, *flat(ops, obs, self.private[2:])])
        for i in range(self.depth):
            x = hidden(ops, w, f"value_hidden_{i}", x)
        return dense(ops, w, "value", drop(x))


def layout(choices: int, slots: int, machines: int) -> tuple[bool, bool]:
    """Return whether choices are about any visible job (else the first), and whether jobs may be rejected.

    Raises:
        UserError: no such choices have this number.
    """
    found = {
        (any_job, rejects): (slots if any_job else 1) * (machines + rejects) + 1
        for any_job in (True, False)
        for rejects in (False, True)
    }
    for kind, count in found.items():
        if count == choices:
            return kind
    raise UserError(
        f"the network 'pair_scorer' is for places of {slots} jobs on {machines} machines (simple_cluster), "
        f"these {choices} choices are something else; use the network 'slots' or 'mlp'"
    )


def _each(ops: Any, x: Any) -> Any:
    """Return `[B, n, width]` as rows `[B n, width]`."""
    return ops.reshape(x, (-1, x.shape[-1]))
