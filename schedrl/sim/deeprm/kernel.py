"""One decision of one cluster, compiled: the rules of `reference.py` over a row of `State`.

Every function takes `(spec, at, ints, reals, words)` or the first few of them: the physics, the layout and
one environment's row of each array, so that a batch may be walked in order or by several threads. `counts.py`
and `bitplanes.py` answer where a job fits; all else is here once.
"""

import numpy as np
from numpy.typing import ArrayLike

from schedrl.sim.jit import leaf, named, njit

from . import bitplanes, counts
from .spec import CONTINUING, NO_LIMIT, NO_NEW_JOB, Spec
from .state import (
    BACKLOG,
    BACKLOG_HEAD,
    BACKLOG_WEIGHT,
    BOOKED,
    DECISIONS,
    DROPPED,
    ENDED,
    IDLE_RUN,
    IDLE_STEPS,
    INT_HEADER,
    NEXT_JOB,
    NO_JOB,
    NOT_STARTED,
    OCCUPIED,
    OWED,
    REJECTED,
    RETURN,
    RUNNING,
    RUNNING_WEIGHT,
    SEQUENCE,
    SINCE_ARRIVAL,
    SKIPPED,
    SLOTS_WEIGHT,
    TERMINATED,
    TERMS,
    TIME,
    TRUNCATED,
    Layout,
)

_counts_earliest, _bits_earliest, _bits_at_once = (
    counts.earliest_start,
    bitplanes.earliest_start,
    bitplanes.fits_at_once,
)
_first_clash = counts.first_clash
NUM_PHYSICS = len(Spec._fields)
_counts_book, _bits_book = counts.book, bitplanes.book
_counts_advance, _bits_advance, _bits_clear = counts.advance, bitplanes.advance, bitplanes.clear


@leaf
def opened(rules):
    """Return the spec and the layout by name, from the numbers that `State.arrays` hands over.

    To be called inside a loop over clusters: Numba doesn't take NamedTuples into its threads.
    """
    return named(Spec, rules, 0), named(Layout, rules, NUM_PHYSICS)


@leaf
def wanted(spec, at, slot):
    """Return the column of the duration and demands of the job in a slot."""
    return at.queue + slot * (1 + spec.num_resources)


@leaf
def fits_now(spec, at, ints, words, slot):
    """Tell whether the job in a slot (empty: no) can start in this step and run to its end."""
    want = wanted(spec, at, slot)
    if spec.off_by_one and ints[want] >= spec.horizon:  # elsewhere, such a job was rejected
        return False
    if spec.bitplanes:
        return _bits_at_once(spec, at, ints, words, want, spec.num_resources)
    return ints[want] > 0 and _first_clash(spec, at, ints, want, 0) < 0


@leaf
def bookable_at(spec, at, ints, words, slot):
    """Find the row in which the physics would start the job in a slot, -1 if it would not (or no job)."""
    if not spec.allow_reservation:
        return 0 if fits_now(spec, at, ints, words, slot) else -1
    want = wanted(spec, at, slot)
    last = spec.horizon - ints[want] - (1 if spec.off_by_one else 0)
    if ints[want] == 0 or last < 0:
        return -1
    if spec.bitplanes:
        return _bits_earliest(spec, at, ints, words, want, last)
    return _counts_earliest(spec, at, ints, want, last)


@leaf
def _any_fits_now(spec, at, ints, words):
    for slot in range(spec.num_slots):  # noqa: SIM110 - Numba compiles no generators here
        if fits_now(spec, at, ints, words, slot):
            return True
    return False


