"""Train all runs of a comparison, several at a time, through joblib.

Each run is a process of its own (`one_run`), for which one joblib task waits. So joblib's threads are enough
on one machine, and any other backend works as well: inside `joblib.parallel_config(backend="dask")` (or ray,
or whatever joblib knows) the tasks go there, provided the workers have the project installed and see the
results folder. All that passes between here and the tasks is a small folder of files: who trains, how far,
and the wish to stop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.launch.comparing.one_run import request_of
from schedrl.launch.comparing.watching import Watch
from schedrl.launch.interrupts import Interrupts
from schedrl.launch.plan import Plan
from schedrl.settings import UserError

RUNNING = ".running"
"""Folder in the results folder, there while runs train."""
STOP = "stop"
LOG = "training.log"
"""What a failed run wrote on standard error, in its folder."""
LOOK_EVERY = 0.3  # seconds between two looks at the wish to stop
TASK_MODULE = "schedrl.launch.comparing.one_run"


def number_of_jobs(asked: int | None, runs: Sequence[Plan]) -> tuple[int, str]:
    """Return how many runs train at a time, and the rule that says so.

    What was asked for; else that of a surrounding `joblib.parallel_config` (all of it, where that names a
    backend but no number); else one run for each processor that this process may use, fewer where a run
    itself uses several workers.
    """
    from joblib import cpu_count
    from joblib.parallel import get_active_backend

    if asked is not None:
        return asked, "as --num_jobs says"
    backend, configured = get_active_backend()
    if configured is not None:
        return configured, "as joblib.parallel_config says"
    if type(backend).__name__ != "LokyBackend":
        return -1, f"all that {type(backend).__name__} has"
    workers = max(getattr(run.algorithm, "num_workers", 1) or 1 for run in runs)
    jobs = max(1, min(len(runs), cpu_count() // workers))
    each = "one run per processor" if workers == 1 else f"one worker per processor, {workers} in a run"
    return jobs, f"{each}, with {cpu_count()} processors"


def train_all(
    runs: Sequence[tuple[Plan, bool]], folder: Path, jobs: int, interrupts: Interrupts, watch: Watch
) -> list[dict[str, Any]]:
    """Train each run, resumed or not, and return what became of each, in this order.

    Args:
        runs: plans, each with whether it continues a run that is there.
        folder: of the results.
        jobs: runs at a time.
        interrupts: a first signal makes all runs save and end.
        watch: reports which runs train.
    """
    from joblib import Parallel, delayed

    with _running(folder) as signs:
        interrupts.on_stop = (signs / STOP).touch
        requests = [request_of(plan, resume, signs / f"{i}.json") for i, (plan, resume) in enumerate(runs)]
        try:
            with watch.over(requests):
                # A hint: a backend that was chosen outside stays.
                return Parallel(n_jobs=jobs, prefer="threads", pre_dispatch="n_jobs")(
                    delayed(carry_out)(request, str((signs / STOP).absolute())) for request in requests
                )
        except KeyboardInterrupt:
            for child in tuple(_CHILDREN):
                child.kill()
            raise
        finally:
            interrupts.on_stop = None


def carry_out(request: Mapping[str, Any], stop: str) -> dict[str, Any]:
    """Wait for one run and return what became of it: `status` finished, stopped or failed, and `error`."""
    if Path(stop).exists():
        return {"status": "stopped"}
    _note(request, {"state": "loading", "progress": 0.0})
    result = _in_a_process(request, Path(stop))
    _note(request, {"state": result["status"], "progress": 1.0, **result})
    return result


_CHILDREN: set[subprocess.Popen] = set()
"""The runs that this process waits for."""


def _in_a_process(request: Mapping[str, Any], stop: Path) -> dict[str, Any]:
    # The project's folder first: the child must run the code that started it, wherever it was started.
    path = os.pathsep.join([str(registry.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen(
        [sys.executable, "-m", TASK_MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        # Ctrl-C in a terminal goes to every process of the session; stopping is asked for in order, below.
        start_new_session=True,
    )
    _CHILDREN.add(child)
    try:
        question = json.dumps({**request, "waiting": os.getpid()})
        return _result(child, *_waited(child, question, stop), Path(request["folder"]))
    except BaseException:  # a second Ctrl-C, where this is the main thread: the run is not to outlive it
        child.kill()
        child.wait()
        raise
    finally:
        _CHILDREN.discard(child)


def _waited(child: subprocess.Popen, question: str, stop: Path) -> tuple[str, str]:
    """Return what the child wrote on standard output and error, once it has ended."""
    asked = False
    text: str | None = question
    while True:
        try:
            return child.communicate(text, timeout=LOOK_EVERY)
        except subprocess.TimeoutExpired:
            text = None
        except BrokenPipeError:  # it ended before it had read the request; its standard error says why
            text = None
        if not asked and stop.exists():
            asked = True
            child.send_signal(signal.SIGINT)


def _result(child: subprocess.Popen, out: str, err: str, folder: Path) -> dict[str, Any]:
    try:
        result = json.loads(out.splitlines()[-1]) if child.returncode == 0 else {}
    except (IndexError, ValueError):
        result = {}
    if "status" not in result:
        code = child.returncode
        how = (
            f"was ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
        )
        last = next((line for line in reversed(err.splitlines()) if line.strip()), "")
        result = {"status": "failed", "error": f"{how}{': ' if last else ''}{last.strip()}"}
    if result["status"] == "failed":
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOG).write_text(f"{result['error']}\n\n{err}", encoding="utf-8")
    return result


def _note(request: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    from schedrl.learning.checkpoint import atomic_write

    with atomic_write(request["progress"]) as file:
        file.write(json.dumps(content).encode())


@contextmanager
def _running(folder: Path) -> Iterator[Path]:
    """Make, yield and in the end remove the folder of signs; the results folder is held by the command."""
    import shutil

    signs = folder / RUNNING
    try:
        shutil.rmtree(signs, ignore_errors=True)  # of a comparison that was killed
        signs.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"can't write in {folder} ({error.strerror}); choose another --output_dir") from None
    try:
        yield signs
    finally:
        shutil.rmtree(signs, ignore_errors=True)
