"""Golden data of the original program: a part of it from here, all of it from `shared_dir`."""

from pathlib import Path
from typing import Any

import pytest
import replay


@pytest.fixture(scope="session")
def micro() -> dict[str, dict[str, Any]]:
    """All hand-made scenarios by name."""
    return {scenario["name"]: scenario for scenario in replay.load("deeprm_micro")["scenarios"]}


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """A few episodes of every rate, policy and ending."""
    return replay.load("deeprm_simu50_seed42")


@pytest.fixture(scope="session")
def full_reference(shared_dir: Path) -> Path:
    """Folder of the complete golden data; the test is skipped where there is none."""
    return shared_dir / "reference" / "deeprm"
