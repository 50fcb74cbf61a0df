"""Room on the machine as bits: one machine word for every amount of every resource.

Bit h of word v of a resource says that at least v units are free in row h of the horizon. Whether a job fits
is then an AND of one word per resource, the first start a few shifts (a run of `d` set bits is found by
doubling: AND with itself shifted by 1, 2, 4, ...), and time passes by one shift. The words are an index over
the counts, kept beside them; they need a horizon of at most 64 rows. A job is given as `want`, the column of
its slot's duration and demands.
"""

import numpy as np

from schedrl.sim.jit import leaf

ONE = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@leaf
def low_bits(count):
    """Return a word with the lowest `count` (0..64) bits set."""
    return ALL if count >= 64 else (ONE << np.uint64(count)) - ONE


@leaf
def clear(spec, words):
    """Make every amount free in every row."""
    for k in range(words.shape[0]):
        words[k] = low_bits(spec.horizon)


@leaf
def rows_that_fit(spec, at, ints, words, want, resources):
    """Return the word of rows in which the job's demand is free."""
    if spec.off_by_one:  # elsewhere, a job that is too large was rejected
        for r in range(resources):
            if ints[want + 1 + r] > ints[at.capacity + r]:
                return np.uint64(0)
    word = ALL
    for r in range(resources):
        word &= words[r * (spec.max_capacity + 1) + ints[want + 1 + r]]
    return word


@leaf
def fits_at_once(spec, at, ints, words, want, resources):
    """Tell whether there is a job and it fits from row 0 to its end.

    Computed for empty slots too: whether a slot is empty is anyone's guess, and guessing wrong costs more.
    """
    duration = ints[want]
    rows = ALL >> np.uint64((64 - duration) & 63)
    return (duration > 0) & ((rows_that_fit(spec, at, ints, words, want, resources) & rows) == rows)


@leaf
def earliest_start(spec, at, ints, words, want, last):
    """Find the first row from which the job fits for its whole duration, -1 if none up to row `last`."""
    word = rows_that_fit(spec, at, ints, words, want, spec.num_resources)
    duration = ints[want]
    length = 1
    while 2 * length <= duration:
        word &= word >> np.uint64(length)
        length *= 2
    word &= word >> np.uint64(duration - length)
    start = 0
    while start <= last and word:
        if word & ONE:
            return start
        word >>= ONE
        start += 1
    return -1


@leaf
def book(spec, at, ints, words, want, offset):
    """Take the job's demand out of rows `offset` to `offset + duration`."""
    rows = low_bits(ints[want]) << np.uint64(offset)
    for r in range(spec.num_resources):
        demand = ints[want + 1 + r]
        capacity = ints[at.capacity + r]
        first = r * (spec.max_capacity + 1)
        for v in range(1, capacity + 1):
            more = rows if v + demand <= capacity else np.uint64(0)
            words[first + v] = (words[first + v] & ~rows) | (words[first + min(v + demand, capacity)] & more)


@leaf
def advance(spec, words):
    """Let one step pass: every word moves down a row and an empty row enters at the top."""
    top = ONE << np.uint64(spec.horizon - 1)
    for k in range(words.shape[0]):
        words[k] = (words[k] >> ONE) | top
