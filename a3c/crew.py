"""The workers of a run as the training loop sees them: alone inside this process, or a crew of processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from a3c.config import A3CSettings
from a3c.model import EPISODE, ROW, Shared
from a3c.worker import Worker, main
from schedrl.learning.actor_critic import ActorCritic
from schedrl.learning.budget import Limits
from schedrl.learning.lost_workers import Losses, SignsOfLife
from schedrl.learning.run_folder import Run
from schedrl.learning.shared_vectors import Ring, read_text
from schedrl.learning.worker_processes import Death, WorkerProcesses
from schedrl.settings import UserError, counted

LOOK = 0.02  # seconds between two looks into the mailboxes
GRACE = 10.0  # seconds to finish an update when the run ends


class Gathered(NamedTuple):
    """What workers have done since the last time."""

    decisions: int
    seconds: float
    episodes: dict[str, np.ndarray]
    metrics: dict[str, float]


class Mail:
    """Reads the workers' mailboxes."""

    def __init__(self, shared: Shared):
        self.shared = shared
        workers = range(shared.settings.num_workers)
        self._updates = [Ring(shared.arrays, "update", i) for i in workers]
        self._episodes = [Ring(shared.arrays, "episode", i) for i in workers]
        self._rows: list[np.ndarray] = []
        self._ended: list[np.ndarray] = []

    def collect(self) -> int:
        """Take what has come; return how many updates lie here."""
        self._rows += [ring.take() for ring in self._updates]
        self._ended += [ring.take() for ring in self._episodes]
        return sum(map(len, self._rows))

    def gathered(self, seconds: float, replaced: int) -> Gathered | None:
        """Return all that lies here, averaged over updates; None for nothing."""
        if not any(map(len, self._rows)):
            return None
        rows, ended = np.concatenate(self._rows), np.concatenate(self._ended)
        self._rows, self._ended = [], []
        columns = dict(zip(ROW, rows.T, strict=True))
        decisions = int(columns.pop("decisions").sum())
        metrics = {name: float(column.mean()) for name, column in columns.items()}
        metrics |= {"staleness_max": float(columns["staleness"].max())}
        metrics |= {"workers": float(self.shared["ready"].sum()), "workers_replaced": float(replaced)}
        told = self.shared["told"]
        episodes = {key: ended[:, i] for i, key in enumerate(EPISODE) if told[i] and len(ended)}
        return Gathered(decisions, seconds, episodes, metrics)


