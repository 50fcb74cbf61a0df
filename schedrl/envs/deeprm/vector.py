"""`DeepRMVectorEnv`: hundreds of DeepRM clusters behind Gymnasium's vector API, a compiled call per step."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from schedrl.envs.declared import LOAD, Declared
from schedrl.envs.numbered import Numbered
from schedrl.sim.deeprm.outcome import Outcome
from schedrl.sim.deeprm.state import TERM_NAMES, TIME

from . import render
from .clusters import Clusters
from .jobs import jobs_of
from .observation import Observer
from .settings import DeepRMSettings, chosen


class DeepRMVectorEnv(Numbered):
    """N DeepRM clusters (rules and spaces: `DeepRMEnv`); an environment that ends is reset in the same step.

    Where an episode ended, `infos["final_obs"]` holds its last observation, `infos["final_info"]` its last
    `time` and the number of its `sequence`, `infos["episode"]` its return `r`, decisions `l` and the mean
    `slowdown` of the jobs that arrived (unfinished ones up to the end). `_final_obs`, ... [N] tell where.

    An action [N] is a slot, or S for the no-op; an empty slot or a job that can't be booked lets time pass.
    `reset(options={"sequences": ...})` takes ascending numbers; the same may stand in a row.

    Args:
        settings: where to start from, default the defaults; `preset` and then single keywords replace some.
        num_envs: N, at least 1.
        seed: of the job sequences; `reset(seed=...)` replaces it.
        family: "train", "validation" or "test" sequences.
        workload: the setting of that name, or jobs to use instead, in turn: see
            `schedrl.envs.deeprm.jobs.jobs_of`.
        copy: return fresh arrays at every step; False reuses them (faster: copy what you keep).

    Raises:
        UserError: `image_colours` are set, which only the single environment draws.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": ["ansi"]}  # noqa: RUF012
    render_mode = "ansi"
    infos_told = {  # noqa: RUF012
        "reward_terms": dict.fromkeys(TERM_NAMES, float),
        "episode": dict.fromkeys(("r", "l", "slowdown"), float),
        "final_info": {"time": np.int32, "sequence": np.int32},
    }

    def __init__(
        self,
        settings: DeepRMSettings | None = None,
        num_envs: int = 256,
        *,
        preset: str | None = None,
        seed: int = 0,
        family: str = "train",
        workload: Any = None,
        copy: bool = True,
        **overrides: Any,
    ) -> None:
        settings = chosen(settings, preset, overrides, workload)
        settings.check(num_envs >= 1, f"num_envs is {num_envs}; it must be at least 1")
        settings.check(
            not settings.image_colours,
            "image_colours are drawn by the single environment only; use environment.make or switch them off",
        )
        self.settings, self.num_envs = settings, num_envs
        self.representation = settings.representation
        self._family, self._copy = family, copy
        self._workload = None if isinstance(workload, str) else workload
        self._jobs = self._source(seed)
        self.clusters = Clusters(settings, num_envs, self._jobs.max_jobs, self._jobs.steps)
        self.single_observation_space = self.clusters.observer.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = spaces.Discrete(settings.num_actions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._obs = self.clusters.observer.empty(num_envs)
        self._terms = dict(zip(TERM_NAMES, self.clusters.terms, strict=True))
        self._observers: dict[str, Observer] = {}

    def _source(self, seed: int) -> Any:
        return jobs_of(self.settings, seed, self._family, self._workload)

    @property
    def declares(self) -> tuple[Declared, ...]:
        """What is shown of the future by design."""
        known = self.settings.declares()
        return known if self._workload is None else tuple(each for each in known if each.what != LOAD)

    def _chosen(self, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        if numbers.shape != (self.num_envs,) or (np.diff(numbers) < 0).any():
            raise ValueError(f"sequences must be {self.num_envs} ascending numbers, got {numbers!r}")
        every = np.arange(numbers[0], numbers[-1] + 1)
        self._jobs.cursor = int(every[-1]) + 1
        return numbers, self._jobs.at(every).rows(numbers - every[0])

    def _loaded(self, done: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        left = self.clusters.load(done, *self._next(done.size))
        time, sequence = left[3:].astype(np.int32)
        return time, sequence, {"r": left[0], "l": left[1], "slowdown": left[2]}

    def times(self) -> np.ndarray:
        """Return the present time [N] of each environment, in steps."""
        return self.clusters.state.column(TIME).copy()

    def observe_as(self, representation: str) -> dict[str, np.ndarray]:
        """Return the present observations in another representation, for a heuristic to decide by."""
        settings = self.settings.replace(representation=representation)
        if representation not in self._observers:
            self._observers[representation] = Observer(settings, self.clusters.spec)
        return self._observers[representation].write(self.clusters.state, self.clusters.everyone, None)

    def render(self) -> tuple[str, ...]:
        """Return the present state of each environment as text."""
        return tuple(render.text(self.clusters.state, n) for n in range(self.num_envs))

    def outcome(self) -> Outcome:
        """Return the jobs of the present episodes."""
        return self.clusters.outcome()

    def factory(self) -> Callable[..., "DeepRMVectorEnv"]:
        """Return what makes such an environment in another process: `factory()(num_envs=..., seed=...)`."""
        options: dict[str, Any] = {"family": self._family, "workload": self._workload, "copy": self._copy}
        return functools.partial(DeepRMVectorEnv, self.settings, **options)

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that `set_state` needs to go on exactly from here."""
        return {**self.clusters.get_state(), "cursor": np.array(self._jobs.cursor)}

    def set_state(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `get_state` of an environment with the same settings, seed and number."""
        self.clusters.set_state(saved)
        self._started = True
        self._jobs.cursor = int(saved["cursor"])
