"""The heuristics to compare with, tuned on validation sequences in a process beside the training.

Training keeps one core busy; compiling the rules and searching their numbers takes 5 to 20 s on another. The
parent sends the settings as JSON to `python -m schedrl.launch.yardsticks` and reads names, numbers and mean
slowdowns back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from schedrl import registry
from schedrl.evaluation.cluster.sequences import is_cluster
from schedrl.evaluation.evaluate import BASELINES
from schedrl.evaluation.evaluate import RULE as RULE_MODE
from schedrl.learning.worker_processes import end_with_parent

SEED = 0
"""Of validation and test sequences: every run is measured on the same ones, whatever its own seed."""
SHOWN = ("sjf", "tetris", "sjf_hold")
"""Those that a learning curve is always shown against."""
IDLING = ("tsl", "defer")
"""Shown only where the agent may idle too; the bare Packer is hopeless."""
SHOWN_ON_CLUSTER = ("fifo+first_fit+skip", "sjf+best_fit+skip", "sjf+best_fit+easy")


class Yardsticks:
    """Starts the search at once; `means` looks whether it is over, `heuristics` waits for it."""

    def __init__(self, env: str, environment: Any) -> None:
        self._environment = environment
        self._found: dict[str, Any] | None = None
        # A session of its own: Ctrl-C in the terminal is for the training, which then ends this one.
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self._child.stdin is not None
        request = {"env": env, "environment": environment.to_dict(), "parent": os.getpid()}
        json.dump(request, self._child.stdin)
        self._child.stdin.close()

    def means(self) -> dict[str, float]:
        """Return name -> mean over validation sequences of their mean slowdown, once known; else nothing."""
        if self._found is None and self._child.poll() is not None:
            self._read()
        found = self._found or {}
        shown = (
            SHOWN + (IDLING if getattr(self._environment, "idle_limit", 0) != 0 else ()) + SHOWN_ON_CLUSTER
        )
        return {name: of["mean"] for name, of in found.items() if name in shown}

    def heuristics(self) -> dict[str, Any]:
        """Return name -> tuned heuristic; on a cluster, rule -> its numbers."""
        from schedrl import heuristics

        if self._found is None:
            self._child.wait()
            self._read()
        if is_cluster(self._environment):
            from schedrl.launch import cluster_evaluation

            return cluster_evaluation.options_of(self._found or {})
        return {name: heuristics.get(name, **found["numbers"]) for name, found in (self._found or {}).items()}

    def close(self) -> None:
        """End the search if it is still running."""
        self._child.kill()
        self._child.wait()

    def _read(self) -> None:
        assert self._child.stdout is not None
        text = self._child.stdout.read()
        # Where a second process isn't to be had (memory, policy), the search is made here.
        self._found = json.loads(text) if self._child.returncode == 0 else search(self._environment)


def search(environment: Any) -> dict[str, dict[str, Any]]:
    """Return name -> numbers and mean slowdown of each baseline, tuned for these settings."""
    import numpy as np

    from schedrl.evaluation import Evaluation, evaluate, tuned
    from schedrl.evaluation.metrics import slowdowns
    from schedrl.evaluation.steady_state import BASELINES as STEADY
    from schedrl.evaluation.steady_state import Windows, continuing

    if is_cluster(environment):
        from schedrl.launch import cluster_evaluation

        return cluster_evaluation.search(environment, SEED)
    window: tuple[int, int] | None = None
    names: tuple[str, ...] = BASELINES
    if environment.termination == "continuing":
        windows = Windows()
        environment, window, names = continuing(environment, windows), (windows.first, windows.last), STEADY
    rules = tuned(names, environment, SEED, window)
    found: Evaluation = evaluate(
        {}, environment, num_sequences=500, seed=SEED, family="validation", baselines=rules, window=window
    )
    means = {run.name: slowdowns(run.outcome, window=window) for run in found.runs if run.mode == RULE_MODE}
    return {
        name: {
            "numbers": {key: value for key, value in vars(rule).items() if not key.startswith("_")},
            "mean": float(np.nanmean(np.nanmean(means[name], axis=1))),
        }
        for name, rule in rules.items()
    }


def main(request: Mapping[str, Any]) -> None:
    """Answer one request on standard output; end with the process that asks, even if that is killed."""
    end_with_parent(request["parent"])
    settings = registry.get("environment_settings", request["env"]).from_dict(request["environment"])
    json.dump(search(settings), sys.stdout, default=float)


if __name__ == "__main__":
    main(json.load(sys.stdin))
