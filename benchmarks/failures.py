"""What happens when something fails, in local and in distributed mode, and how long it takes.

Every row starts launcher.py with two workers, waits until they learn, does the harm, and watches: until the
line that tells of it, and until the run learns again or all its processes have ended. Seconds are those of
the clock, on this machine as it is; starting a run is not counted.

Linux only: workers are found in /proc, and a limit on the size of files stands in for a full disk.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from schedrl.evaluation.table import print_table
from schedrl.launch.distributed.meeting import free_ports
from schedrl.learning.shards import committed
from schedrl.settings import Settings, UserError, one_of

LAUNCHER = Path(__file__).resolve().parent.parent / "launcher.py"
LEARNING = "--algo a2c --num_envs 8 --num_steps 16 --checkpoint_every 128 --total_steps 100000000 --no_eval"
"""A checkpoint after every update: what is seen of a run that learns."""
LOOK, PATIENCE = 0.005, 300.0  # seconds
MODES = ("local", "distributed")
MARK = "SCHEDRL_BENCHMARK_RUN"
"""A variable of all processes of a run, by which those that are left are found."""


@dataclass(frozen=True)
class FailuresBenchmark(Settings):
    """What to measure."""

    modes: tuple[str, ...] = MODES
    """Which of the two: local, distributed."""
    rounds: int = 3
    """Times that each harm is done; the median counts."""
    worker_timeout: float = 10.0
    """Of the runs in local mode: seconds after which a frozen worker is given up."""
    start_timeout: float = 60.0
    """Of the runs in distributed mode whose start fails: seconds in which workers must find each other."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in self.modes:
            one_of("modes", name, MODES)
        self.in_range("rounds", 1)
        self.in_range("worker_timeout", 0, open_low=True)
        self.in_range("start_timeout", 0, open_low=True)


class Launched:
    """A run: launcher.py once, or once for each host, and what it says with the times.

    Args:
        folder: of the run.
        hosts: the command line's end for each.
    """

    def __init__(self, folder: Path, *hosts: str):
        self.folder, self.hosts, self.lines = folder, hosts, [(0.0, "")]
        self.supervisors: list[subprocess.Popen[str]] = []
        for host in range(len(hosts)):
            self.start(host)

    def start(self, host: int, more: str = "") -> None:
        """Start one host's launcher."""
        command = [sys.executable, str(LAUNCHER), *LEARNING.split(), *self.hosts[host].split(), *more.split()]
        environ = {**os.environ, MARK: str(self.folder), "PYTHONUNBUFFERED": "1"}
        streams: dict = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(command, env=environ, start_new_session=True, **streams)
        self.supervisors.append(process)
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.lines.append((time.monotonic(), line.strip()))

    def workers(self) -> list[int]:
        """Return the process ids of the workers that run, by index."""
        found = {}
        for pid in self._processes():
            with contextlib.suppress(OSError, ValueError):
                command = Path(f"/proc/{pid}/cmdline").read_text()
                variables = Path(f"/proc/{pid}/environ").read_text()
                if "launch.distributed.worker" in command:
                    found[int(variables.partition('"index": ')[2].partition("}")[0])] = pid
                elif "spawn_main" in command:
                    found[pid] = pid
        return [found[key] for key in sorted(found)]

    def _processes(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.folder}\0".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def newest(self) -> str:
        """Return the name of the last checkpoint."""
        return max((path.name for path in committed(self.folder)), default="")

    def learns(self) -> None:
        """Wait until one more checkpoint is there."""
        before = self.newest()
        self._wait(lambda: self.newest() > before, "no checkpoint")

    def told(self, words: str, since: float) -> float:
        """Wait for a line with `words`; return when it came."""
        times: list[float] = []

        def heard() -> bool:
            times[:] = [t for t, line in self.lines if t >= since and words in line]
            return bool(times)

        self._wait(heard, f"nothing of {words!r}")
        return times[0]

    def gone(self) -> None:
        """Wait until no process of the run is left."""
        self._wait(lambda: all(s.poll() is not None for s in self.supervisors), "it goes on")
        self._wait(lambda: not self._processes(), "processes are left")

    def _wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise RuntimeError("\n".join([otherwise, *(line for _, line in self.lines)]))
            time.sleep(LOOK)

    def close(self) -> None:
        """End what is left."""
        for process in self.supervisors:
            process.kill()
            process.wait()


class Harm(NamedTuple):
    """One row of the table."""

    what: str
    do: Callable[[Launched], float | None]
    """Returns when it was done, where that is not at once."""
    words: str
    """Of the line that tells of it; empty where nobody is left to tell."""
    ends: bool = False
    """Whether the run ends; else it learns again."""
    starting: bool = False
    """Done while the run starts: not once it learns."""


def to_worker(index: int, number: int) -> Callable[[Launched], None]:
    """Return what sends a signal to a worker."""
    return lambda run: os.kill(run.workers()[index], number)


def to_parent(number: int) -> Callable[[Launched], None]:
    """Return what sends a signal to the process that was started."""
    return lambda run: run.supervisors[0].send_signal(number)


def fill_disk(run: Launched) -> None:
    """Let none of the run's processes write a file of more than a few bytes."""
    import resource

    for pid in (*run.workers(), *(process.pid for process in run.supervisors)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, 4096))


