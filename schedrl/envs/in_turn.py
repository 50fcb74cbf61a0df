"""Job sequences handed out in turn: what every source of an environment's jobs is.

Apart because both environments have several sources, and all must count alike. Imports nothing but NumPy.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class InTurn(ABC):
    """Sequences with numbers from 0 on."""

    total: int | None = None
    """How many there are; after the last the first comes again. None: without end."""
    cursor: int = 0
    """Number of the sequence that comes next."""

    def next(self, count: int) -> tuple[np.ndarray, Any]:
        """Return the numbers [count] of the next sequences, and the sequences."""
        numbers = np.arange(self.cursor, self.cursor + count)
        self.cursor += count
        if self.total is not None:
            numbers %= self.total
        return numbers, self.at(numbers)

    @abstractmethod
    def at(self, numbers: np.ndarray) -> Any:
        """Return the sequences of these numbers.

        Raises:
            UserError: a number that there isn't.
        """
