"""Running jobs by the time at which they finish: a binary heap in which every job knows its position."""

from schedrl.sim.jit import leaf

from .state import FINISH, HEAP, POSITION, RUNNING_JOBS


@leaf
def _set(c, i, job):
    c.jobs[i, HEAP] = job
    c.jobs[job, POSITION] = i


@leaf
def _sooner(c, job, other):
    return c.times[job, FINISH] < c.times[other, FINISH]


@leaf
def _up(c, i, job):
    while i > 0 and _sooner(c, job, c.jobs[(i - 1) >> 1, HEAP]):
        _set(c, i, c.jobs[(i - 1) >> 1, HEAP])
        i = (i - 1) >> 1
    _set(c, i, job)


@leaf
def push(c, job):
    """Add a job that runs from now on."""
    _up(c, c.n[RUNNING_JOBS], job)
    c.n[RUNNING_JOBS] += 1


@leaf
def remove(c, job):
    """Take a job out."""
    last = c.n[RUNNING_JOBS] - 1
    i, moved = c.jobs[job, POSITION], c.jobs[last, HEAP]
    c.jobs[job, POSITION] = -1
    c.n[RUNNING_JOBS] = last
    if moved == job:
        return
    below = 2 * i + 1
    while below < last:
        if below + 1 < last and _sooner(c, c.jobs[below + 1, HEAP], c.jobs[below, HEAP]):
            below += 1
        if not _sooner(c, c.jobs[below, HEAP], moved):
            break
        _set(c, i, c.jobs[below, HEAP])
        i, below = below, 2 * below + 1
    _up(c, i, moved)
