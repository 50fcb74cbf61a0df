"""Observation spaces of the four representations, and the arrays behind them."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from schedrl.sim.deeprm import batch
from schedrl.sim.deeprm.observe import BACKLOG_FEATURES, QUEUE_FEATURES, SCALARS
from schedrl.sim.deeprm.spec import Spec
from schedrl.sim.deeprm.state import State

from .settings import DeepRMSettings

MASK = "action_mask"
BUILT_IN_IDLE_SCALE = 10
HIGHEST = 1e6
"""Bound of the numbers that are not bounded by their meaning (jobs in the backlog, for one); a finite one,
because libraries warn of infinite spaces and some sample from them."""


class Observer:
    """Knows the shapes of one representation and has the kernels write it."""

    def __init__(self, settings: DeepRMSettings, spec: Spec) -> None:
        self.settings, self.spec = settings, spec
        self._write = getattr(self, f"_{settings.representation}")
        has_end = settings.termination != "continuing"  # else the clock tells where the window ends, no more
        shown = (settings.observe_since_arrival, settings.observe_clock and has_end)
        idle = settings.idle_limit or BUILT_IN_IDLE_SCALE
        full = [settings.max_job_duration, settings.max_track_since_new, idle, spec.sequence_length]
        full += [np.log1p(max(1, settings.backlog_size))]
        self._scale = np.array(
            [*np.reciprocal(full), *shown, *np.reciprocal(settings.capacities, dtype=float)]
        )
        one = 255 if settings.image_dtype == "uint8" else 1
        self._image_scale = np.array([settings.max_job_demand, settings.max_track_since_new, one], np.int64)
        self._shapes = self._leaves()

    def _leaves(self) -> dict[str, tuple[tuple[int, ...], type]]:
        s, spec = self.settings, self.spec
        slots, resources, rows = spec.num_slots, spec.num_resources, spec.horizon
        width = sum(s.capacities) + resources * slots * s.max_job_demand + -(-s.backlog_size // rows) + 1
        leaves: dict[str, dict] = {
            "slots": {
                "cluster": ((rows, resources), np.float32),
                "queue": ((slots, len(QUEUE_FEATURES) + resources), np.float32),
                "backlog": ((len(BACKLOG_FEATURES),), np.float32),
            },
            "compact": {"compact": ((rows + resources * rows + slots * (1 + resources) + 1,), np.float32)},
            "image": {"image": ((rows, width), np.dtype(s.image_dtype).type)},
            "state": {
                "startable": ((slots,), np.bool_),
                "duration": ((slots,), np.int32),
                "demand": ((slots, resources), np.int32),
                "arrival": ((slots,), np.int32),
                "free": ((resources, rows), np.int32),
                "scalars": ((len(SCALARS),), np.int32),
            },
        }
        return leaves[s.representation]

    @property
    def space(self) -> spaces.Dict:
        """Space of one observation; `action_mask` [S + 1] is True where legal, the no-op last."""
        boxes: dict[str, spaces.Space] = {}
        for name, (shape, dtype) in self._shapes.items():
            if dtype is np.bool_:
                boxes[name] = spaces.MultiBinary(shape)
            elif dtype is np.uint8:
                boxes[name] = spaces.Box(0, 255, shape, dtype)
            elif dtype is np.int32:
                boxes[name] = spaces.Box(-1, np.iinfo(np.int32).max, shape, dtype)
            else:
                boxes[name] = spaces.Box(0.0, 1.0 if name in ("cluster", "image") else HIGHEST, shape, dtype)
        # Arrays of bool are elements of it; a Box of bool is what some libraries refuse.
        boxes[MASK] = spaces.MultiBinary(self.spec.num_slots + 1)
        return spaces.Dict(boxes)

    def empty(self, count: int) -> dict[str, np.ndarray]:
        """Make arrays for `count` observations."""
        out: dict[str, np.ndarray] = {
            name: np.zeros((count, *shape), dtype) for name, (shape, dtype) in self._shapes.items()
        }
        out[MASK] = np.zeros((count, self.spec.num_slots + 1), bool)
        return out

    def write(
        self, state: State, envs: np.ndarray, out: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Observe the environments `envs` [K]; leaves are [K, ...], those of `out` where it is given."""
        out = dict(self.empty(len(envs)) if out is None else out)
        self._write(state, envs, out)
        return out

    def _slots(self, state: State, envs: np.ndarray, out: dict[str, np.ndarray]) -> None:
        leaves = (out["cluster"], out["queue"], out["backlog"])
        batch.slots(*state.arrays, envs, out[MASK], self._scale, *leaves, threads=self.settings.threads)

    def _compact(self, state: State, envs: np.ndarray, out: dict[str, np.ndarray]) -> None:
        batch.compact(*state.arrays, envs, out[MASK], out["compact"], threads=self.settings.threads)

    def _image(self, state: State, envs: np.ndarray, out: dict[str, np.ndarray]) -> None:
        arguments = (envs, out[MASK], self._image_scale, out["image"])
        batch.image(*state.arrays, *arguments, threads=self.settings.threads)

    def _state(self, state: State, envs: np.ndarray, out: dict[str, np.ndarray]) -> None:
        leaves = [out[name] for name in self._shapes]
        batch.decision_state(*state.arrays, envs, out[MASK], *leaves, threads=self.settings.threads)
