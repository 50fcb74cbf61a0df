"""Honest measuring of schedulers: every arrived job counts, every difference comes with an interval.

| name | what |
|---|---|
| `evaluate` | play policies and heuristics on the same unseen sequences -> `Evaluation` |
| `tuned` | heuristics by name with their numbers searched on validation sequences |
| `steady_state` | the same while arrivals never stop, in windows |
| `Evaluation` | measures, paired comparisons, warnings, tables, files |
| `summarise` | the measures of one `Outcome` |
| `SB3Policy` | adapter for models of stable-baselines3 |

The plots are in `schedrl.evaluation.plots`, which alone imports matplotlib.
"""

from schedrl.evaluation.adapters import SB3Policy
from schedrl.evaluation.comparison import Evaluation
from schedrl.evaluation.evaluate import evaluate, tuned
from schedrl.evaluation.metrics import summarise
from schedrl.evaluation.steady_state import steady_state

__all__ = ["Evaluation", "SB3Policy", "evaluate", "steady_state", "summarise", "tuned"]