def freeze_newborn(run: Launched) -> float:
    """Stop worker 1 before it can join the others; return when."""
    while len(run.workers()) < 2:
        time.sleep(LOOK)
    os.kill(run.workers()[1], signal.SIGSTOP)
    return time.monotonic()


def lose_host(run: Launched) -> None:
    """Kill a host's supervisor, its worker with it, and start it anew."""
    lost = run.supervisors.pop()
    lost.kill()
    lost.wait()
    run.start(1, "--resume")


KILL, STOP, TERM, INT = signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT
LOCAL = (
    Harm("a worker is killed", to_worker(1, KILL), "was lost: killed by SIGKILL"),
    Harm("a worker is frozen (--worker_timeout {worker_timeout:g})", to_worker(1, STOP), "no sign of life"),
    Harm("Ctrl-C", to_parent(INT), "saved after", ends=True),
    Harm("SIGTERM", to_parent(TERM), "saved after", ends=True),
    Harm("SIGKILL to the parent", to_parent(KILL), "", ends=True),
    Harm("the disk is full", fill_disk, "can't write", ends=True),
)
SPAWNED = (
    Harm("a worker is killed", to_worker(1, KILL), "worker 1 was killed by SIGKILL"),
    Harm("the chief is killed", to_worker(0, KILL), "worker 0 was killed by SIGKILL"),
    Harm("a worker is frozen", to_worker(1, STOP), "worker 1 does not answer"),
    Harm("a worker hangs while it starts (--start_timeout {start_timeout:g})", freeze_newborn,
         "not found each other", starting=True),
    Harm("SIGTERM to a worker", to_worker(1, TERM), "saved after", ends=True),
    Harm("SIGTERM to the supervisor", to_parent(TERM), "saved after", ends=True),
    Harm("Ctrl-C", to_parent(INT), "saved after", ends=True),
    Harm("the disk is full", fill_disk, "can't write", ends=True),
    Harm("SIGKILL to the supervisor", to_parent(KILL), "", ends=True),
)  # fmt: skip
HOSTS = (Harm("a host is lost and comes back at once", lose_host, "restart 1 of"),)
ABSENT = (
    Harm("a host never comes (--start_timeout {start_timeout:g})", lambda run: None, "did not come within",
         ends=True, starting=True),
)  # fmt: skip


def run(settings: FailuresBenchmark) -> int:
    """Do all harms in turn and print how long their end took.

    Raises:
        UserError: this system has no /proc.
    """
    if not Path("/proc/self/environ").exists():
        raise UserError("this benchmark finds processes in /proc, which this system doesn't have")
    for mode in settings.modes:
        rows = [row(harm, hosts, settings) for harm, hosts in _harms(mode, settings)]
        title = f"{mode}: seconds after the harm, median of {settings.rounds} ({os.cpu_count()} cores)"
        print_table(title, ["what", "told after", "then", "after"], rows)
    return 0


def _harms(mode: str, settings: FailuresBenchmark) -> Iterator[tuple[Harm, Callable[[], list[str]]]]:
    """Yield each harm with what makes the command lines of its hosts."""
    if mode == "local":
        line = f"--mode local --num_workers 2 --worker_timeout {settings.worker_timeout}"
        yield from ((harm, lambda: [line]) for harm in LOCAL)
        return
    base, late = "--mode distributed", f"--start_timeout {settings.start_timeout}"
    for harm in SPAWNED:
        spawned = f"{base} {late if harm.starting else ''} --spawn 2"
        yield harm, lambda line=spawned: [line]

    def hosts() -> list[str]:
        spec = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
        return [f"{base} --listen --cluster_spec {spec} --task_index {index}" for index in range(2)]

    yield from ((harm, hosts) for harm in HOSTS)
    yield from ((harm, lambda: [f"{hosts()[0]} {late}"]) for harm in ABSENT)


def row(harm: Harm, hosts: Callable[[], list[str]], settings: FailuresBenchmark) -> list[str]:
    """Do one harm as often as asked; return its row of the table."""
    name = harm.what.format(**settings.to_dict())
    found = [measured(harm, hosts()) for _ in range(settings.rounds)]
    cells = [name, _seconds([told for told, *_ in found]), found[0][1], _seconds([end for *_, end in found])]
    print(" | ".join(cells), file=sys.stderr, flush=True)
    return cells


def measured(harm: Harm, hosts: list[str]) -> tuple[float, str, float]:
    """Return the seconds until it was told (NaN: it is not), what then happened, and the seconds to that."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        launched = Launched(folder, *(f"{line} --model_dir {folder}" for line in hosts))
        try:
            if not harm.starting:
                launched.learns()
                launched.learns()
            began = time.monotonic()
            began = harm.do(launched) or began
            told = launched.told(harm.words, began) - began if harm.words else math.nan
            if harm.ends:
                launched.gone()
                then = f"all has ended, exit code {launched.supervisors[0].returncode}"
            else:
                launched.learns()
                then = "it learns again"
            return told, then, time.monotonic() - began
        finally:
            launched.close()


def _seconds(values: list[float]) -> str:
    middle, least, most = (f"{x:.1f}" if x >= 1 else f"{x:.2f}" for x in np.percentile(values, [50, 0, 100]))
    return "-" if math.isnan(values[0]) else middle if len(values) == 1 else f"{middle} ({least} .. {most})"
