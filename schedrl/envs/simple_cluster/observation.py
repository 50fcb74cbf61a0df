"""Observation spaces of the two representations, and the arrays behind them."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from schedrl.policy import PRIVILEGED
from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster_decisions import batch, privileged
from schedrl.sim.cluster_decisions.observe import (
    BACKLOG_FEATURES,
    JOB_COLUMNS,
    JOB_FEATURES,
    MACHINE_FEATURES,
    RUNNING_COLUMNS,
)
from schedrl.sim.cluster_decisions.pairs import PAIR_FEATURES
from schedrl.sim.cluster_decisions.state import State

from .settings import SimpleClusterSettings

MASK = "action_mask"
HIGHEST = {"slots": 10.0, "state": 1e12}
"""Bounds of the numbers: a demand may be more than any machine has, a time may be any."""


def _running_rows(settings: SimpleClusterSettings, state: State) -> int:
    """Return the rows of `running`: by settings and machines, never by jobs, which are to come."""
    cores = state.capacity[max(state.spec.cpu, 0)] // ONE
    return settings.running_rows or max(settings.num_jobs, int(cores.sum()))


class Observer:
    """Knows the shapes of one representation and has the kernels write it."""

    def __init__(self, settings: SimpleClusterSettings, state: State, num_choices: int, devices: int) -> None:
        self.representation = settings.representation
        self.mask_length = num_choices + devices
        slots = settings.num_job_slots
        machines, resources = state.shape.machines, state.shape.resources
        shapes = {
            "slots": {
                "cluster": (machines, 2 * resources + len(MACHINE_FEATURES)),
                "queue": (slots, len(JOB_FEATURES) + resources),
                "backlog": (len(BACKLOG_FEATURES) + resources,),
                "pairs": (
                    slots if settings.action == "job_machine" else 1,
                    machines,
                    len(PAIR_FEATURES) + settings.show_allowed,
                ),
            },
            "state": {
                "free": (machines, resources),
                "capacity": (machines, resources),
                "share": (machines, state.shape.devices),
                "jobs": (slots, len(JOB_COLUMNS) + resources),
                "running": (_running_rows(settings, state), len(RUNNING_COLUMNS) + resources),
                "scalars": (3,),
                "entered": (slots,),
                "allowed": (slots, machines),
            },
        }
        self._shapes = shapes[self.representation]
        shown = settings.privileged and self.representation == "slots"
        private = {
            "queue": (slots, len(privileged.JOB_FEATURES)),
            "cluster": (machines, len(privileged.MACHINE_FEATURES)),
            "arrivals": (privileged.HORIZONS, len(privileged.ARRIVAL_FEATURES) + resources),
        }
        self._private = {PRIVILEGED + name: shape for name, shape in private.items() if shown}
        self._dtype = np.float32 if self.representation == "slots" else np.float64
        self._kernel = batch.slots if self.representation == "slots" else batch.complete

    @property
    def space(self) -> spaces.Dict:
        """Space of one observation; `action_mask` is True where legal."""
        low = 0.0 if self.representation == "slots" else -1.0
        high = HIGHEST[self.representation]
        boxes: dict[str, spaces.Space] = {
            name: spaces.Box(low, high, shape, self._dtype)
            for name, shape in (self._shapes | self._private).items()
        }
        boxes[MASK] = spaces.MultiBinary(self.mask_length)
        return spaces.Dict(boxes)

    def empty(self, count: int) -> dict[str, np.ndarray]:
        """Make arrays for `count` observations."""
        out: dict[str, np.ndarray] = {
            name: np.zeros((count, *shape), self._dtype)
            for name, shape in (self._shapes | self._private).items()
        }
        out[MASK] = np.zeros((count, self.mask_length), bool)
        return out

    def write(
        self, state: State, envs: np.ndarray, out: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Observe the environments `envs` [K]; leaves are [K, ...], those of `out` where it is given."""
        out = dict(self.empty(len(envs)) if out is None else out)
        leaves = [out[name] for name in self._shapes]
        self._kernel(state.rules, state.plain, envs, out[MASK], *leaves)
        if self._private:
            truth = [out[name] for name in self._private]
            privileged.privileged(state.rules, state.plain, envs, *truth)
        return out