class Alone:
    """One worker inside this process: no process is started, nothing depends on timing."""

    def __init__(self, env: VectorEnv, model: ActorCritic, shared: Shared, run: Run):
        self.model, self.shared, self.run = model, shared, run
        self.worker = Worker(env, model, shared, limits_of(run))
        self.parts = {"collector": self.worker.collector}
        self._mail = Mail(shared)

    def __enter__(self) -> Alone:
        """Begin where the model and the budget stand."""
        self.shared.begin(self.model, self.run.budget)
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to be ended."""

    def gather(self) -> Gathered | None:
        """Make the updates of one record; None when the run is over."""
        started = time.perf_counter()
        if self.run.done:
            return None
        # The model between two records is the user's to look at, and to change.
        self.shared["weights"][:] = self.model.weights.numpy()
        for _ in range(self.shared.settings.updates_per_record):
            self.worker.update()
            self._mail.collect()
            if self.worker.over:  # a wish to stop waits for the record: a resumed run then has the same ones
                break
        self.shared.copy_to(self.model)
        return self._mail.gathered(time.perf_counter() - started, replaced=0)


class Crew:
    """Several workers in processes of their own; the parent only reads their mail and looks after them."""

    parts: dict[str, Any] = {}  # noqa: RUF012 - their environments aren't kept: a resumed run draws new jobs

    def __init__(self, make_env: Callable[..., VectorEnv], model: ActorCritic, shared: Shared, run: Run):
        self.model, self.shared, self.run = model, shared, run
        self._settings, self._make_env = shared.settings, make_env
        self._processes = WorkerProcesses(main, self._arguments, self._settings.num_workers)
        self._losses = Losses(self._settings.max_restarts)
        self._signs = SignsOfLife(shared["alive"], self._settings.worker_timeout)
        self._mail = Mail(shared)
        self._ending, self._since = 0.0, time.perf_counter()

    def __enter__(self) -> Crew:
        """Start the workers."""
        self.shared.begin(self.model, self.run.budget)
        count = self._needed()
        if count < self._settings.num_workers:
            self.run.say(f"the budget is {counted(count, 'update')}: as many workers start, and no more")
        for index in range(count):
            self._start(index)
        return self

    def __exit__(self, *_: object) -> None:
        """End those that are still there, at once."""
        self._processes.kill()

    def gather(self) -> Gathered | None:
        """Wait for the updates of one record, or for what is left when the run ends; None for nothing."""
        while self._mail.collect() < self._settings.updates_per_record:
            # What is spent is known before it is logged: nobody waits for workers that are still starting.
            if self.run.done or self.shared.spent(limits_of(self.run)).done:
                self._end()
            if not self._processes.running:
                self._look_after()
                if not self._processes.running:
                    break
            self._look_after()
            self._processes.wait(LOOK)
        self._mail.collect()
        self.shared.copy_to(self.model)
        since, self._since = self._since, time.perf_counter()
        return self._mail.gathered(self._since - since, self._losses.replaced)

    def _needed(self) -> int:
        """Return how many workers have something to do: each start costs seconds of a processor."""
        settings, limit = self._settings, self.run.budget.limits.total_steps
        if limit is None:
            return settings.num_workers
        left = max(1, limit - self.run.budget.decisions)
        return min(settings.num_workers, -(-left // (settings.num_envs * settings.num_steps)))

    def _arguments(self, index: int) -> tuple:
        key = (3, index, int(self.shared["starts"][index]))
        seed = int(np.random.SeedSequence(self.run.seed, spawn_key=key).generate_state(1)[0]) >> 1
        return self._make_env, self.shared, seed, limits_of(self.run), index

    def _start(self, index: int) -> None:
        self.shared["starts"][index] += 1  # a new start draws new jobs and other actions
        self.shared["ready"][index] = self.shared["alive"][index] = 0
        self._processes.start(index)

    def _end(self) -> None:
        """Let workers finish the update they are at; end those that take too long or are still starting."""
        if not self._ending:
            self._ending = time.monotonic() + GRACE
            self.shared["stop"][...] = True
        late = time.monotonic() > self._ending
        for index in range(self._settings.num_workers):
            if late or not self.shared["ready"][index]:
                self._processes.kill_one(index)

    def _look_after(self) -> None:
        """Report and replace workers that died or froze.

        Raises:
            UserError, NumericsError: what a worker found wrong with settings or numbers.
            WorkersLost: a worker can't start, or too many were lost.
        """
        if self._ending:
            return
        for index, patience in self._signs.silent().items():
            if self._processes.at_work(index):
                self._lost(self._processes.death_of(index, patience))
        for death in self._processes.deaths():
            self._lost(death)

    def _lost(self, death: Death) -> None:
        index = death.worker
        failure = read_text(self.shared["failure"][index]), read_text(self.shared["message"][index])
        self._losses.count(death, started=bool(self.shared["ready"][index]), failure=failure)
        self._start(index)


def crew_for(env: VectorEnv, model: ActorCritic, shared: Shared, run: Run) -> Alone | Crew:
    """Return the workers that the settings ask for.

    Raises:
        UserError: several, but the environment can't be made anew in their processes.
    """
    settings: A3CSettings = shared.settings
    if settings.num_workers == 1:
        return Alone(env, model, shared, run)
    # Looked up on the class: Gymnasium's wrappers pass attributes through, and would be left out unnoticed.
    if not hasattr(type(env), "factory"):
        raise UserError(
            f"num_workers is {settings.num_workers}, but {type(env).__name__} has no method factory() from "
            "which workers could make such an environment of their own; use num_workers 1 or the "
            "environment without its wrapper"
        )
    return Crew(env.factory(), model, shared, run)


def limits_of(run: Run) -> Limits:
    """Return the limits of the run's budget."""
    return run.budget.limits
