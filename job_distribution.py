"""Where jobs come from: the front door to workloads.

| name               | what it gives                                           | when to use                |
|--------------------|---------------------------------------------------------|----------------------------|
| `workload`         | a `Workload` of a named generator and load              | one list of jobs           |
| `read_trace`       | the jobs of a file, and the rows that are none          | jobs of your own           |
| `write_trace`      | a file of jobs, CSV or SWF                              | to pass them on            |
| `describe`         | load, sizes, percentiles, rejected rows, as a dict      | to see what you have       |
| `transform`        | window, sample, scale, split, fit to a cluster          | between the two            |
| `Workload`         | jobs as validated, read-only arrays, sorted by arrival  | to bring arrays            |
| `Resource`         | name and unit of a resource                             | with `Workload`            |
| `UNKNOWN`          | marks a time that is not known                          | with `Workload`            |
| `Rejected`         | rows that are no jobs: line, reason, counts             | comes from `read_trace`    |
| `GENERATORS`       | the names that `workload` takes                         | to list them               |
| `FORMATS`          | the names of trace formats                              | with `read_trace`          |
| `DeepRMJobs`       | settings of DeepRM's jobs: sizes, arrivals, load        | to change them             |
| `SequenceStream`   | numbered job sequences, as many as you like             | train, choose, claim       |
| `FAMILIES`         | the three disjoint families: train, validation, test    | with `SequenceStream`      |
| `legacy_sequences` | the original DeepRM's jobs, same seed, same jobs        | compare with old results   |

On the command line (`--help` after each lists its flags):

    python job_distribution.py                                a short tour
    python job_distribution.py inspect FILE [--plot out.png]  what is in a trace, and what was rejected
    python job_distribution.py generate --distribution bursty --load 0.9 --num_jobs 10000 --out jobs.csv
    python job_distribution.py convert A B                    another format; window, split, sample, load
"""

import sys
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from schedrl.settings import Parser, main_guard, one_of, peek
from schedrl.workload import (
    FAMILIES,
    UNKNOWN,
    DeepRMJobs,
    Resource,
    SequenceStream,
    Workload,
    legacy_sequences,
    transform,
)
from schedrl.workload.description import describe
from schedrl.workload.generators import GENERATORS, generate, settings_of
from schedrl.workload.readers import FORMATS, Rejected, read_trace
from schedrl.workload.writers import write_trace

__all__ = [
    "FAMILIES",
    "FORMATS",
    "GENERATORS",
    "UNKNOWN",
    "DeepRMJobs",
    "Rejected",
    "Resource",
    "SequenceStream",
    "Workload",
    "describe",
    "legacy_sequences",
    "read_trace",
    "transform",
    "workload",
    "write_trace",
]

COMMANDS = ("inspect", "generate", "convert")


def workload(
    name: str = "deeprm",
    load: float | None = None,
    num_jobs: int = 1000,
    seed: int = 0,
    family: str = "train",
    **settings: object,
) -> Workload:
    """Generate jobs by name.

    Args:
        name: one of `GENERATORS` ("bimodal" is another name of "deeprm").
        load: wanted load of the busiest resource, 1 = 100 %; None: as the generator's own rate gives.
        num_jobs: number of jobs J, at least 1.
        seed: 0 or more; the same call gives the same jobs.
        family: one of `FAMILIES`, which never share a job.
        **settings: of that generator, for example `arrival_rate`, `capacity`, `durations`
            (`python job_distribution.py generate --distribution NAME --help` lists them).

    Raises:
        UserError: an unknown name or setting, or a value out of range.
    """
    name = "deeprm" if name == "bimodal" else name
    chosen = settings_of(name)
    given = settings if load is None else {**settings, "load": load}
    return generate(chosen.from_dict(given), num_jobs, seed, family)


def _percent(load: np.ndarray) -> str:
    return ", ".join(f"{100 * value:.0f} %" for value in load)


def tour() -> int:
    """Print what the paper's jobs look like, and which other sources there are."""
    jobs = DeepRMJobs(load=1.3)
    sample = workload("deeprm", 1.3, 10_000)
    print("deeprm: 80 % short and 20 % long jobs, each with a dominant resource (HotNets 2016, section 4.1)")
    print(f"a job arrives in a step with probability {jobs.rate():.3f}")
    print(f"load per resource, expected:             {_percent(jobs.expected_load())}")
    print(f"load per resource, sample of {len(sample)} jobs: {_percent(sample.load(jobs.capacities))}\n")
    print("  job  arrival  duration  demand")
    for number in range(8):
        demand = "  ".join(f"{units:2.0f}" for units in sample.demand[number])
        arrival, duration = sample.arrival[number], sample.duration[number]
        print(f"{number:5d}  {arrival:7.0f}  {duration:8.0f}  {demand}")
    print("\nThe same from Python: job_distribution.workload('deeprm', load=1.3, num_jobs=10000)")
    print(f"Generators (generate --distribution NAME): {', '.join(GENERATORS)}")
    print(f"Trace formats (inspect FILE):              {', '.join(FORMATS)}")
    print("Commands: inspect FILE, generate, convert A B; each has --help")
    return 0


def make_parser(argv: Sequence[str]) -> tuple[Parser, ModuleType]:
    """Return the parser of the command that `argv` begins with, and the command's module.

    Raises:
        UserError: there is no such command.
    """
    from schedrl.workload.command import convert, generate, inspect

    modules = dict(zip(COMMANDS, (inspect, generate, convert), strict=True))
    command = one_of("command", argv[0], COMMANDS)
    parser = Parser(prog=f"job_distribution.py {command}", description=modules[command].__doc__)
    if command == "generate":
        generate.add_flags(parser, peek(argv[1:], distribution="deeprm").distribution)
    else:
        modules[command].add_flags(parser)
    return parser, modules[command]


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Run a command, or the tour."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if not argv:
        return tour()
    if argv[0] in ("-h", "--help"):
        print(f"usage: job_distribution.py [{' | '.join(COMMANDS)}] ...\n\n{__doc__.strip()}")
        return 0
    parser, command = make_parser(argv)
    return command.run(parser.parse_args(argv[1:]))


if __name__ == "__main__":
    raise SystemExit(main())
