"""`--mode distributed`: data-parallel training over worker processes, on one host or on many.

| module | what |
|---|---|
| `cluster` | who takes part: TF_CONFIG, `--cluster_spec` or `--spawn`, checked before anything else |
| `shares` | a worker's part of the settings, and which algorithms can be divided |
| `supervisor` | the process that was started: begins, watches, restarts; never imports TensorFlow |
| `generations`, `meeting` | how the supervisors of several hosts agree, through the run's folder |
| `namespace` | a network of their own for the workers of one host |
| `children` | starting, watching and ending worker processes |
| `worker` | the process that trains, under MultiWorkerMirroredStrategy |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedrl.launch.plan import Plan


def run(plan: Plan) -> int:
    """Carry out the plan; return the exit code."""
    from schedrl.launch.distributed import supervisor  # late: a plan is made without what this needs

    return supervisor.run(plan)
