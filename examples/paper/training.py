"""Run the trainings of the figures, a few processes at a time; use finished ones again.

Every run is one process: `launcher.py`, or `curve.py` where the learning curve is recorded on the way.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from examples.paper.plan import Training
from schedrl.settings import UserError

ROOT = Path(__file__).resolve().parents[2]
CURVE, LOG = "curve.csv", "training.log"
Say = Callable[[str], None]


class Trained(NamedTuple):
    """What a finished run took."""

    training: Training
    decisions: int
    seconds: float


def train_all(
    runs: Sequence[Training], processes: int, curve_flags: Sequence[str], say: Say
) -> list[Trained]:
    """Train what is not there yet, at most `processes` at a time, and return what each run took.

    Raises:
        UserError: a finished run in the way has other settings, or a run failed.
    """
    for run in runs:
        refuse_another(run)
    missing = [run for run in runs if not finished(run)]
    say(f"{len(runs) - len(missing)} of {len(runs)} policies are there; training {len(missing)}")
    going: list[tuple[Training, subprocess.Popen]] = []
    done = len(runs) - len(missing)
    try:
        while missing or going:
            while missing and len(going) < processes:
                going.append(start(missing.pop(0), curve_flags))
            time.sleep(0.2)
            for run, process in [one for one in going if one[1].poll() is not None]:
                going.remove((run, process))
                done += 1
                check(run, process.returncode)
                took = trained(run)
                what = f"{took.decisions:,} decisions of {run.title}"
                say(f"{what} in {took.seconds:.0f} s ({done} of {len(runs)})")
    finally:
        for _, process in going:  # only if something went wrong or Ctrl-C came: they save what they have
            process.terminate()  # not SIGINT: what a shell starts in the background ignores that
        for _, process in going:
            process.wait()
    return [trained(run) for run in runs]


def finished(run: Training) -> bool:
    """Tell whether a run has spent its budget and has its curve, if asked for; a stopped one hasn't."""
    from schedrl.launch.plan import read_plan
    from schedrl.learning.checkpoint import load_arrays

    policy = run.folder / "policy.npz"
    if not policy.exists() or (run.curve and not (run.folder / CURVE).exists()):
        return False
    _, header = load_arrays(policy, kind="policy")
    return header["decisions"] >= read_plan(run.flags).algorithm.total_steps


def refuse_another(run: Training) -> None:
    """Raise `UserError` if the run's folder holds a run of other settings."""
    from schedrl.launch.plan import read_plan
    from schedrl.learning.run_description import read_description

    if not (run.folder / "run.json").exists():
        return
    stored, wanted = read_description(run.folder), read_plan(run.flags)
    differences = [f"seed is {wanted.launch.seed}, there {stored['seed']}"] * (
        wanted.launch.seed != stored["seed"]
    )
    for part in ("environment", "algorithm"):
        for name, value in wanted.described[part].items():
            other = stored["settings"][part].get(name)
            if other != value:
                differences.append(f"{name} is {value}, there {other}")
    if differences:
        raise UserError(
            f"{run.folder} holds a run with other settings ({'; '.join(differences)}); choose another --out, "
            "or remove that folder"
        )


def start(run: Training, curve_flags: Sequence[str]) -> tuple[Training, subprocess.Popen]:
    """Start the process of a run; what it prints goes to a file beside its folder."""
    from schedrl.launch.folders import holds_run
    from schedrl.learning.run_folder import clear

    run.folder.mkdir(parents=True, exist_ok=True)
    where = ["--model_dir", str(run.folder)]
    if run.curve:
        clear(run.folder)  # half a curve can't be continued
        command = ["-m", "examples.paper.curve", *curve_flags, "--", *run.flags, *where]
    else:
        command = [str(ROOT / "launcher.py"), "--no_eval", *run.flags, *where]
        command += ["--resume"] if holds_run(run.folder) else []
    with open(run.folder / LOG, "w") as log:
        # A session of its own: Ctrl-C reaches `train_all`, which then ends the runs.
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
    return run, process


def check(run: Training, code: int) -> None:
    """Raise `UserError` with the last words of a run that failed."""
    if code == 0 and finished(run):
        return
    last = (run.folder / LOG).read_text().strip().splitlines()[-1:] or ["it said nothing"]
    raise UserError(
        f"training {run.title} ended with exit code {code}: {last[0]} (all of it: {run.folder / LOG})"
    )


def trained(run: Training) -> Trained:
    """Read what a finished run took."""
    spent = progress(run)
    return Trained(run, int(spent["decisions"][-1]), float(spent["seconds"][-1]))


def progress(run: Training) -> dict[str, np.ndarray]:
    """Return decisions, episodes and seconds [U] after each update of a run.

    The seconds are those of collecting and learning: neither starting nor measuring a curve counts.
    """
    records = np.genfromtxt(run.folder / "metrics.csv", delimiter=",", names=True, ndmin=1)
    steps = np.diff(records["decisions"], prepend=0)
    seconds = np.cumsum(steps / records["decisions_per_second"])
    return {"decisions": records["decisions"], "episodes": records["episodes"], "seconds": seconds}
