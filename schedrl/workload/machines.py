"""Lists of machines as files hold them: what clusters are made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.formats.openb import RESOURCES
from schedrl.workload.readers.parsing.headed import headed_layout
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import joined, read_table
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource

AMOUNTS = {"cpu_milli": 1000.0, "memory_mib": 1024.0, "gpu": 1.0}
"""Column -> how much of it makes one unit of the resource."""
DEVICES = "gpu"
"""The resource that is made of whole devices."""


@dataclass(frozen=True, eq=False)
class Machines:
    """The machines of a cluster, in the order of the file; M machines, R resources. Arrays are read-only.

    Raises:
        UserError: on construction, naming machine, value and remedy.
    """

    name: np.ndarray
    """[M] text, unique."""
    capacity: np.ndarray
    """[M, R] in the unit of each resource; 0 = has none of it."""
    resources: Sequence[Resource]
    """R names and units."""
    model: np.ndarray
    """[M] text, of the accelerator; empty = none or not stated."""

    def __post_init__(self) -> None:
        """Validate and freeze."""
        wrong = ~(np.isfinite(self.capacity) & (self.capacity >= 0)).all(1) | ~(self.capacity > 0).any(1)
        for machine in np.flatnonzero(wrong)[:1]:
            raise UserError(
                f"machine {self.name[machine]!r} has {self.capacity[machine].tolist()} of "
                f"{', '.join(r.name for r in self.resources)}; each must be 0 or more, and one above 0"
            )
        devices = self.capacity[:, [resource.name == DEVICES for resource in self.resources]].sum(1)
        for machine in np.flatnonzero(devices % 1 > 0)[:1]:
            raise UserError(
                f"machine {self.name[machine]!r} has {devices[machine]:g} of {DEVICES}; give whole devices "
                "(jobs may take parts)"
            )
        names = self.name.tolist()
        if not all(map(str.strip, names)) or len(set(names)) < len(names):
            twice = next((name for name in names if not name.strip() or names.count(name) > 1), "")
            raise UserError(f"machines need names of their own, found {twice!r} twice or empty; rename it")
        for column in (self.name, self.capacity, self.model):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.name)


def read_machines(path: str | os.PathLike[str], encoding: str | None = None) -> Machines:
    """Read a list of machines as the Alibaba GPU trace 2023 (OpenB) has it, plain or gzip.

    Columns, in any order: sn (name), cpu_milli, memory_mib, gpu (whole GPUs), model (of the GPUs). Resources
    are `cpu` [cores], `memory` [GiB] and `gpu`. See
    `schedrl.workload.readers.formats.openb` for source and citation.

    Raises:
        UserError: the file can't be read, a column is missing, or a machine makes no sense (with its line).
    """
    source = Source(path, encoding)
    rejected = Rejected(str(path), strict=True)
    if not source.head.strip():
        raise UserError(f"{path} is empty: no machines; check that it was fetched whole")
    layout = headed_layout(source, ("sn", *AMOUNTS, "model"), text=("sn", "model"))
    tables = [
        {name: table[name].to_numpy() for name in table} for table in read_table(source, layout, rejected)
    ]
    if not tables:
        raise UserError(f"{path} has a header and no machines; check that it was fetched whole")
    columns = joined(tables, rejected, source)
    capacity = np.column_stack([columns[name] / whole for name, whole in AMOUNTS.items()])
    return Machines(columns["sn"], capacity, RESOURCES, columns["model"])
