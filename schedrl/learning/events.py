"""TensorBoard's scalars in the format of `tf.summary`, written without TensorFlow.

`tf.summary.scalar` keeps some 400 bytes of memory for every value it is given, for as long as the process
lives. Here nothing is kept: TensorBoard's own messages and records, one file for each start of a run.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = "brain.Event:2"


class EventFile:
    """A new event file in `folder`, which is made where need be."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import SummaryMetadata
        from tensorboard.compat.proto.types_pb2 import DT_FLOAT
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._float = Event, DT_FLOAT
        self._scalars = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.v2"
        self.path = folder / name
        self._file = open(self.path, "ab")  # noqa: SIM115 - open for the whole run
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version=VERSION))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add a value of each tag at a step."""
        event = self._event(wall_time=time.time(), step=step)
        for tag, number in values.items():
            value = event.summary.value.add(tag=tag)
            value.tensor.dtype = self._float
            value.tensor.tensor_shape.SetInParent()  # present and empty: a scalar
            value.tensor.float_val.append(number)
            value.metadata.CopyFrom(self._scalars)
        self._write(event)

    def flush(self) -> None:
        """Bring all to the disk."""
        self._records.flush()

    def close(self) -> None:
        """End the file."""
        self._records.close()

    def _write(self, event: Any) -> None:
        self._records.write(event.SerializeToString())
