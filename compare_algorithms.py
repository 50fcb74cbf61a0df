"""Train several algorithms, or use finished runs again, and compare them with heuristics on the same jobs.

    python compare_algorithms.py --algorithms PPO,A2C --total_steps 2000000 --seeds 0,1,2

leaves each run in results/ALGO/seed_S and writes `comparison_report.pdf`, `.html` and `.csv` to results. All
runs get the same environment settings and the same budget of decisions; all policies and the tuned heuristics
play the same test sequences. Ctrl-C saves; the same command goes on. See docs/comparing.md; the work is done
in schedrl/launch/comparing and schedrl/evaluation/comparison_report.

    python compare_algorithms.py --trace FILE --cluster FILE --policies sjf+best_fit,fifo+first_fit+easy

replays a recorded trace on a cluster of machines under rules and trained models, without training and without
TensorFlow. See docs/operators.md; the work is done in schedrl/launch/replay and schedrl/evaluation/cluster.
"""

from __future__ import annotations

import importlib
import sys

from schedrl.launch.comparing.plan import read_plan
from schedrl.launch.folders import claimed_output
from schedrl.launch.replay.request import is_replay, read_request
from schedrl.settings import main_guard


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Make a plan of the command line, then carry it out."""
    if is_replay(argv):
        request = read_request(argv)
        replay = importlib.import_module("schedrl.launch.replay.carry_out")
        with claimed_output(request, replay.holds_no_report) as request:
            return replay.run(request)
    with claimed_output(read_plan(argv)) as plan:
        # Imported late: reading a command line must not wait for NumPy, Numba or TensorFlow.
        return importlib.import_module("schedrl.launch.comparing.carry_out").run(plan)


if __name__ == "__main__":
    sys.exit(main())
