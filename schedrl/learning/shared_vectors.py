"""Arrays that several processes read and write at once, without locks and without pickling.

Apart from the algorithm that shares its parameters so, because there is one right way to lay arrays into a
block of memory and to hand rows from one process to another.

No lock is held anywhere: a process that is killed in the middle can't block the others. What is shared obeys
two rules instead. A counter has one writer and is read by all. A vector that all of them write (Hogwild:
Niu et al., 2011) may lose a part of an update now and then, and that must not matter.

The block is a temporary file that has no name any more when it is first used (`multiprocessing.heap`), so
nothing stays in /dev/shm, however the processes end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from math import prod
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np

Layout = Mapping[str, tuple[tuple[int, ...], Any]]
ALIGNMENT = 64  # bytes, a cache line: counters of different processes don't fight over one


class SharedArrays(Mapping[str, np.ndarray]):
    """Named arrays, all zero at first, in one block of memory that processes started later see too.

    Hand the object to `multiprocessing.Process(args=...)`: only the block's file descriptor travels.

    Args:
        layout: name -> (shape, dtype).
    """

    def __init__(self, layout: Layout):
        self._layout = {name: (tuple(shape), np.dtype(dtype)) for name, (shape, dtype) in layout.items()}
        self._block = RawArray(ctypes.c_byte, sum(_room(*entry) for entry in self._layout.values()) or 1)
        self._arrays = self._views()

    def _views(self) -> dict[str, np.ndarray]:
        arrays, offset = {}, 0
        for name, (shape, dtype) in self._layout.items():
            flat = np.frombuffer(self._block, dtype, prod(shape), offset)
            arrays[name] = flat.reshape(shape)
            offset += _room(shape, dtype)
        return arrays

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the array itself: writing into it is seen by all processes."""
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._layout)

    def __len__(self) -> int:
        """Count the arrays."""
        return len(self._layout)

    def __getstate__(self) -> dict[str, Any]:
        return {"layout": self._layout, "block": self._block}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._layout, self._block = state["layout"], state["block"]
        self._arrays = self._views()


class Ring:
    """Hands rows of float64 from one process to another, in order, each exactly once.

    The writer alone moves `written`, the reader alone moves `taken`; both only grow. A row is counted after
    it is whole, so rows that a killed writer left unfinished are never seen, and its successor goes on
    where it stopped.

    Args:
        arrays: hold what `layout` names.
        name: the same as given to `layout`.
        index: which of the rings of that name.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], name: str, index: int = 0):
        self._rows = arrays[f"{name}/rows"][index]
        self._written = arrays[f"{name}/written"][index]
        self._taken = arrays[f"{name}/taken"][index]

    @staticmethod
    def layout(name: str, count: int, capacity: int, width: int) -> Layout:
        """Return the arrays of `count` rings that hold `capacity` rows of `width` numbers each."""
        # A cache line for each counter, as they are written by different processes.
        counter = ((count, ALIGNMENT // 8), np.int64)
        return {
            f"{name}/rows": ((count, capacity, width), np.float64),
            f"{name}/written": counter,
            f"{name}/taken": counter,
        }

    @property
    def room(self) -> int:
        """How many rows can be written before the reader takes some."""
        return len(self._rows) - int(self._written[0] - self._taken[0])

    def put(self, rows: np.ndarray) -> None:
        """Append `rows [n, width]`.

        Raises:
            ValueError: there is room for fewer; look at `room` first.
        """
        if len(rows) > self.room:
            raise ValueError(f"{len(rows)} rows don't fit, the ring has room for {self.room}")
        places = (int(self._written[0]) + np.arange(len(rows))) % len(self._rows)
        self._rows[places] = rows
        self._written[0] += len(rows)

    def take(self) -> np.ndarray:
        """Return the rows that came since the last time, `[n, width]`."""
        start, end = int(self._taken[0]), int(self._written[0])
        rows = self._rows[np.arange(start, end) % len(self._rows)]
        self._taken[0] = end
        return rows


def write_text(array: np.ndarray, text: str) -> None:
    """Put text into a uint8 array, cut to its size (the rest is zero)."""
    data = text.encode()[: array.size]
    array[: len(data)] = np.frombuffer(data, np.uint8)
    array[len(data) :] = 0


def read_text(array: np.ndarray) -> str:
    """Return what `write_text` put there."""
    return array.tobytes().rstrip(b"\0").decode(errors="replace")


def _room(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Return the bytes an array takes, up to the next alignment."""
    return -(-prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
