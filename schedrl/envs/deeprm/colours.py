"""The original's picture with its colours: each job on the machine has one of 39, shuffled at every reset.

Where jobs lie follows from the order of booking: each takes the leftmost free cells of every row, so the jobs
of a row stand side by side in that order. A new job takes the first colour that is not on the machine.
"""

import numpy as np

from schedrl.sim.deeprm.state import TIME

from .clusters import Clusters

NUM_COLOURS = 39


class Colours:
    """Colours of the jobs of one cluster (environment 0 of a batch of one)."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._map = np.arange(1, NUM_COLOURS + 1) / (NUM_COLOURS + 1)
        self._of_job: dict[int, float] = {}

    def shuffle(self, rng: np.random.Generator) -> None:
        """Draw the order of colours of a new episode."""
        self._map = rng.permutation(self._map)
        self._of_job = {}

    def use(self, colours: np.ndarray) -> None:
        """Take a given order of colours [39]."""
        self._map = np.asarray(colours)

    def _on_machine(self) -> np.ndarray:
        """Jobs with rows ahead, in the order of booking."""
        state = self._clusters.state
        jobs = np.flatnonzero((state.start[0] >= 0) & (state.finish[0] > state.column(TIME)[0]))
        return jobs[np.argsort(state.booking[0][jobs])]

    def update(self) -> None:
        """Give a colour to a job that was booked since the last call; more than 39 at once share the last."""
        jobs = self._on_machine()
        used = {self._of_job[job] for job in jobs if job in self._of_job}
        for job in jobs:
            if job not in self._of_job:
                self._of_job[job] = next((c for c in self._map if c not in used), self._map[-1])

    def paint(self, image: np.ndarray) -> np.ndarray:
        """Return the picture [H, W] with the machine's cells in colour."""
        image = image.copy()
        state, settings = self._clusters.state, self._clusters.settings
        now, left = state.column(TIME)[0], 0
        for r, capacity in enumerate(settings.capacities):
            used = np.zeros(settings.time_horizon, int)
            for job in self._on_machine():
                rows = range(max(0, state.start[0, job] - now), state.finish[0, job] - now)
                for h in rows:
                    at = left + used[h]
                    image[h, at : at + state.demand[0, job, r]] = self._of_job[job]
                    used[h] += state.demand[0, job, r]
            left += capacity + settings.num_job_slots * settings.max_job_demand
        return image
