"""What a long run keeps: memory against decisions, and nobody who outlives it."""

import io
import os

import numpy as np
import pytest

from benchmarks import growth
from schedrl.launch import yardsticks
from schedrl.learning.logger import Logger


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
def test_logging_keeps_little_of_what_tf_summary_kept(tmp_path):
    """13 values a record at 400 bytes each were some 5 kB a record."""
    import tensorflow as tf

    logger, theirs = Logger(tmp_path / "own"), tf.summary.create_file_writer(str(tmp_path / "theirs"))
    (tmp_path / "own").mkdir()
    record = {"decisions": 1.0} | {f"name_{i}": float(i) for i in range(13)}

    def own(step):
        logger.log(record | {"decisions": float(step)}, {})

    def summary(step):
        with theirs.as_default(step=step):
            for name, value in record.items():
                tf.summary.scalar(name, value)

    def grown(write):
        for step in range(1000):
            write(step)
        before = growth.resident()
        for step in range(1000, 6000):
            write(step)
        return growth.resident() - before

    kept, before = grown(own), grown(summary)
    assert kept < before / 5, f"{kept:.1f} MB against {before:.1f}"


def test_the_tuner_ends_with_who_asked(monkeypatch):
    asked = []
    monkeypatch.setattr(yardsticks, "end_with_parent", asked.append)
    monkeypatch.setattr(yardsticks, "search", lambda environment: {})
    monkeypatch.setattr("sys.stdout", io.StringIO())
    settings = yardsticks.registry.get("environment_settings", "deeprm")()
    yardsticks.main({"env": "deeprm", "environment": settings.to_dict(), "parent": os.getpid()})
    assert asked == [os.getpid()]
