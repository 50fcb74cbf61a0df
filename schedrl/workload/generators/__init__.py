"""Generators of jobs by name: arrival process x duration law x size law x estimate model.

Each file is one generator, or one of the laws that they share (`laws`, `sizes`, `estimates`, `clocks`). Here
is only the table of names and the one function that draws, so that listing names imports none of them.
"""

import importlib
from typing import Any

import numpy as np

from schedrl.settings import Settings, UserError, one_of
from schedrl.workload.deeprm import DeepRMJobs
from schedrl.workload.streams import FAMILIES
from schedrl.workload.types import Workload

_HERE = "schedrl.workload.generators"
GENERATORS = {
    "poisson": f"{_HERE}.poisson:PoissonSettings",
    "heavy_tail": f"{_HERE}.heavy_tail:HeavyTailSettings",
    "bursty": f"{_HERE}.bursty:BurstySettings",
    "diurnal": f"{_HERE}.diurnal:DiurnalSettings",
    "correlated": f"{_HERE}.correlated:CorrelatedSettings",
    "real_trace": f"{_HERE}.real_trace:RealTraceSettings",
    "lublin": f"{_HERE}.lublin:LublinSettings",
    "deeprm": "schedrl.workload.deeprm:DeepRMJobs",
    "uniform": f"{_HERE}.deeprm:UniformSettings",
}
"""Name -> class of settings; its module imports nothing heavy."""


def settings_of(name: str) -> type[Settings]:
    """Return the class of settings of a generator.

    Raises:
        UserError: unknown name; the nearest are listed.
    """
    module, _, attribute = GENERATORS[one_of("generator", name, GENERATORS)].partition(":")
    return getattr(importlib.import_module(module), attribute)


def generate(settings: Any, num_jobs: int, seed: int = 0, family: str = "train", number: int = 0) -> Workload:
    """Draw a workload.

    Args:
        settings: of a class that `settings_of` gives.
        num_jobs: number of jobs J, at least 1.
        seed: 0 or more; the same arguments give the same jobs.
        family: one of `FAMILIES`; families never share a random stream.
        number: which workload of the family, 0 or more; numbers never share a random stream.

    Raises:
        UserError: a value out of range.
    """
    for name, value, low in (("num_jobs", num_jobs, 1), ("seed", seed, 0), ("number", number, 0)):
        if value < low:
            raise UserError(f"{name} is {value}; it must be at least {low}")
    spawn_key = (FAMILIES.index(one_of("family", family, FAMILIES)), number)
    if isinstance(settings, DeepRMJobs):
        from .deeprm import draw

        return draw(settings, num_jobs, seed, family, number)
    if hasattr(settings, "trace_file"):
        return settings.cut(num_jobs, seed, family, number)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=spawn_key))
    return settings.draw(rng, num_jobs)
