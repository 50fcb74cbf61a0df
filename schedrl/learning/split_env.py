"""One batch of environments, stepped by several processes; to an algorithm it is the batch it was made from.

Workers step, the parent acts and learns, so every algorithm runs on it unchanged. What goes between them lies
in shared memory; a byte through a pipe says "go on" and another "done".

**The number of workers changes nothing but the time.** Job sequences go to the environments in the order in
which the whole batch would hand them out (`Part._claim`), so rollouts, weights and checkpoints are bit for
bit those of one process, and a run may be resumed with another number of workers.

**Nor does losing one.** Workers save their state every LOG steps. One that died, or shows no sign of life, is
replaced by a process that loads that state and plays the steps since then again.
"""

from __future__ import annotations

import contextlib
import os
import select
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from schedrl.learning.lost_workers import MAX_RESTARTS, TIMEOUT, Losses, SignsOfLife
from schedrl.learning.shared_vectors import read_text
from schedrl.learning.split_memory import CURSOR, LOG, NOTHING, RESET, SplitMemory, parts_of
from schedrl.learning.split_worker import BYTE, main
from schedrl.learning.worker_processes import CONTEXT, WorkerProcesses
from schedrl.settings import UserError

LOOK = 0.5
"""Seconds between two looks for signs of life."""
NEEDED = ("factory", "infos_told", "numbered_sequences", "get_state", "set_state")


