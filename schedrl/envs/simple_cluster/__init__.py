"""Many machines as a Gymnasium environment: jobs in continuous time, placed one by one on servers.

`settings` says what can be set and `reward_settings` what is rewarded; `environment` is one cluster, `vector`
many, `episodes` runs policies on given jobs; `jobs` draws the jobs, `clusters` drives the simulator for all,
`observation` names what is seen.
"""

import importlib
from typing import Any

HOMES = {
    "Clusters": "clusters",
    "SimpleClusterEnv": "environment",
    "SimpleClusterSettings": "settings",
    "SimpleClusterVectorEnv": "vector",
    "play": "episodes",
    "workloads_of": "jobs",
}

__all__ = [
    "Clusters",
    "SimpleClusterEnv",
    "SimpleClusterSettings",
    "SimpleClusterVectorEnv",
    "play",
    "workloads_of",
]


def __getattr__(name: str) -> Any:
    """Import on first use: settings are read by command lines that must not load Numba."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f".{HOMES[name]}", __name__), name)
