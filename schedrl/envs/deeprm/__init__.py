"""The DeepRM cluster as a Gymnasium environment: one pool of resources, visible slots, a backlog.

`settings` says what can be set, `environment` is one cluster, `vector` many, `episodes` runs policies on
given jobs; `clusters` drives the simulator for all three, `observation`, `colours` and `render` show it. Jobs
come from `jobs`: DeepRM's own, or a workload rounded to steps and units (`generated`, `traced`, `placed`).
"""

import importlib
from typing import Any

HOMES = {
    "Clusters": "clusters",
    "DeepRMEnv": "environment",
    "DeepRMSettings": "settings",
    "DeepRMVectorEnv": "vector",
    "Quirks": "settings",
    "play": "episodes",
}

__all__ = ["Clusters", "DeepRMEnv", "DeepRMSettings", "DeepRMVectorEnv", "Quirks", "play"]


def __getattr__(name: str) -> Any:
    """Import on first use: settings are read by command lines that must not load Numba."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f".{HOMES[name]}", __name__), name)
