"""Fixtures and process settings that every test shares."""

import os
import signal
from pathlib import Path

# Before anything imports NumPy or TensorFlow: many threads on small arrays, beside other tests, cost minutes.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")

# A run under nohup ignores SIGHUP and hands that on; what the tests start is to meet it as from a terminal.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import pytest  # noqa: E402  (after the environment is set)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the front doors."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The larger reference data, beside the repository; tests that need it skip where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the reference data ../shared is not here")
    return folder
