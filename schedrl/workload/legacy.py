"""The original program's own job sequences: same seed, same jobs, number for number.

For comparison with published runs (`Env.generate_sequence_work` and `bi_model_dist` of hongzimao/deeprm,
which seed 42 for training and 314159 for unseen jobs). New work should use `SequenceStream`.
"""

import numpy as np

from .deeprm import SHORT_CHANCE, Bimodal, Bounds, DeepRMJobs

TRAIN_SEED, UNSEEN_SEED = 42, 314159


def legacy_sequences(
    jobs: DeepRMJobs, num_sequences: int | None = None, seed: int = TRAIN_SEED
) -> tuple[np.ndarray, np.ndarray]:
    """Draw job by job in the original's order, from a RandomState of its own; the global one is not touched.

    Returns:
        durations [num_sequences, T] and demands [num_sequences, T, R], int32; 0 = no arrival. Fewer sequences
        are a prefix of more. By default `jobs.num_sequences` of them, 10 if that is 0.
    """
    count = num_sequences or jobs.num_sequences or 10
    rng = np.random.RandomState(seed)  # noqa: NPY002 - the stream of the original is the point
    rate, size = jobs.rate(), Bimodal.scaled(jobs.max_job_duration, jobs.max_job_demand)
    draw = _bimodal if jobs.distribution == "bimodal" else _uniform
    durations = np.zeros(count * jobs.sequence_length, np.int32)
    demands = np.zeros((len(durations), jobs.num_resources), np.int32)
    for step in range(len(durations)):
        if rng.rand() < rate:
            durations[step], demands[step] = draw(rng, jobs, size)
    shape = (count, jobs.sequence_length)
    return durations.reshape(shape), demands.reshape(*shape, jobs.num_resources)


def _between(rng: np.random.RandomState, bounds: Bounds) -> int:
    return rng.randint(bounds.low, bounds.high + 1)


def _bimodal(rng: np.random.RandomState, jobs: DeepRMJobs, size: Bimodal) -> tuple[int, list[int]]:
    duration = _between(rng, size.short if rng.rand() < SHORT_CHANCE else size.long)
    dominant = rng.randint(0, jobs.num_resources)
    return duration, [
        _between(rng, size.dominant if resource == dominant else size.other)
        for resource in range(jobs.num_resources)
    ]


def _uniform(rng: np.random.RandomState, jobs: DeepRMJobs, _: Bimodal) -> tuple[int, list[int]]:
    duration = _between(rng, Bounds(1, jobs.max_job_duration))
    return duration, [_between(rng, Bounds(1, jobs.max_job_demand)) for _ in range(jobs.num_resources)]
