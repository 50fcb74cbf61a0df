"""Measuring schedules of clusters: the figures, the pictures, the comparison of many rules on one trace.

| module | what |
|---|---|
| `metrics` | the measures of one `Schedule` |
| `timeline` | use, queue and machines over time, which measures and pictures read |
"""

from schedrl.evaluation.cluster.metrics import measure

__all__ = ["measure"]
