"""What `launcher.py` can be told beside the settings of environment and algorithm. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Literal

from schedrl.settings import Settings


@dataclass(frozen=True)
class LaunchSettings(Settings):
    """What is trained, how, where to, and what follows."""

    algo: str = "ppo"
    """Algorithm: any folder beside launcher.py with config.py and train.py."""
    env: str = "deeprm"
    """Environment to learn in."""
    mode: Literal["debug", "local", "distributed"] = "local"
    """local = this machine; debug = one environment, every step printed; distributed = several workers, on
    one host or many, that average their gradients (docs/running.md)."""
    num_workers: int | None = None
    """Processes that step the environments (a3c: that learn). none = a rule, printed with its reason
    (docs/running.md): 1 for the environments of this project."""
    worker_timeout: float = 60.0
    """Seconds that a worker may take for one step before it is replaced; five times as long to start."""
    max_restarts: int = 10
    """Times that lost workers are replaced (distributed: all restarted) before the run gives up."""
    seed: int = 0
    """Of everything random in training. The evaluation's sequences don't depend on it."""
    model_dir: str | None = None
    """Folder of the run. None: models/ALGO_ENV, or with a number where a run is there already."""
    resume: bool = False
    """Continue the run in model_dir exactly; only the budget may differ. Default folder: the newest run."""
    keep_schedule: bool = False
    """With resume and another budget: learning rate, entropy bonus and the like go on as the former budget
    had planned, and stay as in its last update. Off: they go on as if this had been the budget all along."""
    accept_changes: bool = False
    """With resume: go on although files of the run were changed since they were written, with the settings
    that run.json has now; logs that the checkpoint doesn't go with are set aside and begun anew."""
    render: bool = False
    """Print pictures of the cluster: of every step in debug mode, else of one episode after training."""
    no_eval: bool = False
    """Stop after training: no comparison with heuristics, no pictures."""
    profile: bool = False
    """Record a TensorFlow profiler trace of a few updates in the run's folder profile."""
    num_eval_episodes: int = 2000
    """Test sequences of the evaluation after training (a tenth as many windows in steady state)."""
    memory_growth: bool = True
    """GPU: take memory as it is needed; False takes all of it at once, which fragments less."""
    checkpoint_every: int = 500_000
    """Decisions between two checkpoints; a last one is always saved."""
    cluster_spec: tuple[str, ...] = ()
    """Distributed: host:port of every worker, the same on all hosts. Empty: TF_CONFIG says it."""
    task_index: int | None = None
    """Distributed: which worker of cluster_spec this is, from 0."""
    spawn: int = 0
    """Distributed: start that many workers on this host, on free ports. 0 = one, as cluster_spec says."""
    listen: bool = False
    """Distributed, all workers on this host: let them be reached from outside (docs/running.md). Without it,
    those of --spawn live in a network of their own, as TensorFlow lets in whoever reaches its ports."""
    start_timeout: float = 180.0
    """Distributed: seconds that the workers may take to find each other."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        self.in_range("num_workers", 1)
        self.in_range("worker_timeout", 0, open_low=True)
        self.in_range("max_restarts", 0)
        self.in_range("num_eval_episodes", 1)
        self.in_range("checkpoint_every", 1)
        self.in_range("spawn", 0)
        self.in_range("start_timeout", 0, open_low=True)
        self.in_range("seed", 0, 2**31 - 1)
