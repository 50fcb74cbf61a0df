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
from schedrl.evaluation.evaluate import BASELINES, evaluate
from schedrl.settings import Settings


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
    policies: Mapping[str, Any], settings, windows: Windows | None = None, *, baselines=BASELINES, **options
) -> Evaluation:
    """Evaluate `policies` in steady state; `settings` and `options` as for `evaluate`."""
    windows = windows or Windows()
    return evaluate(
        policies,
        continuing(settings, windows),
        num_sequences=windows.num_windows,
        baselines=baselines,
        window=(windows.first, windows.last),
        **options,
    )


def continuing(settings, windows: Windows):
    """Return `settings` with arrivals that never stop within the steps of a window."""
    return settings.replace(
        termination="continuing",
        sequence_length=windows.steps,
        episode_max_length=windows.steps,
        backlog_size=windows.backlog_size,
    )
