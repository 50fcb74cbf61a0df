"""`--mode distributed`: data-parallel training over worker processes, on one host or on many.

| module | what |
|---|---|
| `cluster` | who takes part: TF_CONFIG, `--cluster_spec` or `--spawn`, checked before anything else |
"""
