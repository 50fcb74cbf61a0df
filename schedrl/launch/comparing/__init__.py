"""Training and comparing many algorithms, from the command line of `compare_algorithms.py` to its report.

| module | what |
|---|---|
| `settings` | what the command can be told beside the settings of the environment and the algorithms |
| `plan` | a command line -> a checked plan; only reads from the disk |
| `reuse` | which runs in the results folder are finished, unfinished, or of another comparison |
| `training` | all runs, several at a time, through joblib |
| `one_run` | one run, in a process of its own |
| `watching` | which runs train, how fast, how long still |
| `carry_out` | the plan from training to the report |
| `on_cluster` | measuring and reporting where there are many machines |

The report itself is in `schedrl.evaluation.comparison_report`.
"""
