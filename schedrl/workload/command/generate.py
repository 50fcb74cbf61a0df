"""`job_distribution.py generate`: jobs of a generator, shown or written."""

from __future__ import annotations

from typing import Any

from schedrl.settings import Parser, add_arguments, counted, resolve, whole_number
from schedrl.workload.command.inspect import report
from schedrl.workload.description import describe
from schedrl.workload.generators import GENERATORS, generate, settings_of
from schedrl.workload.streams import FAMILIES
from schedrl.workload.writers import write_trace

MOST_JOBS = 100_000_000
"""Jobs that a machine of today can hold, some 100 bytes each."""
OTHER_NAMES = {"bimodal": "deeprm"}


def add_flags(parser: Parser, distribution: str) -> None:
    """Add the flags of this command and those of one generator."""
    add = parser.add_argument
    add("--distribution", default="deeprm", metavar="NAME", help=f"one of {', '.join(GENERATORS)}")
    add("--num_jobs", type=whole_number(1, MOST_JOBS), default=10_000, help="jobs to draw (default 10000)")
    add("--seed", type=whole_number(0), default=0, help="the same seed gives the same jobs (default 0)")
    add("--family", default="train", choices=FAMILIES, help="streams that never meet (default train)")
    add(
        "--out",
        metavar="FILE",
        help="write them: .csv or .swf, .gz may follow; default: show what they are like",
    )
    add_arguments(parser, settings_of(OTHER_NAMES.get(distribution, distribution)))


def run(args: Any) -> int:
    """Draw, then write or show."""
    kind = settings_of(OTHER_NAMES.get(args.distribution, args.distribution))
    if "distribution" in kind.kinds():  # of DeepRM's jobs: the law of their sizes
        args.distribution = {"deeprm": "bimodal"}.get(args.distribution, args.distribution)
    workload = generate(resolve([kind], args)[kind], args.num_jobs, args.seed, args.family)
    if args.out:
        write_trace(workload, args.out)
        print(f"wrote {counted(len(workload), 'job')} to {args.out}")
    else:
        print("\n".join(report(describe(workload))))
    return 0
