"""How far is everyone from the best schedule that knows the future? CP-SAT, sequence by sequence.

    pip install "ortools>=9.10,<10"
    python examples/clairvoyant_optimum.py --load 0.7 --models results/paper/runs/ppo_load070_seed30

For each of the first test sequences: minimise the sum of (finish - arrival) / duration over all jobs, no job
before its arrival, at no time more of a resource in use than there is. Nobody can do better: the solver sees
all jobs, and no job slots or backlog stand in its way. Within `--seconds` a sequence is solved to the proven
optimum, or the best schedule found and the proven lower bound stand for it. Then heuristics and policies play
the same sequences.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from examples.paper.optimum import Jobs, Solved, solve, solver  # noqa: E402  (found above, installed or not)
from schedrl.settings import (  # noqa: E402
    Parser,
    Settings,
    UserError,
    add_arguments,
    check_folder_writable,
    main_guard,
    resolve,
)

BASELINES = ("sjf", "packer", "tetris", "sjf_hold", "tsl", "defer")


@dataclass(frozen=True)
class Clairvoyant(Settings):
    """Which sequences to solve, and who plays them."""

    load: float = 0.7
    """Load of the sequences (0.7 = 70 %)."""
    num_sequences: int = 100
    """How many of the test sequences, from the first on."""
    eval_seed: int = 3
    """Seed of the test sequences; 3 are those of reproduce_deeprm.py."""
    seconds: float = 5.0
    """Time limit of the solver for each sequence."""
    workers: int = 1
    """Threads of the solver."""
    models: tuple[str, ...] = ()
    """Folders of training runs to play the same sequences."""
    output: str = "results/paper/clairvoyant.csv"
    """The file to write, one line for each sequence. Sequences that are in it already aren't solved again."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in ("num_sequences", "workers"):
            self.in_range(name, 1)
        self.in_range("seconds", 0, open_low=True)
        self.in_range("eval_seed", 0)


def solve_all(settings: Clairvoyant, sequences: Any, outcomes: list[Any]) -> list[Solved]:
    """Solve what the file lacks, beginning at the best schedule in `outcomes`; write each when found."""
    from schedrl.evaluation.table import write_csv

    output = Path(settings.output)
    solved = read(output, settings)[: sequences.count]
    output.parent.mkdir(parents=True, exist_ok=True)
    which = {"load": settings.load, "eval_seed": settings.eval_seed}
    for i in range(len(solved), sequences.count):
        real = sequences.duration[i] > 0
        columns = (sequences.arrival[i], sequences.duration[i], sequences.demand[i])
        jobs = Jobs(*(column[real].astype(int) for column in columns), outcomes[0].capacity)
        known = [outcome.start[i][real].astype(int) for outcome in outcomes]
        best = min((start for start in known if (start >= 0).all()), key=jobs.cost, default=None)
        solved.append(solve(jobs, best, seconds=settings.seconds, workers=settings.workers))
        lines = [
            which | {"sequence": j, "optimal": one.optimal} | one._asdict() for j, one in enumerate(solved)
        ]
        write_csv(output, lines)
        if (i + 1) % 10 == 0 or i + 1 == sequences.count:
            proven = sum(one.optimal for one in solved)
            print(f"solved {i + 1} of {sequences.count}, {proven} proven", file=sys.stderr, flush=True)
    return solved


def read(output: Path, settings: Clairvoyant) -> list[Solved]:
    """Return what the file holds, if it is there.

    Raises:
        UserError: it is of other sequences, or no such file.
    """
    if not output.exists():
        return []
    try:
        with open(output, newline="") as file:
            lines = list(csv.DictReader(file))
        which = {(float(line["load"]), int(line["eval_seed"])) for line in lines}
        found = [Solved(int(line["jobs"]), float(line["found"]), float(line["bound"])) for line in lines]
    except (KeyError, ValueError, TypeError, UnicodeDecodeError) as error:
        raise UserError(f"{output} is no file of this program ({error!r}); choose another --output") from None
    if which != {(settings.load, settings.eval_seed)}:
        raise UserError(f"{output} is of another load or eval_seed; choose another --output")
    return found


def compare(settings: Clairvoyant) -> tuple[list[Solved], Any]:
    """Solve the sequences and let everyone play them; return the solutions and the `Evaluation`."""
    from schedrl.envs.deeprm.settings import DeepRMSettings
    from schedrl.evaluation import evaluate, tuned
    from schedrl.evaluation.evaluate import sequences_of
    from schedrl.learning.numpy_policy import load_policy

    solver()
    environment = DeepRMSettings(load=settings.load)
    policies = {Path(folder).name: load_policy(folder)[0] for folder in settings.models}
    sequences = sequences_of(environment, settings.num_sequences, settings.eval_seed)
    options: dict[str, Any] = {"sequences": sequences, "seed": settings.eval_seed, "modes": ("greedy",)}
    evaluation = evaluate(policies, environment, baselines=tuned(BASELINES, environment), **options)
    return solve_all(settings, sequences, [run.outcome for run in evaluation.runs]), evaluation


def report(solved: list[Solved], evaluation: Any, load: float) -> str:
    """Return the table: everyone's mean slowdown, and how far above the proven bound and the best found."""
    from schedrl.evaluation import metrics
    from schedrl.evaluation.statistics import resample
    from schedrl.evaluation.table import plain_table

    jobs = np.array([one.jobs for one in solved], float)
    pairs = [metrics.sums_and_counts(metrics.slowdowns(run.outcome)) for run in evaluation.runs]
    names = ["optimum, proven at least", "optimum, at most (found)", *(run.label for run in evaluation.runs)]
    sums = [[one.bound for one in solved], [one.found for one in solved], *(pair[0] for pair in pairs)]
    table = resample(sums, [jobs] * len(sums), seed=0)
    rows = []
    for i, name in enumerate(names):
        mean, above = table.mean(i), table.relative(i, 1)
        span = f"{mean.low:.3f} .. {mean.high:.3f}"
        over = f"{above.value:+.1%} [{above.low:+.1%} .. {above.high:+.1%}]" if i > 1 else "-"
        rows.append((name, f"{mean.value:.3f}", span, over))
    title = (
        f"Mean slowdown at load {load:.0%} on the same {len(solved)} test sequences, "
        f"{sum(one.optimal for one in solved)} of them solved to the proven optimum"
    )
    return plain_table(title, ("", "mean", "95 % interval", "above the best found"), rows)


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Solve, compare, print the table, write the file."""
    args = make_parser().parse_args(argv)
    settings = resolve([Clairvoyant], args)[Clairvoyant]
    output = Path(settings.output)
    check_folder_writable(output.parent, "--output")
    solved, evaluation = compare(settings)
    print(report(solved, evaluation, settings.load))
    print(f"wrote {output}")
    return 0


def make_parser() -> Parser:
    """Return the parser of this command."""
    parser = Parser(description="Compare with the best schedule that knows the future.")
    add_arguments(parser, Clairvoyant)
    return parser


if __name__ == "__main__":
    sys.exit(main())
