"""Room on the machine as counts: free units per resource and row of the horizon. Works for any sizes.

A job is given as `want`, the column of its slot's duration and demands.
"""

from schedrl.sim.jit import leaf


@leaf
def first_clash(spec, at, ints, want, start):
    """Find the first row from `start` on in which the job does not fit, -1 if it fits to its end."""
    for h in range(start, start + ints[want]):
        for r in range(spec.num_resources):
            if ints[at.free + r * spec.horizon + h] < ints[want + 1 + r]:
                return h
    return -1


@leaf
def earliest_start(spec, at, ints, want, last):
    """Find the first row from which the job fits for its whole duration, -1 if none up to row `last`."""
    start = 0
    while start <= last:
        clash = first_clash(spec, at, ints, want, start)
        if clash < 0:
            return start
        start = clash + 1
    return -1


@leaf
def book(spec, at, ints, want, offset):
    """Take the job's demand out of rows `offset` to `offset + duration`."""
    for r in range(spec.num_resources):
        row = at.free + r * spec.horizon + offset
        for h in range(ints[want]):
            ints[row + h] -= ints[want + 1 + r]


@leaf
def advance(spec, at, ints):
    """Let one step pass: the rows of `left` and `free` move down by one and empty ones enter at the top."""
    rows = ints[at.left : at.queue]
    for k in range(rows.shape[0] - 1):
        rows[k] = rows[k + 1]
    rows[spec.horizon - 1] = 0
    for r in range(spec.num_resources):
        rows[(r + 2) * spec.horizon - 1] = ints[at.capacity + r]