@leaf
def legal_actions(spec, at, ints, words, mask):
    """Write which actions are legal into `mask` [S + 1], the no-op last."""
    if spec.bitplanes and spec.num_resources == 2 and not spec.off_by_one:
        # The usual case: a constant number of resources lets their loop be written out, at half the time.
        for slot in range(spec.num_slots):
            mask[slot] = _bits_at_once(spec, at, ints, words, at.queue + 3 * slot, 2)
    else:
        for slot in range(spec.num_slots):
            mask[slot] = fits_now(spec, at, ints, words, slot)
    if spec.mask_physics and spec.allow_reservation:
        for slot in range(spec.num_slots):
            mask[slot] = bookable_at(spec, at, ints, words, slot) >= 0
    mask[spec.num_slots] = True
    if ints[IDLE_RUN] >= spec.idle_limit and spec.idle_limit != NO_LIMIT and ints[RUNNING] == 0:
        mask[spec.num_slots] = not _any_fits_now(spec, at, ints, words)


@leaf
def reset(spec, at, ints, reals, words):
    """Empty the cluster and admit the jobs that arrive at time 0. The job columns must be loaded."""
    number = ints[SEQUENCE]
    ints[:INT_HEADER] = 0
    ints[SEQUENCE] = number
    reals[:] = 0.0
    for j in range(at.jobs):
        ints[at.finish + j] = -1
        ints[at.booking + j] = -1
        ints[at.start + j] = _first_state(spec, at, ints, j)
        if ints[at.duration + j] > 0:
            reals[at.weight + j] = 1.0 if spec.count_jobs else 1.0 / ints[at.duration + j]
    ints[at.slot : at.slot + spec.num_slots] = NO_JOB
    ints[at.came : at.came + spec.num_slots] = -1
    for r in range(spec.num_resources):
        first = at.free + r * spec.horizon
        ints[first : first + spec.horizon] = ints[at.capacity + r]
    ints[at.left : at.left + spec.horizon] = 0
    ints[at.queue : at.queue + spec.num_slots * (1 + spec.num_resources)] = 0
    if spec.bitplanes:
        _bits_clear(spec, words)
    # A job pays in every step from its arrival on; those of step 0 pay for it in the first step that passes.
    dropped = _admit(spec, at, ints, reals)
    reals[OWED] = spec.hold_penalty * reals[SLOTS_WEIGHT]
    reals[OWED + 1] = spec.dismiss_penalty * reals[BACKLOG_WEIGHT]
    reals[OWED + 2] = spec.drop_penalty * dropped


@leaf
def _first_state(spec, at, ints, job):
    """Say whether a job will be let in; with the horizon's quirk on, those that never fit enter and wait."""
    if spec.skip_first and ints[at.arrival + job] == 0:
        return SKIPPED
    if ints[at.duration + job] < 1:
        return REJECTED
    if spec.off_by_one:
        return NOT_STARTED
    if ints[at.duration + job] > spec.horizon:
        return REJECTED
    for r in range(spec.num_resources):
        if ints[at.demand + job * spec.num_resources + r] > ints[at.capacity + r]:
            return REJECTED
    return NOT_STARTED


@leaf
def _admit(spec, at, ints, reals):
    """Let the jobs that arrive now into a slot, the backlog, or nowhere; return how many were dropped."""
    dropped = 0
    while ints[NEXT_JOB] < at.jobs and ints[at.arrival + ints[NEXT_JOB]] <= ints[TIME]:
        job = ints[NEXT_JOB]
        ints[NEXT_JOB] += 1
        if ints[at.start + job] != NOT_STARTED:
            continue
        ints[SINCE_ARRIVAL] = 0
        if ints[OCCUPIED] < spec.num_slots:
            slot = 0
            while ints[at.slot + slot] != NO_JOB:
                slot += 1
            _place(spec, at, ints, reals, slot, job)
            ints[OCCUPIED] += 1
        elif ints[BACKLOG] < spec.backlog_size:
            if ints[BACKLOG] == 0:
                ints[BACKLOG_HEAD] = job
            ints[BACKLOG] += 1
            reals[BACKLOG_WEIGHT] += reals[at.weight + job]
        else:
            ints[at.start + job] = DROPPED
            dropped += 1
    return dropped


