"""Whole episodes under a rule in one compiled loop: no Python, no observation, no copy per decision."""

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import prange

from schedrl.sim.deeprm import kernel
from schedrl.sim.deeprm.state import DECISIONS, ENDED, RUNNING, SINCE_ARRIVAL, TIME
from schedrl.sim.jit import Batch, borrowed, leaf, njit

from .rules import View, built_in

rule = built_in
"""What the loops below call; `fuse` compiles copies of them with another rule in its place."""


@leaf
def uniform(seed, env, decision):
    """Return a number in [0, 1) that depends on its arguments alone (SplitMix64, Steele et al. 2014)."""
    z = np.uint64(seed) + np.uint64(env) * np.uint64(0xD1342543DE82EF95)
    z += np.uint64(decision + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@leaf
def episode(spec, at, ints, reals, words, parameters, seed, env, mask):
    """Play one environment to the end of its episode; the rule reads the state where it lies."""
    slots, resources = spec.num_slots, spec.num_resources
    jobs = ints[at.queue : at.queue + slots * (1 + resources)].reshape(slots, 1 + resources)
    free = ints[at.free : at.free + resources * spec.horizon].reshape(resources, spec.horizon)
    arrival, startable = ints[at.came : at.came + slots], mask[:slots]
    while ints[ENDED] == 0:
        kernel.legal_actions(spec, at, ints, words, mask)
        if spec.mask_physics:
            startable = mask[slots + 1 :]
            for slot in range(slots):
                startable[slot] = kernel.fits_now(spec, at, ints, words, slot)
        view = View(
            startable, jobs[:, 0], jobs[:, 1:], arrival, free, ints[TIME], ints[SINCE_ARRIVAL],
            ints[RUNNING], mask[slots], uniform(seed, env, ints[DECISIONS]),
        )  # fmt: skip
        kernel.step(spec, at, ints, reals, words, rule(view, parameters))


@Batch
def episodes(rules, ints, reals, words, parameters, seed, numbers, masks):
    """Play every environment to the end of its episode; numbers [N] name what is drawn, masks is scratch."""
    ints, reals, words, numbers = borrowed(ints), borrowed(reals), borrowed(words), borrowed(numbers)
    masks, parameters = borrowed(masks), borrowed(parameters)
    for n in prange(ints.shape[0]):
        spec, at = kernel.opened(rules)
        episode(spec, at, ints[n], reals[n], words[n], parameters, seed, numbers[n], masks[n])


@njit
def choose(startable, duration, demand, arrival, free, scalars, uniforms, parameters, actions):
    """Answer a batch of observations."""
    for n in range(actions.shape[0]):
        s = scalars[n]
        view = View(
            startable[n], duration[n], demand[n], arrival[n], free[n], s[0], s[1], s[2], s[5] > 0, uniforms[n]
        )
        actions[n] = rule(view, parameters)


def _copy(compiled: Any, names: dict[str, Any], suffix: str) -> FunctionType:
    made = FunctionType(compiled.py_func.__code__, names, f"{compiled.py_func.__name__}_{suffix}")
    made.__qualname__ = made.__name__
    return made


@cache
def fuse(rule: Callable) -> tuple[Batch, Callable]:
    """Return the two loops over a rule, compiled when first called; of this folder's rules, kept on disk.

    Returns:
        `episodes(*state.arrays, parameters, seed, numbers, masks)` plays every environment to its end;
        `choose(views..., parameters, actions)` answers a batch of observations.
    """
    if rule is built_in:
        return episodes, choose
    # Copies of global functions, as Numba keeps no closures over compiled functions on disk.
    keep = rule.__module__.startswith(__package__)
    names, suffix = {**globals(), "rule": rule}, f"{rule.__module__}.{rule.__qualname__}".replace(".", "_")
    names["episode"] = leaf(_copy(episode, names, suffix), cache=keep)
    loop = Batch(_copy(episodes.serial, names, suffix), cache=keep)
    return loop, njit(cache=keep)(_copy(choose, names, suffix))


AT_ONCE = 2**22
"""Numbers of the states that one compiled call plays: a fraction of a second, after which Ctrl-C is heard."""


def play_rule(
    rule: Callable, clusters: Any, parameters: np.ndarray, seed: int = 0, numbers: np.ndarray | None = None
) -> None:
    """Play every environment of `clusters` (see `schedrl.envs.deeprm.clusters`) to the end of its episode.

    `numbers` [N], by default 0, 1, 2, ..., name the random numbers of a rule that draws.
    """
    spec, n = clusters.spec, clusters.state.num_envs
    masks = np.zeros((n, 2 * spec.num_slots + 1), bool)
    loop = fuse(rule)[0]
    numbers = np.arange(n) if numbers is None else np.ascontiguousarray(numbers, np.int64)
    rules, *state = clusters.state.arrays
    together = max(1, AT_ONCE // state[0].shape[1])
    for first in range(0, n, together):
        rows = slice(first, first + together)
        mine = [array[rows] for array in state]
        arguments = (parameters, np.uint64(seed), numbers[rows], masks[rows])
        loop(rules, *mine, *arguments, threads=clusters.settings.threads)
