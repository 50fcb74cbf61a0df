"""The budget of a training run, counted in decisions (one `step` of one environment) or in finished episodes.

Never in seconds: a budget in seconds would make results depend on how busy the machine is.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from schedrl.settings import UserError


class Limits(NamedTuple):
    """Of a budget, and of the schedules of learning rates where they span something else."""

    total_steps: int | None = None
    num_episodes: int | None = None
    schedule_steps: int | None = None
    schedule_episodes: int | None = None
    schedule_share: float = 1.0


class Budget:
    """Counts what is spent of `total_steps` decisions or of `num_episodes` episodes (see `Limits`)."""

    def __init__(
        self,
        total_steps: int | None = None,
        num_episodes: int | None = None,
        schedule_steps: int | None = None,
        schedule_episodes: int | None = None,
        schedule_share: float = 1.0,
    ):
        if total_steps is None and num_episodes is None:
            raise UserError("a run needs a budget: give total_steps (decisions) or num_episodes")
        for name, value in (("total_steps", total_steps), ("num_episodes", num_episodes)):
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1")
        self.total_steps = total_steps
        self.num_episodes = num_episodes
        self.limits = Limits(total_steps, num_episodes, schedule_steps, schedule_episodes, schedule_share)
        self.decisions = 0
        self.episodes = 0

    def spend(self, decisions: int, episodes: int) -> None:
        """Count decisions taken and episodes ended."""
        self.decisions += decisions
        self.episodes += episodes

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return the budget of an algorithm's settings."""
        return cls(*(getattr(settings, name) for name in Limits._fields))

    @property
    def progress(self) -> float:
        """The share spent, in [0, 1]; the larger one where both limits are given."""
        return self._share(self.total_steps, self.num_episodes)

    @property
    def scheduled(self) -> float:
        """How far schedules have moved, in [0, 1]: with the budget, unless they have limits of their own."""
        steps, episodes, share = self.limits[2:]
        own = steps is not None or episodes is not None
        return min(self._share(steps, episodes) if own else self.progress, share)

    def _share(self, steps: int | None, episodes: int | None) -> float:
        shares = [0.0]
        if steps is not None:
            shares.append(self.decisions / steps)
        if episodes is not None:
            shares.append(self.episodes / episodes)
        return min(1.0, max(shares))

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.progress >= 1.0

    def state(self) -> dict[str, int]:
        """Return the counters for a checkpoint."""
        return {"decisions": self.decisions, "episodes": self.episodes}

    def load_state(self, state: dict[str, int]) -> None:
        """Take the counters of a checkpoint."""
        self.decisions, self.episodes = int(state["decisions"]), int(state["episodes"])
