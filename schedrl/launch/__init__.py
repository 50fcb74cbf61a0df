"""How a training run is carried out, from the command line to the pictures.

| module | what |
|---|---|
| `settings` | what `launcher.py` can be told beside the environment's and the algorithm's settings |
| `plan` | a command line -> a checked plan; nothing is written yet |
| `folders` | which folder a run gets, and that it gets it alone |
| `workload` | what `--workload` and `--trace` bring along: settings, their flags, a report |
| `resuming` | what `--resume` keeps of the stored run, and which differences it refuses |
| `workers` | how many processes step the environments, and why |
| `local` | `--mode local`: this machine |
| `distributed` | `--mode distributed`: workers on one host or many, and their supervisors |
| `debug` | `--mode debug`: one environment, every step printed |
| `progress` | live display on a terminal, plain lines elsewhere |
| `yardsticks` | the tuned heuristics, found in a process beside the training |
| `interrupts` | Ctrl-C and SIGTERM save first |
| `failures` | what ends a run by no fault of the program, in one line |
| `profiling` | a TensorFlow trace of a few updates |
| `after_training` | evaluation, pictures, one sentence |
"""
