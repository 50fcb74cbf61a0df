"""Action spaces of the cluster environment, and actions as the kernels take them."""

from typing import Any

import numpy as np
from gymnasium import spaces

from schedrl.sim.cluster_decisions.spec import ELASTIC, Spec
from schedrl.sim.deeprm.kernel import check_actions


def space_of(spec: Spec) -> spaces.Space:
    """Return the action space: one choice; or, elastic, a choice, a device and shares of cpu and memory."""
    choice = spaces.Discrete(spec.num_choices)
    if spec.action != ELASTIC:
        return choice
    shares = spaces.Box(spec.min_share, 1.0, (2,), np.float32)
    return spaces.Tuple((choice, spaces.Discrete(spec.num_devices), shares))


def decoded(actions: Any, spec: Spec, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return choices [N], devices [N] and shares [N, 2], all within bounds.

    Shares outside their bounds are cut to them; whatever wants to explore may add noise.

    Raises:
        ValueError: a number that isn't whole or out of range where one is to choose, or a share that is NaN.
    """
    if spec.action != ELASTIC:
        chosen = check_actions(actions, count, spec.num_choices - 1)
        return chosen, np.zeros(count, np.int64), np.ones((count, 2))
    if not isinstance(actions, tuple) or len(actions) != 3:
        raise ValueError(
            f"elastic actions are (choices, devices, shares) of {count} rows, got {type(actions).__name__}"
        )
    chosen = check_actions(actions[0], count, spec.num_choices - 1)
    devices = check_actions(actions[1], count, spec.num_devices - 1)
    shares = np.asarray(actions[2], np.float64)
    if shares.shape != (count, 2):
        raise ValueError(f"shares must be {count} x 2 numbers (cpu, memory), got shape {list(shares.shape)}")
    if np.isnan(shares).any():
        row = int(np.flatnonzero(np.isnan(shares).any(axis=1))[0])
        raise ValueError(f"the shares {shares[row].tolist()} of environment {row} are no numbers")
    return chosen, devices, np.clip(shares, spec.min_share, 1.0)
