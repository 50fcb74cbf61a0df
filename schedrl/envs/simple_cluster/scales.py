"""What times are measured in by observations and rewards: never by a look at jobs that are still to come.

Drawn jobs are measured by a sample of the training jobs. A policy keeps the scales that it was trained with
and is shown everything in them wherever it plays. Jobs that are given have none of their own: the mean gap of
a whole workload would tell of arrivals that have not happened.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from schedrl.settings import UserError


class Scales(NamedTuple):
    """What times are measured in."""

    mean_gap: float
    """Between arrivals, in the workload's time."""
    mean_duration: float
    machines: int | None = None
    """On how many machines jobs come so often; to twice as many they are taken to come twice as often. None:
    the gap is meant for whatever machines there are."""

    def gap_on(self, machines: int) -> float:
        """Return the mean gap between arrivals on so many machines."""
        return self.mean_gap * (self.machines / machines) if self.machines else self.mean_gap


def as_scales(given: Any, where: str = "scales") -> Scales:
    """Return scales from such, or from their names and values as files have them.

    Raises:
        UserError: something else, or a number that can't be a scale.
    """
    try:
        found = Scales(**given) if isinstance(given, Mapping) else Scales(*given)
        gap, duration = float(found.mean_gap), float(found.mean_duration)
        machines = None if found.machines is None else int(found.machines)
        right = all(math.isfinite(number) and number > 0 for number in (gap, duration, machines or 1))
    except (TypeError, ValueError, OverflowError):
        right, machines = False, None
    if not right or machines == 0:
        raise UserError(
            f"{where} is {str(given)[:100]!r}; give mean_gap and mean_duration, both above 0, and machines, "
            "1 or more"
        )
    return Scales(gap, duration, machines)


def settle(policy: Any, settings: Any) -> str:
    """Give a policy its scales where it has kept none; return in words what was assumed, empty: nothing.

    Args:
        policy: changed.
        settings: of the environment that it was trained in; of deeprm, nothing is measured in scales.
    """
    if policy.scales is not None or not hasattr(settings, "scales"):
        return ""
    try:
        policy.scales = settings.scales()
        return "it has kept no scales: those of the settings that it was trained with"
    except UserError:
        from .drawing import own_scales

        policy.scales = own_scales(settings)._asdict()
        return "it has kept no scales and its training's jobs can't be had any more: slowdown_floor for both"
