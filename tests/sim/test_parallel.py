"""Several threads compute what one does, for every loop over clusters there is.

Numba has silently computed wrong states in parallel loops whose bodies were inlined into them; nothing but a
comparison of results finds that.
"""

import numpy as np
import pytest

from schedrl import heuristics
from schedrl.envs.deeprm.clusters import Clusters
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.sim.deeprm import batch
from schedrl.sim.deeprm.sequences import from_steps
from schedrl.sim.jit import Batch
from schedrl.workload.streams import SequenceStream

NUM_ENVS, STEPS = 67, 150
OBSERVED = {"slots", "compact", "image", "decision_state"}
BY_OTHERS = {"step", "load", "legal_actions"}
KINDS = [
    {"kernel": "bitplanes"},
    {"kernel": "counts", "allow_reservation": True, "mask": "physics", "quirks": "all", "idle_limit": None},
]


def clusters(threads, **changes):
    settings = DeepRMSettings.from_dict({"threads": threads, "sequence_length": 20, **changes})
    made = Clusters(settings, NUM_ENVS, 20, 20)
    jobs = from_steps(*SequenceStream(settings, 3).take(0, NUM_ENVS))
    made.load(made.everyone, made.everyone, jobs)
    return made


def test_every_batch_is_compared():
    assert {name for name, value in vars(batch).items() if isinstance(value, Batch)} == OBSERVED | BY_OTHERS


@pytest.mark.parametrize("kind", KINDS, ids=["bitplanes", "counts, original"])
@pytest.mark.parametrize(
    "representation",
    ["slots", *(pytest.param(name, marks=pytest.mark.slow) for name in ("compact", "image", "state"))],
)
def test_threads_change_nothing(kind, representation):
    serial, parallel = (clusters(threads, representation=representation, **kind) for threads in (1, 2))
    rng = np.random.default_rng(0)
    envs = rng.permutation(NUM_ENVS)[: NUM_ENVS // 2]
    for _ in range(STEPS):
        seen, also = serial.observe(), parallel.observe()
        assert seen.keys() == also.keys()
        for name, leaf in seen.items():
            np.testing.assert_array_equal(leaf, also[name])
            np.testing.assert_array_equal(leaf[envs], parallel.observe(envs)[name])
        actions = rng.integers(0, 11, NUM_ENVS)
        np.testing.assert_array_equal(serial.step(actions), parallel.step(actions))
        for name, array in serial.get_state().items():
            np.testing.assert_array_equal(array, parallel.get_state()[name])
    assert serial.ended.any()
    masks, returns = np.zeros((2, NUM_ENVS, 11), bool), serial.outcome().ret
    for threads in (1, 2):
        batch.legal_actions(*serial.state.arrays, serial.everyone, masks[threads - 1], threads=threads)
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], serial.observe()["action_mask"])
    jobs = from_steps(*SequenceStream(serial.settings, 4).take(0, NUM_ENVS))
    left, also = (made.load(made.everyone, made.everyone, jobs) for made in (serial, parallel))
    np.testing.assert_array_equal(left, also)
    np.testing.assert_array_equal(left[0], returns)


@pytest.mark.parametrize("name", ["random_legal", pytest.param("sjf", marks=pytest.mark.slow)])
def test_threads_change_no_fused_episode(name):
    """The loop is the same for every rule; a random one depends on which environment is which besides."""
    settings = DeepRMSettings()
    jobs = from_steps(*SequenceStream(settings, 3).take(0, NUM_ENVS))
    serial, parallel = (
        heuristics.get(name).run(settings.replace(threads=threads), jobs, seed=5) for threads in (1, 2)
    )
    for field in vars(serial):
        np.testing.assert_array_equal(getattr(serial, field), getattr(parallel, field))
    assert (serial.status[serial.arrived] == 1).mean() > 0.9
