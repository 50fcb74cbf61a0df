"""Slurm's accounting log: what `sacct -P` prints, a row for each job and for each of its steps.

Columns, by the names that sacct gives them, parted by bars (or commas, tabs, semicolons): JobID or JobIDRaw,
Submit, Start, End, and what there is of User, Elapsed, ElapsedRaw, Timelimit, TimelimitRaw, AllocCPUS, NCPUS,
ReqCPUS, ReqMem, AllocTRES, ReqTRES, AllocNodes, NNodes, Priority, Partition, Account, QOS, State.

The arrival is Submit, the duration Elapsed (without the time that a job was suspended), else End - Start.
The estimate is Timelimit; one below the run time (Slurm kills a little late) is raised to it. Amounts are
what was allocated, else what was requested, of the whole job: cpu, memory [GiB: Slurm's letters are powers
of 1,024], gpu where any job has one. ReqMem `2Gc` is of a processor, `2Gn` of a node; `0` asks for all
memory of its nodes, an amount that isn't known.

Local times are those of `time_zone`. Unknown: Unknown, None, empty; UNLIMITED and Partition_Limit are no
estimate. `123.batch` and other steps are `step`; a job without a start is `never_ran`, one without an end
`unfinished`; of several records of a job (`sacct -D`) the last counts. Components of a heterogeneous job
(`123+0`) are jobs of their own that arrive together.

Format: https://slurm.schedmd.com/sacct.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.formats.accounting import COMMAND, Record, find, is_slurm, requested_memory
from schedrl.workload.readers.parsing.cells import amounts
from schedrl.workload.readers.parsing.headed import header_row
from schedrl.workload.readers.parsing.mapped import Conversion, Mapped
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, joined, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload
from schedrl.workload.units import SECONDS

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Slurm's accounting log (sacct -P)"
SOURCE = "https://slurm.schedmd.com/sacct.html"
OPTIONS = ("time_zone", "gangs")

FIELDS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("id", (("JobID", ""), ("JobIDRaw", ""))),
    ("user", (("User", ""), ("UID", ""))),
    ("arrival", (("Submit", "iso"),)),
    ("recorded_start", (("Start", "iso"),)),
    ("recorded_finish", (("End", "iso"),)),
    ("duration", (("ElapsedRaw", "s"), ("Elapsed", "hms"))),
    ("estimate", (("Timelimit", "hms"), ("TimelimitRaw", "min"))),
    ("priority", (("Priority", ""),)),
)
"""Field -> columns that may hold it and their units, the best first."""
CPUS = ("AllocCPUS", "NCPUS", "ReqCPUS")
NODES = ("AllocNodes", "NNodes", "ReqNodes")
TRES = ("AllocTRES", "ReqTRES")
EXTRA = {"partition": "Partition", "account": "Account", "qos": "QOS", "state": "State"}


def recognises(head: Head) -> bool:
    """Whether the first row names columns of sacct."""
    return bool(head.table) and is_slurm(head.table[0])


def read(
    source: Source, rejected: Rejected, *, lenient: bool = False, time_zone: str = "", gangs: bool = False
) -> Workload:
    """Read the jobs; resources are `cpu` [cores], `memory` [GiB] and, where any job has one, `gpu`.

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        time_zone: of the times, which Slurm writes without one.
        gangs: make every node of a job an instance of its own, for clusters of many machines.

    Raises:
        UserError: a column is missing, no such zone, or no usable job.
    """
    separator = Head.of(source).separator
    header = header_row(source, separator)
    mapped = _mapped(header, source)
    record = Record.of(header)
    if record is None:
        raise UserError(f"{source.path} has no columns of sacct; print it with: {COMMAND}")
    conversion = Conversion(mapped, rejected, time_zone)
    held = [find(header, *names) for names in (CPUS, NODES, ("ReqMem",))]
    texts = (
        conversion.texts
        | record.texts
        | set(held)
        | {find(header, name) for name in (*TRES, *EXTRA.values())}
    )
    texts &= set(header)
    layout = Layout(
        header,
        frozenset(texts),
        unread=frozenset(header) - texts,
        separator=separator,
        skip=1,
        quotes=separator != "|",
    )
    columns = joined(
        (
            _columns(table, header, conversion, record)
            for whole in read_table(source, layout, rejected)
            if len(table := record.without_steps(whole, rejected))
        ),
        rejected,
        source,
    )
    return _built(record.jobs(columns, rejected), conversion, rejected, gangs=gangs, lenient=lenient)


def _mapped(header: list[str], source: Source) -> dict[str, Mapped]:
    """Return field -> column; raise with what is missing and the command that prints it."""
    mapped = {}
    for field, columns in FIELDS:
        column, unit = next(((c, unit) for name, unit in columns if (c := find(header, name))), ("", ""))
        if column:
            mapped[field] = Mapped(column, unit, text=not unit or unit in SECONDS)
    lacking = ["Submit"] * ("arrival" not in mapped)
    if "duration" not in mapped and not {"recorded_start", "recorded_finish"} <= set(mapped):
        lacking.append("Start and End (or Elapsed)")
    if not find(header, *CPUS, *TRES):
        lacking.append("AllocCPUS (or AllocTRES)")
    if lacking:
        raise UserError(
            f"{source.path} lacks the columns {', '.join(lacking)} of sacct (no jobs were read); "
            f"print it with: {COMMAND}"
        )
    return mapped


def _columns(
    table: pd.DataFrame, header: list[str], conversion: Conversion, record: Record
) -> dict[str, np.ndarray]:
    """Read some rows, none of which is a step."""
    found, good = conversion.columns(table, record.length(table))
    tres = [table[column] for name in TRES if (column := find(header, name))]
    cpus = _first(_column(table, header, CPUS), *(_amount(texts, "cpu") for texts in tres))
    nodes = _first(_column(table, header, NODES), *(_amount(texts, "node") for texts in tres))
    memory = [amounts(_part(texts, "mem"), binary=True).values / 2.0**30 for texts in tres]
    asked = find(header, "ReqMem")
    if asked:
        memory.append(requested_memory(table[asked].to_numpy(), cpus, nodes))
    found["cpu"], found["nodes"] = cpus, nodes
    found["memory"] = _first(*memory) if memory else np.zeros(len(cpus))
    found["gpu"] = _first(*(_gpus(texts) for texts in tres), np.zeros(len(cpus)))
    found |= {name: table[c].to_numpy() for name, column in EXTRA.items() if (c := find(header, column))}
    found |= record.texts_of(table)
    return {name: column[good] for name, column in found.items()}


def _built(
    columns: dict[str, Any], conversion: Conversion, rejected: Rejected, *, gangs: bool, lenient: bool
) -> Workload:
    about = conversion.about()
    cpu, memory, gpu, nodes = (columns.pop(name) for name in ("cpu", "memory", "gpu", "nodes"))
    together = np.array(["+" in name for name in columns["id"].tolist()], bool)
    if together.any():
        rejected.remark(
            f"{together.sum():,} jobs are components of heterogeneous jobs (123+0): each is a job of its own "
            "here, and nothing makes those of one job start together"
        )
    estimate = columns.get("estimate")
    if estimate is not None:
        low = estimate < columns["duration"]
        rejected.adjust("the estimate was below the run time, so it is raised to it", columns["line"][low])
        columns["estimate"] = np.where(low, columns["duration"], estimate)
    resources, demand = [Resource("cpu", "cores")], [cpu]
    if not (np.nan_to_num(memory) == 0).all():
        resources.append(Resource("memory", "GiB"))
        demand.append(memory)
    if gpu.any():
        resources.append(Resource("gpu", "gpus"))
        demand.append(gpu)
    if "priority" in columns:
        columns["priority"] = np.nan_to_num(columns["priority"])
    whole = np.where(nodes >= 1, nodes, 1.0)
    extra = {name: columns.pop(name) for name in EXTRA if name in columns}
    if not np.isnan(nodes).all():
        extra["nodes"] = nodes
    return build(
        Columns(
            times_are_told=True,
            **columns,
            demand=np.column_stack(demand) / (whole[:, None] if gangs else 1.0),
            instances=whole if gangs else None,
            resources=resources,
            about=about,
            extra=extra,
        ),
        rejected,
        lenient,
    )


def _first(*columns: np.ndarray) -> np.ndarray:
    """Return the first amount above 0 of each row, else the first that is stated. [n]."""
    stacked = np.column_stack(columns)
    positive, stated = stacked > 0, ~np.isnan(stacked)
    place = np.where(positive.any(1), positive.argmax(1), stated.argmax(1))
    return stacked[np.arange(len(stacked)), place]


def _column(table: pd.DataFrame, header: list[str], names: tuple[str, ...]) -> np.ndarray:
    """Return the amounts [n] of the first of these columns that is there."""
    column = find(header, *names)
    return amounts(table[column].to_numpy()).values if column else np.full(len(table), np.nan)


def _part(texts: pd.Series, name: str) -> np.ndarray:
    """Return what `cpu=8,mem=16G,gres/gpu=1` says of one resource, as text [n], "" where nothing."""
    return texts.str.extract(rf"(?:^|,)\s*{name}=([^,]*)")[0].fillna("").to_numpy(object)


def _amount(texts: pd.Series, name: str) -> np.ndarray:
    return amounts(_part(texts, name)).values


def _gpus(texts: pd.Series) -> np.ndarray:
    """Return the GPUs [n]: `gres/gpu=4`, else the sum over models (`gres/gpu:a100=4`); NaN if unsaid."""
    total = _amount(texts, "gres/gpu")
    models = texts.str.extractall(r"(?:^|,)\s*gres/gpu:[^,=]+=(\d+)")[0].astype(float).groupby(level=0).sum()
    summed = models.reindex(texts.index).to_numpy(float)
    return np.where(np.isnan(total), summed, total)
