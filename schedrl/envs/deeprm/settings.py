"""The settings of the DeepRM environment and its presets. Imports nothing heavy."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from schedrl.envs.declared import CLOCK, EVERYTHING, LOAD, PREPARATION, RUN_TIMES, Declared
from schedrl.settings import Settings, preset_values

from .job_settings import TRACE, ClusterJobs

CLOCK_COLUMNS = (5, 6)
"""Of `backlog` in `slots` (`schedrl.sim.deeprm.observe.BACKLOG_FEATURES`)."""


@dataclass(frozen=True)
class Quirks:
    """Oddities of the original program, each with its own switch, all off by default (docs/deeprm.md)."""

    lingering: bool = False
    """Of jobs that finish together, every second one stays booked (and is paid for) a step longer."""
    horizon_off_by_one: bool = False
    """The last start row is out of reach: a job as long as the horizon waits for ever."""
    skip_first_job: bool = False
    """A job that arrives at time 0 never enters."""
    silent_drop: bool = False
    """A job dropped on a full backlog costs nothing (`drop_penalty` is not charged)."""


@dataclass(frozen=True)
class DeepRMSettings(ClusterJobs):
    """One pool of resources, jobs of known duration and demand, a queue of visible slots and a backlog."""

    actions: ClassVar[str] = "discrete"
    """The kind of its action space: what an algorithm must be able to choose from."""
    has_teachers: ClassVar[bool] = True
    """Whether the heuristics of `schedrl.heuristics` can be imitated here (`pretrain`)."""

    num_job_slots: int = 10
    """Jobs that the agent can see and choose from (paper: 10)."""
    time_horizon: int = 20
    """Steps ahead that are planned and observed (paper: 20); no job may be longer."""
    backlog_size: int = 60
    """Jobs that wait beyond the slots (paper: 60); further ones are dropped."""
    max_track_since_new: int = 10
    """Steps at which the observed time since the last arrival is full."""

    allow_reservation: bool = False
    """Let an action book the first start within the horizon, as the original; else jobs start now or not."""
    quirks: Quirks = field(default_factory=Quirks)
    """Oddities of the original to switch on."""
    termination: Literal["all_done", "no_new_job", "continuing"] = "all_done"
    """When an episode ends: all jobs are done; arrivals are over; never (cut off, for steady state)."""
    episode_max_length: int | None = None
    """Steps after which an episode is cut off. None: ten times the arrival steps; "no_new_job" needs none."""

    mask: Literal["fits_now", "physics"] = "fits_now"
    """Legal slots: jobs that fit from now on; or all that the physics would book."""
    idle_limit: int | None = 20
    """Steps in a row that the machine may stand idle while a visible job could start. None: no limit; 0: none
    at all. 20 leaves room for waiting that pays and keeps a greedy policy from waiting for ever."""

    representation: Literal["slots", "compact", "image", "state"] = "slots"
    """What is observed: structured; the original's vector; the original's picture; complete and unscaled."""
    observe_since_arrival: bool = True
    """Show the time since the last arrival (representation "slots")."""
    observe_clock: bool = True
    """Show the time and whether arrivals are over (representation "slots"), unless they go on for ever."""
    image_dtype: Literal["uint8", "float32"] = "uint8"
    """Numbers of the picture: bytes (255 = occupied) or floats (1 = occupied)."""
    image_colours: bool = False
    """Draw jobs in the original's shuffled colours, not as occupancy; needs float32 and one environment."""

    objective: Literal["slowdown", "completion_time"] = "slowdown"
    """Each job in the system costs 1 / duration a step (mean slowdown) or 1 (mean completion time)."""
    delay_penalty: float = -1.0
    """Reward per step for a booked job, times its weight."""
    hold_penalty: float = -1.0
    """Reward per step for a job in a slot, times its weight."""
    dismiss_penalty: float = -1.0
    """Reward per step for a job in the backlog, times its weight."""
    drop_penalty: float = -10.0
    """Reward for each dropped job (about the slowdown of one that waited out a full backlog)."""

    kernel: Literal["auto", "counts", "bitplanes"] = "auto"
    """How room on the machine is kept: bit-planes where the sizes allow, else counts. Results are equal."""
    threads: int = 1
    """Threads that step a batch; more than 1 pays from thousands of environments on."""

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated or drawn, with the reason."""
        super().__post_init__()
        for name in ("num_job_slots", "time_horizon", "max_track_since_new", "episode_max_length", "threads"):
            self.in_range(name, 1)
        self.in_range("backlog_size", 0)
        self.in_range("idle_limit", 0)
        for name in ("delay_penalty", "hold_penalty", "dismiss_penalty", "drop_penalty"):
            self.in_range(name, high=0)
        longest = self.time_horizon - self.quirks.horizon_off_by_one
        self.check(
            self.max_job_duration <= longest,
            f"max_job_duration {self.max_job_duration} exceeds the longest schedulable job ({longest} steps "
            f"at time_horizon {self.time_horizon}), it would wait for ever; raise time_horizon or lower it",
        )
        self.check(
            self.representation != "image" or self.backlog_size % self.time_horizon == 0,
            f"backlog_size {self.backlog_size} can't be drawn: representation image fills whole columns of "
            f"time_horizon {self.time_horizon} cells; use a multiple, or another representation",
        )
        self.check(
            not self.image_colours or (self.representation == "image" and self.image_dtype == "float32"),
            "image_colours needs representation=image and image_dtype=float32; set both or switch it off",
        )

    def declares(self) -> tuple[Declared, ...]:
        """Return what is shown of the future by design."""
        found = [Declared(RUN_TIMES, EVERYTHING, (), "the true run time of every job, as in DeepRM")]
        if self.representation == "slots" and self.observe_clock and self.termination != "continuing":
            text = "when arrivals end (backlog, columns 5 and 6: the clock)"
            found.append(Declared(CLOCK, "backlog", CLOCK_COLUMNS, text))
        if self.workload == TRACE and self.load is not None:
            text = "how much work its part of the trace is (arrivals are scaled to the load)"
            found.append(Declared(LOAD, PREPARATION, (), text))
        return tuple(found)

    def summary(self) -> str:
        """Describe the environment in a line."""
        kind = self.workload if self.placed else self.distribution
        if self.placed:
            load = "of their own" if self.load is None else f"{self.load:.0%}"
        else:
            load = " / ".join(f"{share:.0%}" for share in self.expected_load())
        limit = "any" if self.idle_limit is None else self.idle_limit
        return (
            f"{self.num_resources} resources of {'/'.join(map(str, self.capacities))} units, "
            f"{self.num_job_slots} job slots, {kind} jobs for {self.sequence_length} steps "
            f"at load {load}, ends {self.termination}, idle_limit {limit}"
        )

    @property
    def num_actions(self) -> int:
        """Slots and the no-op, which is last."""
        return self.num_job_slots + 1


PRESETS: dict[str, dict[str, Any]] = {
    # The published program with every oddity; sizes are its own defaults unless given.
    "deeprm-original": {
        "quirks": "all",
        "allow_reservation": True,
        "mask": "physics",
        "idle_limit": None,
        "representation": "image",
        "episode_max_length": 200,
    },
    # The paper's Fig. 6 and Fig. 5 loads.
    "deeprm-70": {"arrival_rate": 0.38},
    "deeprm-130": {"arrival_rate": 0.7},
    # Arrivals never stop: what an operator has. One policy learns for several loads, the highest twice as
    # often; it is measured at `load`. Goes with the preset ppo-steady.
    "deeprm-steady": {
        "termination": "continuing",
        "sequence_length": 1000,
        "backlog_size": 10_000,
        "idle_limit": 0,
        "load": 0.6,
        "train_loads": (0.5, 0.6, 0.65, 0.65),
    },
}


def chosen(
    settings: DeepRMSettings | None, preset: str | None, overrides: dict[str, Any], workload: Any = None
) -> DeepRMSettings:
    """Lay a preset and single overrides over the settings given, or over the defaults.

    `workload` is an override too where it is a name; jobs themselves are no setting.

    Raises:
        UserError: an unknown name (the nearest are listed), or a value refused.
    """
    values, settings = preset_values(preset, PRESETS), settings or DeepRMSettings()
    if isinstance(workload, str):
        overrides = {"workload": workload} | overrides
    if not settings.placed and not {"workload", "trace", "trace_file"} & set(overrides):
        return settings.replace(**values | overrides)
    # An arrival_rate of a preset is DeepRM's own, never that of a generator chosen beside it.
    return Settings.replace(settings, **values).replace(**overrides)
