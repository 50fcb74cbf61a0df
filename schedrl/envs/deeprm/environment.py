"""`DeepRMEnv`: one DeepRM cluster behind Gymnasium's API, with its job table and its pictures."""

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from schedrl.envs.declared import LOAD, Declared
from schedrl.envs.numbered import NumberedEnv
from schedrl.settings import UserError
from schedrl.sim.deeprm.state import ENDED, TERM_NAMES, TERMINATED, TIME, TRUNCATED

from . import render
from .clusters import Clusters
from .colours import Colours
from .jobs import jobs_of
from .settings import DeepRMSettings, chosen


class DeepRMEnv(NumberedEnv):
    """One pool of R resources that runs jobs of known duration and demand (HotNets 2016, section 3).

    **Decision.** Which visible job to start next, or to let time pass. Starting takes no time, so several
    jobs may start in one step.

    **Action.** `Discrete(S + 1)`: the job in a slot, or S, the no-op, which moves time by one step. An empty
    slot, or a job that cannot be booked, is a no-op; a number outside 0..S raises ValueError.

    **Observation.** A Dict by `representation`, always with `action_mask` [S + 1], True = legal:
    `slots` (`cluster` [H, R], `queue` [S, F], `backlog` [K]), `compact`, `image` or `state`; layouts in
    `schedrl.sim.deeprm.observe`.

    **Reward.** On time steps, -1/duration for each job in the system (or -1: `objective`); the undiscounted
    sum over an episode that ends with all jobs done is minus the sum of slowdowns. `info["reward_terms"]`.

    **End.** `terminated` by `termination`; `truncated` after `episode_max_length` steps.

    Args:
        settings: where to start from, default the defaults; `preset` and then single keywords replace some.
        family: of the job sequences: "train", "validation" or "test"; their seed is that of `reset`.
        workload: the setting of that name ("bursty"); or jobs to use instead: a Workload in steps and units,
            or arrays `(durations [X, T], demands [X, T, R])`.
        render_mode: "ansi" (text) or "rgb_array" (the paper's picture).
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}

    def __init__(
        self,
        settings: DeepRMSettings | None = None,
        *,
        preset: str | None = None,
        family: str = "train",
        workload: Any = None,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UserError(f"render_mode {render_mode!r} is unknown; use ansi or rgb_array")
        self.settings = chosen(settings, preset, overrides, workload)
        self.representation = self.settings.representation
        self.render_mode = render_mode
        self._family, self._workload = family, None if isinstance(workload, str) else workload
        self._jobs = self._source(0)
        self._clusters = Clusters(self.settings, 1, self._jobs.max_jobs, self._jobs.steps)
        self._colours = Colours(self._clusters) if self.settings.image_colours else None
        self.observation_space = self._clusters.observer.space
        self.action_space = spaces.Discrete(self.settings.num_actions)

    def _source(self, seed: int) -> Any:
        return jobs_of(self.settings, seed, self._family, self._workload)

    @property
    def time(self) -> float:
        """The present time of the episode."""
        return float(self._clusters.state.column(TIME)[0])

    @property
    def declares(self) -> tuple[Declared, ...]:
        """What is shown of the future by design."""
        known = self.settings.declares()
        return known if self._workload is None else tuple(each for each in known if each.what != LOAD)

    def _begun(self) -> None:
        if self._colours:
            self._colours.shuffle(self.np_random)

    def step(self, action: int) -> tuple[dict, float, bool, bool, dict]:
        """Take one decision.

        Raises:
            ValueError: an action outside 0..S; or no episode is going on.
        """
        self._require_going_on()
        reward = float(self._clusters.step(np.reshape(action, 1))[0])
        if self._colours:
            self._colours.update()
        state = self._clusters.state
        ended = int(state.column(ENDED)[0])
        terms = dict(zip(TERM_NAMES, state.terms[0].tolist(), strict=True))
        info = {"reward_terms": terms, "time": int(state.column(TIME)[0])}
        return self._observe(), reward, ended == TERMINATED, ended == TRUNCATED, info

    def _observe(self) -> dict[str, np.ndarray]:
        obs = super()._observe()
        if self._colours:
            obs["image"] = self._colours.paint(obs["image"])
        return obs

    def slot_jobs(self) -> np.ndarray:
        """Return [S] the number (by arrival in the sequence) of the job in each slot, -1 where empty."""
        return self._clusters.state.slot_job[0].copy()

    def jobs(self) -> dict[str, np.ndarray]:
        """Return the job table so far as columns: job_id, legacy_id, arrival_time, start_time, finish_time,
        duration, demand, status (finished, running, reserved, waiting, dropped, rejected); -1 = not known.
        """  # noqa: D205
        return self._clusters.outcome().jobs()

    def render(self) -> Any:
        """Return the picture of the present state in `render_mode`."""
        if self.render_mode == "ansi":
            return render.text(self._clusters.state)
        if self.render_mode == "rgb_array":
            return render.picture(self._clusters.state, self.settings)
        return None
