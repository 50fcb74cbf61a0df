"""Which jobs come to a DeepRM cluster: its own, or those of a generator or a trace. Imports nothing heavy.

Apart from the other settings of the environment because a choice of workload has rules of its own: which
settings belong to which workload, and what a name means under each.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from schedrl.envs.workload_choice import OWN, TRACE, HoldsWorkload, generator_settings, made
from schedrl.workload.deeprm import DeepRMJobs

DISTRIBUTIONS = ("bimodal", "uniform")
"""DeepRM's own distributions, which are workloads too."""


@dataclass(frozen=True)
class ClusterJobs(HoldsWorkload, DeepRMJobs):
    """DeepRM's jobs, or any workload in DeepRM's steps and units (docs/workloads.md, "In DeepRM")."""

    OF_OWN: ClassVar[tuple[str, ...]] = ("distribution", "arrival_rate", "max_job_demand")
    """What only DeepRM's own workloads have; another one may have a setting of its own of that name."""
    OF_OTHERS: ClassVar[tuple[str, ...]] = ("workload_settings", "time_step", "long_jobs")
    """What DeepRM's own workloads don't have."""

    LOAD_COUNTS: ClassVar[str] = "rounded jobs"

    workload: str = "deeprm"
    """Jobs: deeprm (as `distribution` says; uniform and bimodal say it at once), a generator such as bursty
    (job_distribution.py lists them), whose settings can then be given too, or real_trace (`trace_file`).
    Under the last two `load` is the load after rounding to steps and units."""

    workload_settings: Any = None
    """The generator's or the trace's own settings by name; None: its defaults."""

    time_step: float | None = None
    """Length of a DeepRM step in the workload's time (seconds), above 0. None: so that 90 % of its durations
    fit `max_job_duration`. Not for workload deeprm."""

    long_jobs: Literal["clip", "reject"] = "clip"
    """Jobs longer than `max_job_duration`: cut to it, or left out. Not for workload deeprm."""

    @property
    def placed(self) -> bool:
        """Tell whether the jobs are a workload's, rounded to steps and units, not DeepRM's own."""
        return self.workload not in OWN

    def _check_jobs(self) -> None:
        """Bring the workload's settings into form; refuse what isn't the chosen workload's."""
        if self.workload in DISTRIBUTIONS:
            object.__setattr__(self, "distribution", self.workload)
        own = generator_settings(self.workload)
        for name in self.OF_OTHERS if own is None else self.OF_OWN:
            usual = (self.defaults()[name], max(self.capacities) if name == "max_job_demand" else None)
            self.check(getattr(self, name) in usual, self._foreign(name))
        if own is None:
            super()._check_jobs()
            return
        object.__setattr__(self, "max_job_demand", max(self.capacities))
        object.__setattr__(self, "workload_settings", made(own, self.workload_settings))
        self.check(
            self.workload != TRACE or self.workload_settings.trace_file,
            f"workload {TRACE} needs a file; give --trace FILE (trace_file)",
        )
        self.check(
            self.workload != TRACE or self.workload_settings.estimates is None,
            "estimates has no effect here: DeepRM shows every job's true run time; leave it out, or train on "
            "simple_cluster",
        )
        self.in_range("time_step", 0, open_low=True)
        for load in self.train_loads:
            self.check(load > 0, f"train_loads has {load:g}; every load must be above 0")
        self._check_load()

    def _foreign(self, name: str) -> str:
        if not self.placed:
            return (
                f"{name} has no effect on workload {self.workload}; leave it out, or choose another workload"
            )
        instead = {"distribution": "leave it out", "arrival_rate": "give load"}
        return f"{name} {getattr(self, name)} is of workload deeprm, not of {self.workload}; " + instead.get(
            name, "leave it out: every job that fits the capacity is admitted"
        )

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes`; a name of the chosen workload's own settings changes those.

        `workload_settings` as a mapping is laid over what is there; another workload starts from its
        defaults; `trace_file` alone chooses real_trace.
        """
        changes, workload = self._named(changes)
        own = generator_settings(workload)
        usual = self.defaults()
        if workload != self.workload:  # what the other one had isn't for this one
            changes = {name: usual[name] for name in self.OF_OTHERS} | {"workload": workload} | changes
        if own is not None:
            changes = self._seated(workload, own, changes)
        other = changes.get("distribution", workload)
        self.check(
            workload not in DISTRIBUTIONS or other == workload,
            f"workload {workload} and distribution {other} contradict; keep one",
        )
        if self.placed or own is not None:  # it followed, or follows, from the capacity
            changes = {"max_job_demand": usual["max_job_demand"]} | changes
        return super().replace(**changes)

    def described(self) -> list[str]:
        """Say in a few lines what was rounded and how much comes; nothing for DeepRM's own jobs.

        Raises:
            UserError: the workload has no usable job.
        """
        from .jobs import described  # NumPy's and Numba's time only where jobs are made

        return described(self)
