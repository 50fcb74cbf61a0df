"""Where jobs come from: the front door to workloads.

| name               | what it gives                                           | when to use                |
|--------------------|---------------------------------------------------------|----------------------------|
| `workload`         | a `Workload` of a named distribution and load           | one list of jobs           |
| `Workload`         | jobs as validated, read-only arrays, sorted by arrival  | to bring jobs of your own  |
| `Resource`         | name and unit of a resource                             | with `Workload`            |
| `UNKNOWN`          | marks a time that is not known                          | with `Workload`            |
| `DISTRIBUTIONS`    | the names that `workload` takes                         | to list them               |
| `DeepRMJobs`       | settings of DeepRM's jobs: sizes, arrivals, load        | to change them             |
| `SequenceStream`   | numbered job sequences, as many as you like             | train, choose, claim       |
| `FAMILIES`         | the three disjoint families: train, validation, test    | with `SequenceStream`      |
| `legacy_sequences` | the original DeepRM's jobs, same seed, same jobs        | compare with old results   |

`python job_distribution.py` prints a short tour; `python job_distribution.py --help` lists the settings.
"""

import numpy as np

from schedrl.settings import Parser, UserError, add_arguments, main_guard, one_of, resolve
from schedrl.workload import (
    FAMILIES,
    UNKNOWN,
    DeepRMJobs,
    Resource,
    SequenceStream,
    Workload,
    legacy_sequences,
)

__all__ = [
    "DISTRIBUTIONS",
    "FAMILIES",
    "UNKNOWN",
    "DeepRMJobs",
    "Resource",
    "SequenceStream",
    "Workload",
    "legacy_sequences",
    "workload",
]

DISTRIBUTIONS = {
    "deeprm": "the paper's jobs, the same as bimodal",
    "bimodal": "80 % short and 20 % long jobs, each with a dominant resource (HotNets 2016, section 4.1)",
    "uniform": "durations and demands uniform from 1 (the original's normal_dist)",
}


def workload(
    name: str = "deeprm",
    load: float | None = None,
    num_jobs: int = 1000,
    seed: int = 0,
    family: str = "train",
    **settings: object,
) -> Workload:
    """Generate jobs of a named distribution.

    They are the sequences of `SequenceStream(..., seed, family)` one after the other, cut after `num_jobs`.

    Args:
        name: one of `DISTRIBUTIONS`.
        load: wanted load of the busiest resource, 1 = 100 %; None: as `arrival_rate` gives.
        num_jobs: number of jobs J, at least 1.
        seed: 0 or more; the same call gives the same jobs.
        family: one of `FAMILIES`.
        **settings: fields of `DeepRMJobs`, for example `arrival_rate`, `capacity`, `max_job_duration`.

    Raises:
        UserError: an unknown name or setting, or a value out of range.
    """
    name = one_of("distribution", name, DISTRIBUTIONS)
    distribution = "bimodal" if name == "deeprm" else name
    jobs = DeepRMJobs.from_dict({**settings, "distribution": distribution, "load": load, "num_sequences": 0})
    if num_jobs < 1:
        raise UserError(f"num_jobs is {num_jobs}; it must be at least 1")
    arrival, duration, demand = SequenceStream(jobs, seed, family).first_jobs(num_jobs)
    resources = [Resource(f"resource {number}") for number in range(jobs.num_resources)]
    return Workload(arrival, duration, demand, resources)


def _percent(load: np.ndarray) -> str:
    return ", ".join(f"{100 * value:.0f} %" for value in load)


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Print the tour: the expected load, that of a sample, and its first jobs."""
    parser = Parser(description="Show the jobs of a distribution: load per resource and a sample.")
    parser.add_argument("--num_jobs", type=int, default=10_000, help="size of the sample (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    add_arguments(parser, DeepRMJobs)
    args = parser.parse_args(argv)
    jobs = resolve([DeepRMJobs], args)[DeepRMJobs]
    given = {name: value for name, value in jobs.to_dict().items() if name not in ("distribution", "load")}
    sample = workload(jobs.distribution, jobs.load, args.num_jobs, args.seed, **given)
    print(f"{jobs.distribution}: {DISTRIBUTIONS[jobs.distribution]}")
    print(f"a job arrives in a step with probability {jobs.rate():.3f}")
    print(f"load per resource, expected:             {_percent(jobs.expected_load())}")
    print(f"load per resource, sample of {len(sample)} jobs: {_percent(sample.load(jobs.capacities))}\n")
    print("  job  arrival  duration  demand")
    for number in range(min(10, len(sample))):
        demand = "  ".join(f"{units:2.0f}" for units in sample.demand[number])
        arrival, duration = sample.arrival[number], sample.duration[number]
        print(f"{number:5d}  {arrival:7.0f}  {duration:8.0f}  {demand}")
    print("\nOther distributions:", ", ".join(f"--distribution {name}" for name in ("bimodal", "uniform")))
    print("The same from Python: job_distribution.workload('deeprm', load=1.3, num_jobs=1000, seed=0)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
