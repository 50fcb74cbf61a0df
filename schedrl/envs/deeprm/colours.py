"""The original's picture with its colours: each job on the machine has one of 39, shuffled at every reset.

Where jobs lie follows from the order of booking: each takes the leftmost free cells of every row, so the jobs
of a row stand side by side in that order. A new job takes the first colour that is not on the machine.
"""

from collections.abc import Sequence

import numpy as np

from schedrl.sim.deeprm.reference_views import PALETTE
from schedrl.sim.deeprm.state import TIME

from .clusters import Clusters


class Colours:
    """Colours of the jobs of one cluster (environment 0 of a batch of one)."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._order: list[float] = list(PALETTE)
        self._of_job: dict[int, float] = {}

    def shuffle(self, rng: np.random.Generator) -> None:
        """Draw the order of colours of a new episode."""
        self.use(rng.permutation(PALETTE).tolist())

    def use(self, order: Sequence[float]) -> None:
        """Take a given order of the 39 colours for a new episode."""
        self._order = list(order)
        self._of_job = {}

    def _on_machine(self) -> list[int]:
        """Jobs with rows ahead, in the order of booking."""
        state = self._clusters.state
        jobs = np.flatnonzero((state.start[0] >= 0) & (state.finish[0] > state.column(TIME)[0]))
        return jobs[np.argsort(state.booking[0][jobs])].tolist()

    def update(self) -> None:
        """Give a colour to the job that was booked since the last call, if any.

        When all 39 are on the machine, where the original fails, they start again from the first.
        """
        jobs = self._on_machine()
        new = [job for job in jobs if job not in self._of_job]
        used = {self._of_job[job] for job in jobs if job in self._of_job}
        for job in new:
            again = self._order[(len(jobs) - 1) % len(self._order)]
            self._of_job[job] = next((colour for colour in self._order if colour not in used), again)

    def paint(self, image: np.ndarray) -> np.ndarray:
        """Return the picture [H, W] with the machine's cells in colour."""
        image = image.copy()
        state, settings = self._clusters.state, self._clusters.settings
        now, left = int(state.column(TIME)[0]), 0
        for r, capacity in enumerate(settings.capacities):
            used = np.zeros(settings.time_horizon, int)
            for job in self._on_machine():
                units = state.demand[0, job, r]
                for h in range(max(0, state.start[0, job] - now), state.finish[0, job] - now):
                    image[h, left + used[h] : left + used[h] + units] = self._of_job[job]
                    used[h] += units
            left += capacity + settings.num_job_slots * settings.max_job_demand
        return image
