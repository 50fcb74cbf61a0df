"""What the batched environments of numbered job sequences have in common: who says which sequence is next.

Apart from them because it is one promise: sequences go, in ascending numbers, to the environments of a batch
in order. A batch that is split over processes keeps it by asking for numbers (`schedrl.learning.split_env`).
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar


class Numbered:
    """A batched environment whose episodes are job sequences with numbers, drawn from `self._jobs`."""

    numbered_sequences = True
    """`reset(options={"sequences": ...})` chooses the job sequences, `times()` tells the time."""
    infos_told: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Group of `infos` -> names in it -> dtype: all that `step` tells beside final observations."""
    claim: Callable[[int], int] | None = None
    """Returns the number of the first of so many next sequences. None: this batch counts them itself."""

    _jobs: Any

    def _next(self, count: int) -> tuple:
        """Return the numbers [count] of the next sequences, and the sequences."""
        if self.claim is not None:
            self._jobs.cursor = self.claim(count)
        return self._jobs.next(count)
