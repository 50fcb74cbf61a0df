"""What a replay can be told, beside how its trace is read. Imports nothing heavy."""

from dataclasses import dataclass

from schedrl.settings import Settings

DOZEN = (
    "fifo+first_fit+strict",
    "fifo+first_fit+skip",
    "fifo+first_fit+easy",
    "fifo+best_fit+conservative",
    "fifo+worst_fit+easy",
    "fifo+fgd+easy",
    "sjf+best_fit+skip",
    "sjf+best_fit+easy",
    "saf+best_fit+easy",
    "wfp3+best_fit+easy",
    "f1+best_fit+easy",
    "hold",
)
"""A dozen heuristics that differ: the plain ones, backfilling, packing, the orders that do best."""


@dataclass(frozen=True)
class ReplaySettings(Settings):
    """What is replayed on what, under which policies."""

    trace: str = ""
    """File of jobs, in any format that job_distribution.py reads."""
    cluster: str | None = None
    """File of machines: TOML, CSV, or OpenB's node list. None: one machine with the capacity that the trace
    states (or --capacity)."""
    num_machines: int | None = None
    """Keep so many of the machines, evenly spread over the file: a smaller cluster of the same kinds."""
    policies: tuple[str, ...] = DOZEN
    """Rules such as sjf+best_fit+easy, and folders of trained models. Others are compared with the first."""
    tune_hold: bool = False
    """Tune the numbers of hold on the first third of the jobs, and compare all policies on the others."""
    load: float | None = None
    """Scale arrivals so that the busiest resource has this load (1 = 100 %), at most 1000. None: recorded."""
    estimates: str | None = None
    """What stands for every job's estimate: class-median (of the jobs of its user and size that have finished
    before, under the same policy), limit:SECONDS, noise:SIGMA or true (the run time). None: as the trace has
    them, and the true run time of a job that has none."""
    visible_jobs: int | None = None
    """How many jobs of the queue, in its order, a rule looks at. None: all."""
    tau: float = 10.0
    """Seconds that a job counts at least in a bounded slowdown."""
    wait_limit: float = 3600.0
    """Seconds after which a waiting job counts as starved."""
    seed: int = 0
    """Of the intervals, and of the estimates' noise."""
    jobs_csv: bool | None = None
    """Write a line for each job of each policy. None: unless that makes more than a million lines."""
    safe_csv: bool = True
    """In that table, put a ' before ids and names that a spreadsheet would take for formulas (=, +, -, @)."""
    output_dir: str = "results/replay"
    """Folder of the report."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("load", 0, 1000, open_low=True)
        self.in_range("tau", 0, 1e9, open_low=True)
        self.in_range("wait_limit", 0, 1e15)
        self.in_range("visible_jobs", 1, 2**31 - 1)
        self.in_range("num_machines", 1)
        self.in_range("seed", 0, 2**31 - 1)
        if self.estimates is not None:
            from schedrl.workload.estimates import read_model  # late: it needs NumPy

            read_model(self.estimates)
        self.check(self.policies, "policies is empty; name at least one, for example sjf+best_fit+easy")
