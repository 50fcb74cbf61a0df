"""Speed of the compiled simulator against its specification in plain Python, on one core.

Both sides play the same jobs by the same rules, choose every action by SJF inside the timing, and start
episodes anew inside it. The plain side is `schedrl/sim/deeprm/reference.py`: one cluster, written to be read
and not slow; three forms of it, by what is made at every step. Its rule reads the mask where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from benchmarks.paired import Side, interleaved, per_second, ratio, repeat, verdict
from schedrl.envs.deeprm import Clusters, DeepRMSettings, DeepRMVectorEnv
from schedrl.evaluation.evaluate import sequences_of
from schedrl.evaluation.table import print_table
from schedrl.heuristics import SJF
from schedrl.heuristics.fused import play_rule
from schedrl.settings import Settings
from schedrl.sim.deeprm.reference import ReferencePhysics, ReferenceSimulator
from schedrl.sim.jit import njit
from schedrl.workload.streams import SequenceStream

PLAYED = 64  # job sequences that the reference plays in turn
WARM_UP = 150  # vector steps after which the environments are at different points of their episodes


@dataclass(frozen=True)
class SimulatorBenchmark(Settings):
    """What to measure, and how long."""

    rounds: int = 9
    """Times that every side is run; the median of the rounds' ratios counts."""
    seconds: float = 0.15
    """Processor seconds of each run."""
    num_envs: tuple[int, ...] = (256, 1, 16, 4096)
    """Batch sizes; the bounds hold for the first."""
    growth: bool = True
    """Also measure the time per decision as slots, horizon and resources grow."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("rounds", 1)
        self.in_range("seconds", 0, open_low=True)
        self.in_range("num_envs", 1)


@dataclass(frozen=True)
class Case:
    """One way of running the compiled simulator."""

    name: str
    base: str
    """Form of the reference that it is compared with."""
    bound: float | None
    make: Callable[[int], Side]


def cases() -> list[Case]:
    """List what is measured; the bounds are those of the project's first issue on DeepRM."""
    compact = {"representation": "compact"}
    return [
        Case("compact + mask, bit-planes", "compact", 70, lambda n: vector(n, kernel="bitplanes", **compact)),
        Case("compact + mask, counts", "compact", 40, lambda n: vector(n, kernel="counts", **compact)),
        Case("image uint8 + mask", "image", 25, lambda n: vector(n, representation="image")),
        Case("slots + mask", "compact", None, lambda n: vector(n, representation="slots")),
        Case("whole evaluation (Heuristic.run)", "bare", 45, evaluation),
        Case("  its loop alone (play_rule)", "bare", None, fused),
    ]


def run(settings: SimulatorBenchmark) -> None:
    """Measure and print the tables."""
    for n in settings.num_envs:
        _batch(settings, n, with_bounds=n == settings.num_envs[0])
    if settings.growth:
        for title, name, values in GROWTH:
            _growth(settings, title, name, values)


def _batch(settings: SimulatorBenchmark, n: int, with_bounds: bool) -> None:
    chosen = cases()
    sides = {form: reference(form) for form in FORMS} | {case.name: case.make(n) for case in chosen}
    rates = interleaved(sides, settings.rounds, settings.seconds)
    rows = []
    for case in chosen:
        got = ratio(rates, case.name, case.base)
        bounded = with_bounds and case.bound is not None
        rows.append(
            (
                case.name,
                per_second(float(np.median(rates[case.name]))),
                f"{case.base} {per_second(float(np.median(rates[case.base])))}",
                str(got),
                verdict(got.median, case.bound) if bounded else "",
            )
        )
    image = ratio(rates, "image uint8 + mask", "compact")
    print_table(
        f"{n} environments, one core, decisions/s (median of {settings.rounds} ratios, quartiles)",
        ("case", "compiled", "plain Python", "ratio", "bound"),
        rows,
    )
    print(f"The image against the reference's compact vector: {image}.\n")


# ---- The plain side ----------------------------------------------------------------------------------------

FORMS = ("bare", "compact", "image")
"""What the reference makes at each step: nothing; compact vector and mask; image and mask."""


def reference(form: str, settings: DeepRMSettings | None = None) -> Side:
    """Return the plain-Python side."""
    steps = reference_steps(form, settings or DeepRMSettings())
    return lambda seconds: repeat(lambda: sum(1 for _ in islice(steps, 50)), seconds)


def reference_steps(form: str, settings: DeepRMSettings) -> Iterator[bool]:
    """Play the sequences in turn for ever; each item is one decision, and whether it ended the episode."""
    physics = physics_of(settings)
    jobs = [array.tolist() for array in SequenceStream(settings, 0, "train").take(0, PLAYED)]
    while True:
        for durations, demands in zip(*jobs, strict=True):
            simulator = ReferenceSimulator(physics, durations, demands)
            over = False
            while not over:
                if form == "bare":
                    action = shortest_that_fits(simulator)
                else:
                    mask = simulator.action_mask()
                    _ = simulator.compact() if form == "compact" else simulator.image()
                    action = shortest_legal(simulator, mask)
                _, terminated, truncated = simulator.step(action)
                over = terminated or truncated
                yield over


