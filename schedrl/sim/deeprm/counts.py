"""Room on the machine as counts: free units per resource and row of the horizon. Works for any sizes.

Rows are a ring, so that a time step touches one row only: row `time + h` lies at that number modulo H.
"""

from schedrl.sim.jit import leaf

from .state import TIME


@leaf
def first_clash(spec, at, ints, job, start):
    """Find the first row from `start` on in which the job does not fit, -1 if it fits to its end."""
    row = (ints[TIME] + start) % spec.horizon
    demand = at.demand + job * spec.num_resources
    for h in range(start, start + ints[at.duration + job]):
        for r in range(spec.num_resources):
            if ints[at.free + r * spec.horizon + row] < ints[demand + r]:
                return h
        row += 1
        if row == spec.horizon:
            row = 0
    return -1


@leaf
def earliest_start(spec, at, ints, job, last):
    """Find the first row from which the job fits for its whole duration, -1 if none up to row `last`."""
    start = 0
    while start <= last:
        clash = first_clash(spec, at, ints, job, start)
        if clash < 0:
            return start
        start = clash + 1
    return -1


@leaf
def book(spec, at, ints, job, offset):
    """Take the job's demand out of rows `offset` to `offset + duration`."""
    row = (ints[TIME] + offset) % spec.horizon
    demand = at.demand + job * spec.num_resources
    for _ in range(ints[at.duration + job]):
        for r in range(spec.num_resources):
            ints[at.free + r * spec.horizon + row] -= ints[demand + r]
        row += 1
        if row == spec.horizon:
            row = 0


@leaf
def advance(spec, at, ints):
    """Let one step pass: the row that leaves the horizon comes back empty. Call before TIME moves."""
    row = ints[TIME] % spec.horizon
    for r in range(spec.num_resources):
        ints[at.free + r * spec.horizon + row] = ints[at.capacity + r]
