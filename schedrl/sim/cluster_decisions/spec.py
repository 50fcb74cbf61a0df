"""What can be chosen about decisions, observations and rewards, as numbers that compiled functions read."""

from typing import NamedTuple

ARRIVAL_ORDER, SJF_ORDER, PRIORITY_ORDER = range(3)
QUEUE_ORDERS = {"arrival": ARRIVAL_ORDER, "sjf": SJF_ORDER, "priority": PRIORITY_ORDER}
"""First come, shortest estimate, or largest urgency x (1 + wait / aging_time) first; ties by arrival."""

ON_MACHINE, JOB_ON_MACHINE, ELASTIC = range(3)
ACTIONS = {"machine": ON_MACHINE, "job_machine": JOB_ON_MACHINE, "elastic": ELASTIC}
"""A machine for the head job; for a visible job; for the head job, with a device and shares."""

TERM_NAMES = (
    "slowdown",
    "completion_time",
    "makespan",
    "utilisation",
    "fragmentation",
    "sla",
    "waiting",
    "finished",
    "illegal",
    "rejected",
)
"""What rewards are made of; all but the last two have a weight."""
(
    SLOWDOWN,
    COMPLETION_TIME,
    MAKESPAN,
    UTILISATION,
    FRAGMENTATION,
    SLA,
    WAITING_TERM,
    FINISHED_TERM,
    ILLEGAL_TERM,
    REJECTED_TERM,
) = range(10)
WEIGHTED = TERM_NAMES[:8]

SLA_STEPS = ((0.0, 1.0), (0.5, 2.0), (1.0, 4.0))
"""Lateness beyond the limit, as a share of it, above which a job costs so much (the last that applies)."""


class Spec(NamedTuple):
    """One kind of environment; times in the workload's unit."""

    num_slots: int
    order: int
    action: int
    num_choices: int  # length of the mask of the discrete choice: places, rejections, wait
    num_devices: int  # device numbers to choose from under ELASTIC
    allow_reject: bool
    masked: bool
    every_event: bool  # decide at every event, not only where something can be done
    wait_when_idle: bool
    continuing: bool
    max_decisions: int
    aging_time: float
    wait_limit: float  # a job that waited longer goes next; infinite: none does
    illegal_penalty: float
    reject_penalty: float
    min_share: float
    cpu: int  # resources that ELASTIC gives shares of; -1: the cluster has none
    memory: int
    tau: float
    mean_gap: float
    mean_duration: float
    sla_factor: float
    waiting_rate: float
    history_time: float
    burst_time: float
    burst_level: float
    # Weights in the order of WEIGHTED.
    slowdown: float
    completion_time: float
    makespan: float
    utilisation: float
    fragmentation: float
    sla: float
    waiting: float
    finished: float
