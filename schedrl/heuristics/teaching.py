"""Which heuristics can be imitated under an environment's rules of play.

Apart, so that a command line can ask before anything of TensorFlow is loaded.
"""

from __future__ import annotations

from typing import Any

from schedrl import registry
from schedrl.settings import UserError

from .policies import Heuristic


def teacher_for(name: str, environment: Any) -> Heuristic:
    """Return the heuristic to imitate in an environment with these settings.

    Raises:
        UserError: it would break the rules of play.
    """
    if not getattr(environment, "has_teachers", False):
        raise UserError(f"pretrain is {name}, but heuristics can't play this environment; set pretrain none")
    found, limit = registry.get("heuristic", name)(), environment.idle_limit
    if found.idles and limit is not None:
        raise UserError(
            f"pretrain is {name}, which idles beside jobs that could start; idle_limit is {limit}: set "
            "idle_limit none, or imitate another heuristic"
        )
    if not found.legal:
        raise illegal(name)
    return found


def illegal(name: str) -> UserError:
    """Return the refusal of a heuristic that chooses illegal actions."""
    return UserError(f"pretrain is {name}, which chooses illegal actions; imitate another heuristic")
