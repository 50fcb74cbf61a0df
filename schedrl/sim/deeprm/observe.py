"""What an agent sees of a cluster, written straight into the caller's arrays.

Layouts (S slots, R resources, H rows of the horizon):

`compact` [H + R*H + S*(1 + R) + 1], the original's vector, unscaled: booked jobs left at each row, free units
per resource and row, duration and demands of each slot, backlog size.
`image` [H, sum of capacities + R*S*D + W + 1], the original's picture: per resource the machine and each slot
(D columns), then the backlog (W columns, filled row by row), then the time since the last arrival.
`slots`: see `QUEUE_FEATURES` and `BACKLOG_FEATURES`. `state`: what a rule reads, unscaled.

Each is written after the mask [S + 1], so that where the mask says "fits now" it need not be asked again.
"""

import numpy as np

from schedrl.sim.jit import leaf

from .kernel import fits_now
from .state import BACKLOG, IDLE_RUN, NO_JOB, RUNNING, SINCE_ARRIVAL, TIME

QUEUE_FEATURES = (
    "present",
    "duration",
    "inverse_duration",
    "startable",
    "alignment",
    "waited",
)  # then R demands
BACKLOG_FEATURES = ("backlog", "booked", "idle", "idle_run", "since_arrival", "clock", "arrivals_over")
SCALARS = ("time", "since_arrival", "running", "backlog", "idle_run", "noop_legal")


@leaf
def compact(spec, at, ints, out):
    """Write the original's vector."""
    horizon, k = spec.horizon, spec.horizon
    if spec.lingering:
        _left_as_original(spec, at, ints, out)
    else:
        left = ints[RUNNING]
        ring = ints[TIME] % (horizon + 1)
        for h in range(horizon):
            left -= ints[at.finishing + ring]
            out[h] = left
            ring = ring + 1 if ring < horizon else 0
    first = ints[TIME] % horizon
    for r in range(spec.num_resources):
        row = at.free + r * horizon
        for h in range(first, horizon):
            out[k + h - first] = ints[row + h]
        for h in range(first):
            out[k + horizon - first + h] = ints[row + h]
        k += horizon
    for s in range(spec.num_slots):
        job = ints[at.slot + s]
        if job == NO_JOB:
            for i in range(spec.num_resources + 1):
                out[k + i] = 0
        else:
            out[k] = ints[at.duration + job]
            for r in range(spec.num_resources):
                out[k + 1 + r] = ints[at.demand + job * spec.num_resources + r]
        k += spec.num_resources + 1
    out[k] = ints[BACKLOG]


@leaf
def _left_as_original(spec, at, ints, out):
    """Count with Python's slices: a lingering job's finish lies behind and is counted from the end."""
    for h in range(spec.horizon):
        out[h] = ints[RUNNING]
    for i in range(ints[RUNNING]):
        left = ints[at.finish + ints[at.run_list + i]] - ints[TIME]
        if left < 0:
            left = max(0, spec.horizon + left)
        for h in range(left, spec.horizon):
            out[h] -= 1