def physics_of(settings: DeepRMSettings) -> ReferencePhysics:
    """Translate settings (without quirks) for the reference."""
    return ReferencePhysics(
        num_slots=settings.num_job_slots,
        horizon=settings.time_horizon,
        capacity=settings.capacities,
        backlog_size=settings.backlog_size,
        drop_penalty=settings.drop_penalty,
        idle_limit=settings.idle_limit,
        max_job_demand=settings.max_job_demand,
    )


def shortest_that_fits(simulator: ReferenceSimulator) -> int:
    """Choose by SJF, asking the simulator only about jobs that are shorter than the best so far."""
    best, action = 1 << 30, len(simulator.slots)
    for slot, job in enumerate(simulator.slots):
        if job is not None and job.duration < best and simulator.fits_now(job):
            best, action = job.duration, slot
    return action


def shortest_legal(simulator: ReferenceSimulator, mask: np.ndarray) -> int:
    """Choose by SJF among the legal slots."""
    best, action = 1 << 30, len(simulator.slots)
    for slot, (job, legal) in enumerate(zip(simulator.slots, mask.tolist(), strict=False)):
        if legal and job is not None and job.duration < best:
            best, action = job.duration, slot
    return action


# ---- The compiled side -------------------------------------------------------------------------------------


@njit
def shortest(mask: np.ndarray, ints: np.ndarray, queue: int, width: int, actions: np.ndarray) -> None:
    """Choose by SJF among the legal slots of every environment, durations read where the state keeps them."""
    for n in range(actions.shape[0]):
        best, actions[n] = 1 << 30, mask.shape[1] - 1
        for slot in range(mask.shape[1] - 1):
            if mask[n, slot] and ints[n, queue + slot * width] < best:
                best, actions[n] = ints[n, queue + slot * width], slot


def compiled(num_envs: int, **settings: object) -> tuple[DeepRMVectorEnv, Callable[[], np.ndarray]]:
    """Return the vector environment, reset, and a function that chooses its next actions by SJF."""
    env = DeepRMVectorEnv(DeepRMSettings().replace(**settings), num_envs, copy=False)
    state, actions = env.clusters.state, np.zeros(num_envs, np.int64)
    mask = env.reset(seed=0)[0]["action_mask"]
    width = 1 + env.settings.num_resources

    def act() -> np.ndarray:
        shortest(mask, state.ints, state.layout.queue, width, actions)
        return actions

    return env, act


def vector(num_envs: int, **settings: object) -> Side:
    """Return the vector environment: observation, mask, rewards, infos, autoreset."""
    env, act = compiled(num_envs, **settings)

    def steps(count: int) -> int:
        for _ in range(count):
            env.step(act())
        return count * num_envs

    steps(WARM_UP)
    return lambda seconds: repeat(lambda: steps(max(1, 4096 // num_envs)), seconds)


def evaluation(num_envs: int, **settings: object) -> Side:
    """Return whole evaluations of SJF on `num_envs` sequences: load, play, read what became of the jobs."""
    chosen = DeepRMSettings().replace(**settings)
    sequences = sequences_of(chosen, num_envs)
    heuristic = SJF()
    return lambda seconds: repeat(lambda: int(heuristic.run(chosen, sequences).decisions.sum()), seconds)


def fused(num_envs: int, **settings: object) -> Side:
    """Return the compiled loop alone, its clusters loaded outside the timing."""
    chosen = DeepRMSettings().replace(**settings)
    sequences = sequences_of(chosen, num_envs)
    parameters = SJF().parameters()

    def play(seconds: float) -> tuple[int, float]:
        count, spent = 0, 0.0
        while spent < seconds:
            clusters = Clusters(chosen, num_envs, chosen.sequence_length)
            clusters.load(clusters.everyone, clusters.everyone, sequences)
            spent += repeat(lambda clusters=clusters: play_rule(SJF.rule, clusters, parameters) or 0, 0.0)[1]
            count += int(clusters.outcome().decisions.sum())
        return count, spent

    play(0.0)
    return play


# ---- Growth ------------------------------------------------------------------------------------------------

GROWTH: list[tuple[str, str, tuple[int, ...]]] = [
    ("job slots", "num_job_slots", (5, 10, 20, 40, 80)),
    ("rows of the horizon (bit-planes: at most 64)", "time_horizon", (20, 40, 64, 128, 256)),
    ("resources", "num_resources", (1, 2, 4, 8)),
]


def _growth(settings: SimulatorBenchmark, title: str, name: str, values: Sequence[int]) -> None:
    n, columns = settings.num_envs[0], ("compact", "bit-planes", "counts", "evaluation")
    rows = []
    for value in values:
        changed: dict[str, object] = {name: value}
        sides = {
            "compact": reference("compact", DeepRMSettings().replace(**changed)),
            "counts": vector(n, representation="compact", kernel="counts", **changed),
            "evaluation": evaluation(n, **changed),
        }
        if not (name == "time_horizon" and value > 64):
            sides["bit-planes"] = vector(n, representation="compact", kernel="bitplanes", **changed)
        rates = interleaved(sides, max(1, settings.rounds // 2), settings.seconds)
        cells = [f"{1e9 / np.median(rates[side]):,.0f}" if side in rates else "-" for side in columns]
        rows.append((str(value), *cells, f"{ratio(rates, 'counts', 'compact').median:.0f}x"))
    print_table(
        f"Nanoseconds per decision by {title}, {n} environments, compact + mask",
        (name, "plain Python", "bit-planes", "counts", "evaluation", "counts against plain"),
        rows,
    )
    print()
