"""Rules for clusters of many machines: order x placement x discipline by name, and the hold rule's numbers.

The formulas are compiled into the simulator (`schedrl.sim.cluster.orders` and `.placements`, each with its
sources); `hold` finds the numbers of the hold rule on validation workloads.
"""

from schedrl.sim.cluster.rule import DISCIPLINES, Rule, parse

from .hold import tune_hold, validation_workloads

__all__ = ["DISCIPLINES", "Rule", "parse", "tune_hold", "validation_workloads"]
