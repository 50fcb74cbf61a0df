"""What a cluster sees that never stops: windowed evaluation with ``termination="continuing"``.

An episode of 50 arrivals that then drains rewards holding every long job to the end; a cluster that runs for
ever can't. So each window simulates `steps` steps with arrivals throughout, leaves out the first `first`
(warm-up from an empty machine), counts the jobs that arrive before `last`, and follows them while arrivals go
on. Jobs of the window still unfinished after `steps` count with their lower bound and are listed as
unfinished. The backlog is large enough that nothing is dropped: dropping would hide overload (see
docs/deeprm.md, quirk 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schedrl.evaluation.comparison import Evaluation
from schedrl.evaluation.evaluate import evaluate, tuned
from schedrl.settings import Settings

BASELINES = ("sjf", "packer", "tetris", "sjf_hold", "tsl")
"""Heuristics to compare with; DEFER waits for arrivals to end, which they don't."""


@dataclass(frozen=True)
class Windows(Settings):
    """How steady-state windows are cut."""

    steps: int = 2000
    """Simulated steps of each window, arrivals throughout."""
    first: int = 300
    """Jobs that arrive earlier are warm-up. Steps."""
    last: int = 1500
    """Jobs that arrive in this step or later only keep the machine busy. Steps."""
    num_windows: int = 1000
    """Independent windows; intervals resample them."""
    backlog_size: int = 10_000
    """Jobs the backlog holds, so that none is dropped."""

    def __post_init__(self) -> None:
        """Refuse bounds out of order."""
        super().__post_init__()
        self.check(
            0 <= self.first < self.last <= self.steps,
            f"windows need 0 <= first < last <= steps, got {self.first}, {self.last}, {self.steps}",
        )
        self.in_range("num_windows", 1)


def steady_state(
    policies: Mapping[str, Any],
    settings,
    windows: Windows | None = None,
    *,
    baselines=BASELINES,
    tune: bool = True,
    seed: int = 0,
    **options,
) -> Evaluation:
    """Evaluate `policies` in steady state.

    Args:
        policies: as for `evaluate`.
        settings: of the environment; termination, lengths and backlog are replaced by those of `windows`.
        windows: how to cut them.
        baselines: heuristics to add, by names or as name -> heuristic.
        tune: search the numbers of those given by name, on validation windows.
        seed: of everything random.
        options: further ones of `evaluate`.
    """
    windows = windows or Windows()
    settings, window = continuing(settings, windows), (windows.first, windows.last)
    if tune and not isinstance(baselines, Mapping):
        baselines = tuned(baselines, settings, seed, window)
    return evaluate(
        policies,
        settings,
        num_sequences=windows.num_windows,
        baselines=baselines,
        window=window,
        seed=seed,
        **options,
    )


def continuing(settings, windows: Windows):
    """Return `settings` with arrivals that never stop within the steps of a window.

    The backlog stays as it is where it is part of the picture that the policy was trained on.
    """
    drawn = settings.representation == "image"
    return settings.replace(
        termination="continuing",
        sequence_length=windows.steps,
        episode_max_length=windows.steps,
        backlog_size=settings.backlog_size if drawn else windows.backlog_size,
    )
