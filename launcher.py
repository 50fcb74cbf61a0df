"""Train one algorithm, compare it with tuned heuristics on unseen jobs, draw the result: the main job.

    python launcher.py --algo ppo

trains PPO on the DeepRM cluster and leaves model, metrics, `slowdown_cdf.png`, `resource_utilization.png` and
`job_completion_time.csv` in models/ppo_deeprm (or models/ppo_deeprm_2, ... where a run is, or is being
trained: nothing is overwritten). Ctrl-C saves; `--resume` continues exactly. `--mode debug` prints every step
of one environment. `--help` lists all settings of the chosen `--algo` and `--env`; the work is done in
schedrl/launch.
"""

from __future__ import annotations

import importlib
import sys

from schedrl.launch.folders import claimed
from schedrl.launch.plan import read_plan
from schedrl.settings import main_guard


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Make a plan of the command line, then carry it out in its mode."""
    with claimed(read_plan(argv)) as plan:
        # Imported late: reading a command line must not wait for NumPy, Numba or TensorFlow.
        mode = importlib.import_module(f"schedrl.launch.{plan.launch.mode}")
        return mode.run(plan)


if __name__ == "__main__":
    sys.exit(main())
