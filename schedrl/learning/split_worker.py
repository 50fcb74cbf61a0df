"""One worker of a split environment: goes where the shared memory says, tells that it is there, and again.

It never acts: actions come from the parent, so that all workers act by one policy and one random stream.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from schedrl.learning.rollout import NumericsError
from schedrl.learning.shared_vectors import write_text
from schedrl.learning.split_memory import CURSOR, NOTHING, RESET, SplitMemory
from schedrl.settings import UserError

SPIN = 200
"""Looks at the others' numbers without pause; then it sleeps in between."""
PAUSE = 5e-5  # seconds
BYTE = b"."


class Part:
    """A worker's share of the environments.

    Args:
        env: its own environments, as many as it has rows.
        memory: shared with the parent and the other workers.
        index: which of the workers it is.
    """

    def __init__(self, env: Any, memory: SplitMemory, index: int):
        self.env, self.memory, self.index = env, memory, index
        self.rows = memory.rows[index]
        self._alive = memory["alive"][index]
        self._epoch, self._position, self._seeding = -1, 0, int(memory["seeding"])
        self._obs, self._finals = memory.under("obs/"), memory.under("final/")
        self._actions = list(memory.under("action/").values())
        self._info = {group: memory.under(f"info/{group}/") for group in memory.infos_told}

    def catch_up(self) -> None:
        """Go to the base if it is a new one, play the steps up to the position, save if asked to."""
        memory = self.memory
        if self._epoch != memory["epoch"]:
            self._go_to_base()
            self._epoch, self._position = int(memory["epoch"]), 0
        while self._position < memory["position"]:
            self._step(self._position)
            self._position += 1
            self._alive[0] += 1  # the first step may compile: that is still starting
        if memory["save"] != NOTHING:
            state = self.env.get_state()
            for name, array in memory.under(f"state/{memory['save']}/").items():
                array[self.rows] = state[name]
            # The parent will make this state the base of the next epoch: no need to load it.
            self._epoch, self._position = self._epoch + 1, 0

    def _go_to_base(self) -> None:
        memory = self.memory
        if memory["base"] != RESET:
            saved = memory.under(f"state/{memory['base']}/")
            state = {name: array[self.rows] for name, array in saved.items()}
            self.env.set_state(state | {CURSOR: np.array(0)})
        elif memory["epoch"]:  # 0: nobody has reset yet
            fresh = self._seeding != memory["seeding"]
            self._seeding = int(memory["seeding"])
            self.env.claim = lambda count: int(memory["first"]) + self.rows.start
            numbers = {"sequences": memory["sequences"][self.rows].copy()} if memory["chosen"] else None
            obs, _ = self.env.reset(seed=int(memory["seed"]) if fresh else None, options=numbers)
            self._show(obs)

    def _step(self, slot: int) -> None:
        memory, rows = self.memory, self.rows
        parts = [part[slot, rows] for part in self._actions]
        ended = memory["ended"][slot]
        self.env.claim = lambda count: self._claim(slot, count)
        actions = tuple(parts) if memory.in_tuple else parts[0]
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        ended[self.index] = max(0, ended[self.index])
        memory["rewards"][rows], memory["terminated"][rows] = rewards, terminated
        memory["truncated"][rows] = truncated
        for group in self._info.keys() & infos.keys():
            for name, row in self._info[group].items():
                row[rows] = infos[group][name]
        if "final_obs" in infos:
            for i in np.flatnonzero(infos["_final_obs"]):
                for name, leaf in self._finals.items():
                    leaf[rows.start + i] = infos["final_obs"][i][name]
        self._show(obs)

    def _claim(self, slot: int, count: int) -> int:
        """Say how many episodes ended here; return the number of the sequence that follows the first.

        The workers before this one come first, so what they say is waited for; never the other way round.
        """
        ended, looks = self.memory["ended"][slot], 0
        ended[self.index] = count
        before = ended[: self.index]
        while (before < 0).any():
            looks += 1
            if looks > SPIN:
                time.sleep(PAUSE)
        return int(self.memory["cursor"][slot] + before.sum())

    def _show(self, obs: Any) -> None:
        for name, leaf in self._obs.items():
            leaf[self.rows] = obs[name]
        if self.memory.timed:
            self.memory["times"][self.rows] = self.env.times()


def main(make_env: Callable[..., Any], memory: SplitMemory, index: int, bell: Connection) -> None:
    """Work until the parent hangs up: what a worker's process does. Failures are told to the parent."""
    try:
        rows = memory.rows[index]
        part = Part(make_env(rows.stop - rows.start, seed=int(memory["seed"])), memory, index)
        while True:
            part.catch_up()
            os.write(bell.fileno(), BYTE)
            if not os.read(bell.fileno(), 1):
                return
    except Exception as error:
        write_text(memory["failure"][index], type(error).__name__)
        write_text(memory["message"][index], str(error))
        if isinstance(error, UserError | NumericsError):
            sys.exit(1)  # the parent raises it again; a traceback would say nothing more
        raise
