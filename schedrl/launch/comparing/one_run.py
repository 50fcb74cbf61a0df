"""One training run of a comparison, in a process of its own: `python -m schedrl.launch.comparing.one_run`.

Apart, so that a crash (out of memory, a fault in native code) ends this run and no other, and so that every
joblib backend can carry it: whoever waits for it needs no TensorFlow. Reads a request as JSON from standard
input, trains as `launcher.py` does, and prints what became of it as a last line of JSON. A signal, or the end
of the process that waits, makes it save and end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.launch.interrupts import Interrupts
from schedrl.launch.local import train
from schedrl.launch.plan import Plan
from schedrl.launch.progress import Progress, Record
from schedrl.launch.settings import LaunchSettings
from schedrl.learning.budget import Budget
from schedrl.learning.checkpoint import atomic_write
from schedrl.learning.lost_workers import WorkersLost
from schedrl.learning.rollout import NumericsError
from schedrl.settings import UserError
from schedrl.settings.claims import FolderLost, claim

LOOK_EVERY = 1.0  # seconds between two looks at whether somebody still waits
PATIENCE = 60.0  # seconds in which another process may let go of the run's folder


class Reporter(Progress):
    """Keeps the run's progress in a small file for `watching`, and says nothing."""

    def __init__(self, budget: Budget, path: Path) -> None:
        super().__init__(budget)
        self._path = path

    def say(self, text: str) -> None:
        """Say nothing: many runs share one terminal."""

    def show(self, record: Record, yardsticks: Mapping[str, float]) -> None:
        """Write how far the run is."""
        with atomic_write(self._path) as file:
            file.write(json.dumps({"state": "training", "progress": self.budget.progress}).encode())


def request_of(plan: Plan, resume: bool, progress: Path) -> dict[str, Any]:
    """Return what `perform` needs to know of a run, in JSON's types."""
    return {
        "algo": plan.launch.algo,
        "env": plan.launch.env,
        "seed": plan.launch.seed,
        "folder": str(Path(plan.launch.model_dir or "").absolute()),
        "environment": plan.environment.to_dict(),
        "algorithm": plan.algorithm.to_dict(),
        "resume": resume,
        "progress": str(progress.absolute()),
    }


def perform(request: Mapping[str, Any]) -> dict[str, Any]:
    """Train one run; return `status` finished, stopped or failed, and `error` where it failed."""
    plan = plan_of(request)
    budget = Budget.of(plan.algorithm)
    reporter = Reporter(budget, Path(request["progress"]))
    try:
        with Interrupts(reporter.say) as interrupts:
            _end_with(request.get("waiting"))
            # One of a comparison that was killed saves and ends by itself: a moment later the folder is free.
            with claim(plan.folder or "", "--output_dir", wait=PATIENCE):
                run = train(plan, budget, reporter, interrupts, None)
    except (NumericsError, UserError, WorkersLost, FolderLost) as error:
        return {"status": "failed", "error": " ".join(str(error).split())}
    except (KeyboardInterrupt, SystemExit):  # before there was anything to save
        return {"status": "stopped"}
    status = "finished" if budget.done else "stopped"
    return {"status": status, "decisions": budget.decisions, "seconds": run.seconds}


def plan_of(request: Mapping[str, Any]) -> Plan:
    """Return the launcher's plan for a request."""
    names = {name: request[name] for name in ("algo", "env", "seed", "resume")}
    launch = LaunchSettings(**names, model_dir=request["folder"], no_eval=True)
    environment = registry.get("environment_settings", launch.env).from_dict(request["environment"])
    algorithm = registry.get("algorithm_settings", launch.algo).from_dict(request["algorithm"])
    return Plan(launch, environment, algorithm, Path(request["folder"]))


def _end_with(waiting: int | None) -> None:
    """Save and end once the process of that number, which started this one, is gone; None = nobody waits."""

    def watch() -> None:
        while os.getppid() == waiting:
            time.sleep(LOOK_EVERY)
        os.kill(os.getpid(), signal.SIGINT)

    if waiting is not None:
        threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    print("\n" + json.dumps(perform(json.load(sys.stdin))), flush=True)
