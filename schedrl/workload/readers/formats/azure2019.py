"""Azure public dataset V2 (2019), table vmtable: one virtual machine a row, with or without a header row.

Columns, in this order where there is no header: vmid, subscriptionid, deploymentid, vmcreated [s],
vmdeleted [s], maxcpu, avgcpu, p95maxcpu [percent], vmcategory (Delay-insensitive, Interactive, Unknown),
vmcorecountbucket [cores], vmmemorybucket [GB]. A bucket is the upper end of a range (2, 4, 8, ...), or text
like `>24` for the last one: how much that is is unknown, so such machines are rejected (`demand_unknown`)
unless the options `largest_cores` and `largest_memory` say what to take (the publishers' own analysis takes
30 and 70). The table of V1 (2017), whose buckets are numbers, has the same columns.

Times have steps of 300 s. Machines that were there before the record have vmcreated 0, those that outlive
it the record's last moment as vmdeleted; neither can be told from true values, so both are kept. The
subscription is the user; deployment, category and the CPU readings are extra columns.

MARO (https://github.com/microsoft/maro, scenario vm_scheduling) rewrites the table with a header, a column
vmlifetime, numbers as categories, and times in steps of 300 s; it is known by vmlifetime.

Data: CC-BY 4.0, https://github.com/Azure/AzurePublicDataset/blob/master/AzurePublicDatasetV2.md; cite
Cortez et al., "Resource Central", SOSP 2017. Built from the published schema; tried on hand-made rows only
(MARO's form: on its toy table).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.headed import has_row, header_row
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.parsing.table import Layout, joined, number, read_table
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Azure public dataset V2 (2019), vmtable"
SOURCE = "https://github.com/Azure/AzurePublicDataset/blob/master/AzurePublicDatasetV2.md"
OPTIONS = ("largest_cores", "largest_memory")

FIELDS = (
    *("vmid", "subscriptionid", "deploymentid", "vmcreated", "vmdeleted", "maxcpu", "avgcpu", "p95maxcpu"),
    *("vmcategory", "vmcorecountbucket", "vmmemorybucket"),
)
LIFETIME = "vmlifetime"
SAME = {"corecountbucket": "vmcorecountbucket", "memorybucket": "vmmemorybucket"} | {
    name.removesuffix("bucket"): name for name in FIELDS[9:]
}
"""Other names of a column."""
NUMBERS = (*FIELDS[3:8], LIFETIME)
TEXTS = frozenset(FIELDS) - set(NUMBERS)
READINGS = frozenset(FIELDS[5:8])
NEEDED = ("vmid", "vmcreated", "vmdeleted", *FIELDS[9:])
EXTRA = ("deploymentid", "vmcategory", *FIELDS[5:8])
CATEGORIES = ("Delay-insensitive", "Interactive", "Unknown")
TICK = 300.0


def recognises(head: Head) -> bool:
    """Whether a header names the columns, or a row has them in their order."""
    if head.rows and set(NEEDED) <= {_field(name) for name in head.rows[0]}:
        return True
    return has_row(head, len(FIELDS), range(3, 8), FIELDS.index("vmcategory"), CATEGORIES)


def read(
    source: Source,
    rejected: Rejected,
    *,
    lenient: bool = False,
    largest_cores: float | None = None,
    largest_memory: float | None = None,
) -> Workload:
    """Read the virtual machines; resources are `cpu` [cores] and `memory` [GB].

    Args:
        source: the file.
        rejected: collects rows that are no jobs.
        lenient: keep the first of rows that contradict each other.
        largest_cores: cores to take where the bucket is open (`>24`); None: reject.
        largest_memory: GB to take where the bucket is open (`>64`); None: reject.

    Raises:
        UserError: no usable job, or columns are missing.
    """
    largest = {FIELDS[9]: _amount("largest_cores", largest_cores)}
    largest[FIELDS[10]] = _amount("largest_memory", largest_memory)
    layout = _layout(source)
    tables = read_table(source, layout, rejected)
    columns = joined((_columns(table, largest, rejected) for table in tables), rejected, source)
    demand = np.column_stack([columns.pop(name) for name in FIELDS[9:]])
    extra = {name: columns.pop(name) for name in EXTRA if name in columns}
    about = {"time": "steps of 300 s"} if LIFETIME in layout.columns else {}
    resources = [Resource("cpu", "cores"), Resource("memory", "GB")]
    return build(
        Columns(**columns, demand=demand, resources=resources, about=about, extra=extra), rejected, lenient
    )


def _amount(name: str, given: float | str | None) -> float:
    value = np.nan if given is None else number(str(given))
    if value is None or not (given is None or 0 < value < np.inf):
        raise UserError(f"{name} is {given!r}; give a number above 0, or leave it out")
    return value


def _field(column: str) -> str:
    name = column.strip().lower().replace("_", "").replace(" ", "")
    return SAME.get(name, name)


def _layout(source: Source) -> Layout:
    """Return the columns, from the header row if there is one.

    Raises:
        UserError: a header without a column that is needed.
    """
    header = [_field(name) for name in header_row(source)]
    if "vmid" not in header and "vmcreated" not in header:
        return Layout(FIELDS, TEXTS, needed=4, optional=READINGS)
    lacking = [name for name in NEEDED if name not in header]
    if lacking:
        raise UserError(
            f"{source.path} has the columns {', '.join(header)}; {', '.join(lacking)} missing "
            "(no jobs were read)"
        )
    unused = frozenset(header) - set(FIELDS) - {LIFETIME}
    return Layout(header, TEXTS & set(header), unused, skip=1, optional=READINGS & set(header))


def _columns(table: pd.DataFrame, largest: dict[str, float], rejected: Rejected) -> dict[str, np.ndarray]:
    """Bring some rows to seconds, cores and GB."""
    buckets, wrong = {}, np.zeros(len(table), bool)
    for name, amount in largest.items():
        buckets[name], bad = _bucket(table[name].to_numpy(), amount)
        fresh = bad & ~wrong
        rejected.add(
            "not_numeric",
            table.index[fresh],
            table["vmid"][fresh],
            [f"{name} is {text!r}" for text in table[name][fresh]],
        )
        wrong |= bad
    step = TICK if LIFETIME in table else 1.0
    created, deleted = table["vmcreated"] * step, table["vmdeleted"] * step
    found = {
        "line": table.index,
        "id": table["vmid"],
        "arrival": created,
        "duration": table[LIFETIME] * step if LIFETIME in table else deleted - created,
        "recorded_finish": deleted,
    } | {name: table[name] for name in EXTRA if name in table}
    if "subscriptionid" in table:
        found["user"] = table["subscriptionid"]
    return {name: np.asarray(column)[~wrong] for name, column in (found | buckets).items()}


def _bucket(texts: np.ndarray, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the amounts [n], `largest` where the bucket is open, and which are none [n]."""
    import pandas as pd

    place, distinct_texts = pd.factorize(texts)
    found = [number(text.strip().removeprefix(">")) for text in distinct_texts.tolist()]
    amounts = [
        largest if text.strip().startswith(">") else np.nan if value is None else value
        for text, value in zip(distinct_texts.tolist(), found, strict=True)
    ]
    wrong = np.array([value is None for value in found], bool)
    return np.array(amounts, np.float64)[place], wrong[place]
