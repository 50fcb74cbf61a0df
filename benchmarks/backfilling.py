"""Orders of the queue with and without backfilling, beside the values published with RLScheduler (SC 2020).

Average bounded slowdown (tau 10 s) of FCFS, WFP3, UNICEP, SJF and F1 on one pool of 256 processors, over the
ten windows of 1,024 jobs of the published table, each begun on an empty pool. Three values per order: as
published; by the rules of play of RLScheduler's simulator written anew (`benchmarks/rlscheduler.py`: the
published value to the last digit; beside it what its WFP3 and UNICEP do when they read the true wait, and
what all do when besides the head of the queue is chosen anew at every event);
and by this project's simulator, `strict` and `easy`. The last part runs the whole trace. Fails if SJF or F1
is not at most half of FCFS, without or with backfilling, in any of our rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import rlscheduler
from benchmarks.rlscheduler import LENGTH, PUBLISHED, SCORES, Job, Pool
from schedrl.evaluation.table import print_table
from schedrl.settings import Settings, UserError

if TYPE_CHECKING:
    from schedrl.workload.types import Workload

NAMES = {"fcfs": "fifo", "wfp3": "wfp3", "unicep": "unicep", "sjf": "sjf", "f1": "f1"}
"""Name of the published table -> order here."""
DISCIPLINES = ("strict", "easy")
PROCESSORS = 256
TAU = 10.0
FAR_BELOW = 0.5


@dataclass(frozen=True)
class BackfillingBenchmark(Settings):
    """Which jobs."""

    trace: str | None = None
    """Trace in a format that `job_distribution.read_trace` reads, of 2,050 jobs or more, in seconds. The
    published values are of lublin_256.swf, which is in github.com/DIR-LAB/deep-batch-scheduler. None: jobs of
    the project's own Lublin generator."""
    num_jobs: int = 10000
    """Jobs to generate where no trace is given; at least 2,050."""
    whole: bool = True
    """Also run the whole trace in one go."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_jobs", 2 * LENGTH + 2)


def run(settings: BackfillingBenchmark) -> int:
    """Print both tables; 1 if SJF or F1 is not far below FCFS somewhere."""
    workload = load(settings)
    starts = rlscheduler.starts(len(workload))
    windows = [workload.take(slice(start, start + LENGTH)) for start in starts]
    passes = True
    for backfilling, discipline in enumerate(DISCIPLINES):
        ours = {
            name: float(np.mean([measure(w, order, discipline, 0.0) for w in windows]))
            for name, order in NAMES.items()
        }
        theirs = {
            name: [
                replayed(windows, name, bool(backfilling), wait, anew)
                for wait, anew in ((False, False), (True, False), (True, True))
            ]
            for name in NAMES
        }
        title = f"{'With' if backfilling else 'Without'} backfilling, windows that begin with jobs {starts}"
        header = (
            "order",
            "published",
            "their rules anew",
            "true wait",
            "and head anew",
            f"here, {discipline}",
        )
        rows = [(name, PUBLISHED[name][backfilling], *theirs[name], ours[name]) for name in NAMES]
        show(title, header, rows)
        passes &= far_below(ours)
    if settings.whole:
        whole = {
            name: [measure(workload, order, d, None) for d in DISCIPLINES] for name, order in NAMES.items()
        }
        show(
            f"All {len(workload)} jobs in one run",
            ("order", *DISCIPLINES),
            [(n, *v) for n, v in whole.items()],
        )
        passes &= all(far_below({name: v[k] for name, v in whole.items()}) for k in range(2))
    print(f"SJF and F1 at most {FAR_BELOW:g} of FCFS everywhere: {'yes' if passes else 'NO'}")
    return int(not passes)


def load(settings: BackfillingBenchmark) -> Workload:
    """Return the jobs that ran at all and fit the pool, as processors and times alone; estimates are exact.

    Raises:
        UserError: a trace that can't be read or has too few such jobs.
    """
    import job_distribution
    from schedrl.workload.types import Workload

    if settings.trace is None:
        given = job_distribution.workload("lublin", num_jobs=settings.num_jobs, num_nodes=PROCESSORS)
    else:
        given, _ = job_distribution.read_trace(settings.trace)
    procs = given.demand[:, :1] * np.asarray(given.instances)[:, None]
    kept = (given.duration > 0) & (procs[:, 0] > 0) & (procs[:, 0] <= PROCESSORS)
    if kept.sum() < 2 * LENGTH + 2:
        raise UserError(
            f"{kept.sum()} jobs of 1 to {PROCESSORS} processors; ten windows need {2 * LENGTH + 2}"
        )
    return Workload(given.arrival[kept], given.duration[kept], procs[kept], ("cpu",), given.time_unit)


def measure(workload: Workload, order: str, discipline: str, epoch: float | None) -> float:
    """Return the average bounded slowdown on the pool."""
    from schedrl.sim.cluster import simulate
    from schedrl.workload.machines import Machines

    text = np.array(["pool"], object)
    pool = Machines(text, np.array([[PROCESSORS]], float), workload.resources, text.copy())
    start = simulate(workload, pool, f"{order}+{discipline}", epoch=epoch).start
    served = start - workload.arrival + workload.duration
    return float(np.maximum(1, served / np.maximum(workload.duration, TAU)).mean())


def replayed(
    windows: list[Workload], name: str, backfilling: bool, true_wait: bool, head_anew: bool
) -> float:
    """Return the average over the windows by RLScheduler's rules of play, or with some of them mended."""
    found = []
    for w in windows:
        rows = zip(w.arrival.tolist(), w.duration.tolist(), w.demand[:, 0].tolist(), strict=True)
        jobs = [Job(arrival, duration, int(procs)) for arrival, duration, procs in rows]
        pool = Pool(jobs, PROCESSORS, SCORES[name], backfilling=backfilling, true_wait=true_wait)
        found.append(pool.bounded_slowdown_asked_anew() if head_anew else pool.bounded_slowdown())
    return float(np.mean(found))


def far_below(values: dict[str, float]) -> bool:
    """Whether SJF and F1 are far below FCFS."""
    return max(values["sjf"], values["f1"]) <= FAR_BELOW * values["fcfs"]


def show(title: str, header: tuple[str, ...], rows: list[tuple]) -> None:
    """Print a table of values with two digits."""
    print_table(title, header, [[row[0], *(f"{value:,.2f}" for value in row[1:])] for row in rows])
    print(flush=True)
