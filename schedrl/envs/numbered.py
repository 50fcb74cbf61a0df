"""What the environments of numbered job sequences have in common: how episodes begin, and a batch's step.

Apart from them because it is one promise: sequences go, in ascending numbers, to the environments of a batch
in order. A batch that is split over processes keeps it by asking for numbers (`schedrl.learning.split_env`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv


class NumberedEnv(gymnasium.Env, ABC):
    """One environment whose episodes are job sequences with numbers, in `_clusters`, a batch of one."""

    _clusters: Any
    _jobs: Any
    _seeded = _started = False

    @abstractmethod
    def _source(self, seed: int) -> Any:
        """Return the job sequences of a seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Start an episode with the next job sequence, or with `options={"sequence": i}`.

        A seed starts the sequences from the first again; without any, they are drawn from `np_random`.
        """
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._seeded = True
            self._jobs = self._source(seed if seed is not None else int(self.np_random.integers(2**31)))
        wanted = (options or {}).get("sequence")
        if wanted is None:
            numbers, jobs = self._jobs.next(1)
        else:
            numbers = np.array([wanted])
            jobs = self._jobs.at(numbers)
        self._clusters.load(np.zeros(1, np.int64), numbers, jobs)
        self._started = True
        self._begun()
        return self._observe(), {"sequence": int(numbers[0])}

    def _begun(self) -> None:
        """Do what else an environment does when an episode begins, before it is observed."""

    def _observe(self) -> dict[str, np.ndarray]:
        return {name: leaf[0] for name, leaf in self._clusters.observe().items()}

    def _require_going_on(self) -> None:
        if not self._started or self._clusters.ended[0]:
            raise ValueError("no episode is going on; call reset() before the next step()")

    def action_masks(self) -> np.ndarray:
        """Return the mask [A] (the name that sb3-contrib calls)."""
        return self._clusters.observe()["action_mask"][0]


class Numbered(VectorEnv, ABC):
    """A batched environment whose episodes are job sequences with numbers, drawn from `_jobs`."""

    numbered_sequences = True
    """`reset(options={"sequences": ...})` chooses the job sequences, `times()` tells the time."""
    infos_told: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Group of `infos` -> names in it -> dtype: all that `step` tells beside final observations."""
    claim: Callable[[int], int] | None = None
    """Returns the number of the first of so many next sequences. None: this batch counts them itself."""

    clusters: Any
    _jobs: Any
    _obs: dict[str, np.ndarray]
    _terms: dict[str, np.ndarray]
    _copy: bool
    _started = False

    @abstractmethod
    def _source(self, seed: int) -> Any:
        """Return the job sequences of a seed."""

    @abstractmethod
    def _chosen(self, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the numbers and their sequences; the cursor goes behind them.

        Raises:
            ValueError: not such numbers.
        """

    @abstractmethod
    def _loaded(self, done: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Load the next sequences into the environments `done` [K].

        Returns:
            of the episodes that they were in: last times [N], numbers [N], `infos["episode"]`.
        """

    def _next(self, count: int) -> tuple:
        """Return the numbers [count] of the next sequences, and the sequences."""
        if self.claim is not None:
            self._jobs.cursor = self.claim(count)
        return self._jobs.next(count)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Start N new episodes; a seed starts its job sequences from the first.

        Args:
            seed: of the job sequences from here on.
            options: {"sequences": [N] numbers} plays these.

        Returns:
            The observations (leading axis N) and empty infos.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._jobs = self._source(seed)
        wanted = (options or {}).get("sequences")
        numbers, jobs = self._next(self.num_envs) if wanted is None else self._chosen(np.asarray(wanted))
        self.clusters.load(self.clusters.everyone, numbers, jobs)
        self._started = True
        return self._observe(), {}

    def step(self, actions: Any) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Take one decision in each environment; the class says which there are.

        Returns:
            Observations, rewards [N] float64, terminated [N], truncated [N], infos (`reward_terms` [N] each).

        Raises:
            ValueError: an action out of range, with its number; or `reset` was never called.
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
        time, sequence, episode = self._loaded(done)
        return {
            "final_obs": observations,
            "final_info": {"time": time, "sequence": sequence, "_time": over, "_sequence": over},
            "episode": episode,
            "_final_obs": over,
            "_final_info": over,
            "_episode": over,
        }

    def action_masks(self) -> np.ndarray:
        """Return the masks [N, A]."""
        return self.clusters.observe()["action_mask"]
