"""Replaying a recorded trace on a cluster under many policies: `compare_algorithms.py --trace F --cluster C`.

| module | what |
|---|---|
| `settings` | what the command can be told |
| `request` | a command line -> what to replay; says whether a command line asks for a replay at all |
| `data` | the files: jobs, machines, the load |
| `load` | what load the jobs make, and which flags would make a queue |
| `tuning` | the hold rule's numbers from the first third of the trace |
| `trained` | trained policies among the rules |
| `carry_out` | every policy in turn, then the report |

What is measured and drawn is in `schedrl.evaluation.cluster`. Heuristics need no TensorFlow.
"""
