"""Small settings for each algorithm, so that one file of tests covers all that the registry finds."""

from schedrl import registry
from schedrl.envs.probes import PROBES
from schedrl.learning.budget import Budget
from schedrl.learning.run_folder import Run

COMMON = {
    "network": "mlp",
    "hidden": (32,),
    "num_envs": 64,
    "gamma": 0.9,
    "reward_scale": 1.0,
    "entropy_coef": 0.01,
    "entropy_coef_final": 0.0,
    "learning_rate": 1e-2,
    "total_steps": 30_000,
}
OWN = {"ppo": {"num_steps": 8, "batch_size": 128, "num_epochs": 4}}
"""What one algorithm needs beside COMMON to learn the probes."""


def small_settings(algorithm: str, **changes):
    cls = registry.get("algorithm_settings", algorithm)
    return cls.from_dict({**COMMON, **OWN.get(algorithm, {}), **changes})


def start(algorithm: str, probe: str, seed: int = 0, folder=None, resume: bool = False, **changes):
    """Return the run and the generator of its records."""
    settings = small_settings(algorithm, **changes)
    run = Run(
        Budget(settings.total_steps, settings.num_episodes),
        seed,
        folder,
        resume=resume,
        checkpoint_every=2_000,
        tensorboard=False,
    )
    env = PROBES[probe](settings.num_envs)
    return run, registry.get("algorithm", algorithm)(env, settings, run)


def trained(*args, **kwargs):
    run, records = start(*args, **kwargs)
    return run, list(records)
