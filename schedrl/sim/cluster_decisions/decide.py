"""One decision of one cluster, compiled: what is legal, what an action does, how time goes on after it.

Functions take the `Spec` and a `Row`. Times are exact: the clock is set to the event's own time.
"""

import math

import numpy as np

from schedrl.sim.cluster import devices, kernel, waiting
from schedrl.sim.cluster.problem import AFTER_REJECTED
from schedrl.sim.cluster.schedule import FINISHED, REJECTED
from schedrl.sim.cluster.state import (
    ARRIVAL,
    ARRIVED,
    CHOSEN,
    CLOCK,
    DECISIONS,
    DEVICE,
    DURATION,
    END,
    FINISH,
    FIRST,
    HEAP,
    LATER_JOBS,
    MACHINE,
    REJECT,
    RUNNING_JOBS,
    START,
    STATUS,
    WAITING_JOBS,
)  # fmt: skip
from schedrl.sim.jit import leaf

from . import queue, rewards
from .spec import ELASTIC, ILLEGAL_TERM, JOB_ON_MACHINE, REJECTED_TERM, TERM_NAMES
from .state import (
    BURST_TIME,
    DONE,
    ENDED,
    FURTHER,
    GAP,
    ILLEGAL,
    LAST_ARRIVAL,
    LAST_BURST,
    LENGTH,
    NUM_JOBS,
    PLACED,
    PLACING,
    RATE,
    REFUSED,
    REJECTED_BY_POLICY,
    RETURN,
    RUN_WEIGHT,
    SPEED,
    TERMINATED,
    TERMS,
    TRUNCATED,
)  # fmt: skip

_fits, _fits_whole, _fullest, _put, _begin, _release = (
    kernel.fits,
    kernel.fits_whole,
    kernel.fullest,
    kernel.put,
    kernel.begin,
    kernel.release,
)
_enqueue, _dequeue, _resort, _weight = queue.enqueue, queue.dequeue, queue.resort, queue.weight
_overdue = queue.overdue
_let_go, _must_wait, _next_ready = waiting.let_go, waiting.must_wait, waiting.next_ready
_ready, _still_waits, _turn_away = waiting.ready, waiting.still_waits, waiting.turn_away
_pass_time, _job_finished, _cut_off = rewards.pass_time, rewards.job_finished, rewards.cut_off
_change_devices = devices.change


# -- what is legal -------------------------------------------------------------------------------------------


@leaf
def is_gang(c, job):
    """Tell whether the job has several instances."""
    return c.jobs[job, END] - c.jobs[job, FIRST] > 1


@leaf
def is_placing(c, job):
    """Tell whether the job is a gang of which some instances have their machine and others have not."""
    return c.n[PLACING] > 0 and c.queue[0] == job


@leaf
def left_of(c, job):
    """Return how many instances of the job have no machine yet."""
    return c.jobs[job, END] - c.jobs[job, FIRST] - (c.n[PLACED] if is_placing(c, job) else 0)


@leaf
def finds_room(c, job):
    """Tell whether all instances of the job find room at once, given that one does.

    Of a gang half placed they do: each instance takes the room of one and no more.
    """
    return not is_gang(c, job) or is_placing(c, job) or _fits_whole(c, job)


@leaf
def may_start(c, job):
    """Tell whether all instances of the job find room somewhere."""
    if is_gang(c, job):
        return finds_room(c, job)
    for m in range(c.free.shape[1]):  # noqa: SIM110 - Numba compiles no generators here
        if _fits(c, job, m):
            return True
    return False


@leaf
def first_goes_next(spec, c):
    """Tell whether the first job of the queue goes next: it has waited too long, or is half placed."""
    return c.n[WAITING_JOBS] > 0 and (c.n[PLACING] > 0 or _overdue(spec, c, c.queue[0]))


@leaf
def visible(spec, c):
    """Return how many waiting jobs an action can be about: the first alone if it goes next."""
    if first_goes_next(spec, c):
        return 1
    most = spec.num_slots if spec.action == JOB_ON_MACHINE else 1
    return min(c.n[WAITING_JOBS], most)


