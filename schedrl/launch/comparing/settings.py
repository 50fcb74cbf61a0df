"""What `compare_algorithms.py` can be told beside the settings it hands on. Imports nothing heavy."""

from dataclasses import dataclass

from schedrl.settings import Settings


@dataclass(frozen=True)
class CompareSettings(Settings):
    """What is compared, on what budget, where to."""

    algorithms: tuple[str, ...] = ()
    """Algorithms, such as PPO,A2C. Empty = all that are here and can act in the environment."""
    env: str = "deeprm"
    """Environment to learn and to be measured in."""
    total_steps: int | None = None
    """Budget of every run in decisions. None: 2,000,000, or what num_episodes comes to."""
    num_episodes: int | None = None
    """Budget of every run in episodes. It is converted to decisions, so that all runs get the same number:
    times the mean decisions of an episode that SJF plays on 500 validation sequences."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Training seeds; each algorithm is trained once with each."""
    seed: int | None = None
    """A single training seed, instead of seeds."""
    output_dir: str = "results"
    """Folder of the runs (ALGO/seed_S) and of the report. Finished runs in it are used again."""
    retrain: bool = False
    """Train anew what the folder holds of these algorithms and seeds, whatever its settings were."""
    num_jobs: int | None = None
    """Runs at a time. None: that of a surrounding joblib.parallel_config, else one for each free core. Where
    the environment has a num_jobs too (simple_cluster), it is --compare.num_jobs."""
    num_eval_episodes: int = 2000
    """Test sequences (a tenth as many windows in steady state, and on simple_cluster)."""
    baselines: tuple[str, ...] = ("sjf", "packer", "tetris", "sjf_hold", "tsl", "defer")
    """Heuristics to compare with; their numbers are tuned on validation sequences. On simple_cluster rules
    such as sjf+best_fit+easy, half a dozen unless given."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        for name in ("total_steps", "num_episodes", "num_jobs", "num_eval_episodes"):
            self.in_range(name, 1)
        for name in ("seeds", "seed"):
            self.in_range(name, 0, 2**31 - 1)
        self.check(self.seeds, "seeds is empty; name at least one training seed")
        self.check(
            len(set(self.seeds)) == len(self.seeds),
            f"seeds {self.seeds} names a seed twice; the same seed gives the same run, so name each once",
        )
        self.check(
            self.total_steps is None or self.num_episodes is None,
            "total_steps and num_episodes are both given; the budget is one of them, leave the other out",
        )

    @property
    def training_seeds(self) -> tuple[int, ...]:
        """Return the seeds to train with."""
        return self.seeds if self.seed is None else (self.seed,)
