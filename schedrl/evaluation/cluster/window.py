"""Which jobs count where arrivals never stop (`termination="continuing"`): those of the middle of a sequence.

The first ones come to an empty cluster, the last ones are cut off before they could be done. Unfinished jobs
of the middle count with the time that they had taken by then, a lower bound.
"""

from typing import Any

FIRST, LAST = 0.2, 0.8
"""Shares of a sequence's jobs between which they count."""
NOTE = f"arrivals never stop: of each sequence the jobs from {FIRST:.0%} to {LAST:.0%} count"


def counted(settings: Any, num_jobs: int) -> slice:
    """Return which jobs of a sequence of `num_jobs` count, in the order of arrival."""
    if settings.termination != "continuing":
        return slice(None)
    return slice(int(FIRST * num_jobs), max(int(LAST * num_jobs), 1))
