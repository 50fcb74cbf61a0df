"""The rules of the heuristics, each a compiled function from what can be seen to an action.

A rule reads a `View` and its parameters (float64) and returns a slot, or S for the no-op. The same function
is called by the fused loop (`fused.py`), which plays whole episodes with no Python per step, and by the
policy that serves single observations (`policies.py`). A rule of your own is one more such function, see
docs/extending.md.

Sources: the original's `other_agents.py` (SJF, Packer, random); the paper, section 4.1 (Tetris as a mix of
both); SJF-hold, TSL and DEFER are ours: on episodes that drain, a long job is best started late.
"""

from typing import NamedTuple

import numpy as np

from schedrl.sim.jit import leaf


class View(NamedTuple):
    """What a rule may see of one cluster: S slots, R resources. Nothing of the future is in it."""

    startable: np.ndarray  # [S] bool: fits from now to its end
    duration: np.ndarray  # [S] steps, 0 = empty slot
    demand: np.ndarray  # [S, R] units
    arrival: np.ndarray  # [S] step
    free: np.ndarray  # [R, rows] free units now (row 0) and ahead
    time: int
    since_arrival: int  # steps since a job last arrived
    running: int  # jobs booked
    noop_legal: bool
    uniform: float  # a fresh random number in [0, 1)


KIND, KNOB, AGE, LONG_FROM, KEEP_FREE, QUIET, CLOCK, NUM_PARAMETERS = range(8)
"""Parameters of `built_in`; a value of 0 in the last four means that the condition is off."""
BY_PRIORITY, AT_RANDOM, AT_RANDOM_LEGAL = range(3)
"""Values of KIND."""


@leaf
def held(view, parameters, slot):
    """Tell whether a long job must wait: for room, for a quiet spell or for the clock."""
    if parameters[LONG_FROM] == 0 or view.duration[slot] < parameters[LONG_FROM]:
        return False
    if parameters[KEEP_FREE] > 0 and view.running > 0:
        for r in range(view.free.shape[0]):
            if view.free[r, 0] - view.demand[slot, r] < parameters[KEEP_FREE]:
                return True
    if parameters[QUIET] > 0 and view.since_arrival < parameters[QUIET]:
        return True
    return parameters[CLOCK] > 0 and view.time < parameters[CLOCK]


@leaf
def by_priority(view, parameters):
    """Start the startable, not held job of the highest priority; ties go to the lowest slot.

    Priority = knob * alignment + (1 - knob) / duration, with alignment = sum of free x demanded units now;
    with AGE on, the earliest arrival instead.
    """
    best, best_priority = view.duration.shape[0], -np.inf
    knob = parameters[KNOB]
    for slot in range(view.duration.shape[0]):
        if not view.startable[slot] or held(view, parameters, slot):
            continue
        if parameters[AGE] > 0:
            priority = -float(view.arrival[slot])
        else:
            alignment = 0.0
            for r in range(view.free.shape[0]):
                alignment += view.free[r, 0] * view.demand[slot, r]
            priority = knob * alignment + (1.0 - knob) / view.duration[slot]
        if priority > best_priority:
            best, best_priority = slot, priority
    return best


@leaf
def at_random(view, parameters):
    """Draw any of the S + 1 actions, as the original: an empty slot or a job that does not fit is a no-op."""
    return int(view.uniform * (view.duration.shape[0] + 1))


@leaf
def at_random_legal(view, parameters):
    """Draw one of the legal actions: a startable job, or the no-op where it is legal."""
    choices = 1 if view.noop_legal else 0
    for slot in range(view.duration.shape[0]):
        choices += view.startable[slot]
    pick = int(view.uniform * choices)
    for slot in range(view.duration.shape[0]):
        if view.startable[slot]:
            if pick == 0:
                return slot
            pick -= 1
    return view.duration.shape[0]


@leaf
def built_in(view, parameters):
    """Follow the rule that KIND names: one function for all, so that all are compiled at once."""
    if parameters[KIND] == AT_RANDOM:
        return at_random(view, parameters)
    if parameters[KIND] == AT_RANDOM_LEGAL:
        return at_random_legal(view, parameters)
    return by_priority(view, parameters)
