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

from .kernel import fits_now, wanted
from .state import BACKLOG, IDLE_RUN, RUNNING, SINCE_ARRIVAL, TIME

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
    """Write the original's vector: the state keeps it in this very order."""
    size = out.shape[0] - 1
    shown = ints[at.left : at.left + size]
    for k in range(size):
        out[k] = shown[k]
    out[size] = ints[BACKLOG]
    if spec.lingering:
        _left_as_original(spec, at, ints, out)


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
    full, empty = out.dtype.type(one), out.dtype.type(0)
    since = out.dtype.type(one * min(ints[SINCE_ARRIVAL], since_full) / since_full)
    # Of each column, how many cells from the top are taken: the picture is then one comparison, 32 cells at a
    # time as all numbers are small. Drawn job by job, the processor guesses wrong at every edge.
    taken = np.zeros(out.shape[1], np.int16)
    left = 0
    for r in range(spec.num_resources):
        left += ints[at.capacity + r]
        for s in range(spec.num_slots):
            want = wanted(spec, at, s)
            duration, demand = np.int16(ints[want]), ints[want + 1 + r]
            columns = taken[left : left + slot_width]
            for c in range(columns.shape[0]):
                columns[c] = duration if c < demand else np.int16(0)
            left += slot_width
    width = -(-spec.backlog_size // spec.horizon)
    for c in range(min(width, ints[BACKLOG])):
        taken[left + c] = (ints[BACKLOG] - c + width - 1) // width
    for h in range(spec.horizon):
        row, below = out[h], np.int16(h)
        for c in range(row.shape[0]):
            row[c] = full if below < taken[c] else empty
        row[left + width] = since
    _machine(spec, at, ints, slot_width, full, out)


@leaf
def _machine(spec, at, ints, slot_width, full, out):
    """Draw the machine: bookings take the leftmost free cells, so those in use are the first of each row."""
    left = 0
    for r in range(spec.num_resources):
        capacity = ints[at.capacity + r]
        for h in range(spec.horizon):
            cells = out[h, left : left + capacity - ints[at.free + r * spec.horizon + h]]
            for c in range(cells.shape[0]):
                cells[c] = full
        left += capacity + spec.num_slots * slot_width


@leaf
def slots(spec, at, ints, words, scale, mask, cluster, queue, backlog):
    """Write the structured observation, scaled to about [0, 1].

    Writes `cluster` [H, R], the free share, `queue` [S, 6 + R] and `backlog` [7]; reads `mask` [S + 1], the
    legal actions, and `scale` [7 + R]: reciprocals (divisions are what takes longest here) of the longest
    duration, of the steps of time since arrival, of idle run and of the clock at which each reads 1, and of
    log(1 + full backlog); whether time since arrival and clock are shown (0 or 1); reciprocal capacities.
    """
    for r in range(spec.num_resources):
        row = at.free + r * spec.horizon
        for h in range(spec.horizon):
            cluster[h, r] = ints[row + h] * scale[7 + r]
    for s in range(spec.num_slots):
        want = wanted(spec, at, s)
        duration = ints[want]
        if duration == 0:
            queue[s] = 0
            continue
        queue[s, 0] = 1
        queue[s, 1] = duration * scale[0]
        queue[s, 2] = 1 / duration
        queue[s, 3] = fits_now(spec, at, ints, words, s) if spec.mask_physics else mask[s]
        alignment = 0.0
        for r in range(spec.num_resources):
            share = ints[want + 1 + r] * scale[7 + r]
            queue[s, 6 + r] = share
            alignment += share * cluster[0, r]
        queue[s, 4] = alignment / spec.num_resources
        queue[s, 5] = min(1.0, (ints[TIME] - ints[at.came + s]) * (0.25 * scale[0]))
    backlog[0] = np.log1p(ints[BACKLOG]) * scale[4] if ints[BACKLOG] > 0 else 0.0
    backlog[1] = min(2.0, ints[RUNNING] / spec.num_slots)
    backlog[2] = ints[RUNNING] == 0
    backlog[3] = min(1.0, ints[IDLE_RUN] * scale[2])
    backlog[4] = scale[5] * min(1.0, ints[SINCE_ARRIVAL] * scale[1])
    backlog[5] = scale[6] * min(1.0, ints[TIME] * scale[3])
    backlog[6] = scale[6] * (ints[TIME] >= spec.sequence_length - 1)


@leaf
def decision_state(spec, at, ints, words, mask, startable, duration, demand, arrival, free, scalars):
    """Write what a rule reads: visible jobs [S], free units [R, rows from now on], and SCALARS [6]."""
    for h in range(free.shape[1]):
        for r in range(spec.num_resources):
            free[r, h] = ints[at.free + r * spec.horizon + h]
    for s in range(spec.num_slots):
        want = wanted(spec, at, s)
        startable[s] = fits_now(spec, at, ints, words, s) if spec.mask_physics else mask[s]
        duration[s] = ints[want]
        arrival[s] = ints[at.came + s]
        for r in range(spec.num_resources):
            demand[s, r] = ints[want + 1 + r]
    scalars[0] = ints[TIME]
    scalars[1] = ints[SINCE_ARRIVAL]
    scalars[2] = ints[RUNNING]
    scalars[3] = ints[BACKLOG]
    scalars[4] = ints[IDLE_RUN]
    scalars[5] = mask[spec.num_slots]
