"""`job_distribution.py convert A B`: another format, and on the way a window, a part, a sample, a load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from schedrl.settings import Parser, UserError, counted, whole_number
from schedrl.workload import transform
from schedrl.workload.command.reading import add_reading, read_given, rejected_lines
from schedrl.workload.readers import Rejected
from schedrl.workload.types import Workload
from schedrl.workload.writers import for_spreadsheets, write_trace


def add_flags(parser: Parser) -> None:
    """Add the flags of this command; they are applied in the order of the help."""
    parser.add_argument("file", metavar="A", help="a trace in any known format, plain or gzip")
    parser.add_argument("out", metavar="B", help="the file to write: .csv or .swf, .gz may follow")
    add_reading(parser)
    add = parser.add_argument
    add("--window", metavar="FROM,TO", help="keep what arrives in that time; FROM becomes time 0")
    add("--split", metavar="SHARE", type=float, help="split by time after that share of the jobs, see --part")
    add("--part", choices=["train", "evaluation"], help="which part of --split to write")
    add("--fit", choices=["reject", "clip"], help="jobs larger than the capacity: reject them, or clip them")
    add(
        "--safe_csv",
        action="store_true",
        help="put a ' before texts that a spreadsheet takes for formulas (=, +, -, @): for people; what "
        "reads B back finds other ids than in A",
    )
    add("--sample", metavar="N", type=whole_number(1), help="keep N jobs, chosen at random")
    add("--seed", type=whole_number(0), default=0, help="of --sample (default 0)")
    add(
        "--load",
        metavar="L",
        type=float,
        help="scale arrivals to that load of the busiest resource (1 = 100 %%), at most 1000",
    )


def run(args: Any) -> int:
    """Read, transform, write.

    Raises:
        UserError: B is A: a record is never written over by a part of what it says.
    """
    if Path(args.out).exists() and Path(args.out).samefile(args.file):
        raise UserError(f"{args.out} is the file that is read, which convert leaves as it is; name another")
    read, rejected = read_given(args)
    workload, unfit = transformed(read, args)
    write_trace(for_spreadsheets(workload) if args.safe_csv else workload, args.out)
    for line in rejected_lines(rejected, 3, read) + rejected_lines(unfit, 3, workload):
        print(line)
    print(f"wrote {counted(len(workload), 'job')} to {args.out}")
    return 0


def transformed(workload: Workload, args: Any) -> tuple[Workload, Rejected]:
    """Apply what the command line asks for; also return the jobs that don't fit."""
    unfit = Rejected("the workload", place="number")
    if args.window is not None:
        workload = transform.window(workload, *_span(args.window))
    if (args.split is None) != (args.part is None):
        raise UserError("--split and --part belong together, for example --split 0.8 --part train")
    if args.split is not None:
        workload = transform.split(workload, args.split)[args.part == "evaluation"]
    if args.fit:
        capacity = np.asarray(workload.capacity)
        if np.isnan(capacity).all():
            raise UserError("--fit needs the cluster's capacity, which the file doesn't say; give --capacity")
        workload, unfit = transform.fitted(workload, np.nan_to_num(capacity, nan=np.inf), args.fit)
    if args.sample:
        workload = transform.sample(workload, args.sample, args.seed)
    if args.load is not None:
        workload = transform.scaled_to_load(workload, args.load)
    return workload, unfit


def _span(text: str) -> tuple[float, float]:
    try:
        start, end = map(float, text.split(","))
    except ValueError:
        raise UserError(f"--window is {text!r}; write FROM,TO in the trace's unit of time") from None
    if not start < end:
        raise UserError(f"--window is {text!r}; FROM must be before TO")
    return start, end
