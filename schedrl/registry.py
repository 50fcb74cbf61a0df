"""Names of environments, heuristics and algorithms, and the lazy way from a name to the object.

A leaf: it holds text only, so that ``--help`` can list names without importing Numba or TensorFlow.
Algorithms are found by folder: every folder beside ``launcher.py`` with ``config.py`` and ``train.py`` is
one, and a new folder is all that a new algorithm takes (docs/extending.md).
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from schedrl.settings import UserError, one_of
from schedrl.settings.names import nearest

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the front doors and the algorithms' folders."""

ENVIRONMENTS = {
    "deeprm": "schedrl.envs.deeprm.environment:DeepRMEnv",
    "simple_cluster": "schedrl.envs.simple_cluster.environment:SimpleClusterEnv",
}
"""Short name -> the Gymnasium environment."""

ENVIRONMENT_SETTINGS = {
    "deeprm": "schedrl.envs.deeprm.settings:DeepRMSettings",
    "simple_cluster": "schedrl.envs.simple_cluster.settings:SimpleClusterSettings",
}
"""Short name -> the environment's class of settings; its module imports nothing heavy."""

VECTOR_ENVIRONMENTS = {
    "deeprm": "schedrl.envs.deeprm.vector:DeepRMVectorEnv",
    "simple_cluster": "schedrl.envs.simple_cluster.vector:SimpleClusterVectorEnv",
}
"""Short name -> the batched environment, made as `(settings, num_envs, seed=..., copy=...)`."""

HEURISTICS = {
    "fifo": "schedrl.heuristics:FIFO",
    "sjf": "schedrl.heuristics:SJF",
    "packer": "schedrl.heuristics:Packer",
    "tetris": "schedrl.heuristics:Tetris",
    "sjf_hold": "schedrl.heuristics:SJFHold",
    "tsl": "schedrl.heuristics:TSL",
    "defer": "schedrl.heuristics:Defer",
    "random": "schedrl.heuristics:Random",
    "random_legal": "schedrl.heuristics:RandomLegal",
}
"""Short name -> the heuristic's class."""


def algorithms(root: Path = ROOT) -> dict[str, str]:
    """Return algorithm -> ``folder.train:train``, for every algorithm's folder in ``root``, sorted."""
    folders = sorted(
        config.parent for config in root.glob("*/config.py") if (config.parent / "train.py").exists()
    )
    return {folder.name: f"{folder.name}.train:train" for folder in folders}


def algorithm_settings(root: Path = ROOT) -> dict[str, str]:
    """Return algorithm -> ``folder.config:<Name>Settings`` (``ppo`` -> ``PPOSettings``; case is free)."""
    return {name: f"{name}.config:{name}Settings" for name in algorithms(root)}


def table(kind: str) -> dict[str, str]:
    """Return name -> ``module:attribute`` of one ``kind`` of thing."""
    tables = {
        "environment": lambda: ENVIRONMENTS,
        "environment_settings": lambda: ENVIRONMENT_SETTINGS,
        "vector_environment": lambda: VECTOR_ENVIRONMENTS,
        "heuristic": lambda: HEURISTICS,
        "algorithm": algorithms,
        "algorithm_settings": algorithm_settings,
    }
    return tables[one_of("kind", kind, tables)]()


def names(kind: str) -> list[str]:
    """Return the names of one ``kind``: ``environment``, ``heuristic`` or ``algorithm``."""
    return list(table(kind))


def find(kind: str, name: str) -> str:
    """Return our spelling of ``name``; ``PPO``, ``sjf-hold`` and ``schedrl/DeepRM-v0`` are understood.

    Raises:
        UserError: there is none; the nearest names are listed.
    """
    known = names(kind)
    plain = name.removeprefix("schedrl/").removesuffix("-v0").replace("-", "_").lower()
    squeezed = {key.replace("_", ""): key for key in known}
    return squeezed.get(plain.replace("_", "")) or one_of(kind.removesuffix("_settings"), name, known)


def get(kind: str, name: str) -> Any:
    """Import and return what ``name`` stands for.

    Raises:
        UserError: unknown ``name``; or the module has no such attribute, and which it should have.
    """
    module_name, _, attribute = table(kind)[find(kind, name)].partition(":")
    if str(ROOT) not in sys.path:
        sys.path.append(
            str(ROOT)
        )  # an algorithm's folder is importable from wherever the command was started
    module = importlib.import_module(module_name)
    by_lower = {key.lower(): key for key in vars(module)}
    if attribute.lower() not in by_lower:
        close = ", ".join(nearest(attribute, vars(module))) or "nothing like it"
        raise UserError(f"{module_name} must define {attribute} (it has {close}); see docs/extending.md")
    return getattr(module, attribute, None) or getattr(module, by_lower[attribute.lower()])
