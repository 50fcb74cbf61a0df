"""`SimpleClusterEnv`: one cluster behind Gymnasium's API, with its job table."""

from typing import Any, ClassVar

import numpy as np

from schedrl.envs.declared import Declared
from schedrl.envs.numbered import NumberedEnv
from schedrl.settings import UserError
from schedrl.sim.cluster.schedule import Schedule
from schedrl.sim.cluster.state import CLOCK
from schedrl.sim.cluster_decisions.spec import ELASTIC, TERM_NAMES
from schedrl.sim.cluster_decisions.state import ILLEGAL, SEQUENCE, TERMINATED, TRUNCATED

from . import job_table, render
from .actions import space_of
from .clusters import Clusters
from .jobs import jobs_of
from .scales import Scales
from .settings import SimpleClusterSettings, chosen


class SimpleClusterEnv(NumberedEnv):
    """M machines with R resources; jobs arrive in continuous time and run until they are done.

    **Decision.** Where to start a waiting job, or to wait until the next arrival or finish. Starting takes no
    time; time passes by itself while nothing can be started (`decide`).

    **Action** by `action`. `machine`: `Discrete(M + 1)`, machine m for the head of the queue, or M, the wait.
    `job_machine`: `Discrete(S M + 1)`, k M + m starts the k-th visible job on machine m. `elastic`: a `Tuple`
    of the choice of `machine`, a device number and shares of cpu and memory [2]. `allow_reject` adds a choice
    for each job, before the wait. An illegal action costs `illegal_penalty` and changes nothing.

    **Observation.** A Dict by `representation`, always with `action_mask`, True = legal: `slots` (`cluster`
    [M, F], `queue` [S, F], `backlog` [F]) or `state`; layouts in `schedrl.sim.cluster_decisions.observe`.

    **Reward** by `reward`, a weighted sum; `info["reward_terms"]`.

    **End.** `terminated` when all jobs are done; `truncated` after `episode_max_decisions`, and by
    `termination="continuing"` when the last job has arrived.

    Args:
        settings: where to start from, default the defaults; `preset` and then single keywords replace some.
        family: of the job sequences: "train", "validation" or "test"; their seed is that of `reset`.
        workload: a generator's name; or jobs to use instead: a `Workload` or several.
        scales: what times are measured in, of a policy that plays here (`policy.scales`) or `Scales`; None:
            of the jobs that the settings draw, also where others are given.
        render_mode: "ansi".
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        settings: SimpleClusterSettings | None = None,
        *,
        preset: str | None = None,
        family: str = "train",
        workload: Any = None,
        scales: Any = None,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UserError(f"render_mode {render_mode!r} is unknown; use ansi")
        self.settings = chosen(settings, preset, overrides, workload)
        self.representation = self.settings.representation
        self.render_mode = render_mode
        self._family, self._workload, self._scales = family, workload, scales
        self._jobs = self._source(0)
        self._clusters = Clusters(self.settings, 1, self._jobs)
        self.observation_space = self._clusters.observer.space
        self.action_space = space_of(self._clusters.spec)

    def _source(self, seed: int) -> Any:
        return jobs_of(self.settings, seed, self._family, self._workload, self._scales)

    @property
    def scales(self) -> Scales:
        """What times are measured in here, and for a policy that learns here wherever it plays."""
        return self._jobs.scales

    @property
    def time(self) -> float:
        """The present time of the episode."""
        return float(self._clusters.state.arrays.x[0, CLOCK])

    @property
    def declares(self) -> tuple[Declared, ...]:
        """What is shown of the future by design."""
        return self._jobs.declares()

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        """Take one decision.

        Raises:
            ValueError: an action out of range; or no episode is going on.
        """
        self._require_going_on()
        if self._clusters.spec.action == ELASTIC:
            choice, device, shares = action
            batch: Any = (np.reshape(choice, 1), np.reshape(device, 1), np.reshape(shares, (1, -1)))
        else:
            batch = np.reshape(action, 1)
        reward = float(self._clusters.step(batch)[0])
        arrays, ended = self._clusters.state.arrays, int(self._clusters.ended[0])
        terms = dict(zip(TERM_NAMES, self._clusters.terms[:, 0].tolist(), strict=True))
        info = {
            "reward_terms": terms,
            "time": float(arrays.x[0, CLOCK]),
            "illegal_actions": int(arrays.n[0, ILLEGAL]),
        }
        return self._observe(), reward, ended == TERMINATED, ended == TRUNCATED, info

    @property
    def num_choices(self) -> int:
        """How many discrete choices of jobs and machines there are: what an elastic mask begins with."""
        return self._clusters.spec.num_choices

    def jobs(self) -> dict[str, np.ndarray]:
        """Return the job table so far as columns: job_id, arrival_time, start_time, finish_time, duration,
        demand, machine (of the first instance), speed, status (finished, running, waiting, rejected); -1 =
        not known.
        """  # noqa: D205
        return job_table.jobs(self._clusters.state, 0)

    def schedule(self) -> Schedule:
        """Return what has become of every job so far, as the simulator's rules do."""
        workload = self._jobs.workload(int(self._clusters.state.arrays.n[0, SEQUENCE]))
        return job_table.schedule(self._clusters, 0, workload, self._jobs.machines)

    def render(self) -> Any:
        """Return the present state as text, in `render_mode` ansi."""
        return render.text(self._clusters, 0, self._jobs.names) if self.render_mode == "ansi" else None
