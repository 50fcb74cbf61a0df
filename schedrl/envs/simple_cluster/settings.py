"""The settings of the cluster environment. Imports nothing heavy."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from schedrl.envs.declared import LOAD, NUMBER_OF_JOBS, PREPARATION, REWARDS, RUN_TIMES, Declared
from schedrl.envs.workload_choice import OWN, TRACE, HoldsWorkload, generator_settings, made
from schedrl.settings import UserError, preset_values
from schedrl.workload.units import LOADS

from .reward_settings import weights_of

SLOWDOWN_TERM = 0
"""Place of the term `slowdown` in `schedrl.sim.cluster_decisions.spec.TERM_NAMES`."""
JOBS_TO_COME = 5
"""Column of `backlog` in `slots` (`schedrl.sim.cluster_decisions.observe.BACKLOG_FEATURES`)."""


@dataclass(frozen=True)
class SimpleClusterSettings(HoldsWorkload):
    """Servers with cpu, memory and GPUs, jobs from a generator or a trace, one placement per decision."""

    actions: ClassVar[str] = "discrete"
    """The kind of its action space, but for `elastic`: what an algorithm must be able to choose from."""
    network: ClassVar[str] = "pair_scorer"
    """The network that algorithms use here unless told otherwise."""
    has_teachers: ClassVar[bool] = False
    """Whether the heuristics of `schedrl.heuristics` can be imitated here (`pretrain`): not yet."""
    OF_OWN: ClassVar[tuple[str, ...]] = ()
    LOAD_COUNTS: ClassVar[str] = "the work that this cluster can do"

    cluster: str = ""
    """File of the machines, TOML or CSV (docs/simple_cluster.md); empty: `num_servers` equal servers."""
    num_servers: int = 5
    """Servers of the default cluster, at least 1."""
    server: tuple[float, ...] = (8.0, 32.0, 2.0)
    """What each of them has: cores, GB of memory, GPUs; 0 or more, not all 0."""

    workload: str = "poisson"
    """Jobs: a generator such as bursty (job_distribution.py lists them), whose settings can then be given
    too, or real_trace (`trace_file`)."""
    workload_settings: Any = None
    """The generator's or the trace's own settings by name; None: its defaults."""
    load: float | None = 0.9
    """Load of this cluster's busiest resource (0.9 = 90 %), at most 1000. None: the workload's own rate."""
    train_loads: tuple[float, ...] = ()
    """Loads that blocks of training sequences have in turn, so that one policy learns them all; empty:
    `load`, which validation and test sequences always have."""
    train_servers: tuple[int, ...] = ()
    """Numbers of servers that blocks of training sequences have in turn, each with every one of the loads, so
    that one policy learns clusters of several sizes (network `pair_scorer`); empty: `num_servers`, which
    validation and test sequences always have."""
    num_jobs: int = 200
    """Jobs of an episode, at least 1."""

    num_job_slots: int = 10
    """Jobs that the agent can see, the first of the queue in its order; 1 to 10,000."""
    queue_order: Literal["arrival", "sjf", "priority"] = "sjf"
    """Order of the queue: first come; shortest estimate; largest urgency x (1 + wait / aging_time), where the
    urgency is the priority class (at least 1). Ties by arrival."""
    aging_time: float = 60.0
    """Wait after which the urgency of a job has doubled, in the workload's time (seconds); above 0."""
    wait_limit: float | None = None
    """A job that has waited longer goes next, whatever the policy says: while it stands first, nothing else
    starts and it may not be held; in the workload's time, 0 or more. None: no limit."""

    action: Literal["machine", "job_machine", "elastic"] = "machine"
    """What is chosen: a machine for the head of the queue; a visible job and its machine; a machine, a device
    and shares of cpu and memory for the head. Each may also wait."""
    mask: bool = True
    """Show which actions are legal; off: `action_mask` is True throughout, and illegal ones are learned."""
    illegal_penalty: float = -10.0
    """Reward for an action that isn't legal, which changes nothing; 0 or less."""
    allow_reject: bool = False
    """Let the agent turn a visible job away for good."""
    reject_penalty: float = -10.0
    """Reward for a job turned away; 0 or less."""
    min_share: float = 0.25
    """Elastic jobs get at least this share of the cpu and memory they ask for; above 0, below 1."""

    decide: Literal["when_possible", "every_event"] = "when_possible"
    """When a decision is due: where something else than waiting is legal, or at every arrival and finish."""
    wait_when_idle: bool = False
    """Let the agent wait beside a job that fits while nothing runs."""

    termination: Literal["all_done", "continuing"] = "all_done"
    """When an episode ends: all jobs are done; or it is cut off when its last job has arrived, as an excerpt
    of arrivals that never stop."""
    episode_max_decisions: int | None = None
    """Decisions after which an episode is cut off. None: ten times `num_jobs` and 100."""

    reward: str = "slowdown"
    """A preset (slowdown, batch, balanced, operations) or weights, as makespan=-1,utilisation=0.5."""
    slowdown_floor: float = 10.0
    """Duration below which slowdown counts a job as this long (tau), in the workload's time; above 0."""
    sla_factor: float = 3.0
    """Without a deadline a job should be done within so many times its estimate (at least the floor)."""
    waiting_rate: float = 0.1
    """Rate of the term waiting, 1 - exp(-rate x wait), per unit of the workload's time; above 0."""

    representation: Literal["slots", "state"] = "slots"
    """What is observed: structured and scaled, for networks; or complete and unscaled, for heuristics."""
    running_rows: int | None = None
    """Rows of `running` in `state`, one for each instance; beyond them the last to start are left out. None:
    `num_jobs`, or the cluster's whole cores (of its first resource, without cpu) where they are more."""
    show_allowed: bool = False
    """Show in `pairs` of `slots`, beside what the mask says, whether a job may run on a machine at all: for
    traces whose jobs name machines or models."""
    privileged: bool = False
    """While training, show the critic of `pair_scorer` what no scheduler knows: true run times and the jobs
    to come. Advantages are less noisy; the policy never sees it, evaluation doesn't have it."""
    history_time: float = 300.0
    """Time over which the observed load history is smoothed, in the workload's time; above 0."""
    rate_gaps: float = 5.0
    """Mean gaps between arrivals over which the observed arrival rate is smoothed; above 0."""
    burst_level: float = 2.0
    """Smoothed arrival rate, in multiples of the mean, from which it is a burst; above 0."""

    def __post_init__(self) -> None:
        """Refuse what can't be simulated, with the reason."""
        super().__post_init__()
        for name in ("num_servers", "num_jobs", "episode_max_decisions", "running_rows"):
            self.in_range(name, 1)
        self.in_range("num_job_slots", 1, 10_000)
        self.in_range("server", 0)
        self.check(
            len(self.server) == 3 and any(self.server),
            f"server is {self.server}; give cores, GB and GPUs, not all 0",
        )
        for name in (
            "aging_time", "slowdown_floor", "sla_factor", "waiting_rate", "history_time",
            "rate_gaps", "burst_level",
        ):  # fmt: skip
            self.in_range(name, 0, open_low=True)
        self.in_range("load", *LOADS)
        self.in_range("min_share", 0, 1, open_low=True, open_high=True)
        for name in ("illegal_penalty", "reject_penalty"):
            self.in_range(name, high=0)
        for load in self.train_loads:
            low, high = LOADS
            self.check(low <= load <= high, f"train_loads has {load:g}; each must be {low:g} to {high:g}")
        self.in_range("wait_limit", 0)
        for servers in self.train_servers:
            self.check(servers >= 1, f"train_servers has {servers}; every number must be at least 1")
        self._check_cluster()
        self._check_workload()
        weights_of(self.reward)

    def _check_cluster(self) -> None:
        usual = self.defaults()
        self.check(
            not self.cluster or (self.num_servers, self.server) == (usual["num_servers"], usual["server"]),
            "cluster is a file that says what machines there are; leave out num_servers and server",
        )
        self.check(
            not (self.cluster and self.train_servers),
            "cluster is a file that says what machines there are; leave out train_servers",
        )
        if self.cluster:
            # The run is evaluated and resumed from other folders too.
            object.__setattr__(self, "cluster", str(Path(self.cluster).expanduser().absolute()))

    def _check_workload(self) -> None:
        own = generator_settings(self.workload)
        self.check(
            own is not None,
            f"workload {self.workload} counts DeepRM's steps and units; use --env deeprm, or a workload "
            "such as poisson",
        )
        object.__setattr__(self, "workload_settings", made(own, self.workload_settings))
        self.check(
            self.workload != TRACE or self.workload_settings.trace_file,
            f"workload {TRACE} needs a file; give --trace FILE (trace_file)",
        )
        theirs, usual = self.workload_settings.to_dict(), own.defaults()
        if self.workload == TRACE:
            self.check(
                not theirs["capacity"],
                "capacity has no effect on simple_cluster: its machines say what there is; give them: "
                "cluster FILE, or num_servers and server",
            )
        elif "capacity" in usual:
            self.check(
                theirs["capacity"] == list(usual["capacity"]) or self.load is None,
                f"capacity of {self.workload} has no effect here; the cluster says what there is",
            )
        if self.load is not None and theirs.get("arrival_rate") != usual.get("arrival_rate"):
            raise UserError("load and arrival_rate are both given; keep one of them (load none)")
        self._check_load()

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes`; a name of the chosen workload's own settings changes those.

        `workload_settings` as a mapping is laid over what is there; another workload starts from its
        defaults; `trace_file` alone chooses real_trace.
        """
        changes, workload = self._named(changes)
        if workload != self.workload:
            changes = {"workload_settings": None, "workload": workload} | changes
        if workload not in OWN:
            changes = self._seated(workload, generator_settings(workload), changes)
        return super().replace(**changes)

    def as_played(self, representation: str) -> Self:
        """Return the settings under which a policy is evaluated: nobody is shown what is privileged."""
        return self.replace(representation=representation, privileged=False)

    def data(self) -> dict[str, str]:
        """Return path -> SHA-256 of the files that the jobs and the machines come from.

        Raises:
            UserError: a file can't be read.
        """
        found = super().data()
        if self.cluster:
            try:
                found[self.cluster] = hashlib.sha256(Path(self.cluster).read_bytes()).hexdigest()
            except OSError as error:
                raise UserError(f"can't read the cluster {self.cluster}: {error.strerror}") from None
        return found

    def described(self) -> list[str]:
        """Say in a few lines what comes and to what machines.

        Raises:
            UserError: none of the jobs can run here, or a file can't be read.
        """
        from .jobs import described

        return described(self)

    def declares(self) -> tuple[Declared, ...]:
        """Return what is shown of the future by design, but for what jobs' estimates tell (`told_of`)."""
        found = [Declared(RUN_TIMES, REWARDS, (SLOWDOWN_TERM,), "rewards are made of true run times")]
        ends, text = self.termination != "continuing", "how many of its jobs are still to come"
        if ends and self.representation == "slots":
            column = JOBS_TO_COME
            found.append(Declared(NUMBER_OF_JOBS, "backlog", (column,), f"{text} (backlog, column {column})"))
        if ends and self.wait_when_idle:
            text = "whether jobs are still to come (the mask of waiting on an idle cluster)"
            found.append(Declared(NUMBER_OF_JOBS, "action_mask", (), text))
        if self.workload == TRACE and self.load is not None:
            text = "how much work its part of the trace is (arrivals are scaled to the load)"
            found.append(Declared(LOAD, PREPARATION, (), text))
        return tuple(found)

    def scales(self) -> dict[str, Any]:
        """Return what times are measured in while a policy learns under these settings, by name.

        Raises:
            UserError: none of the jobs can run here, or a file can't be read.
        """
        from .drawing import files_of, measured

        largest = self.replace(num_servers=max(self.train_servers)) if self.train_servers else self
        return measured(largest, files_of(largest))[1]._asdict()

    def summary(self) -> str:
        """Describe the environment in a line."""
        where = Path(self.cluster).name if self.cluster else f"{self.num_servers} servers"
        how_much = "at its own rate" if self.load is None else f"at load {self.load:.0%}"
        return (
            f"{where}, {self.num_jobs} jobs of {self.workload} {how_much}, action {self.action} "
            f"({self.num_job_slots} jobs seen in {self.queue_order} order), reward {self.reward}, ends "
            f"{self.termination}"
        )

    @property
    def max_decisions(self) -> int:
        """Decisions after which an episode is cut off."""
        return self.episode_max_decisions or 10 * self.num_jobs + 100


PRESETS: dict[str, dict[str, Any]] = {
    "cluster": {"action": "job_machine"},  # and each algorithm's own settings for it
    # On top of it, for a2c, a3c and ppo: what it gains is in docs/algorithms/ppo.md.
    "cluster-privileged": {"privileged": True},
    # One policy for clusters of several sizes: as many jobs as keep the largest one busy for a while.
    "cluster-sizes": {
        "num_servers": 20,
        "train_servers": (5, 10, 20),
        "load": 1.2,
        "train_loads": (0.7, 0.9, 1.2),
        "num_jobs": 800,
    },
    # The kinds of jobs of docs/choosing.md; each trains and measures on its own jobs.
    "cluster-steady": {"termination": "continuing"},
    "cluster-bursty": {"workload": "bursty", "workload_settings": {"burst_gaps": 20.0}},
    "cluster-pareto": {"workload": "poisson", "workload_settings": {"durations": "pareto"}},
    "cluster-noisy": {"workload": "poisson", "workload_settings": {"estimates": "noise:1"}},
}


def chosen(
    settings: SimpleClusterSettings | None,
    preset: str | None,
    overrides: dict[str, Any],
    workload: Any = None,
) -> SimpleClusterSettings:
    """Lay a preset and single overrides over the settings given, or over the defaults.

    `workload` is an override too where it is a name; jobs themselves are no setting.

    Raises:
        UserError: an unknown name (the nearest are listed), or a value refused.
    """
    if isinstance(workload, str):
        overrides = {"workload": workload} | overrides
    return (
        (settings or SimpleClusterSettings()).replace(**preset_values(preset, PRESETS)).replace(**overrides)
    )
