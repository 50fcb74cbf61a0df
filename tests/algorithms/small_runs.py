"""Small settings for each algorithm, so that one file of tests covers all that the registry finds."""

import sys
from collections.abc import Callable, Iterable

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


def require_learning(learned: Callable[[int], None], seeds: Iterable[int], needed: int) -> None:
    """Require that training learned with `needed` of the seeds; `learned(seed)` asserts it for one.

    Which seed falls into a corner depends on the processor: under another BLAS kernel sums of floats come out
    otherwise, and thousands of steps later the policy is another one. So a test asks for most of a few seeds.
    """
    missed = []
    for seed in seeds:
        try:
            learned(seed)
        except AssertionError as error:
            missed.append(f"seed {seed}: {error}")
        else:
            needed -= 1
        if needed == 0:
            return
    raise AssertionError(f"{needed} more seeds had to learn: " + "\n".join(missed))


def small_settings(algorithm: str, **changes):
    """COMMON, what the algorithm's config.py says it needs beside (PROBE_SETTINGS), and changes."""
    cls = registry.get("algorithm_settings", algorithm)
    own = getattr(sys.modules[cls.__module__], "PROBE_SETTINGS", {})
    return cls.from_dict({**COMMON, **own, **changes})


def start(
    algorithm: str, probe: str, seed: int = 0, folder=None, resume: bool = False, selection=None, **changes
):
    """Return the run and the generator of its records."""
    settings = small_settings(algorithm, **changes)
    run = Run(
        Budget.of(settings),
        seed,
        folder,
        resume=resume,
        checkpoint_every=2_000,
        tensorboard=False,
        selection=selection,
    )
    env = PROBES[probe](settings.num_envs)
    return run, registry.get("algorithm", algorithm)(env, settings, run)


def trained(*args, **kwargs):
    run, records = start(*args, **kwargs)
    return run, list(records)