@leaf
def _place(spec, at, ints, reals, slot, job):
    """Put a job into a slot."""
    ints[at.slot + slot] = job
    ints[at.came + slot] = ints[at.arrival + job]
    want = wanted(spec, at, slot)
    ints[want] = ints[at.duration + job]
    for r in range(spec.num_resources):
        ints[want + 1 + r] = ints[at.demand + job * spec.num_resources + r]
    reals[SLOTS_WEIGHT] += reals[at.weight + job]


@leaf
def step(spec, at, ints, reals, words, action):
    """Take one decision, one of 0..S. Return the reward; ENDED says whether and how the episode is over.

    An empty slot, a job that cannot be booked and the no-op all let time pass.
    """
    ints[DECISIONS] += 1
    if action < spec.num_slots:
        offset = bookable_at(spec, at, ints, words, action)
        if offset >= 0:
            _book(spec, at, ints, reals, words, action, offset)
            reals[TERMS : TERMS + 4] = 0.0
            return 0.0
    return _pass_time(spec, at, ints, reals, words)


@leaf
def _book(spec, at, ints, reals, words, slot, offset):
    job, want = ints[at.slot + slot], wanted(spec, at, slot)
    _counts_book(spec, at, ints, want, offset)
    if spec.bitplanes:
        _bits_book(spec, at, ints, words, want, offset)
    for h in range(at.left, at.left + offset + ints[want]):
        ints[h] += 1
    finish = ints[TIME] + offset + ints[want]
    ints[at.start + job] = ints[TIME] + offset
    ints[at.finish + job] = finish
    ints[at.booking + job] = ints[BOOKED]
    ints[BOOKED] += 1
    if spec.lingering:
        ints[at.run_list + ints[RUNNING]] = job
    ints[RUNNING] += 1
    weight = reals[at.weight + job]
    reals[at.finishing_weight + finish % (spec.horizon + 1)] += weight
    reals[RUNNING_WEIGHT] += weight
    reals[SLOTS_WEIGHT] -= weight
    _refill(spec, at, ints, reals, slot)
    if ints[OCCUPIED] == 0:
        reals[SLOTS_WEIGHT] = 0.0  # no rounding error outlives an empty queue


@leaf
def _refill(spec, at, ints, reals, slot):
    """Move the head of the backlog into the slot that was freed."""
    if ints[BACKLOG] == 0:
        ints[at.slot + slot] = NO_JOB
        ints[at.came + slot] = -1
        want = wanted(spec, at, slot)
        ints[want : want + 1 + spec.num_resources] = 0
        ints[OCCUPIED] -= 1
        return
    job = ints[BACKLOG_HEAD]
    _place(spec, at, ints, reals, slot, job)
    ints[BACKLOG] -= 1
    reals[BACKLOG_WEIGHT] -= reals[at.weight + job]
    if ints[BACKLOG] == 0:
        reals[BACKLOG_WEIGHT] = 0.0
        return
    job += 1
    while ints[at.start + job] != NOT_STARTED:
        job += 1
    ints[BACKLOG_HEAD] = job


@leaf
def _pass_time(spec, at, ints, reals, words):
    if ints[RUNNING] == 0 and _any_fits_now(spec, at, ints, words):
        ints[IDLE_RUN] += 1
        ints[IDLE_STEPS] += 1
    else:
        ints[IDLE_RUN] = 0
    _counts_advance(spec, at, ints)
    if spec.bitplanes:
        _bits_advance(spec, words)
    ints[TIME] += 1
    ints[SINCE_ARRIVAL] += 1
    _retire(spec, at, ints, reals)
    ints[ENDED] = _ending(spec, ints)
    dropped = _admit(spec, at, ints, reals) if ints[ENDED] == 0 else 0
    reals[TERMS] = spec.delay_penalty * reals[RUNNING_WEIGHT]
    reals[TERMS + 1] = spec.hold_penalty * reals[SLOTS_WEIGHT]
    reals[TERMS + 2] = spec.dismiss_penalty * reals[BACKLOG_WEIGHT]
    reals[TERMS + 3] = spec.drop_penalty * dropped
    if ints[TIME] == 1:
        for k in range(3):
            reals[TERMS + 1 + k] += reals[OWED + k]
    reward = reals[TERMS] + reals[TERMS + 1] + reals[TERMS + 2] + reals[TERMS + 3]
    reals[RETURN] += reward
    return reward


