"""Numbered sequences: pure functions of their number, in families that never meet."""

import itertools

import numpy as np
import pytest

from schedrl.settings import UserError
from schedrl.workload import FAMILIES, DeepRMJobs, SequenceStream

JOBS = DeepRMJobs()


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def fingerprints(family, seed=0, count=1000):
    durations, demands = SequenceStream(JOBS, seed, family).take(0, count)
    return {
        duration.tobytes() + demand.tobytes() for duration, demand in zip(durations, demands, strict=True)
    }


def test_families_are_disjoint():
    seen = [fingerprints(family, seed) for family in FAMILIES for seed in (0, 1)]
    assert all(len(prints) == 1000 for prints in seen)
    for one, other in itertools.combinations(seen, 2):
        assert not one & other


def test_a_number_is_a_sequence():
    stream = SequenceStream(JOBS, 3, "test")
    whole = stream.take(0, 700)
    for first, count in [(0, 1), (250, 12), (255, 1), (256, 1), (511, 189), (10, 0)]:
        part = SequenceStream(JOBS, 3, "test").take(first, count)
        assert equal(part, (whole[0][first : first + count], whole[1][first : first + count]))


def test_order_of_asking_does_not_matter():
    a, b = SequenceStream(JOBS, 0), SequenceStream(JOBS, 0)
    far, near = a.take(5000, 3), a.take(0, 3)
    assert equal(b.take(0, 3), near)
    assert equal(b.take(5000, 3), far)


def test_what_is_taken_belongs_to_the_taker():
    stream = SequenceStream(JOBS, 0)
    durations, demands = stream.take(0, 5)
    kept = durations.copy(), demands.copy()
    durations[:], demands[:] = 0, 0
    assert equal(stream.take(0, 5), kept)


def test_a_limited_training_set_comes_round():
    jobs = DeepRMJobs(num_sequences=7)
    stream = SequenceStream(jobs, 0)
    durations, _ = stream.take(0, 21)
    assert np.array_equal(durations[:7], durations[7:14])
    assert equal(stream.take(12, 4), tuple(a[[5, 6, 0, 1]] for a in stream.take(0, 7)))
    assert equal(SequenceStream(JOBS, 0).take(0, 7), stream.take(0, 7))
    test, _ = SequenceStream(jobs, 0, "test").take(0, 21)
    assert len(np.unique(test, axis=0)) == 21


def test_shapes_and_settings():
    jobs = DeepRMJobs(sequence_length=9, num_resources=3, distribution="uniform")
    durations, demands = SequenceStream(jobs, 0).take(2, 4)
    assert durations.shape == (4, 9)
    assert demands.shape == (4, 9, 3)
    assert durations.dtype == demands.dtype == np.int32


def test_the_global_generator_is_neither_read_nor_changed():
    np.random.seed(1)  # noqa: NPY002
    first = SequenceStream(JOBS, 0).take(0, 2)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert equal(SequenceStream(JOBS, 0).take(0, 2), first)
    np.random.seed(1)  # noqa: NPY002
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_jobs_end_to_end():
    stream = SequenceStream(JOBS, 0)
    arrival, duration, demand = stream.first_jobs(50)
    durations, demands = stream.take(0, 2)
    steps = np.flatnonzero(durations)[:50]
    assert np.array_equal(arrival, steps)
    assert np.array_equal(duration, durations.ravel()[steps])
    assert np.array_equal(demand, demands.reshape(-1, 2)[steps])


def test_refused():
    with pytest.raises(UserError, match="unknown family 'tset'.*test"):
        SequenceStream(JOBS, 0, "tset")
    with pytest.raises(UserError, match="seed is -1"):
        SequenceStream(JOBS, -1)
    with pytest.raises(UserError, match="no job ever arrives"):
        SequenceStream(DeepRMJobs(arrival_rate=0), 0).first_jobs(1)
