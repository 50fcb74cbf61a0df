"""Which algorithms can act in an environment, by the kind of its actions, and whom they can imitate there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schedrl import registry
from schedrl.learning.settings import ActorCriticSettings
from schedrl.settings import UserError


def able_in(env: str) -> list[str]:
    """Return the algorithms that can choose from the actions of an environment."""
    kind = registry.get("environment_settings", env).actions
    return [
        name
        for name in registry.names("algorithm")
        if kind in registry.get("algorithm_settings", name).actions
    ]


def refuse_unable(names: Iterable[str], env: str) -> None:
    """Raise `UserError` if one of the algorithms can't act in `env`; it says which ones can."""
    able = able_in(env)
    unable = [name for name in names if name not in able]
    if unable:
        kind = registry.get("environment_settings", env).actions
        raise UserError(
            f"{', '.join(unable)} can't act in {env}, whose actions are {kind}; algorithms that can: "
            f"{', '.join(able) or 'none'}"
        )


def refuse_teacher(environment: Any, algorithm: Any) -> None:
    """Raise `UserError` if the heuristic to imitate would break the environment's rules of play."""
    if algorithm.pretrain is not None:
        from schedrl.heuristics.teaching import teacher_for  # Numba takes a second

        teacher_for(algorithm.pretrain, environment)


def refuse_privileged(environment: Any, name: str, algorithm: Any) -> None:
    """Raise `UserError` if the environment would show the truth to an algorithm with no critic for it."""
    if not getattr(environment, "privileged", False):
        return
    if environment.termination == "continuing":
        raise UserError(
            "privileged shows the jobs to come, of which there are none where termination continuing cuts an "
            "episode off, so the value there would mean nothing; set privileged off"
        )
    if not isinstance(algorithm, ActorCriticSettings):
        raise UserError(
            f"privileged is for critics of states, those of a2c, a3c and ppo; {name} has none: leave it out, "
            "or set privileged off"
        )
    if algorithm.network != "pair_scorer":
        raise UserError(
            f"privileged is for the network pair_scorer; {algorithm.network} would show it to the policy: "
            "use --network pair_scorer, or set privileged off"
        )
