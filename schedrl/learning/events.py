"""TensorBoard's scalars in the format of `tf.summary`, written without TensorFlow.

`tf.summary.scalar` keeps some 400 bytes of memory for every value it is given, for as long as the process
lives. Here nothing is kept: TensorBoard's own messages and records, one file for each start of a run.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedrl.learning.checkpoint import atomic_write

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


def cut_events(folder: Path, step: int) -> None:
    """Take back what event files hold beyond a step, so that a resumed run's curves don't go back in time.

    A record that a kill or a damage has broken ends its file too.
    """
    for path in sorted(folder.glob("events.out.tfevents.*")):
        if not path.is_file():  # reading a pipe would never end
            continue
        content = path.read_bytes()
        kept, steps = _up_to(content, step)
        if not steps:
            path.unlink()
        elif kept < len(content):
            with atomic_write(path) as file:
                file.write(content[:kept])


def _up_to(content: bytes, step: int) -> tuple[int, int]:
    """Return the bytes of the records up to a step, and how many of them have values."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    kept = steps = 0
    while kept + 12 <= len(content):
        length, check = struct.unpack_from("<QI", content, kept)
        data, end = content[kept + 12 : kept + 12 + length], kept + 16 + length
        if check != masked_crc32c(content[kept : kept + 8]) or end > len(content):
            break
        if struct.unpack_from("<I", content, end - 4)[0] != masked_crc32c(data):
            break
        try:
            event = Event.FromString(data)
        except DecodeError:
            break
        if event.step > step:
            break
        kept, steps = end, steps + event.HasField("summary")
    return kept, steps