@leaf
def can_start(spec, c):
    """Tell whether any job that an action can be about may start."""
    for k in range(visible(spec, c)):  # noqa: SIM110 - the same
        if may_start(c, c.queue[k]):
            return True
    return False


@leaf
def more_to_come(c):
    """Tell whether there is an event to wait for."""
    return c.n[RUNNING_JOBS] > 0 or c.n[ARRIVED] < c.n[NUM_JOBS] or c.n[LATER_JOBS] > 0


@leaf
def may_wait(spec, c, startable):
    """Tell whether waiting is legal: not on an idle cluster unless allowed, nor if an overdue job fits."""
    if not startable:
        return True
    if first_goes_next(spec, c):
        return False
    return more_to_come(c) and (c.n[RUNNING_JOBS] > 0 or spec.wait_when_idle)


@leaf
def legal_choices(spec, c, mask):
    """Write which choices are legal [num_choices]: places, rejections, wait."""
    num_machines, slots = c.free.shape[1], visible(spec, c)
    mask[:] = False
    startable = False
    for k in range(slots):
        job = c.queue[k]
        whole = finds_room(c, job)
        for m in range(num_machines):
            if whole and _fits(c, job, m):
                mask[k * num_machines + m] = True
                startable = True
        if spec.allow_reject and c.n[PLACING] == 0:
            mask[_first_rejection(spec, num_machines) + k] = True
    mask[spec.num_choices - 1] = may_wait(spec, c, startable)


@leaf
def _first_rejection(spec, num_machines):
    return num_machines * (spec.num_slots if spec.action == JOB_ON_MACHINE else 1)


# -- time ----------------------------------------------------------------------------------------------------


@leaf
def _finish_jobs(spec, c):
    n = c.n
    while n[RUNNING_JOBS] > 0 and c.times[c.jobs[0, HEAP], FINISH] <= c.x[CLOCK]:
        job = c.jobs[0, HEAP]
        c.jobs[job, STATUS] = FINISHED
        _release(c, job)
        _let_go(c, job)
        n[DONE] += 1
        slowed = (1.0 - c.more[job, SPEED]) * _weight(spec, c, job)
        c.x[RUN_WEIGHT] = c.x[RUN_WEIGHT] - slowed if n[RUNNING_JOBS] > 0 else 0.0
        _job_finished(spec, c, job)


@leaf
def _take_arrivals(spec, c):
    n, x = c.n, c.x
    while n[ARRIVED] < n[NUM_JOBS] and c.times[n[ARRIVED], ARRIVAL] <= x[CLOCK]:
        job = n[ARRIVED]
        n[ARRIVED] += 1
        x[LAST_ARRIVAL] = x[CLOCK]
        x[RATE] += 1.0 / x[BURST_TIME]
        if x[RATE] * x[GAP] >= spec.burst_level:
            x[LAST_BURST] = x[CLOCK]
        if c.jobs[job, REJECT] > 0:
            c.jobs[job, STATUS] = REJECTED
            n[REFUSED] += 1
        elif not _must_wait(c, job):
            _enqueue(spec, c, job)
    job = _ready(c)
    while job >= 0:
        _enqueue(spec, c, job)
        job = _ready(c)


@leaf
def _next_time(c):
    n, time = c.n, _next_ready(c)
    if n[ARRIVED] < n[NUM_JOBS]:
        time = min(time, c.times[n[ARRIVED], ARRIVAL])
    if n[RUNNING_JOBS] > 0:
        time = min(time, c.times[c.jobs[0, HEAP], FINISH])
    return time


@leaf
def next_event(spec, c):
    """Let time pass to the next event, and let everything happen that happens then."""
    time = _next_time(c)
    if time > c.x[CLOCK]:
        _pass_time(spec, c, time - c.x[CLOCK])
        c.x[CLOCK] = time
    _finish_jobs(spec, c)
    _take_arrivals(spec, c)
    _resort(spec, c)