@leaf
def _retire(spec, at, ints, reals):
    """Take the jobs that finish now off the machine."""
    if spec.lingering:
        _retire_as_original(at, ints, reals)
    else:
        ints[RUNNING] = ints[at.left]
        ring = at.finishing_weight + ints[TIME] % (spec.horizon + 1)
        reals[RUNNING_WEIGHT] -= reals[ring]
        reals[ring] = 0.0
    if ints[RUNNING] == 0:
        reals[RUNNING_WEIGHT] = 0.0


@leaf
def _retire_as_original(at, ints, reals):
    """Remove from the list while walking it: the job behind a removed one is not looked at in this step."""
    i = 0
    while i < ints[RUNNING]:
        job = ints[at.run_list + i]
        if ints[at.finish + job] <= ints[TIME]:
            for k in range(at.run_list + i, at.run_list + ints[RUNNING] - 1):
                ints[k] = ints[k + 1]
            ints[RUNNING] -= 1
            reals[RUNNING_WEIGHT] -= reals[at.weight + job]
        i += 1


@leaf
def _ending(spec, ints):
    if spec.termination == NO_NEW_JOB:
        return TERMINATED if ints[TIME] >= spec.sequence_length else 0
    if spec.termination == CONTINUING:
        return TRUNCATED if ints[TIME] >= min(spec.episode_max_length, spec.sequence_length) else 0
    empty = ints[RUNNING] == 0 and ints[OCCUPIED] == 0 and ints[BACKLOG] == 0
    if ints[TIME] >= spec.sequence_length and empty:
        return TERMINATED
    return TRUNCATED if ints[TIME] > spec.episode_max_length else 0


SUMMARY = ("return", "decisions", "mean slowdown so far", "time", "number of the sequence")


@leaf
def summarise(at, ints, reals, out):
    """Write SUMMARY of the episode so far."""
    out[0] = reals[RETURN]
    out[1] = ints[DECISIONS]
    out[2] = mean_slowdown(at, ints)
    out[3] = ints[TIME]
    out[4] = ints[SEQUENCE]


@leaf
def mean_slowdown(at, ints):
    """Return the mean slowdown of the jobs that came, those not finished up to now; NaN if none came."""
    total, count = 0.0, 0
    for j in range(ints[NEXT_JOB]):
        if ints[at.start + j] != SKIPPED and ints[at.duration + j] > 0:
            finish = ints[at.finish + j]
            until = finish if 0 <= finish <= ints[TIME] else ints[TIME]
            total += (until - ints[at.arrival + j]) / ints[at.duration + j]
            count += 1
    return total / count if count else np.nan


@njit
def first_outside(actions, num_slots):
    """Return the place of the first action that is none of 0..S, -1 if all are."""
    for n in range(actions.shape[0]):
        if actions[n] < 0 or actions[n] > num_slots:
            return n
    return -1


def check_actions(actions: ArrayLike, num_envs: int, num_slots: int) -> np.ndarray:
    """Return the actions as int64 [num_envs]; the kernels take nothing else and look at nothing twice.

    Raises:
        ValueError: another shape, no whole numbers, or one outside [0, num_slots], naming it.
    """
    actions = np.asarray(actions)
    if actions.shape != (num_envs,) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"actions must be {num_envs} whole numbers, got {actions.dtype} of shape {list(actions.shape)}"
        )
    if actions.dtype != np.int64:
        actions = actions.astype(np.int64)
    wrong = first_outside(actions, num_slots)
    if wrong >= 0:
        raise ValueError(
            f"action {actions[wrong]} of environment {wrong} is outside 0..{num_slots} ({num_slots} = no-op)"
        )
    return actions
