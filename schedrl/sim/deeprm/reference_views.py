"""What the original's agent sees of the cluster: the picture and the compact vector.

Apart from `reference.py` because seeing changes nothing: both are functions of the simulator's state.
The picture is the state of the paper (HotNets 2016, section 3.2, figure 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .reference import ReferenceSimulator

PALETTE: Sequence[float] = tuple(np.arange(1 / 40, 1, 1 / 40).tolist())
"""The original's 39 colours, 0.025 to 0.975. The sums of `arange` are kept: 0.575 is 0.5750000000000001."""


def shuffled_palette(rng: np.random.Generator | np.random.RandomState) -> list[float]:
    """Shuffle the colours, as the original does at every reset (from the global generator there)."""
    colours = np.array(PALETTE)
    rng.shuffle(colours)
    return colours.tolist()


def next_colour(sim: ReferenceSimulator) -> float:
    """Pick the first colour no job on the canvas has; when all are taken, start again from the first.

    The original fails at the 40th job in view.
    """
    used = {job.colour for job in sim.running if job.finish > sim.time and any(job.demand)}
    free = (colour for colour in sim.palette if colour not in used)
    return next(free, sim.palette[len(sim.running) % len(sim.palette)])


def compact(sim: ReferenceSimulator) -> np.ndarray:
    """Build the compact vector, float32 [H * (R + 1) + S * (R + 1) + 1], unscaled.

    Parts: jobs still booked after each row of the horizon [H]; units free, resource by resource [R * H];
    duration and demands of each slot, 0 if empty [S * (R + 1)]; jobs in the backlog [1].
    """
    horizon, resources = sim.spec.horizon, range(sim.spec.num_resources)
    remaining = [len(sim.running)] * horizon
    for job in sim.running:
        # A job that lingers has a negative row here, which counts from the horizon's end as in the original.
        for row in range(horizon)[job.finish - sim.time :]:
            remaining[row] -= 1
    values = remaining + [row[resource] for resource in resources for row in sim.free]
    for waiting in sim.slots:
        values += (waiting.duration, *waiting.demand) if waiting else (0,) * (1 + len(resources))
    return np.array([*values, len(sim.backlog)], np.float32)


def image(sim: ReferenceSimulator, colours: bool = False) -> np.ndarray:
    """Draw the picture, float64 [H, sum(capacity) + R * S * max_job_demand + ceil(K / H) + 1] in [0, 1].

    From the left, for each resource: the canvas (a cell per unit, taken cells first), then a block for each
    slot, `duration` rows by `demand` columns; then the backlog, a cell per job, filled row by row; then a
    column of the time since the last arrival. Rows are steps from now. A taken cell is 1, or the colour of
    its job: each row of the canvas holds the booked jobs in booking order, without gaps.
    """
    spec = sim.spec
    parts = [
        part
        for resource in range(spec.num_resources)
        for part in (_canvas(sim, resource, colours), *_slots(sim, resource))
    ]
    width = -(-spec.backlog_size // spec.horizon)
    backlog = np.zeros(spec.horizon * width)
    backlog[: len(sim.backlog)] = 1
    since = np.full((spec.horizon, 1), sim.since_new / spec.max_track_since_new)
    return np.hstack([*parts, backlog.reshape(spec.horizon, width), since])


def _canvas(sim: ReferenceSimulator, resource: int, colours: bool) -> np.ndarray:
    canvas = np.zeros((sim.spec.horizon, int(sim.spec.capacity[resource])))
    filled = [0] * sim.spec.horizon
    for job in sim.running:
        for row in range(max(job.start - sim.time, 0), job.finish - sim.time):
            end = filled[row] + job.demand[resource]
            canvas[row, filled[row] : end] = job.colour if colours else 1
            filled[row] = end
    return canvas


def _slots(sim: ReferenceSimulator, resource: int) -> list[np.ndarray]:
    blocks = np.zeros((sim.spec.num_slots, sim.spec.horizon, sim.spec.max_job_demand))
    for block, job in zip(blocks, sim.slots, strict=True):
        if job:
            block[: job.duration, : job.demand[resource]] = 1
    return list(blocks)
