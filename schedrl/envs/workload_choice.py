"""A workload as a setting of an environment: its name, and a table of settings of its own.

What the environments share. Each of them has the fields `workload`, `workload_settings` and `load`, and says
what else belongs to the choice. Imports nothing heavy.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from schedrl.envs.declared import Declared
from schedrl.settings import Settings, UserError, one_of
from schedrl.settings.names import canonical, suggestion

OWN = ("deeprm", "bimodal", "uniform")
"""The workloads that are DeepRM's own: drawn in whole steps and units, one job a step at most."""
TRACE = "real_trace"
"""The workload that is a file."""


def generators() -> list[str]:
    """Return the names of the workloads in units of resources and of time."""
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


class HoldsWorkload(Settings):
    """What is done with the fields `workload`, `workload_settings` and `load` of a class of settings."""

    OF_OWN: ClassVar[tuple[str, ...]] = ()
    """Settings that a workload may have of its own under the same name, and then means by it."""
    LOAD_COUNTS: ClassVar[str] = ""
    """What the environment's own `load` counts."""
    if TYPE_CHECKING:
        workload: str
        workload_settings: Any
        load: float | None

    def as_played(self, representation: str) -> Self:
        """Return the settings under which a policy that reads `representation` is evaluated."""
        return self.replace(representation=representation)

    def declares(self) -> tuple[Declared, ...]:
        """Return what is shown of the future by design; nothing, unless an environment says so."""
        return ()

    def _check_load(self) -> None:
        """Refuse a second word on how often jobs come."""
        theirs = self.workload_settings.to_dict()
        usual = type(self.workload_settings).defaults()
        self.check(
            theirs.get("load") is None and not theirs.get("exact_load"),
            f"load of {self.workload} itself has no effect here; give load, which counts {self.LOAD_COUNTS}",
        )
        self.check(
            self.load is None or theirs.get("arrival_rate") == usual.get("arrival_rate"),
            "load and arrival_rate are both given; keep one of them",
        )

    def _named(self, changes: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the changes by their full names, and the workload that they choose."""
        known = self.kinds()
        changes = {canonical(name, known): value for name, value in changes.items()}
        trace = any(canonical(name, ["trace_file"]) == "trace_file" for name in changes)
        return changes, changes.get("workload", TRACE if trace else self.workload)

    def _seated(self, workload: str, own: Any, changes: dict[str, Any]) -> dict[str, Any]:
        """Move those of `changes` that are settings of the class `own` into `workload_settings`."""
        known, theirs = self.kinds(), own.kinds()
        # Beside a whole table (`to_dict` has one) a shared name is the environment's.
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


def made(own: Any, given: Any) -> Any:
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
