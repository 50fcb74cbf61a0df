"""What a long run keeps: memory against decisions, and nobody who outlives it."""

import io
import os

import numpy as np
import pytest

from benchmarks import growth
from schedrl.launch import yardsticks


def test_the_benchmark_measures_and_judges(capsys, monkeypatch):
    def measured(algorithm, seconds):
        decisions = np.linspace(0, 4e6, 41)
        late = decisions >= 1e6  # before that, something is filled
        memory = np.where(late, 500 + per_million * decisions / 1e6, 300 + decisions / 5e3)
        return np.stack([seconds * decisions / 4e6, decisions, memory], axis=1)

    monkeypatch.setattr(growth, "measured", measured)
    for per_million, code in ((1.9, 0), (2.1, 1)):
        assert growth.run(growth.GrowthBenchmark(algorithms=("a2c",))) == code
        assert f"{per_million:.2f}" in capsys.readouterr().out


@pytest.mark.slow
def test_memory_is_flat_against_what_tf_summary_kept():
    """13 values a record at 400 bytes each were some 5 kB a record."""
    found = growth.measured("a2c", 25.0)
    late = found[len(found) // 3 :]
    kept = np.polyfit(np.arange(len(late)), late[:, 2], 1)[0]
    assert kept < 0.0025, f"{1e6 * kept:.0f} bytes a record"


def test_the_tuner_ends_with_who_asked(monkeypatch):
    asked = []
    monkeypatch.setattr(yardsticks, "end_with_parent", asked.append)
    monkeypatch.setattr(yardsticks, "search", lambda environment: {})
    monkeypatch.setattr("sys.stdout", io.StringIO())
    settings = yardsticks.registry.get("environment_settings", "deeprm")()
    yardsticks.main({"env": "deeprm", "environment": settings.to_dict(), "parent": os.getpid()})
    assert asked == [os.getpid()]
