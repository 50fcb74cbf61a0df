"""The DeepRM cluster as a Gymnasium environment: one pool of resources, visible slots, a backlog.

`settings` says what can be set, `environment` is one cluster, `vector` many, `episodes` runs policies on given
jobs; `clusters` drives the simulator for all three, `observation`, `colours` and `render` show it.
"""

__all__ = ["Clusters", "DeepRMEnv", "DeepRMSettings", "DeepRMVectorEnv", "play"]


def __getattr__(name: str) -> object:
    """Import on first use: settings are read by command lines that must not load Numba."""
    if name in ("DeepRMSettings", "Quirks"):
        from . import settings as module
    elif name == "DeepRMEnv":
        from . import environment as module
    elif name == "DeepRMVectorEnv":
        from . import vector as module
    elif name == "play":
        from . import episodes as module
    elif name == "Clusters":
        from . import clusters as module
    else:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(module, name)
