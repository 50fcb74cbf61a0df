"""Speed and memory of reading a trace, against pandas reading the same file with its C engine.

Files are made for it: SWF with all 18 fields, a CSV of four whole numbers a row (the least there is to read),
and a CSV with text ids, users and fractions. Reading means all of it: parsing, rules, ids, `Workload`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.paired import Side, interleaved, ratio, repeat
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings
from schedrl.workload.readers import read_trace

SLOWEST, LARGEST = 3.0, 6.0
"""Bounds: time over that of pandas, peak memory over that of the arrays read."""

MEASURE = """
import json, sys
import numpy as np
from schedrl.workload.readers import FORMATS, read_trace, reader
import pandas
for name in FORMATS:
    reader(name)
def resident(key):
    line = next(line for line in open("/proc/self/status") if line.startswith(key))
    return int(line.split()[1]) * 1024
before = resident("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # from here on the peak counts anew
jobs, _ = read_trace(sys.argv[1])
columns = [c for c in [*vars(jobs).values(), *jobs.extra.values()] if isinstance(c, np.ndarray)]
own = sum(column.nbytes for column in columns if 0 not in column.strides)
print(json.dumps([resident("VmHWM") - before, own]))
"""
"""Run in a process of its own; columns that nobody filled in take no room and don't count."""


@dataclass(frozen=True)
class TracesBenchmark(Settings):
    """What to measure, and how often."""

    num_jobs: int = 1_000_000
    """Rows of each file; at least 1."""
    rounds: int = 7
    """Times that every side is run; the median of the rounds' ratios counts."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_jobs", 1)
        self.in_range("rounds", 1)


def run(settings: TracesBenchmark) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: write(Path(folder), settings.num_jobs) for name, write in FILES.items()}
        sides: dict[str, Side] = {}
        for name, path in files.items():
            options = {"sep": r"\s+", "comment": ";", "header": None} if path.suffix == ".swf" else {}
            sides[f"{name}, pandas"] = _once(lambda p=path, o=options: pd.read_csv(p, engine="c", **o))  # type: ignore[misc]
            sides[name] = _once(lambda p=path: read_trace(p)[0])  # type: ignore[misc]
        rates = interleaved(sides, settings.rounds, 0.0)
        rows = [_row(name, path, rates) for name, path in files.items()]
    print_table(
        f"Reading {settings.num_jobs:,} rows against pandas (median of {settings.rounds} ratios of time, "
        "quartiles), and peak memory against the arrays read",
        ("file", "time", "ratio", "bound", "memory", "bound"),
        rows,
    )


def _row(name: str, path: Path, rates: dict[str, np.ndarray]) -> tuple[str, ...]:
    taken = ratio(rates, f"{name}, pandas", name)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, check=True)
    peak, own = json.loads(done.stdout)
    milliseconds = 1000 / float(np.median(rates[name]))
    return (
        f"{name}, {path.stat().st_size / 1e6:.0f} MB",
        f"{milliseconds:.0f} ms",
        str(taken),
        _verdict(taken.median, SLOWEST),
        f"{peak / 1e6:.0f} MB, {peak / own:.1f}x",
        _verdict(peak / own, LARGEST),
    )


def _verdict(value: float, bound: float) -> str:
    return f"{'met' if value <= bound else 'MISSED'} (at most {bound:g}x)"


def _once(work: Callable[[], object]) -> Side:
    return lambda seconds: repeat(lambda: work() is not None, seconds)


def _swf(folder: Path, rows: int) -> Path:
    rng, unknown = np.random.default_rng(0), np.full(rows, -1)
    submit = np.sort(rng.integers(0, 10 * rows, rows))
    run, procs = rng.integers(1, 36_000, rows), rng.integers(1, 256, rows)
    columns = [
        np.arange(1, rows + 1),
        submit,
        rng.integers(0, 5000, rows),
        run,
        procs,
        unknown,
        unknown,
        procs,
    ]
    columns += [run + 100, unknown, np.ones(rows, int), rng.integers(1, 500, rows)] + [unknown] * 6
    path = folder / "log.swf"
    path.write_text("; MaxProcs: 256\n")
    pd.DataFrame(dict(enumerate(columns))).to_csv(path, sep=" ", header=False, index=False, mode="a")
    return path


def _numbers(folder: Path, rows: int) -> Path:
    n = np.arange(rows)
    columns = {"job_id": n, "submit": n // 3, "run": 1 + n * 7919 % 3600, "cpu": 1 + n * 104_729 % 64}
    path = folder / "numbers.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def _texts(folder: Path, rows: int) -> Path:
    rng = np.random.default_rng(0)
    columns = {
        "id": np.char.add("job-", np.arange(rows).astype(str)),
        "arrival": np.cumsum(rng.exponential(3.0, rows)),
        "duration": rng.lognormal(4.0, 1.0, rows),
        "cpu": rng.integers(1, 8, rows),
        "memory": rng.lognormal(1.0, 0.7, rows),
        "user": np.char.add("user-", rng.integers(0, 200, rows).astype(str)),
    }
    path = folder / "texts.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


FILES = {"SWF, 18 fields": _swf, "CSV, 4 whole numbers": _numbers, "CSV, text and fractions": _texts}
