"""One worker of a distributed run: `python -m schedrl.launch.distributed.worker`, started by a supervisor.

It joins the cluster before it does anything else with TensorFlow, makes sure that all are of the same
generation, and trains its share. Signals: SIGTERM asks all workers, through the next update, to save and end;
SIGINT is the supervisor's to handle.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedrl import registry
from schedrl.launch.distributed import namespace
from schedrl.launch.distributed.children import DONE, LOST, NUMERICS, PREEMPTED, REFUSED
from schedrl.launch.distributed.shares import share_of
from schedrl.launch.failures import disk_says
from schedrl.launch.local import make_env, require_learning, undone_if_refused
from schedrl.launch.plan import Plan
from schedrl.launch.progress import Progress, make_progress
from schedrl.launch.reward_terms import reward_lines
from schedrl.launch.settings import LaunchSettings
from schedrl.launch.validation import selection_of
from schedrl.learning.budget import Budget
from schedrl.learning.replicas import MirroredReplicas
from schedrl.learning.rollout import NumericsError
from schedrl.learning.run_folder import Run, newest_checkpoint
from schedrl.learning.shards import OthersFailed
from schedrl.learning.worker_processes import end_with_parent
from schedrl.settings import UserError
from schedrl.settings.claims import FolderLost

CONTACT = (
    "UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError", "InternalError",
    "UnknownError", "FailedPreconditionError",
)  # fmt: skip
"""What TensorFlow raises where another worker is gone; the rest, as no memory, is our own fault."""


class LostContact(Exception):
    """Another worker is gone, or was never one of ours."""


def main() -> int:
    """Carry out the orders; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = json.loads(sys.stdin.readline())
    namespace.enter(orders["network"])  # first: a change of identity forgets the parent-death signal
    end_with_parent(orders["supervisor"])
    tell = Teller(orders["pipe"])
    try:
        return train(plan_of(orders), orders, tell)
    except NumericsError as error:
        tell(reason=f"not a number: {error}")
        return NUMERICS
    except (UserError, OthersFailed, FolderLost) as error:
        tell(reason=str(error), echo=isinstance(error, OthersFailed))
        return REFUSED
    except Exception as error:
        if why := disk_says(error):  # TensorBoard's events are written by TensorFlow
            where = orders["folder"]
            tell(reason=f"can't write to {where}: {why}; no half-written file is left. Make room")
            return REFUSED
        if (lost := lost_contact(error)) is None:
            tell(reason=f"{type(error).__name__}: {error}".splitlines()[0])
            traceback.print_exc()
            return 1
        tell(reason=lost, echo=True)
        return LOST


class Teller:
    """Tells the supervisor through its pipe."""

    def __init__(self, pipe: int):
        self._pipe = pipe

    def __call__(self, **message: Any) -> None:
        """Send one message."""
        os.write(self._pipe, json.dumps(message).encode() + b"\n")


def orders_for(plan: Plan, number: int, drawn: int) -> dict[str, Any]:
    """Return what a worker is told, in JSON's types; `drawn` marks its generation beside the number."""
    return {
        "launch": plan.launch.to_dict(),
        "environment": plan.environment.to_dict(),
        "algorithm": plan.algorithm.to_dict(),
        "folder": str(plan.folder),
        "generation": [number, drawn],
    }


def plan_of(orders: Mapping[str, Any]) -> Plan:
    """Return the plan in the orders."""
    launch = LaunchSettings.from_dict(orders["launch"])
    settings = (
        registry.get("environment_settings", launch.env).from_dict(orders["environment"]),
        registry.get("algorithm_settings", launch.algo).from_dict(orders["algorithm"]),
    )
    return Plan(launch, *settings, Path(orders["folder"]))