@leaf
def over(spec, c):
    """Return how the episode has ended, 0 if it has not."""
    n = c.n
    if n[ARRIVED] == n[NUM_JOBS]:
        if spec.continuing:
            return TRUNCATED
        if n[RUNNING_JOBS] + n[WAITING_JOBS] + n[LATER_JOBS] == 0:
            return TERMINATED
    return TRUNCATED if n[DECISIONS] - n[FURTHER] >= spec.max_decisions else 0


@leaf
def _to_decide(spec, c):
    """Tell whether there is something to decide now."""
    if spec.every_event:
        return True
    return can_start(spec, c) or (spec.allow_reject and c.n[WAITING_JOBS] > 0)


@leaf
def to_next_decision(spec, c, time_passes):
    """Let events happen until there is something to decide, or the episode is over.

    At least one happens if `time_passes`. (One call of `next_event`, as each is compiled anew.)
    """
    while time_passes or (over(spec, c) == 0 and not _to_decide(spec, c)):
        time_passes = False
        next_event(spec, c)


# -- actions -------------------------------------------------------------------------------------------------


@leaf
def _prefer_devices(c, job, i, wanted):
    """Move instance i to the devices from `wanted` on that have room."""
    g = c.n[DEVICE]
    if g < 0 or c.demand[job, g] == 0:
        return
    m, amount, left = c.instances[i, MACHINE], c.demand[job, g], c.demand[job, g]
    _change_devices(c.share, m, c.instances[i, CHOSEN], amount)
    count, chosen = c.share.shape[1], 0
    for step in range(count):
        d = wanted + step
        if d >= count:
            d -= count
        if left > 0 and c.share[m, d] >= min(amount, devices.ONE):
            chosen |= 1 << d
            left -= devices.ONE
    c.instances[i, CHOSEN] = chosen
    _change_devices(c.share, m, chosen, -amount)


@leaf
def _to_front(c, k):
    """Move the job at place k of the queue to the front."""
    job = c.queue[k]
    for place in range(k, 0, -1):
        c.queue[place] = c.queue[place - 1]
    c.queue[0] = job


@leaf
def _place(spec, c, k, m, device):
    """Place an instance of the job at place k of the queue on machine m; with the last the job starts.

    Under elastic actions it takes the devices from `device` on.
    """
    job = c.queue[k]
    i = c.jobs[job, END] - left_of(c, job)
    if c.n[PLACING] == 0:
        c.times[job, START] = c.x[CLOCK]
        c.times[job, DURATION] = c.more[job, LENGTH] / c.more[job, SPEED]
        _to_front(c, k)
    _put(c, job, i, m, _fullest(c, job, m))
    if spec.action == ELASTIC and device >= 0:
        _prefer_devices(c, job, i, device)
    c.n[PLACED] += 1
    c.n[PLACING] = i + 1 < c.jobs[job, END]
    if c.n[PLACING] == 0:
        c.n[PLACED] = 0
        _dequeue(spec, c, 0)
        _begin(c, job)
        c.x[RUN_WEIGHT] += (1.0 - c.more[job, SPEED]) * _weight(spec, c, job)


@leaf
def place_forced(spec, c, anywhere):
    """Place what is left of a gang while one machine alone has room, or on the first that has.

    Nobody is asked where there is nothing to choose, nor when the episode is over.
    """
    while c.n[PLACING] > 0:
        found, count = -1, 0
        for m in range(c.free.shape[1]):
            if _fits(c, c.queue[0], m):
                found = m if found < 0 else found
                count += 1
        if count > 1 and not anywhere:
            break
        _place(spec, c, 0, found, -1)


@leaf
def least(spec, asked):
    """Return the least whole amount that is no smaller a share than the minimum."""
    return int(math.ceil(spec.min_share * asked))


@leaf
def _grant(spec, c, job, m, r, ratio):
    """Set the demand to the share asked for, no more than is free; at least the least. 1.0 = all."""
    asked = c.asked[job, r] if r >= 0 else 0
    if asked == 0:
        return 1.0
    granted = min(max(int(ratio * asked), least(spec, asked)), asked)
    if not is_gang(c, job):
        granted = min(granted, c.free[r, m])
    c.demand[job, r] = granted
    return granted / asked


