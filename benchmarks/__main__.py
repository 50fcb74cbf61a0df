"""`python -m benchmarks [name] [options]`: run the quick benchmarks, or the one that is named.

`python -m benchmarks NAME --help` lists the options of one.
"""

from __future__ import annotations

import importlib
import os
import sys

# Before NumPy or TensorFlow are imported: many threads on small arrays cost more than they give.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from schedrl.settings import Parser, UserError, add_arguments, main_guard, one_of, resolve  # noqa: E402

BENCHMARKS = {
    "simulator": ("SimulatorBenchmark", "decisions/s of the simulator against plain Python", True),
    "cluster_env": (
        "ClusterEnvBenchmark",
        "decisions/s of the cluster environment against plain Python",
        True,
    ),
    "workloads": ("WorkloadsBenchmark", "time to generate a million jobs against drawing numbers", True),
    "traces": ("TracesBenchmark", "time and memory to read a million rows against pandas", True),
    "cluster": (
        "ClusterBenchmark",
        "whole runs on many machines: against plain Python, and their growth",
        False,
    ),
    "training": ("TrainingBenchmark", "decisions/s of PPO against MaskablePPO of sb3-contrib", True),
    "workers": ("WorkersBenchmark", "decisions/s of A3C and PPO by the number of workers", False),
    "distributed": (
        "DistributedBenchmark",
        "what PPO learns in two distributed workers, and how fast, against one process",
        False,
    ),
    "growth": ("GrowthBenchmark", "memory of a long training run against its decisions", False),
    "leaks": ("LeaksBenchmark", "whether an environment shows what has not happened yet", False),
    "failures": ("FailuresBenchmark", "how soon runs go on or end when something fails", False),
    "learning": ("LearningBenchmark", "what PPO learns on the paper's episodes, against heuristics", False),
    "workload_learning": (
        "WorkloadLearningBenchmark",
        "what PPO learns on each workload, against chance",
        False,
    ),
    "placement": ("PlacementBenchmark", "what is learned on many machines, against the best rules", False),
    "other_clusters": ("OtherClustersBenchmark", "one policy on clusters of other sizes and loads", False),
    "elastic": ("ElasticBenchmark", "elastic shares against the same policy at full shares", False),
    "wait_trap": ("WaitTrapBenchmark", "how often a greedy policy waits for ever, by its settings", False),
    "backfilling": (
        "BackfillingBenchmark",
        "orders with and without backfilling, against RLScheduler's",
        False,
    ),
    "steady_state": ("SteadyStateBenchmark", "the same while arrivals never stop", False),
}
"""name -> settings class in the module of that name, what it measures, whether it is quick (minutes)."""


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Run the named benchmark with its options, or the quick ones one after another."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv and argv[0] in ("-h", "--help"):
        print(__doc__.strip(), end="\n\n")
        for name, (_, text, quick) in BENCHMARKS.items():
            print(f"  {name:19}{text}{'' if quick else ' (long)'}")
        return 0
    if argv and not argv[0].startswith("-"):
        return _run(one_of("benchmark", argv[0], tuple(BENCHMARKS)), argv[1:])
    code = 0
    for name, (_, text, quick) in BENCHMARKS.items():
        if quick:
            print(f"== {name}: {text}\n", flush=True)
            try:
                code = max(code, _run(name, argv))
            except UserError as error:
                if argv:
                    raise
                print(f"skipped: {error}")  # what it compares with is not installed
    return code


def _run(name: str, argv: list[str]) -> int:
    module = importlib.import_module(f"benchmarks.{name}")
    settings_class, text, _ = BENCHMARKS[name]
    settings = getattr(module, settings_class)
    parser = Parser(prog=f"python -m benchmarks {name}", description=f"Measure {text}.")
    add_arguments(parser, settings)
    return module.run(resolve([settings], parser.parse_args(argv))[settings]) or 0


if __name__ == "__main__":
    sys.exit(main())
