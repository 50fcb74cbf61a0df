"""`SimpleClusterVectorEnv`: hundreds of clusters behind Gymnasium's vector API, a compiled call per step."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from schedrl.envs.declared import Declared
from schedrl.envs.numbered import Numbered
from schedrl.sim.cluster.state import CLOCK
from schedrl.sim.cluster_decisions.spec import TERM_NAMES
from schedrl.sim.cluster_decisions.state import SEQUENCE

from . import job_table, render
from .actions import space_of
from .clusters import SUMMARY, Clusters
from .jobs import Source, jobs_of
from .observation import Observer
from .scales import Scales
from .settings import SimpleClusterSettings, chosen


class SimpleClusterVectorEnv(Numbered):
    """N clusters (rules and spaces: `SimpleClusterEnv`); one that ends is reset in the same step.

    Where an episode ended, `infos["final_obs"]` holds its last observation, `infos["final_info"]` its last
    `time` and the number of its `sequence`, `infos["episode"]` its return `r`, decisions `l`, mean bounded
    `slowdown` of the jobs that were taken in (unfinished ones up to the end) and how many `arrived`, were
    `finished` and `rejected`. `_final_obs`, ... [N] tell where.

    Actions are choices [N]; elastic ones (choices [N], devices [N], shares [N, 2]).

    Args:
        settings: where to start from, default the defaults; `preset` and then single keywords replace some.
        num_envs: N, at least 1.
        seed: of the job sequences; `reset(seed=...)` replaces it.
        family: "train", "validation" or "test" sequences.
        workload: a generator's name; or jobs to use instead, in turn: a `Workload` or several.
        scales: what times are measured in, see `SimpleClusterEnv`.
        copy: return fresh arrays at every step; False reuses them (faster: copy what you keep).
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": ["ansi"]}  # noqa: RUF012
    render_mode = "ansi"
    infos_told = {  # noqa: RUF012
        "reward_terms": dict.fromkeys(TERM_NAMES, float),
        "episode": dict.fromkeys(SUMMARY, float),
        "final_info": {"time": float, "sequence": np.int64},
    }

    def __init__(
        self,
        settings: SimpleClusterSettings | None = None,
        num_envs: int = 256,
        *,
        preset: str | None = None,
        seed: int = 0,
        family: str = "train",
        workload: Any = None,
        scales: Any = None,
        copy: bool = True,
        **overrides: Any,
    ) -> None:
        settings = chosen(settings, preset, overrides, workload)
        settings.check(num_envs >= 1, f"num_envs is {num_envs}; it must be at least 1")
        self.settings, self.num_envs = settings, num_envs
        self.representation = settings.representation
        self._family, self._workload, self._scales, self._copy = family, workload, scales, copy
        self._jobs = self._source(seed)
        self.clusters = Clusters(settings, num_envs, self._jobs)
        self.single_observation_space = self.clusters.observer.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = space_of(self.clusters.spec)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._obs = self.clusters.observer.empty(num_envs)
        self._terms = dict(zip(TERM_NAMES, self.clusters.terms, strict=True))
        self._observers: dict[str, Observer] = {}

    def _source(self, seed: int) -> Source:
        return jobs_of(self.settings, seed, self._family, self._workload, self._scales)

    @property
    def scales(self) -> Scales:
        """What times are measured in here, and for a policy that learns here wherever it plays."""
        return self._jobs.scales

    @property
    def declares(self) -> tuple[Declared, ...]:
        """What is shown of the future by design."""
        return self._jobs.declares()

    def _chosen(self, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        if numbers.shape != (self.num_envs,) or numbers.dtype.kind not in "iu":
            raise ValueError(f"sequences must be {self.num_envs} whole numbers, got {numbers!r}")
        self._jobs.cursor = int(numbers.max()) + 1
        return numbers, self._jobs.at(numbers)

    def _loaded(self, done: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        arrays = self.clusters.state.arrays
        time, sequence = arrays.x[:, CLOCK].copy(), arrays.n[:, SEQUENCE].copy()
        left = np.zeros((len(SUMMARY), self.num_envs))
        left[:, done] = self.clusters.load(done, *self._next(done.size)).T
        return time, sequence, dict(zip(SUMMARY, left, strict=True))

    def times(self) -> np.ndarray:
        """Return the present time [N] of each environment in whole mean gaps between arrivals.

        Whole, because baselines that depend on time keep a mean for each.
        """
        return (self.clusters.state.arrays.x[:, CLOCK] / self.clusters.spec.mean_gap).astype(np.int64)

    def observe_as(self, representation: str) -> dict[str, np.ndarray]:
        """Return the present observations in another representation, for a heuristic to decide by."""
        if representation not in self._observers:
            settings, spec = self.settings.replace(representation=representation), self.clusters.spec
            self._observers[representation] = Observer(
                settings, self.clusters.state, spec.num_choices, spec.num_devices
            )
        return self._observers[representation].write(self.clusters.state, self.clusters.everyone, None)

    def mean_reward_terms(self) -> dict[str, float]:
        """Return term -> its mean over all decisions of this environment so far."""
        return self.clusters.mean_terms()

    def render(self) -> tuple[str, ...]:
        """Return the present state of each environment as text."""
        names = self._jobs.names
        return tuple(render.text(self.clusters, n, names) for n in range(self.num_envs))

    def jobs(self) -> list[dict[str, np.ndarray]]:
        """Return the job table so far of each environment, see `SimpleClusterEnv.jobs`."""
        return [job_table.jobs(self.clusters.state, n) for n in range(self.num_envs)]

    def factory(self) -> Callable[..., "SimpleClusterVectorEnv"]:
        """Return what makes such an environment in another process: `factory()(num_envs=..., seed=...)`."""
        options = {"family": self._family, "workload": self._workload, "copy": self._copy}
        options["scales"] = self._scales
        return functools.partial(SimpleClusterVectorEnv, self.settings, **options)

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that `set_state` needs to go on exactly from here."""
        return {**self.clusters.state.copy(), "cursor": np.array(self._jobs.cursor)}

    def set_state(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `get_state` of an environment with the same settings, seed and number."""
        self.clusters.state.restore(saved)
        self._started = True
        self._jobs.cursor = int(saved["cursor"])
