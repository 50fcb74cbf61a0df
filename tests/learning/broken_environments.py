"""Environments whose workers come to grief: a new process finds them by module and name."""

import functools
import multiprocessing
import os
import time

from schedrl.envs.deeprm.vector import DeepRMVectorEnv


def in_a_worker() -> bool:
    """Tell whether this process was started by another one."""
    return multiprocessing.parent_process() is not None


def hang(**_):
    """Never return."""
    time.sleep(600)


def leave(**_):
    """End the process with an exit code."""
    os._exit(3)


def burst(num_envs: int, seed: int):
    """Raise what nobody foresaw."""
    raise RuntimeError(f"no room for {num_envs}")


class MadeBy(DeepRMVectorEnv):
    """DeepRM whose workers make theirs with another function."""

    def __init__(self, make, num_envs: int):
        super().__init__(num_envs=num_envs)
        self._make = make

    def factory(self):
        """Return the function."""
        return functools.partial(_made, self._make)


def _made(make, num_envs: int, seed: int):
    return make(num_envs=num_envs, seed=seed)
