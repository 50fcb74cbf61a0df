"""`job_distribution.py inspect FILE`: what is in it, and what is not and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from schedrl.settings import Parser, counted, whole_number
from schedrl.workload.command.reading import add_reading, read_given, rejected_lines
from schedrl.workload.constraint_lines import honoured_lines
from schedrl.workload.description import describe
from schedrl.workload.estimates import told
from schedrl.workload.readers import REASONS

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def add_flags(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.add_argument("file", metavar="FILE", help="a trace in any known format, plain or gzip")
    add_reading(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, every rejected row in it")
    parser.add_argument(
        "--plot", metavar="OUT.png", help="draw arrivals, sizes, durations and hours of the day"
    )
    parser.add_argument(
        "--show_rejected",
        type=whole_number(0),
        default=3,
        metavar="N",
        help="rows of each reason (default 3)",
    )


def run(args: Any) -> int:
    """Read and report."""
    workload, rejected = read_given(args)
    figures = describe(workload, rejected)
    notes = [*told(workload).lines(), *honoured_lines(workload)]
    if args.plot:
        from schedrl.workload.command.picture import draw

        draw(workload, args.plot, str(args.file))
    if args.json:
        rows = [row._asdict() for row in rejected]
        print(
            json.dumps(
                {"file": str(args.file), "notes": notes} | figures | {"rejected_rows": rows},
                allow_nan=False,
                indent=1,
            )
        )
        return 0
    print("\n".join(report(figures, notes)))
    for line in rejected_lines(rejected, args.show_rejected, workload):
        print(line)
    if rejected.counts:
        print("\n".join(f"  {name}: {REASONS[name]}" for name in rejected.counts if name in REASONS))
    if args.plot:
        print(f"drawn: {args.plot}")
    return 0


def report(figures: dict[str, Any], notes: Sequence[str] = ()) -> list[str]:
    """Return the lines that a person reads; `notes` stand behind the first."""
    unit = figures["time_unit"]
    users = counted(figures["users"], "user") if figures["users"] else "no users"
    lines = [
        f"{counted(figures['jobs'], 'job')} over {_time(figures['span'], unit)} (first to last arrival), "
        f"{users}, {figures['with_estimate']:,} with an estimate, "
        f"{counted(figures['gangs'], 'gang')}",
        *notes,
        "",
    ]
    for name, resource_unit in figures["resources"].items():
        load, capacity = figures["load"][name], figures["capacity"][name]
        work = figures["work_per_time"][name]
        busy = "not defined" if work is None else f"{work:,.4g} {resource_unit} busy on average"
        known = "capacity not known"
        if capacity is not None:
            known = f"{capacity:,.6g} {resource_unit}"
            known = f"{known}, load not defined" if load is None else f"load {load:.1%} of {known}"
        lines.append(f"{name:10}{known}; {busy}")
    if over := figures["exceed_capacity"]:
        first = ", ".join(figures["first_to_exceed"])
        more = ", ..." if over > len(figures["first_to_exceed"]) else ""
        lines.append(
            f"{counted(over, 'job')} ask{'s' if over == 1 else ''} for more than all of that, can never run, "
            f"and {'is' if over == 1 else 'are'} not in the load: {first}{more}"
        )
    names = {"duration": f"duration [{unit}]", "inter_arrival": f"inter-arrival [{unit}]"}
    names |= {f"demand.{name}": f"{name} [{text}]" for name, text in figures["resources"].items()}
    header = ("mean", "cv", "min", "p50", "p90", "p99", "max")
    lines += ["", f"{'':26}" + "".join(f"{title:>11}" for title in header)]
    for name, row in figures["statistics"].items():
        if row["count"] and not (name == "instances" and row["max"] == 1):
            label = names.get(name, name.replace("_", " "))
            lines.append(f"{label:26}" + "".join(f"{_short(row[title]):>11}" for title in header))
    return [*lines, ""]


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _time(span: float, unit: str) -> str:
    if unit not in SECONDS:
        return f"{span:,.0f} {unit}s"
    seconds = span * SECONDS[unit]
    for name, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {name}"
    return f"{seconds:,.6g} seconds"
