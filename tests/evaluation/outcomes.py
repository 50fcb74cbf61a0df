"""Small outcomes for the tests of the evaluation."""

import numpy as np

from schedrl.sim.deeprm.outcome import JobStatus, Outcome


def make_outcome(jobs, end, capacity=(10, 10), demand=None, cut_off=False) -> Outcome:
    """Build one sequence, or several, of jobs (arrival, finish or None, duration, status)."""
    sequences = jobs if isinstance(jobs[0], list) else [jobs]
    ends = np.broadcast_to(np.asarray(end, np.int32), (len(sequences),)).copy()
    shape = (len(sequences), max(map(len, sequences)))
    arrival = np.full(shape, np.iinfo(np.int32).max, np.int32)
    duration, start, finish = (
        np.zeros(shape, np.int32),
        np.full(shape, -1, np.int32),
        np.full(shape, -1, np.int32),
    )
    status = np.full(shape, JobStatus.ABSENT, np.int8)
    for x, sequence in enumerate(sequences):
        for j, (enter, done, length, state) in enumerate(sequence):
            arrival[x, j], duration[x, j], status[x, j] = enter, length, state
            if done is not None:
                start[x, j], finish[x, j] = done - length, done
    units = np.ones((*shape, len(capacity)), np.int32) if demand is None else np.asarray(demand, np.int32)
    zeros = np.zeros(len(sequences))
    return Outcome(
        arrival=arrival, duration=duration, demand=units.reshape(*shape, -1), start=start, finish=finish,
        status=status, end_time=ends, cut_off=np.full(len(sequences), cut_off),
        decisions=zeros.astype(np.int64), idle_steps=zeros.astype(np.int32), ret=zeros,
        capacity=np.asarray(capacity, np.int32),
    )  # fmt: skip


def random_outcome(seed, num_sequences=50, num_jobs=30, stretch=1.0) -> Outcome:
    """Build finished jobs with random waits, scaled by `stretch`."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(0, 50, (num_sequences, num_jobs)), axis=1)
    duration = np.where(
        rng.random(arrival.shape) < 0.8,
        rng.integers(1, 4, arrival.shape),
        rng.integers(10, 16, arrival.shape),
    )
    wait = (stretch * rng.exponential(5, arrival.shape)).astype(int)
    jobs = [
        [(int(a), int(a + w + d), int(d), JobStatus.FINISHED) for a, w, d in zip(*row, strict=True)]
        for row in zip(arrival, wait, duration, strict=True)
    ]
    ends = (arrival + wait + duration).max(axis=1)
    demand = rng.integers(1, 6, (*arrival.shape, 2))
    return make_outcome(jobs, ends, demand=demand)
