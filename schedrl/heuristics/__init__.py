"""Scheduling heuristics: compiled rules that play whole episodes, serve as policies and stand as baselines.

`rules` are the formulas, `fused` the loop around them, `policies` the heuristics by name, `tuning` the search
for their numbers on validation sequences.
"""

from typing import Any

from schedrl import registry

from .policies import FIFO, SJF, TSL, Defer, Heuristic, Packer, Random, RandomLegal, SJFHold, Tetris

__all__ = [
    "FIFO",
    "SJF",
    "TSL",
    "Defer",
    "Heuristic",
    "Packer",
    "Random",
    "RandomLegal",
    "SJFHold",
    "Tetris",
    "get",
]


def get(name: str, **numbers: Any) -> Heuristic:
    """Make the heuristic of this name, with its own numbers where given (`get("tetris", knob=1e-3)`).

    Raises:
        UserError: an unknown name (the nearest are listed) or a number out of range.
    """
    return registry.get("heuristic", name)(**numbers)
