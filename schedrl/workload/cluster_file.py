"""Clusters as users write them: TOML or CSV files of machines, and the default cluster of equal servers.

A TOML file has a table `[[machines]]` for each kind of machine, a CSV a header and a line for each; both with
`name`, `count` (of equal machines, default 1), `model` and a column for each resource. The node list of the
Alibaba GPU trace 2023 is understood too.
"""

import csv
import math
import os
import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import UserError, check_plain_file
from schedrl.workload.machines import AMOUNTS, Machines, read_machines
from schedrl.workload.types import Resource

UNITS = {"cpu": "cores", "memory": "GB", "gpu": "gpus"}
"""Units by the names that generators use; other resources are in units."""
ABOUT = ("name", "count", "model")
"""What is said of a machine beside its resources."""
MOST_MACHINES = 1_000_000
LARGEST = 1 << 28
"""Bytes of a list that isn't packed: the most machines fit in, and what is no list is not read whole."""
OPENB = tuple(name for name in AMOUNTS if name not in UNITS)
"""Columns by which OpenB's node list is known."""


def default_cluster(num_servers: int = 5, capacity: Sequence[float] = (8.0, 32.0, 2.0)) -> Machines:
    """Return equal servers with these amounts of cpu, memory and gpu.

    Raises:
        UserError: an amount below 0, or all 0.
    """
    return _machines(
        [{"name": "server", "count": num_servers, **dict(zip(UNITS, capacity, strict=True))}], ""
    )


def read_cluster(path: str | os.PathLike[str]) -> Machines:
    """Read a list of machines.

    Raises:
        UserError: the file can't be read, isn't TOML or CSV, or has a machine that makes no sense.
    """
    if not str(path):
        raise UserError("can't read the cluster: its name is empty; name a file")
    path = Path(path)
    check_plain_file(path)
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or error
        raise UserError(f"can't read the cluster {path}: {why}; check the path") from None
    if len(text) > LARGEST:
        raise UserError(
            f"the cluster {path} is larger than {LARGEST >> 20} MB, so it is no list of machines; check it"
        )
    if path.suffix.lower() == ".toml":
        return _machines(_from_toml(text, path), f" in {path}")
    head = text[:1000].decode("latin-1").splitlines()[:1] or [""]
    if text[:2] == b"\x1f\x8b" or set(OPENB) & {name.strip() for name in head[0].split(",")}:
        return read_machines(path)
    return _machines(_from_csv(text, path), f" in {path}")


def _from_toml(text: bytes, path: Path) -> list[dict[str, Any]]:
    try:
        content = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    tables = content.get("machines")
    if not isinstance(tables, list) or not tables or not all(isinstance(row, dict) for row in tables):
        raise UserError(f"{path} has no machines; write a table [[machines]] for each kind of them")
    others = sorted(set(content) - {"machines"})
    if others:
        raise UserError(f"{path} has {others[0]!r} beside [[machines]]; leave it out")
    return tables


def _from_csv(text: bytes, path: Path) -> list[dict[str, Any]]:
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from None
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if any(map(str.strip, row))]
    if len(rows) < 2:
        raise UserError(
            f"{path} has no machines; write a header (name,count,cpu,memory,gpu) and a line for each"
        )
    header = rows[0]
    if len(header) == 1 and any(sign in header[0] for sign in ";\t|"):
        raise UserError(f"{path}: the header {header[0]!r} has no commas; part the columns by commas")
    if len(set(header)) < len(header) or not all(header):
        raise UserError(f"{path}: the header {','.join(header)!r} needs names, each once")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise UserError(f"{path}: line {number} has {len(row)} values for {len(header)} columns")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def _machines(rows: Sequence[Mapping[str, Any]], where: str) -> Machines:
    """Make machines of rows; `where` says of what file, for messages."""
    resources = list(dict.fromkeys(name for row in rows for name in row if name not in ABOUT))
    if not resources:
        raise UserError(f"the machines{where} have no resources; give some, for example cpu and memory")
    names: list[str] = []
    models: list[str] = []
    amounts: list[list[float]] = []
    for number, row in enumerate(rows, 1):
        label = str(row.get("name", "") or f"machine{number}")
        count = _number(row.get("count", 1), f"count of {label!r}{where}")
        if count != int(count) or not 1 <= count <= MOST_MACHINES:
            raise UserError(
                f"count of {label!r}{where} is {count:g}; it must be whole, 1 to {MOST_MACHINES:,}"
            )
        if len(names) + count > MOST_MACHINES:
            raise UserError(f"the machines{where} are over {MOST_MACHINES:,} with {label!r}; lower its count")
        missing = [name for name in resources if row.get(name, "") == ""]
        if missing:
            raise UserError(f"machine {label!r}{where} has no {missing[0]}; give it, 0 if it has none")
        amount = [_number(row[name], f"{name} of {label!r}{where}") for name in resources]
        names += [label] if count == 1 else [f"{label}-{i}" for i in range(int(count))]
        models += [str(row.get("model", ""))] * int(count)
        amounts += [amount] * int(count)
    return Machines(
        np.array(names, object),
        np.array(amounts, float),
        [Resource(name, UNITS.get(name, "units")) for name in resources],
        np.array(models, object),
    )


def _number(value: Any, what: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UserError(f"{what} is {reprlib.repr(value)}; it must be a finite number of 0 or more")
    return number
