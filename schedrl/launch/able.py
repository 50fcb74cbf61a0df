"""Which algorithms can act in an environment: by the kind of its actions and the kinds they choose from."""

from __future__ import annotations

from collections.abc import Iterable

from schedrl import registry
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
