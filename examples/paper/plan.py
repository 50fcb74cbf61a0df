"""What the reproduction of the paper trains and measures: its settings, its contenders, its training runs.

Which physics: the default ones. A job starts now or not (mask "fits_now", no reservations), and the machine
may stand idle beside a job that fits for at most `idle_limit` steps in a row. The paper's agent has no such
limit and may book ahead. Without a limit a greedy policy can wait for ever (docs/algorithms/ppo.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from schedrl import registry
from schedrl.settings import Settings, UserError, one_of

RULES = ("packer", "sjf", "tetris", "sjf_hold", "tsl", "defer")
"""The heuristics of every figure; those with numbers are tuned for each load on validation sequences."""
SHORTEST_LONG = 10
"""Jobs of the bimodal workload have 1 to 3 steps or 10 to 15: the paper's small and large ones."""
PAPER_TIME = "80 s per iteration on 24 cores, 1,000 iterations: 22 hours"


class Contender(NamedTuple):
    """One way to learn."""

    label: str
    algorithm: str
    flags: tuple[str, ...] = ()
    """Of launcher.py, beside load, objective, budget and seed."""
    budget: float = 1.0
    """Decisions, as a multiple of `PaperSettings.decisions`."""
    everywhere: bool = True
    """Whether it is trained for every load, or for the learning curve alone."""


CONTENDERS = {
    "ppo": Contender("DeepRM (PPO)", "ppo"),
    "pg": Contender("DeepRM (PG)", "pg", budget=3.0),
    "pg_paper": Contender(
        "DeepRM (PG as in the paper)", "pg", ("--preset", "pg-paper"), budget=2.0, everywhere=False
    ),
}


@dataclass(frozen=True)
class PaperSettings(Settings):
    """How much of the paper is reproduced, and with which budgets."""

    out: str = "results/paper"
    """Folder of figures, numbers and training runs. Finished runs in it are used again."""
    contenders: tuple[str, ...] = ()
    """Ways to learn, by name; empty: all whose algorithm is here (ppo, pg, pg_paper)."""
    every_load: tuple[str, ...] = ()
    """Contenders trained for every load; empty: ppo and pg. The others: for the learning curve alone."""
    loads: tuple[float, ...] = (0.1, 0.4, 0.7, 0.9, 1.1, 1.3, 1.6, 1.84)
    """Loads of Fig. 4, one policy for each. 1.845 is an arrival in every step; the paper writes 190 %."""
    objective_load: float = 1.3
    """Load of Fig. 5 (objectives)."""
    curve_load: float = 0.7
    """Load of Fig. 6 (learning curve)."""
    withholding_load: float = 1.1
    """Load of Fig. 7 (withheld jobs)."""
    decisions: int = 1_000_000
    """Budget of each run, times the contender's own factor."""
    seeds: tuple[int, ...] = (30, 31, 32)
    """Seeds of training: of the first are the policies of all figures; the learning curve has runs of all."""
    num_sequences: int = 1000
    """Test sequences of each load, the same for everyone."""
    eval_seed: int = 3
    """Seed of the test sequences."""
    curve_points: int = 16
    """Points of a learning curve, evenly spaced over the logarithm of decisions."""
    curve_sequences: int = 100
    """Validation sequences on which a point of the curve is measured, ten times each."""
    idle_limit: int | None = 20
    """Steps in a row that the machine may stand idle beside a job that fits; none = no limit (the paper)."""
    processes: int = 2
    """Training runs at a time."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in ("decisions", "num_sequences", "curve_points", "curve_sequences", "processes"):
            self.in_range(name, 1)
        for name in ("loads", "objective_load", "curve_load", "withholding_load"):
            self.in_range(name, 0, 1.845, open_low=True)
        for name in ("seeds", "eval_seed", "idle_limit"):
            self.in_range(name, 0)
        self.check(bool(self.loads), "loads is empty; give at least one, such as 0.7")
        self.check(bool(self.seeds), "seeds is empty; give at least one, such as 30")
        for name in (*self.contenders, *self.every_load):
            algorithm = CONTENDERS[one_of("contender", name, CONTENDERS)].algorithm
            if algorithm not in registry.names("algorithm"):
                raise UserError(f"contender {name} needs the algorithm {algorithm}, which is not here")
        self.check(
            bool(self.everywhere),
            f"nobody would be trained for every load: contenders are {', '.join(self.chosen)}; add one of "
            "them to every_load, or add ppo",
        )

    @property
    def chosen(self) -> dict[str, Contender]:
        """Return the contenders by name."""
        here = registry.names("algorithm")
        names = self.contenders or [name for name, c in CONTENDERS.items() if c.algorithm in here]
        return {name: CONTENDERS[name] for name in names}

    @property
    def everywhere(self) -> list[str]:
        """Return the names of the contenders that are trained for every load."""
        usual = [name for name, contender in self.chosen.items() if contender.everywhere]
        return [name for name in self.chosen if name in (self.every_load or usual)]

    def trained_at(self, load: float) -> list[str]:
        """Return the names of the contenders that are trained for a load."""
        return list(self.chosen) if load == self.curve_load else self.everywhere


PRESETS = {
    "quick": {
        "contenders": ("ppo",),
        "loads": (0.7, 1.3),
        "withholding_load": 1.3,
        "seeds": (30,),
        "decisions": 49_152,
        "num_sequences": 100,
        "curve_points": 3,
        "curve_sequences": 20,
        "out": "results/paper_quick",
    }
}


class Training(NamedTuple):
    """One training run."""

    contender: str
    load: float
    objective: str
    seed: int
    curve: bool
    """Whether its learning curve is recorded."""
    folder: Path
    flags: tuple[str, ...]
    """Of launcher.py, without the folder."""

    @property
    def title(self) -> str:
        """Name the run in a line of progress."""
        goal = "" if self.objective == "slowdown" else ", for completion time"
        return f"{self.contender} at load {self.load:.0%}{goal}, seed {self.seed}"


def trainings(settings: PaperSettings) -> list[Training]:
    """Return all training runs of the figures, each once; those of the learning curve first."""
    wanted = []
    for name in settings.chosen:
        wanted += [(name, settings.curve_load, "slowdown", seed) for seed in settings.seeds]
    for name in settings.everywhere:
        loads = (*settings.loads, settings.objective_load, settings.withholding_load)
        wanted += [(name, load, "slowdown", settings.seeds[0]) for load in loads]
        wanted += [(name, settings.objective_load, "completion_time", settings.seeds[0])]
    runs = [training(settings, *one) for one in dict.fromkeys(wanted)]
    return sorted(runs, key=lambda run: not run.curve)


def training(settings: PaperSettings, contender: str, load: float, objective: str, seed: int) -> Training:
    """Return one run: where it is kept and the launcher's flags."""
    way = CONTENDERS[contender]
    curve = load == settings.curve_load and objective == "slowdown"
    suffix = "" if objective == "slowdown" else f"_{objective}"
    folder = Path(settings.out) / "runs" / f"{contender}_load{round(100 * load):03d}{suffix}_seed{seed}"
    idle = "none" if settings.idle_limit is None else str(settings.idle_limit)
    flags = ("--algo", way.algorithm, *way.flags, "--load", str(load), "--idle_limit", idle)
    flags += ("--seed", str(seed), "--total_steps", str(round(way.budget * settings.decisions)))
    if objective == "completion_time":
        # A job's completion time is about six times its slowdown; returns are to stay at a few units.
        flags += ("--objective", objective, "--reward_scale", "0.004")
    return Training(contender, load, objective, seed, curve, folder, flags)