class SplitVectorEnv(VectorEnv):
    """The environments of `env`, in worker processes. `close()` ends them; so does losing the object.

    Args:
        env: made with `num_envs` and `seed`; it is kept, to look at the present state in other ways.
        num_workers: processes, at least 1, at most one for each environment.
        seed: of the job sequences; `reset(seed=...)` replaces it.
        timeout: seconds that a worker may take for one step before it is replaced; START times as many to
            start.
        max_restarts: workers replaced before it gives up.
        copy: return fresh arrays at every step; False reuses them (faster: copy what you keep).

    Raises:
        UserError: fewer environments than workers, or an environment that can't be split.
    """

    def __init__(
        self,
        env: Any,
        num_workers: int,
        *,
        seed: int = 0,
        timeout: float = TIMEOUT,
        max_restarts: int = MAX_RESTARTS,
        copy: bool = True,
    ):
        _require_splittable(env, num_workers)
        self.env, self.num_envs, self.num_workers = env, env.num_envs, num_workers
        self.metadata, self.render_mode = env.metadata, env.render_mode
        self.single_observation_space = env.single_observation_space
        self.observation_space = env.observation_space
        self.single_action_space, self.action_space = env.single_action_space, env.action_space
        self.numbered_sequences = env.numbered_sequences
        self.settings, self.representation = env.settings, env.representation
        self.memory = memory = SplitMemory(env, num_workers, seed)
        self.losses = Losses(max_restarts)
        self._copy, self._cursor = copy, 0
        self._signs = SignsOfLife(memory["alive"][:, 0], timeout)
        self._obs, self._finals = memory.under("obs/"), memory.under("final/")
        self._actions = list(memory.under("action/").values())
        self._info = {group: memory.under(f"info/{group}/") for group in memory.infos_told}
        self._terms, self._steps = np.zeros(len(memory.infos_told["reward_terms"])), 0
        self._ends: list[Connection] = [None] * num_workers  # type: ignore[list-item]
        self._bells: list[Connection] = [None] * num_workers  # type: ignore[list-item]
        self._poll = select.poll()
        make_env = env.factory()
        self._processes = WorkerProcesses(
            main, lambda index: (make_env, memory, index, self._ends[index]), num_workers
        )
        try:
            for index in range(num_workers):
                self._start(index)
            self._wait(set(range(num_workers)))
        except BaseException:
            self.close()
            raise

    # -- the environment -------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Start new episodes, as the environment it was made from does."""
        super().reset(seed=seed)
        memory, chosen = self.memory, (options or {}).get("sequences")
        if seed is not None:
            memory["seed"][...] = seed
            memory["seeding"][...] += 1
            self._cursor = 0
        memory["chosen"][...] = chosen is not None
        memory["first"][...] = self._cursor
        if chosen is not None:
            memory["sequences"][:] = chosen
        self._go_to(RESET)
        self._cursor = self._cursor + self.num_envs if chosen is None else int(np.max(chosen)) + 1
        return self._observation(), {}

    def step(self, actions: Any) -> tuple[dict, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Take one decision in each environment, as the environment it was made from does."""
        memory = self.memory
        if not memory["epoch"]:
            raise ValueError("no episodes are going on; call reset() before the first step()")
        if memory["position"] == LOG:
            self._save()
        slot = int(memory["position"])
        self._put(slot, actions)
        memory["cursor"][slot], memory["ended"][slot] = self._cursor, -1
        memory["position"][...] += 1
        self._advance()
        self._cursor += int(memory["ended"][slot].sum())
        given = (memory["rewards"], memory["terminated"], memory["truncated"])
        if self._copy:
            given = tuple(array.copy() for array in given)  # type: ignore[assignment]
        return (self._observation(), *given, self._infos())

    def _observation(self) -> dict[str, np.ndarray]:
        if not self._copy:
            return dict(self._obs)
        return {name: leaf.copy() for name, leaf in self._obs.items()}

    def _infos(self) -> dict[str, Any]:
        memory = self.memory
        over = memory["terminated"] | memory["truncated"]
        terms = self._told("reward_terms")
        self._terms += [row.sum() for row in terms.values()]
        self._steps += self.num_envs
        infos: dict[str, Any] = {"reward_terms": terms}
        if not over.any():
            return infos
        final = np.empty(self.num_envs, object)
        for i in np.flatnonzero(over).tolist():
            final[i] = {name: leaf[i].copy() for name, leaf in self._finals.items()}
        infos |= {"final_obs": final, "_final_obs": over, "_final_info": over, "_episode": over}
        infos["episode"] = self._told("episode", over)
        told = self._told("final_info", over)
        infos["final_info"] = told | {f"_{name}": over for name in told}
        return infos

    def _told(self, group: str, where: np.ndarray | None = None) -> dict[str, np.ndarray]:
        rows = self._info[group]
        if where is not None:  # elsewhere stands what an earlier step left
            return {name: np.where(where, row, 0).astype(row.dtype) for name, row in rows.items()}
        return {name: row.copy() for name, row in rows.items()} if self._copy else rows

    def _put(self, slot: int, actions: Any) -> None:
        """Write actions into the log.

        Raises:
            ValueError: of another form, or a choice out of range.
        """
        targets, parts = self._actions, parts_of(actions)
        if len(targets) != len(parts):
            raise ValueError(f"actions have {len(targets)} parts, got {len(parts)}")
        space: Any = self.single_action_space
        choices = space.spaces if isinstance(space, spaces.Tuple) else (space,)
        for target, part, choice in zip(targets, map(np.asarray, parts), choices, strict=True):
            if part.shape != target.shape[1:] or (part.dtype.kind == "f" and target.dtype.kind != "f"):
                raise ValueError(
                    f"actions must be {target.dtype} of shape {list(target.shape[1:])}, got {part.dtype} "
                    f"{list(part.shape)}"
                )
            if isinstance(choice, spaces.Discrete) and ((part < 0) | (part >= choice.n)).any():
                wrong = part[(part < 0) | (part >= choice.n)][0]
                raise ValueError(f"the action {wrong} is out of range; it must be within 0..{choice.n - 1}")
            target[slot] = part

    # -- looked at otherwise ---------------------------------------------------------------------------------

    def get_state(self) -> dict[str, np.ndarray]:
        """Return all that `set_state` needs, here or of the environment that this was made from."""
        self._save()
        saved = self.memory.under(f"state/{self.memory['base']}/")
        return {name: array.copy() for name, array in saved.items()} | {CURSOR: np.array(self._cursor)}

    def set_state(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `get_state` of an environment with the same settings, seed and number."""
        slot = 0 if self.memory["base"] != 0 else 1
        for name, array in self.memory.under(f"state/{slot}/").items():
            array[:] = saved[name]
        self._cursor = int(saved[CURSOR])
        self._go_to(slot)

    def whole(self) -> Any:
        """Return the environment that this was made from, in the present state."""
        self.env.set_state(self.get_state())
        return self.env

    def times(self) -> np.ndarray:
        """Return the present time [N] of each environment."""
        return self.memory["times"].copy()

    def observe_as(self, representation: str) -> dict[str, np.ndarray]:
        """Return the present observations in another representation, for a heuristic to decide by."""
        return self.whole().observe_as(representation)

    def action_masks(self) -> np.ndarray:
        """Return the masks [N, A]."""
        return self.memory["obs/action_mask"].copy()

    def render(self) -> Any:
        """Return the present state of each environment as text."""
        return self.whole().render()

    def mean_reward_terms(self) -> dict[str, float]:
        """Return term -> its mean over all decisions so far; nothing where the environment doesn't tell."""
        if not hasattr(self.env, "mean_reward_terms"):
            return {}
        means = (self._terms / max(1, self._steps)).tolist()
        return dict(zip(self.memory.infos_told["reward_terms"], means, strict=True))

    def close_extras(self, **_: Any) -> None:
        """End the workers."""
        self._processes.kill()
        for bell in filter(None, self._bells):
            bell.close()

    @property
    def processes(self) -> list[Any]:
        """The workers' processes, in the order of their rows."""
        return self._processes.all

    # -- the workers -----------------------------------------------------------------------------------------

    def _go_to(self, base: int) -> None:
        """Let all begin anew from a base."""
        memory = self.memory
        memory["base"][...], memory["position"][...] = base, 0
        memory["epoch"][...] += 1
        self._advance()

    def _save(self) -> None:
        """Let all save their state, which becomes the base."""
        memory = self.memory
        slot = 0 if memory["base"] != 0 else 1
        memory["save"][...] = slot
        self._advance()
        memory["save"][...], memory["base"][...], memory["position"][...] = NOTHING, slot, 0
        memory["epoch"][...] += 1

    def _advance(self) -> None:
        """Let all workers go where they have to be, and wait for them."""
        if self.closed:
            raise ValueError("the environment is closed")
        for bell in self._bells:
            # One that has died shows when it is waited for.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                os.write(bell.fileno(), BYTE)
        self._wait(set(range(self.num_workers)))

    def _wait(self, missing: set[int]) -> None:
        """Wait for the workers `missing`; replace those that are lost.

        Raises:
            UserError, NumericsError, ValueError: what a worker found wrong.
            WorkersLost: one can't start, or too many were lost.
        """
        self._signs.heard()
        while missing:
            ready = self._poll.poll(LOOK * 1000)
            for file, _ in ready:
                index = self._index_of[file]
                if _rang(file):
                    missing.discard(index)
                else:
                    self._replace(index)
            # Only ever the first: those behind it may be waiting for what it has to say.
            if not ready and (patience := self._signs.silent().get(min(missing))):
                self._replace(min(missing), silent=patience)

    def _replace(self, index: int, silent: float | None = None) -> None:
        memory = self.memory
        death = self._processes.death_of(index, silent)
        failure = (read_text(memory["failure"][index]), read_text(memory["message"][index]))
        self.losses.count(death, started=bool(memory["alive"][index, 0]), failure=failure)
        self._start(index)
        self._signs.heard()

    def _start(self, index: int) -> None:
        if self._bells[index] is not None:
            self._poll.unregister(self._bells[index])
            self._bells[index].close()
        self._bells[index], self._ends[index] = CONTEXT.Pipe()
        self.memory["alive"][index, 0] = 0
        self._processes.start(index)
        self._ends[index].close()  # the worker has its own: when it is gone, the pipe ends
        self._poll.register(self._bells[index], select.POLLIN)
        self._index_of = {bell.fileno(): i for i, bell in enumerate(self._bells) if bell is not None}


def _rang(file: int) -> bool:
    """Take the byte that says "done"; tell whether there was one, or the worker has hung up."""
    try:
        return bool(os.read(file, 1))
    except ConnectionResetError:  # it died before it had read ours
        return False


def _require_splittable(env: Any, num_workers: int) -> None:
    if num_workers > env.num_envs:
        raise UserError(
            f"num_workers is {num_workers}, but there are only num_envs {env.num_envs} environments to "
            "share; lower num_workers"
        )
    # Looked up on the class: a wrapper that passes attributes through would be left out unnoticed.
    missing = [name for name in NEEDED if not hasattr(type(env), name)]
    if missing:
        raise UserError(
            f"num_workers is {num_workers}, but {type(env).__name__} can't be split: it has no "
            f"{', '.join(missing)} (docs/running.md); leave num_workers out"
        )
