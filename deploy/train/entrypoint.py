"""What the container runs: say who this worker is, and train; go on where a checkpoint is.

| variable | meaning |
|---|---|
| `JOB_COMPLETION_INDEX` | which worker this is, from 0; an Indexed Job sets it |
| `WORKERS` | how many there are |
| `ADDRESS` | host:port of each, with `{index}` where its number stands: `train-{index}.train:2222` |
| `MODEL_DIR`, `START_TIMEOUT` | as for launcher.py |

Arguments are those of launcher.py. The process becomes the launcher and so gets the signals of Kubernetes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tf_config(environ: Mapping[str, str]) -> str:
    """Return TF_CONFIG: who the workers are, and which is this one."""
    workers = [environ["ADDRESS"].replace("{index}", str(i)) for i in range(int(environ["WORKERS"]))]
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
