"""What the container runs: say who this worker is, and train; go on where a checkpoint is.

Reads JOB_COMPLETION_INDEX, JOB_NAME, SERVICE, WORKERS, PORT, MODEL_DIR and START_TIMEOUT; arguments are those
of launcher.py. The process becomes the launcher, so that it gets the signals of Kubernetes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tf_config(environ: Mapping[str, str]) -> str:
    """Return TF_CONFIG: pod i of an Indexed Job is JOB-i.SERVICE in the DNS of its headless service."""
    job, service, port = environ["JOB_NAME"], environ["SERVICE"], environ["PORT"]
    workers = [f"{job}-{index}.{service}:{port}" for index in range(int(environ["WORKERS"]))]
    task = {"type": "worker", "index": int(environ["JOB_COMPLETION_INDEX"])}
    return json.dumps({"cluster": {"worker": workers}, "task": task})


def command(environ: Mapping[str, str], arguments: list[str]) -> list[str]:
    """Return the launcher's command line."""
    folder = Path(environ["MODEL_DIR"])
    line = [sys.executable, str(ROOT / "launcher.py"), "--mode", "distributed", "--model_dir", str(folder)]
    line += ["--start_timeout", environ["START_TIMEOUT"]]
    # The same command starts a run and goes on after a pod was lost.
    resume = ["--resume"] if any((folder / "checkpoints").glob("step_*.npz")) else []
    return [*line, *resume, *arguments]


if __name__ == "__main__":
    line = command(os.environ, sys.argv[1:])
    os.execve(line[0], line, {**os.environ, "TF_CONFIG": tf_config(os.environ)})
