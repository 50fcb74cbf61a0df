"""TensorBoard's files: the format of tf.summary, and memory that doesn't grow with what is written."""

import gc
import tracemalloc

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util.tensor_util import make_ndarray

from schedrl.learning.events import EventFile


def read(folder, tag):
    found = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    return [(event.step, float(make_ndarray(event.tensor_proto))) for event in found.Tensors(tag)]


def test_what_is_written_reads_as_that_of_tensorflow(tmp_path):
    import tensorflow as tf

    values = [(0, 1.5), (7, -0.25), (9, 1e30)]
    own, theirs = EventFile(tmp_path / "own"), tf.summary.create_file_writer(str(tmp_path / "theirs"))
    for step, value in values:
        own.write(step, {"loss": value, "speed": 3.0})
        with theirs.as_default(step=step):
            tf.summary.scalar("loss", value)
            tf.summary.scalar("speed", 3.0)
    own.close()
    theirs.close()
    for tag in ("loss", "speed"):
        assert read(tmp_path / "own", tag) == read(tmp_path / "theirs", tag)
    assert read(tmp_path / "own", "loss") == [(step, float(np.float32(value))) for step, value in values]

    def described(folder):
        (path,) = folder.iterdir()
        events = EventFileLoader(str(path)).Load()
        return [(v.tag, v.metadata.plugin_data.plugin_name) for e in events for v in e.summary.value]

    assert described(tmp_path / "own") == described(tmp_path / "theirs")


def test_nothing_is_kept_of_what_was_written(tmp_path):
    events = EventFile(tmp_path)

    def write(records):
        for step in range(records):
            events.write(step, {f"name_{i}": float(step) for i in range(13)})
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = write(200)
        assert write(2000) - before < 2000, "bytes were kept of 2,000 records"
    finally:
        tracemalloc.stop()
        events.close()