@leaf
def image(spec, at, ints, scale, out):
    """Write the picture.

    `scale` [3] is the columns of a slot (the largest demand), the steps at which the time since the last
    arrival is full, and the value of an occupied cell (255 for bytes, 1 for floats).
    """
    slot_width, since_full, one = scale[0], scale[1], scale[2]
    out[:] = 0
    left = 0
    for r in range(spec.num_resources):
        row = ints[TIME] % spec.horizon
        capacity = ints[at.capacity + r]
        for h in range(spec.horizon):
            # Bookings take the leftmost free cells, so the cells in use are always the first ones.
            for c in range(left, left + capacity - ints[at.free + r * spec.horizon + row]):
                out[h, c] = one
            row = row + 1 if row < spec.horizon - 1 else 0
        left += capacity
        for s in range(spec.num_slots):
            job = ints[at.slot + s]
            if job != NO_JOB:
                width = min(ints[at.demand + job * spec.num_resources + r], slot_width)
                for h in range(min(ints[at.duration + job], spec.horizon)):
                    for c in range(left, left + width):
                        out[h, c] = one
            left += slot_width
    backlog_width = -(-spec.backlog_size // spec.horizon)
    for k in range(ints[BACKLOG]):
        out[k // backlog_width, left + k % backlog_width] = one
    out[:, left + backlog_width] = one * min(ints[SINCE_ARRIVAL], since_full) / since_full


@leaf
def slots(spec, at, ints, words, scale, mask, cluster, queue, backlog):
    """Write the structured observation, scaled to about [0, 1].

    Writes `cluster` [H, R], the free share, `queue` [S, 6 + R] and `backlog` [7]; reads `mask` [S + 1], the
    legal actions, and `scale` [6]: longest duration; steps of time since arrival, of idle run and of the
    clock at which each reads 1; whether the time since the last arrival and the clock are shown (0 or 1).
    """
    row = ints[TIME] % spec.horizon
    for h in range(spec.horizon):
        for r in range(spec.num_resources):
            cluster[h, r] = ints[at.free + r * spec.horizon + row] / ints[at.capacity + r]
        row = row + 1 if row < spec.horizon - 1 else 0
    for s in range(spec.num_slots):
        job = ints[at.slot + s]
        if job == NO_JOB:
            queue[s] = 0
            continue
        duration = ints[at.duration + job]
        queue[s, 0] = 1
        queue[s, 1] = duration / scale[0]
        queue[s, 2] = 1 / duration
        queue[s, 3] = fits_now(spec, at, ints, words, job) if spec.mask_physics else mask[s]
        alignment = 0.0
        for r in range(spec.num_resources):
            share = ints[at.demand + job * spec.num_resources + r] / ints[at.capacity + r]
            queue[s, 6 + r] = share
            alignment += share * cluster[0, r]
        queue[s, 4] = alignment / spec.num_resources
        queue[s, 5] = min(1.0, (ints[TIME] - ints[at.arrival + job]) / (4 * scale[0]))
    backlog[0] = np.log1p(ints[BACKLOG]) / np.log1p(max(1, spec.backlog_size))
    backlog[1] = min(2.0, ints[RUNNING] / spec.num_slots)
    backlog[2] = ints[RUNNING] == 0
    backlog[3] = min(1.0, ints[IDLE_RUN] / scale[2])
    backlog[4] = scale[4] * min(1.0, ints[SINCE_ARRIVAL] / scale[1])
    backlog[5] = scale[5] * min(1.0, ints[TIME] / scale[3])
    backlog[6] = scale[5] * (ints[TIME] >= spec.sequence_length - 1)


@leaf
def decision_state(spec, at, ints, words, mask, startable, duration, demand, arrival, free, scalars):
    """Write what a rule reads: visible jobs [S], free units [R, rows from now on], and SCALARS [6]."""
    row = ints[TIME] % spec.horizon
    for h in range(free.shape[1]):
        for r in range(spec.num_resources):
            free[r, h] = ints[at.free + r * spec.horizon + row]
        row = row + 1 if row < spec.horizon - 1 else 0
    for s in range(spec.num_slots):
        job = ints[at.slot + s]
        if job == NO_JOB:
            startable[s] = False
            duration[s] = 0
            arrival[s] = -1
            demand[s] = 0
            continue
        startable[s] = fits_now(spec, at, ints, words, job) if spec.mask_physics else mask[s]
        duration[s] = ints[at.duration + job]
        arrival[s] = ints[at.arrival + job]
        for r in range(spec.num_resources):
            demand[s, r] = ints[at.demand + job * spec.num_resources + r]
    scalars[0] = ints[TIME]
    scalars[1] = ints[SINCE_ARRIVAL]
    scalars[2] = ints[RUNNING]
    scalars[3] = ints[BACKLOG]
    scalars[4] = ints[IDLE_RUN]
    scalars[5] = mask[spec.num_slots]
