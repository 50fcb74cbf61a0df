"""Parts of a GPU add up: k shares of 1/k fill a device, however they were rounded, and never k + 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedrl.sim.cluster import simulate
from schedrl.sim.cluster.problem import ONE, whole_shares
from schedrl.workload import Resource, Workload
from schedrl.workload.machines import Machines

GPU = (Resource("gpu", "gpus"),)


def one_gpu():
    return Machines(np.array(["m"], object), np.array([[1.0]]), GPU, np.array([""], object))


def jobs(share, count):
    return Workload(np.zeros(count), np.full(count, 10.0), np.full((count, 1), share), GPU, "s")


@pytest.mark.parametrize("share", [1 / 6, 0.166667, 0.1666667, 0.16667, 0.1667, 0.16])
def test_a_whole_device_holds_six_sixths(share):
    assert simulate(jobs(share, 6), one_gpu(), "fifo+first_fit+strict").start.max() == 0
    assert simulate(jobs(share, 7), one_gpu(), "fifo+first_fit+strict").start.max() == 10


@given(st.integers(1, 2000), st.integers(4, 12))
@settings(deadline=None)
def test_equal_shares_add_up_to_a_device(count, digits):
    share = round(1 / count, digits)
    if 0 < share < 1 and round(1 / share) == count and share * count - 1 < 0.0005:
        assert np.rint(whole_shares(np.array([share])) * ONE)[0] * count <= ONE


@given(st.lists(st.floats(1e-5, 1), min_size=1, max_size=20))
@settings(deadline=None)
def test_what_adds_up_to_a_device_fits_into_it(parts):
    shares = np.array(parts) / sum(parts) * (1 - 1e-12)
    assert np.rint(whole_shares(shares) * ONE).sum() <= ONE


@given(st.integers(1, 8000))
@settings(deadline=None)
def test_thousandths_stay_as_they_are(milli):
    assert np.rint(whole_shares(np.array([milli / 1000])) * ONE)[0] == milli * 1000
