"""The budget of a training run, counted in decisions (one `step` of one environment) or in finished episodes.

Never in seconds: a budget in seconds would make results depend on how busy the machine is.
"""

from __future__ import annotations

from schedrl.settings import UserError


class Budget:
    """Counts what is spent of `total_steps` decisions or of `num_episodes` episodes."""

    def __init__(self, total_steps: int | None = None, num_episodes: int | None = None):
        if total_steps is None and num_episodes is None:
            raise UserError("a run needs a budget: give total_steps (decisions) or num_episodes")
        for name, value in (("total_steps", total_steps), ("num_episodes", num_episodes)):
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1")
        self.total_steps = total_steps
        self.num_episodes = num_episodes
        self.decisions = 0
        self.episodes = 0

    def spend(self, decisions: int, episodes: int) -> None:
        """Count decisions taken and episodes ended."""
        self.decisions += decisions
        self.episodes += episodes

    @property
    def progress(self) -> float:
        """The share spent, in [0, 1]; the larger one where both limits are given."""
        shares = [0.0]
        if self.total_steps is not None:
            shares.append(self.decisions / self.total_steps)
        if self.num_episodes is not None:
            shares.append(self.episodes / self.num_episodes)
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
