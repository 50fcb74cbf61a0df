"""Shifting arrivals so that a sample has exactly the wanted load.

Apart because every generator does it alike: the load of given jobs depends on their span alone, so only the
speed of the clocks' even seconds is searched for. Bursts and hours of the day stay where they are.
"""

from collections.abc import Sequence

import numpy as np

from schedrl.settings import UserError

from .clocks import Clock

Part = tuple[np.ndarray, Clock]
"""Even arrival times, ascending, and the clock that they are on."""


def scaled_to(span: float, parts: Sequence[Part]) -> list[np.ndarray]:
    """Return real arrival times of each part, even times scaled so that all jobs arrive in `span`.

    `span` is in seconds, J mean gaps, as `Workload.load` counts it.

    Raises:
        UserError: fewer than two jobs, or jobs without any work.
    """
    num_jobs = sum(len(even) for even, _ in parts)
    if num_jobs < 2:
        raise UserError(f"exact_load needs at least 2 jobs, got {num_jobs}; raise num_jobs")
    if not span > 0:
        raise UserError("exact_load: the drawn jobs have no work at all; raise durations, sizes or num_jobs")
    wanted = span * (num_jobs - 1) / num_jobs
    ends = [(even[[0, -1]], clock) for even, clock in parts if len(even)]

    def missed(scale: float) -> float:
        real = np.array([clock.real(times * scale) for times, clock in ends])
        return float(real[:, 1].max() - real[:, 0].min() - wanted)

    high = wanted / float(max(times[1] for times, _ in ends) - min(times[0] for times, _ in ends))
    while missed(high) < 0:
        high *= 2
    from scipy.optimize import brentq

    scale = brentq(missed, 0.0, high, xtol=1e-14 * high, rtol=1e-14)
    last_digits = wanted / (missed(scale) + wanted)
    return [clock.real(even * scale) * last_digits if len(even) else even for even, clock in parts]
