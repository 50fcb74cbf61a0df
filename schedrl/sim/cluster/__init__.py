"""Many machines: jobs of several resources and gangs, event by event in continuous time."""

from .problem import REASONS, MachineEvents
from .rule import Rule, parse
from .schedule import STATUS, Placed, Schedule

__all__ = ["REASONS", "STATUS", "MachineEvents", "Placed", "Rule", "Schedule", "parse", "simulate"]


def __getattr__(name: str) -> object:
    """Import the compiled simulator when it is first used: it needs Numba."""
    if name == "simulate":
        from .run import simulate

        return simulate
    raise AttributeError(name)