@leaf
def grant(spec, c, job, m, cpu_ratio, memory_ratio):
    """Fix what an elastic job gets on machine m, and how fast it will run."""
    cpu = _grant(spec, c, job, m, spec.cpu, cpu_ratio)
    memory = _grant(spec, c, job, m, spec.memory, memory_ratio)
    if is_gang(c, job) and not (_fits(c, job, m) and _fits_whole(c, job)):
        cpu = _grant(spec, c, job, m, spec.cpu, 0.0)
        memory = _grant(spec, c, job, m, spec.memory, 0.0)
    c.more[job, SPEED] = min(cpu, memory)


@leaf
def _reject(spec, c, k):
    job = _dequeue(spec, c, k)
    c.jobs[job, STATUS] = REJECTED
    c.jobs[job, REJECT] = REJECTED_BY_POLICY
    c.n[REFUSED] += 1 + _turn_away(c, job, AFTER_REJECTED)
    c.x[TERMS + REJECTED_TERM] += spec.reject_penalty


@leaf
def _is_legal(spec, c, action):
    """Tell whether a choice is legal, without the whole mask."""
    num_machines = c.free.shape[1]
    first = _first_rejection(spec, num_machines)
    if action == spec.num_choices - 1:
        return may_wait(spec, c, can_start(spec, c))
    if action >= first:
        return action - first < visible(spec, c) and c.n[PLACING] == 0
    k = action // num_machines
    if k >= visible(spec, c):
        return False
    job, m = c.queue[k], action - k * num_machines
    return _fits(c, job, m) and finds_room(c, job)


@leaf
def act(spec, c, action, device, cpu_ratio, memory_ratio):
    """Carry out an action that is legal; return whether it is to wait."""
    num_machines = c.free.shape[1]
    first = _first_rejection(spec, num_machines)
    if action == spec.num_choices - 1:
        return True
    if action >= first:
        _reject(spec, c, action - first)
    else:
        k = action // num_machines
        m = action - k * num_machines
        if c.n[PLACING] > 0:
            c.n[FURTHER] += 1
        elif spec.action == ELASTIC:
            grant(spec, c, c.queue[k], m, cpu_ratio, memory_ratio)
        _place(spec, c, k, m, device)
        place_forced(spec, c, False)
    return False


@leaf
def step(spec, c, action, device, cpu_ratio, memory_ratio):
    """Take one decision; return its reward. `n[ENDED]` tells afterwards whether the episode is over."""
    n, x = c.n, c.x
    for k in range(len(TERM_NAMES)):
        x[TERMS + k] = 0.0
    n[DECISIONS] += 1
    if _is_legal(spec, c, action):
        waits = act(spec, c, action, device, cpu_ratio, memory_ratio)
        to_next_decision(spec, c, waits and over(spec, c) == 0)
    else:
        n[ILLEGAL] += 1
        x[TERMS + ILLEGAL_TERM] = spec.illegal_penalty
    n[ENDED] = over(spec, c)
    if n[ENDED] == TRUNCATED:
        place_forced(spec, c, True)
        _cut_off(spec, c)
    reward = 0.0
    for k in range(len(TERM_NAMES)):
        reward += x[TERMS + k]
    x[RETURN] += reward
    return reward


@leaf
def outcome(spec, c):
    """Return the mean bounded slowdown of the jobs that were taken in, and counts: arrived, done, rejected.

    Unfinished jobs count with the time up to now.
    """
    total, count = 0.0, 0
    for job in range(c.n[ARRIVED]):
        if c.jobs[job, STATUS] != REJECTED and not _still_waits(c, job):
            end = c.times[job, FINISH] if c.jobs[job, STATUS] == FINISHED else c.x[CLOCK]
            total += max((end - c.times[job, ARRIVAL]) / max(c.more[job, LENGTH], spec.tau), 1.0)
            count += 1
    return total / count if count > 0 else np.nan, c.n[ARRIVED], c.n[DONE], c.n[REFUSED]
