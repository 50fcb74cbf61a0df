"""What an environment shows of the future or of the truth by design: data that a test can hold it to.

Whatever else changes in an observation, a mask or a moment of decision when only the future does is a leak
(`schedrl.evaluation.checks.leaks`).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

RUN_TIMES, NUMBER_OF_JOBS, CLOCK, LOAD = "run_times", "number_of_jobs", "clock", "load"
DEMANDS = "demands"
"""Kinds of knowledge: true run times; whether and how many jobs are to come; when arrivals end; how much work
a whole trace is, by which its arrivals are scaled; what jobs to come demand."""
EVERYTHING, REWARDS, PREPARATION = "*", "reward_terms", ""
"""In the place of a leaf: all that is seen, the mask and the moments of decisions too; the terms of rewards,
which teach and are never seen; nothing, as it was put into the jobs before."""


class Declared(NamedTuple):
    """One thing that is known."""

    what: str
    """Kind of knowledge."""
    leaf: str
    """Of the observation (`action_mask` is one), or one of EVERYTHING, REWARDS, PREPARATION."""
    columns: tuple[int, ...]
    """Of the leaf's last axis; empty: all of it."""
    text: str
    """What is known, in words."""

    def covers(self, leaf: str, column: int) -> bool:
        """Tell whether a difference in that column of that leaf is this knowledge."""
        if self.leaf == EVERYTHING:
            return True
        return self.leaf == leaf and (not self.columns or column in self.columns)


def lines(declared: Iterable[Declared]) -> Iterator[str]:
    """Yield what stands at the head of results."""
    texts = list(dict.fromkeys(each.text for each in declared if each.leaf != REWARDS))
    if texts:
        yield f"known of the future by design: {'; '.join(texts)}"
