"""The physics of one DeepRM cluster as plain numbers: what every kernel reads and nothing else.

Apart from the settings of the environment because the simulator must not know how it is observed, and because
Numba wants a flat tuple of numbers: arrays in it would be reference-counted at every call, which made a
decision fifty times slower. `make_spec` is the only way to build one: it refuses what cannot be simulated.
"""

from collections.abc import Sequence
from typing import NamedTuple

from schedrl.settings import UserError

ALL_DONE, NO_NEW_JOB, CONTINUING = 0, 1, 2
TERMINATIONS = {"all_done": ALL_DONE, "no_new_job": NO_NEW_JOB, "continuing": CONTINUING}
NO_LIMIT = -1
MAX_BIT_HORIZON = 64
MAX_BIT_CAPACITY = 64


class Spec(NamedTuple):
    """Physics of the cluster. Times in steps, demands in units of the resource."""

    num_slots: int
    horizon: int
    num_resources: int
    max_capacity: int
    backlog_size: int
    sequence_length: int  # steps in which jobs may arrive
    episode_max_length: int
    termination: int
    allow_reservation: bool
    lingering: bool
    off_by_one: bool
    skip_first: bool
    drop_penalty: float  # added to the reward for each job dropped
    delay_penalty: float  # per unit of weight of a booked job and step
    hold_penalty: float  # per unit of weight of a job in a slot and step
    dismiss_penalty: float  # per unit of weight of a job in the backlog and step
    count_jobs: bool  # weight of a job: 1 (completion time) instead of 1 / duration (slowdown)
    mask_physics: bool
    idle_limit: int  # NO_LIMIT: none
    bitplanes: bool


def bitplanes_possible(horizon: int, capacity: Sequence[int]) -> bool:
    """Tell whether one machine word can hold a row of the horizon for every amount of each resource."""
    return horizon <= MAX_BIT_HORIZON and max(capacity) <= MAX_BIT_CAPACITY


def _uses_bitplanes(kernel: str, horizon: int, capacity: Sequence[int]) -> bool:
    possible = bitplanes_possible(horizon, capacity)
    if kernel == "bitplanes" and not possible:
        raise UserError(
            f"kernel=bitplanes needs time_horizon <= {MAX_BIT_HORIZON} and capacity <= {MAX_BIT_CAPACITY}, "
            f"got {horizon} and {max(capacity)}; use kernel=auto or counts"
        )
    return possible and kernel != "counts"


def make_spec(
    *,
    num_slots: int = 10,
    horizon: int = 20,
    capacity: Sequence[int] = (10, 10),
    backlog_size: int = 60,
    sequence_length: int = 50,
    episode_max_length: int = 500,
    termination: str = "all_done",
    allow_reservation: bool = False,
    lingering: bool = False,
    off_by_one: bool = False,
    skip_first: bool = False,
    drop_penalty: float = 0.0,
    penalties: tuple[float, float, float] = (-1.0, -1.0, -1.0),
    objective: str = "slowdown",
    mask: str = "fits_now",
    idle_limit: int | None = None,
    kernel: str = "auto",
) -> Spec:
    """Validate the physics and pack it for the kernels.

    Args are those of `schedrl.envs.deeprm.settings.DeepRMSettings`; `penalties` are delay, hold, dismiss.

    Raises:
        UserError: a size below 1, an unknown name, or a kernel that cannot hold these sizes.
    """
    sizes = {
        "num_job_slots": num_slots,
        "time_horizon": horizon,
        "sequence_length": sequence_length,
        "episode_max_length": episode_max_length,
        "num_resources": len(capacity),
        "capacity": min(capacity, default=1),
    }
    for name, value in sizes.items():
        if value < 1:
            raise UserError(f"{name} must be at least 1, got {value}")
    if backlog_size < 0:
        raise UserError(f"backlog_size must be 0 (no backlog) or more, got {backlog_size}")
    if termination not in TERMINATIONS:
        raise UserError(f"termination must be one of {', '.join(TERMINATIONS)}, got {termination!r}")
    if idle_limit is not None and idle_limit < 0:
        raise UserError(f"idle_limit must be 0 or more, or none for no limit, got {idle_limit}")
    bitplanes = _uses_bitplanes(kernel, horizon, capacity)
    return Spec(
        num_slots=num_slots,
        horizon=horizon,
        num_resources=len(capacity),
        max_capacity=max(capacity),
        backlog_size=backlog_size,
        sequence_length=sequence_length,
        episode_max_length=episode_max_length,
        termination=TERMINATIONS[termination],
        allow_reservation=bool(allow_reservation),
        lingering=bool(lingering),
        off_by_one=bool(off_by_one),
        skip_first=bool(skip_first),
        drop_penalty=float(drop_penalty),
        delay_penalty=float(penalties[0]),
        hold_penalty=float(penalties[1]),
        dismiss_penalty=float(penalties[2]),
        count_jobs=objective == "completion_time",
        mask_physics=mask == "physics",
        idle_limit=NO_LIMIT if idle_limit is None else int(idle_limit),
        bitplanes=bitplanes,
    )
