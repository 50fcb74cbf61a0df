"""Shifting arrivals so that a sample has exactly the wanted load.

Apart because every generator does it alike: the load of given jobs depends on their span alone, so only the
speed of the clock's even seconds is searched for. Bursts and hours of the day stay where they are.
"""

import numpy as np

from schedrl.settings import UserError

from .clocks import Clock


def scaled_to(span: float, even: np.ndarray, clock: Clock) -> np.ndarray:
    """Return real arrival times [J] of even ones [J], scaled so that the jobs arrive in `span` seconds.

    `span` is J mean gaps, as `Workload.load` counts it.

    Raises:
        UserError: fewer than two jobs, or jobs without any work.
    """
    if len(even) < 2:
        raise UserError(f"exact_load needs at least 2 jobs, got {len(even)}; raise num_jobs")
    if not span > 0:
        raise UserError("exact_load: the drawn jobs have no work at all; raise durations, sizes or num_jobs")
    wanted = span * (len(even) - 1) / len(even)
    ends = even[[0, -1]]

    def missed(scale: float) -> float:
        first, last = clock.real(ends * scale)
        return float(last - first - wanted)

    high = 2 * wanted / float(ends[1] - ends[0])
    while missed(high) < 0:
        high *= 2
    from scipy.optimize import brentq

    scale = brentq(missed, 0.0, high, xtol=1e-14 * high, rtol=1e-14)
    arrival = clock.real(even * scale)
    return arrival * (wanted / (arrival[-1] - arrival[0]))  # the last digits
