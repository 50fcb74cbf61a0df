"""Which jobs come to a DeepRM cluster: its own, or those of a generator or a trace. Imports nothing heavy.

Apart from the other settings of the environment because a choice of workload has rules of its own: which
settings belong to which workload, and what a name means under each.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from schedrl.settings import UserError, one_of
from schedrl.settings.names import canonical, suggestion
from schedrl.workload.deeprm import DeepRMJobs

DISTRIBUTIONS = ("bimodal", "uniform")
"""DeepRM's own distributions, which are workloads too."""
OWN = ("deeprm", *DISTRIBUTIONS)
"""The workloads that are DeepRM's own: drawn in whole steps and units, one job a step at most."""
TRACE = "real_trace"
"""The workload that is a file."""


def generators() -> list[str]:
    """Return the names of the workloads that are rounded to steps and units."""
    from schedrl.workload.generators import GENERATORS

    return [name for name in GENERATORS if name not in OWN]


def generator_settings(workload: str) -> Any:
    """Return the class of a workload's own settings; None for DeepRM's own, which has none beside these.

    Raises:
        UserError: an unknown name; the nearest are listed.
    """
    if one_of("workload", workload, [*OWN, *generators()]) in OWN:
        return None
    from schedrl.workload.generators import settings_of

    return settings_of(workload)


@dataclass(frozen=True)
class ClusterJobs(DeepRMJobs):
    """DeepRM's jobs, or any workload in DeepRM's steps and units (docs/workloads.md, "In DeepRM")."""

    OF_OWN: ClassVar[tuple[str, ...]] = ("distribution", "arrival_rate", "max_job_demand")
    """What only DeepRM's own workloads have; another one may have a setting of its own of that name."""
    OF_OTHERS: ClassVar[tuple[str, ...]] = ("workload_settings", "time_step", "long_jobs")
    """What DeepRM's own workloads don't have."""

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
        object.__setattr__(self, "workload_settings", _made(own, self.workload_settings))
        self.check(
            self.workload != TRACE or self.workload_settings.trace_file,
            f"workload {TRACE} needs a file; give --trace FILE (trace_file)",
        )
        self.in_range("time_step", 0, open_low=True)
        for load in self.train_loads:
            self.check(load > 0, f"train_loads has {load:g}; every load must be above 0")
        self._check_load()

    def _check_load(self) -> None:
        """Refuse a second word on how often jobs come."""
        theirs = self.workload_settings.to_dict()
        usual = type(self.workload_settings).defaults()
        self.check(
            theirs.get("load") is None and not theirs.get("exact_load"),
            f"load of {self.workload} itself has no effect here; give load, which counts rounded jobs",
        )
        self.check(
            self.load is None or theirs.get("arrival_rate") == usual.get("arrival_rate"),
            "load and arrival_rate are both given; keep one of them",
        )

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
        known = self.kinds()
        changes = {canonical(name, known): value for name, value in changes.items()}
        trace = any(canonical(name, ["trace_file"]) == "trace_file" for name in changes)
        workload = changes.get("workload", TRACE if trace else self.workload)
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

    def _seated(self, workload: str, own: Any, changes: dict[str, Any]) -> dict[str, Any]:
        """Move those of `changes` that are settings of the class `own` into `workload_settings`."""
        known, theirs = self.kinds(), own.kinds()
        # Beside a whole table (`to_dict` has one) a shared name is DeepRM's.
        shared = () if changes.get("workload_settings") else self.OF_OWN
        inside, outside = {}, {}
        for name, value in changes.items():
            if (name not in known or name in shared) and canonical(name, theirs) in theirs:
                inside[canonical(name, theirs)] = value
            elif name in known:
                outside[name] = value
            else:
                raise UserError(f"unknown setting {name!r}; {suggestion(name, [*known, *theirs])}")
        given = outside.get("workload_settings")
        if inside or not isinstance(given, own):
            kept = self.workload_settings if workload == self.workload else None
            laid = [table.to_dict() if isinstance(table, own) else table or {} for table in (kept, given)]
            self.check(
                all(isinstance(table, Mapping) for table in laid),
                f"workload_settings is {given!r}; give names and values of {workload}",
            )
            outside["workload_settings"] = {**laid[0], **laid[1], **inside}
        return outside

    def data(self) -> dict[str, str]:
        """Return path -> SHA-256 of the files that the jobs come from.

        Raises:
            UserError: a file can't be read.
        """
        if self.workload != TRACE:
            return {}
        path = Path(self.workload_settings.trace_file)
        try:
            with path.open("rb") as file:
                return {str(path): hashlib.file_digest(file, "sha256").hexdigest()}
        except OSError as error:
            raise UserError(f"can't read the trace {path}: {error.strerror}") from None


def _made(own: Any, given: Any) -> Any:
    """Return settings of the class `own` from such, from names and values, or from nothing."""
    if isinstance(given, own):
        made = given
    elif given is None or isinstance(given, Mapping):
        made = own.from_dict(given or {})
    else:
        raise UserError(f"workload_settings is {given!r}; give names and values of {own.__name__}")
    path = getattr(made, "trace_file", None)
    # The run is evaluated and resumed from other folders too.
    return dataclasses.replace(made, trace_file=str(Path(path).expanduser().absolute())) if path else made
