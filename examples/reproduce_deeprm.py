"""Reproduce the result figures of the DeepRM paper (HotNets 2016, Figs. 4 to 7): train, measure, draw.

    python examples/reproduce_deeprm.py            # or: make paper; 10 minutes on two free cores
    python examples/reproduce_deeprm.py --quick    # the same in small, about a minute: shows that it works

| figure | question | file |
|---|---|---|
| 4 | slowdown at loads from 10 % to 184 %, one policy for each load | `fig4_load.png` |
| 5 | slowdown and completion time, trained for either, at load 130 % | `fig5_objectives.png` |
| 6 | learning curve at load 70 %: return and slowdown | `fig6_learning.png` |
| 7 | which jobs are withheld, and who pays, at load 110 % | `fig7_withholding.png` |

All are in `figures.pdf`, all numbers in `numbers.csv` and `curves.csv`, the tables in `tables.txt`; policies
in `runs/`, where a second call finds them. Physics: `--idle_limit` (examples/paper/plan.py says more). What
came out stands in docs/reproduction.md.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from examples.paper.plan import PRESETS, PaperSettings, trainings  # noqa: E402  (found above, installed or not)
from schedrl.settings import Parser, add_arguments, check_folder_writable, main_guard, resolve  # noqa: E402


def make_parser() -> Parser:
    """Return the parser of this command."""
    parser = Parser(description="Reproduce the result figures of the DeepRM paper.")
    parser.add_argument("--quick", action="store_true", help="small budgets, about a minute (--preset quick)")
    add_arguments(parser, PaperSettings, presets=PRESETS)
    return parser


def read_settings(args: argparse.Namespace) -> PaperSettings:
    """Return the settings of the command line."""
    if args.quick:
        args.preset = "quick"
    return resolve([PaperSettings], args, presets=PRESETS)[PaperSettings]


def reproduce(settings: PaperSettings, say: Any) -> str:
    """Train, measure, draw, write; return the tables."""
    from examples.paper import figures, measuring, tables
    from examples.paper.training import train_all
    from schedrl.evaluation.table import write_csv

    started = time.perf_counter()
    folder = Path(settings.out)
    runs = trainings(settings)
    curve_flags = ("--points", str(settings.curve_points), "--sequences", str(settings.curve_sequences))
    trained = train_all(runs, settings.processes, curve_flags, say)
    say(f"evaluating on {settings.num_sequences:,} test sequences of each load")
    played = measuring.play_loads(settings, say)
    rows = [row for load in settings.loads for row in measuring.rows_of_load(load, *played[load])]
    rows += measuring.rows_of_objectives(settings, *played[settings.objective_load])
    rows += measuring.rows_of_rules_on_curve(settings)
    rows += measuring.rows_of_withholding(settings, *played[settings.withholding_load])
    curves = measuring.curves(runs)
    write_csv(folder / "numbers.csv", [row._asdict() for row in rows])
    write_csv(folder / "curves.csv", [line for curve in curves for line in curve.lines()])
    paths = figures.draw_all(rows, curves, folder)
    text = tables.all_tables(rows, curves, trained, time.perf_counter() - started)
    (folder / "tables.txt").write_text(text)
    say("wrote " + ", ".join(str(path) for path in paths))
    return text


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Reproduce what the command line asks for, print the tables."""
    settings = read_settings(make_parser().parse_args(argv))
    folder = check_folder_writable(settings.out, "--out")
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    # As Ctrl-C: the trainings are told to save and end, none goes on alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def say(line: str) -> None:
        print(f"[{time.perf_counter() - started:6.0f} s] {line}", file=sys.stderr, flush=True)

    print(reproduce(settings, say))
    return 0


if __name__ == "__main__":
    sys.exit(main())
