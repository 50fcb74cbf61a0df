"""The fixture that names each algorithm; the helpers are in `small_runs` so that tests can import them."""

import sys
from pathlib import Path

import pytest

from schedrl import registry

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=registry.names("algorithm"))
def algorithm(request) -> str:
    return request.param
