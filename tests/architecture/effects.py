"""Does a setting change anything? One function per class of settings that makes a comparable result of it.

A new class of settings adds its function to ``EFFECTS``; a setting that by design changes no result (only
speed, say) is listed in ``WITHOUT_EFFECT`` with the reason and a test of its own elsewhere.
"""

import hashlib
import typing
from pathlib import Path

import numpy as np

from schedrl.envs.deeprm.environment import DeepRMEnv
from schedrl.envs.deeprm.settings import DeepRMSettings
from schedrl.envs.simple_cluster.environment import SimpleClusterEnv
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.settings import Settings, UserError
from schedrl.workload.generators import GENERATORS, generate, settings_of
from schedrl.workload.generators.jobs import JobSettings


def deeprm(settings: DeepRMSettings) -> str:
    """Hash what a random legal player sees, earns and ends with in a few episodes."""
    env = DeepRMEnv(settings)
    rng = np.random.default_rng(0)
    digest = hashlib.sha256()
    obs, _ = env.reset(seed=0)
    for _ in range(400):
        for key in sorted(obs):
            digest.update(key.encode() + np.ascontiguousarray(obs[key]).tobytes())
        scores = np.where(obs["action_mask"], rng.random(obs["action_mask"].shape), -1.0)
        obs, *ends, _ = env.step(int(scores.argmax()))
        digest.update(repr(ends).encode())
        if any(ends[1:]):
            obs, _ = env.reset()
    return digest.hexdigest()


def simple_cluster(settings: SimpleClusterSettings) -> str:
    """Hash what a player of mostly legal random actions sees, earns and ends with in a few episodes."""
    env = SimpleClusterEnv(settings.replace(num_jobs=min(settings.num_jobs, 40)))
    rng = np.random.default_rng(0)
    digest = hashlib.sha256()
    obs, _ = env.reset(seed=0)
    for _ in range(300):
        for key in sorted(obs):
            digest.update(key.encode() + np.ascontiguousarray(obs[key]).tobytes())
        mask = obs["action_mask"][: env.unwrapped.num_choices]
        scores = np.where(mask | (rng.random() < 0.05), rng.random(mask.shape), -1.0)
        action = int(scores.argmax())
        shares = rng.random(2)
        obs, *ends, _ = env.step((action, 0, shares) if settings.action == "elastic" else action)
        digest.update(repr(ends).encode())
        if any(ends[1:]):
            obs, _ = env.reset()
    return digest.hexdigest()


def generator(settings: Settings) -> str:
    """Hash the jobs that a generator draws."""
    jobs = generate(settings, 300)
    columns = (jobs.arrival, jobs.duration, jobs.demand, jobs.estimate)
    content = b"".join(column.tobytes() for column in columns) + repr(jobs.resources).encode()
    return hashlib.sha256(content).hexdigest()


INDEPENDENT = {name: settings_of(name) for name in GENERATORS if issubclass(settings_of(name), JobSettings)}
"""The generators of independent jobs."""

EFFECTS: dict[str, typing.Callable[[typing.Any], object]] = {
    "deeprm": deeprm,
    "simple_cluster": simple_cluster,
    "uniform": generator,
    "lublin": generator,
    **dict.fromkeys(INDEPENDENT, generator),
}

WITHOUT_EFFECT = {
    ("deeprm", "kernel"): "only speed: kernels agree exactly (tests/sim)",
    ("deeprm", "threads"): "only speed: parallel agrees with serial (tests/sim)",
    ("simple_cluster", "aging_time"): "no generator gives priorities (tests/envs/test_simple_cluster.py)",
    ("simple_cluster", "train_servers"): "of training sequences only (tests/envs/test_simple_cluster.py)",
}
"""(section, setting) -> why the results stay the same, and where that is tested."""

NEEDS: dict[tuple[str, str], dict[str, object]] = {
    ("DeepRMSettings", "episode_max_length"): {"episode_max_length": 20},
    ("DeepRMSettings", "mask"): {"allow_reservation": True},
    ("DeepRMSettings", "allow_reservation"): {"mask": "physics"},
    ("DeepRMSettings", "image_dtype"): {"representation": "image"},
    ("DeepRMSettings", "image_colours"): {"representation": "image", "image_dtype": "float32"},
    ("DeepRMSettings", "max_track_since_new"): {"observe_since_arrival": True},
    ("DeepRMSettings", "num_sequences"): {"sequence_length": 5},
    ("DeepRMSettings", "drop_penalty"): {"backlog_size": 2, "num_job_slots": 2},
    ("DeepRMSettings", "backlog_size"): {"num_job_slots": 2},
    ("DeepRMSettings", "workload_settings"): {"workload": "bursty"},
    ("DeepRMSettings", "time_step"): {"workload": "bursty"},
    ("DeepRMSettings", "long_jobs"): {"workload": "bursty"},
    ("SimpleClusterSettings", "num_jobs"): {"num_jobs": 20},
    ("SimpleClusterSettings", "reject_penalty"): {"allow_reject": True},
    ("SimpleClusterSettings", "running_rows"): {"representation": "state"},
    ("SimpleClusterSettings", "min_share"): {"action": "elastic"},
    ("SimpleClusterSettings", "waiting_rate"): {"reward": "operations"},
    ("UniformSettings", "capacity"): {"load": 1.3},
    ("LublinSettings", "exact_load"): {"load": 0.9},
    ("HeavyTailSettings", "durations"): {"tail": "demand"},
    ("HeavyTailSettings", "largest_demand"): {"tail": "demand"},
    **{
        (cls.__name__, name): {"load": 0.9}
        for cls in INDEPENDENT.values()
        for name in ("exact_load", "capacity")
    },
}
"""(class, setting) -> other values under which it can matter at all."""

CHOICES: dict[tuple[str, str], list[object]] = {
    ("DeepRMSettings", "workload"): ["poisson"],
    ("DeepRMSettings", "workload_settings"): [{"burst_factor": 20.0}],
    ("DeepRMSettings", "time_step"): [60.0],
    ("SimpleClusterSettings", "cluster"): [str(Path(__file__).parent / "two_machines.toml")],
    ("SimpleClusterSettings", "workload"): ["bursty"],
    ("SimpleClusterSettings", "workload_settings"): [{"durations": "pareto"}],
    ("SimpleClusterSettings", "reward"): ["batch", "sla=-1"],
}
"""(class, setting) -> other values, where its type doesn't tell the usual ones."""


def another(cls: type[Settings], name: str) -> tuple[Settings, Settings]:
    """Return two valid settings that differ in ``name`` only.

    Raises:
        AssertionError: none of the usual other values is valid.
    """
    first = cls.from_dict(NEEDS.get((cls.__name__, name), {}))
    value = getattr(first, name)
    for other in CHOICES.get((cls.__name__, name)) or _others(cls.kinds()[name], value):
        try:
            return first, first.replace(**{name: other})
        except UserError:
            continue
    raise AssertionError(f"found no other valid value for {name}; add what it needs to NEEDS")


def _others(kind: object, value: object) -> list[object]:
    choices: list[object] = []
    for member in [kind, *typing.get_args(kind)]:
        if typing.get_origin(member) is typing.Literal:
            choices += [choice for choice in typing.get_args(member) if choice != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [*choices, value - 1, value + 1, value * 2, value / 2, value * 5, 0, 1, 3]
    if hasattr(value, "__dataclass_fields__"):
        return ["all"]
    if isinstance(value, tuple) and value != value[::-1]:
        return [value[::-1]]
    return [*choices, 1, 0.5, True, "none", None, (0.3,), "constant", "round", "uniform"]
