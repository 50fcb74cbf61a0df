"""The flags by which every command reads a file, and what they mean."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from schedrl.settings import Parser, UserError, line_of, one_of
from schedrl.workload.readers import FORMATS, Rejected, read_trace
from schedrl.workload.types import Workload


def add_reading(parser: Parser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("--format", metavar="NAME", help=f"of FILE; default: by its content. One of {', '.join(FORMATS)}")
    add("--map", metavar="MAP", help="columns of a CSV: arrival=submit_ms[ms],duration=run_s,cpu=cores,...")
    add("--option", metavar="NAME=VALUE", action="append", default=[], help="what that format's reader takes")
    add("--time_zone", metavar="ZONE", help="of local times in FILE, such as Europe/Berlin (default: UTC)")
    add("--encoding", help="of text, for example gbk (default: the format's usual one)")
    add("--strict", action="store_true", help="any row that is rejected or mended is an error")
    add("--lenient", action="store_true", help="of rows that contradict each other keep the first")
    add("--capacity", metavar="C", help="of the cluster, where FILE does not say: cpu=256,memory=1024")


def read_given(args: argparse.Namespace) -> tuple[Workload, Rejected]:
    """Read the file that a command line names; `--capacity` is laid over what the file says."""
    options: dict[str, Any] = {"map": args.map} if args.map else {}
    for text in args.option:
        name, sign, value = text.partition("=")
        if not sign:
            raise UserError(f"--option is {text!r}; write NAME=VALUE")
        options[name.strip()] = {"true": True, "false": False}.get(value.strip().lower(), value.strip())
    if args.time_zone:
        options["time_zone"] = args.time_zone
    given = {"strict": args.strict, "lenient": args.lenient, "encoding": args.encoding}
    workload, rejected = read_trace(args.file, args.format, **given, **options)
    if args.capacity:
        workload = workload.on(capacity_of(args.capacity, workload))
    return workload, rejected


def capacity_of(text: str, workload: Workload) -> np.ndarray:
    """Return [R] amounts from `cpu=256,memory=1024`; one that isn't named stays as it was."""
    names = [resource.name for resource in workload.resources]
    capacity = np.array(workload.capacity)
    for part in filter(str.strip, text.split(",")):
        name, sign, value = map(str.strip, part.partition("="))
        if not sign:
            meant = f"{name}=AMOUNT" if name in names else f"RESOURCE=AMOUNT, as {names[0]}={name}"
            raise UserError(f"--capacity has {name!r}; write {meant}")
        place = names.index(one_of("resource", name, names))
        try:
            capacity[place] = float(value)
        except ValueError:
            capacity[place] = np.nan
        if not 0 < capacity[place] < np.inf:
            raise UserError(f"--capacity has {part.strip()!r}; write {name}=AMOUNT, a finite number above 0")
    return capacity


def rejected_lines(rejected: Rejected, shown: int, workload: Workload | None = None) -> list[str]:
    """Return the report on what was rejected and what was changed, with the first rows of each reason.

    With the jobs that were kept, it says which share of the work was lost.
    """
    lines: list[str] = []
    seen: dict[str, int] = {}
    for row in rejected:
        seen[row.reason] = seen.get(row.reason, 0) + 1
        if seen[row.reason] <= shown:
            about = ", ".join(filter(None, (row.id and f"job {line_of(row.id)}", line_of(row.detail))))
            lines.append(f"  {rejected.place} {row.line}: {row.reason}" + (f" ({about})" if about else ""))
    said = rejected.lines(workload)
    first = (1 + len(rejected.work_lines(workload))) * (len(rejected) > 0)
    return said[:first] + lines + said[first:]
