"""`DeepRMVectorEnv`: hundreds of DeepRM clusters behind Gymnasium's vector API, a compiled call per step."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schedrl.envs.numbered import Numbered
from schedrl.sim.deeprm.outcome import Outcome
from schedrl.sim.deeprm.state import TERM_NAMES, TIME

from . import render
from .clusters import Clusters
from .jobs import jobs_of
from .observation import Observer
from .settings import DeepRMSettings, chosen


class DeepRMVectorEnv(Numbered, VectorEnv):
    """N DeepRM clusters (rules and spaces: `DeepRMEnv`); an environment that ends is reset in the same step.

    Where an episode ended, `infos["final_obs"]` holds its last observation, `infos["final_info"]` its last
    `time` and the number of its `sequence`, `infos["episode"]` its return `r`, decisions `l` and the mean
    `slowdown` of the jobs that arrived (unfinished ones up to the end). `_final_obs`, ... [N] tell where.

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
        self._jobs = jobs_of(settings, seed, family, self._workload)
        self.clusters = Clusters(settings, num_envs, self._jobs.max_jobs, self._jobs.steps)
        self.single_observation_space = self.clusters.observer.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = spaces.Discrete(settings.num_actions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._obs = self.clusters.observer.empty(num_envs)
        self._terms = dict(zip(TERM_NAMES, self.clusters.terms, strict=True))
        self._started = False
        self._observers: dict[str, Observer] = {}

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Start N new episodes; a seed starts its job sequences from the first.

        Args:
            seed: of the job sequences from here on.
            options: {"sequences": [N] ascending numbers} plays these; the same number may stand in a row.

        Returns:
            The observations (leading axis N) and empty infos.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._jobs = jobs_of(self.settings, seed, self._family, self._workload)
        chosen = (options or {}).get("sequences")
        jobs = self._next(self.num_envs) if chosen is None else self._chosen(np.asarray(chosen))
        self.clusters.load(self.clusters.everyone, *jobs)
        self._started = True
        return self._observe(), {}

    def _chosen(self, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        if numbers.shape != (self.num_envs,) or (np.diff(numbers) < 0).any():
            raise ValueError(f"sequences must be {self.num_envs} ascending numbers, got {numbers!r}")
        every = np.arange(numbers[0], numbers[-1] + 1)
        self._jobs.cursor = int(every[-1]) + 1
        return numbers, self._jobs.at(every).rows(numbers - every[0])

    def step(self, actions: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Take one decision in each environment.

        Args:
            actions: [N] slot, or S for the no-op. An empty slot or a job that can't be booked lets time pass.

        Returns:
            Observations, rewards [N] float64, terminated [N], truncated [N], infos (`reward_terms` [N] each).

        Raises:
            ValueError: an action outside 0..S, with its number; or `reset` was never called.
        """
        if not self._started:
            raise ValueError("no episodes are going on; call reset() before the first step()")
        clusters = self.clusters
        clusters.step(actions)
        rewards, terminated, truncated = clusters.rewards, clusters.terminated, clusters.truncated
        terms = self._terms
        if self._copy:
            rewards, terminated, truncated = rewards.copy(), terminated.copy(), truncated.copy()
            terms = {name: row.copy() for name, row in terms.items()}
        infos: dict[str, Any] = {"reward_terms": terms}
        over = terminated | truncated
        (done,) = over.nonzero()
        if done.size:
            infos |= self._start_anew(done, over)
        return self._observe(), rewards, terminated, truncated, infos

    def _observe(self) -> dict[str, np.ndarray]:
        return self.clusters.observe(out=None if self._copy else self._obs)

    def _start_anew(self, done: np.ndarray, over: np.ndarray) -> dict[str, Any]:
        """Start others in place of the episodes that ended, `done` [K] or where `over` [N]; tell of those."""
        final = self.clusters.observe(done)
        observations = np.empty(self.num_envs, object)
        for row, env in enumerate(done.tolist()):
            observations[env] = {name: leaf[row] for name, leaf in final.items()}
        left = self.clusters.load(done, *self._next(done.size))
        time, sequence = left[3:].astype(np.int32)
        return {
            "final_obs": observations,
            "final_info": {"time": time, "sequence": sequence, "_time": over, "_sequence": over},
            "episode": {"r": left[0], "l": left[1], "slowdown": left[2]},
            "_final_obs": over,
            "_final_info": over,
            "_episode": over,
        }

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

    def action_masks(self) -> np.ndarray:
        """Return the masks [N, S + 1]."""
        return self.clusters.observe()["action_mask"]

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
