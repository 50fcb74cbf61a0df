"""The report on many algorithms, each trained with several seeds, beside heuristics, on the same jobs.

| module | what |
|---|---|
| `result` | what is reported on: the evaluation, the training runs, how it all came about |
| `curves` | learning curves: smoothed, on a common grid, when they pass a level |
| `seeds` | what several seeds of one algorithm say together, with intervals over seeds and sequences |
| `rows` | every number of the report, once: the rows of comparison_report.csv |
| `tables` | the rows as tables of text; PDF and HTML show these |
| `conclusion` | the first half page: plain sentences computed from the rows |
| `figures` | curves, slowdown CDFs, utilisation heat maps |
| `contents` | what stands in the report, in order |
| `pdf`, `html`, `lettering` | the pages |
| `files` | the three files |

Chance comes in twice and is never pooled silently: over test sequences (each seed's policy by itself, paired
bootstrap) and over training seeds (`seeds`). Only pages and pictures
need matplotlib.
"""

from schedrl.evaluation.comparison_report.files import write
from schedrl.evaluation.comparison_report.result import Failure, Origin, Result, Trained

__all__ = ["Failure", "Origin", "Result", "Trained", "write"]