def join(plan: Plan, orders: Mapping[str, Any]) -> MirroredReplicas:
    """Return the replicas, once all workers of this generation are connected.

    Raises:
        LostContact: a worker of another generation has come.
    """
    from schedrl.learning.tf_setup import muted_stderr, tensorflow

    tf = tensorflow(seed=plan.launch.seed, memory_growth=plan.launch.memory_growth)
    kinds = tf.distribute.experimental.CommunicationImplementation
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(own_gpu(gpus, orders["index"]), "GPU")
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=kinds.NCCL if gpus else kinds.RING
    )
    with muted_stderr():
        strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
        replicas = MirroredReplicas(strategy)
        generations = replicas.gather(orders["generation"])
    require_same_generation(generations.tolist(), orders["generation"])
    return replicas


def own_gpu(gpus: list[Any], index: int) -> list[Any]:
    """Return the one GPU of a worker: workers of one host take them in turn."""
    return [gpus[index % len(gpus)]] if gpus else []


def require_same_generation(generations: list[list[float]], own: list[int]) -> None:
    """Raise `LostContact` if a worker that has joined was told another generation than this one."""
    for index, found in enumerate(generations):
        if found != own:
            raise LostContact(f"worker {index} is of generation {found[0]:.0f}, this one of {own[0]}")


class Stop:
    """SIGTERM, from the first moment at which TensorFlow's own handler can be replaced."""

    def __init__(self) -> None:
        self.asked = False
        self.run: Run | None = None
        signal.signal(signal.SIGTERM, self._caught)

    def _caught(self, *_: Any) -> None:
        self.asked = True
        if self.run is not None:
            self.run.request_stop()

    def hand_to(self, run: Run) -> None:
        """Let the run end, now if it was asked already."""
        self.run = run
        if self.asked:
            run.request_stop()


def train(plan: Plan, orders: Mapping[str, Any], tell: Teller) -> int:
    """Train to the end of the budget or until a worker is asked to stop; return the exit code."""
    replicas = join(plan, orders)
    stop = Stop()
    tell(up=True)
    chief = replicas.index == 0
    assert plan.folder is not None
    budget = Budget.of(plan.algorithm)
    progress = make_progress(budget) if chief else Progress(budget, open(os.devnull, "w"))  # noqa: SIM115
    share = share_of(plan, replicas.index, replicas.count)
    progress.say(f"{replicas.count} workers are connected; preparing the simulator")
    env = make_env(share)
    resume = replicas.any(chief and newest_checkpoint(plan.folder) is not None)
    with undone_if_refused(plan.folder if chief else None):
        run = Run(
            budget,
            share.launch.seed,
            plan.folder,
            settings=plan.recorded,
            resume=resume,
            overwrite=not resume,
            checkpoint_every=plan.launch.checkpoint_every,
            accept_changes=plan.launch.accept_changes,
            say=progress.say,
            selection=selection_of(plan, progress.say) if chief else None,
            replicas=replicas,
        )
        stop.hand_to(run)
        for record in registry.get("algorithm", plan.launch.algo)(env, share.algorithm, run):
            require_learning(record)
            if not progress.updates:
                for line in reward_lines(env):
                    progress.say(line)
            progress.update(record, {})
    progress.close()
    part(replicas)
    return PREEMPTED if run.stopped else DONE


def part(replicas: MirroredReplicas) -> None:
    """Leave no worker alone before all have finished: one that ends early fails the others."""
    replicas.any(False)  # passed by all only when all are done, the chief with its files
    try:
        replicas.any(False)  # passed by the first only when all have passed the one before
    except Exception as error:
        if lost_contact(error) is None:
            raise
    time.sleep(0.2)


def lost_contact(error: Exception) -> str | None:
    """Return what to say if the error comes of another worker's end, None if it is our own."""
    if isinstance(error, LostContact):
        return str(error)
    from schedrl.learning.tf_setup import tensorflow

    errors = tensorflow().errors
    if isinstance(error, tuple(getattr(errors, name) for name in CONTACT)):
        return f"lost contact with another worker ({type(error).__name__})"
    return None


if __name__ == "__main__":
    try:
        exit_code = main()
    except BaseException:
        traceback.print_exc()
        exit_code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)  # at a usual exit TensorFlow waits for all others, however they fare
