"""The process that a user, or Kubernetes, starts: it begins the workers of this host, watches and restarts.

It never imports TensorFlow, so it can always end what hangs. Whatever fails ends the generation for all
hosts; the next one continues from the last checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from schedrl.launch.distributed import generations, meeting
from schedrl.launch.distributed.children import DONE, NUMERICS, PREEMPTED, REFUSED, Child
from schedrl.launch.distributed.cluster import Cluster, cluster_of
from schedrl.launch.distributed.generations import FAILED, FINAL, STOPPED, UNFIT, End, Generation
from schedrl.launch.distributed.meeting import folder_of
from schedrl.launch.distributed.namespace import Network
from schedrl.launch.distributed.worker import orders_for
from schedrl.launch.failures import disk_says
from schedrl.launch.interrupts import Interrupts
from schedrl.launch.local import announce, conclude, resume_command
from schedrl.launch.plan import Plan
from schedrl.launch.progress import Progress
from schedrl.launch.yardsticks import Yardsticks
from schedrl.learning.budget import Budget
from schedrl.learning.numpy_policy import load_policy
from schedrl.learning.run_folder import newest_checkpoint
from schedrl.learning.shards import number_of
from schedrl.settings import UserError, error_line
from schedrl.settings.guard import BAD_INPUT

LOOK = 0.1  # seconds
SETTLE = 5.0
"""Seconds to find the cause after a worker said that it had lost another."""
GRACE = 120.0
"""Seconds that workers have to finish an update and save, once asked to stop."""
ALL_DONE = End("done", "")


def run(plan: Plan) -> int:
    """Carry out the plan; return the exit code."""
    cluster = cluster_of(plan.launch, os.environ)
    progress = Progress(Budget.of(plan.algorithm))
    network = network_for(plan, cluster)
    announce(plan, progress)
    progress.say(described(cluster, network))
    with contextlib.closing(network), Interrupts(progress.say) as interrupts:
        interrupts.on_stop = lambda: None
        end = Supervisor(plan, cluster, progress, interrupts, network).live()
        interrupts.on_stop = None
        if end.kind == STOPPED:
            progress.say(f"{end.reason}; {how_to_go_on(plan, cluster)}")
            return interrupts.exit_code or PREEMPTED
        if end is not ALL_DONE:
            told = error_line(f"{end.reason}; {how_to_go_on(plan, cluster)}")
            print(f"error: {told}", file=sys.stderr)
            return BAD_INPUT if end.kind == UNFIT else 1
        if 0 in cluster.own:
            generations.forget(folder_of(plan))
            _conclude(plan, progress)
    return 0


class Supervisor:
    """Carries the workers of this host from generation to generation."""

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        progress: Progress,
        interrupts: Interrupts,
        network: Network,
    ):
        self._network = network
        self.plan, self.cluster, self.progress, self._interrupts = plan, cluster, progress, interrupts
        self.folder = folder_of(plan)
        self._children: list[Child] = []
        self._stopping: float | None = None

    @property
    def _asked_to_stop(self) -> bool:
        return bool(self._interrupts.exit_code)

    def live(self) -> End:
        """Return how the run ended: done, stopped or for good."""
        restarts, most = 0, self.plan.launch.max_restarts
        while True:
            end = self._one_generation()
            if end.kind != FAILED:
                return end
            if restarts == most:
                return End(FINAL, f"{end.reason}; given up after {most} restarts")
            restarts += 1
            newest = newest_checkpoint(self.folder)
            after = f"the checkpoint after {number_of(newest):,} decisions" if newest else "the beginning"
            self.progress.say(f"{end.reason}; all workers go on from {after} (restart {restarts} of {most})")

    def _one_generation(self) -> End:
        meeting.require_own_address(self.cluster)  # before a generation that goes on well is ended for this
        generation = generations.next_generation(self.folder, self.cluster.own)
        try:
            met = meeting.meet(generation, self.cluster, self.plan, lambda: self._asked_to_stop)
        except meeting.NotMet as missing:
            generation.end(FINAL, str(missing))
            return End(FINAL, str(missing))
        except UserError as error:
            generation.end(UNFIT, str(error))
            raise
        except Exception as error:
            generation.end(FINAL, str(error))
            if why := disk_says(error):
                return End(FINAL, f"can't write to {generation.folder}: {why}; make room")
            raise
        if met is None:
            generation.end(STOPPED, "a host was asked to stop")
            return End(STOPPED, "stopped before all workers had come")
        if isinstance(met, End):
            return self._one_generation() if met.kind == FAILED else met
        addresses = [entry["address"] for entry in met]
        orders = orders_for(self.plan, generation.number, met[0]["drawn"])
        try:
            for index in self.cluster.own:
                self._children.append(Child(index, addresses, orders, self._network.descriptors))
            return self._watch(generation, addresses)
        finally:
            for child in self._children:
                child.kill()
            self._children.clear()

    def _watch(self, generation: Generation, addresses: list[str]) -> End:
        """Return how a generation ended; its workers may still be there."""
        began, timeout = time.monotonic(), self.plan.launch.start_timeout
        while True:
            time.sleep(LOOK)
            if (end := self._look(generation)) is not None:
                return end
            if self._is_up:
                began = float("inf")
            elif time.monotonic() - began > timeout:
                return self._ended(generation, FAILED, self._not_started(addresses))

    def _look(self, generation: Generation) -> End | None:
        """Return how the generation ended, None while it goes on; pass on that it is to stop."""
        for child in self._children:
            child.listen()
        codes = [child.code for child in self._children]
        if all(code == DONE for code in codes):
            return ALL_DONE
        if all(code in (DONE, PREEMPTED) for code in codes):
            generation.end(STOPPED, "a worker was asked to stop")
            return End(STOPPED, self._saved())
        if any(code not in (None, DONE, PREEMPTED) for code in codes):
            return self._cause(generation)
        told = generation.ended()
        if told is not None and told.kind != STOPPED:
            return told
        # One that was asked before training has begun ends alone: the others would wait for it.
        alone = PREEMPTED in codes and not self._is_up
        if told is not None or self._asked_to_stop or alone:
            return self._stop(generation)
        return None

    def _stop(self, generation: Generation) -> End | None:
        """Ask the workers to save and go; end those that are not training yet, or that take too long."""
        now = time.monotonic()
        if not self._is_up or now - (self._stopping or now) > GRACE:
            generation.end(STOPPED, "a host was asked to stop")
            return End(STOPPED, f"ended without a new checkpoint; {self._saved()}")
        if self._stopping is None:
            self._stopping = now
            for child in self._children:
                child.ask_to_stop()
        return None

    @property
    def _is_up(self) -> bool:
        return all(child.up for child in self._children)

    def _cause(self, generation: Generation) -> End:
        """Find out who failed first: the others fail a moment later, because they lost it."""
        until = time.monotonic() + SETTLE
        while True:
            for child in self._children:
                child.listen()
            failed = [child for child in self._children if child.code not in (None, DONE, PREEMPTED)]
            causes = [child for child in failed if not child.echo]
            nobody_else = self.cluster.spawned and len(failed) == len(self._children)
            if causes or nobody_else or generation.ended() is not None or time.monotonic() > until:
                break
            time.sleep(LOOK)
        if not causes:
            silent = [child.index for child in self._children if child.code is None]
            if silent and len(self._children) > 1:
                who = " and ".join(f"worker {index}" for index in silent)
                return self._ended(generation, FAILED, f"{who} does not answer any more")
        cause = (causes or failed)[0]
        kind = FINAL if cause.code in (REFUSED, NUMERICS) else FAILED
        return self._ended(generation, kind, cause.reason)

    def _ended(self, generation: Generation, kind: str, reason: str) -> End:
        """Note the end; return the first reason that any host has noted."""
        generation.end(kind, reason)
        return generation.ended() or End(kind, reason)

    def _not_started(self, addresses: list[str]) -> str:
        waiting = f"the workers have not found each other within {self.plan.launch.start_timeout:g} s"
        there = [] if self._network.descriptors else addresses  # nobody but they can reach them there
        silent = [f"worker {addresses.index(a)} at {a}" for a in meeting.unreachable(there)]
        return f"{waiting}; no answer from {' and '.join(silent)}" if silent else waiting

    def _saved(self) -> str:
        newest = newest_checkpoint(self.folder)
        return f"saved after {number_of(newest):,} decisions" if newest else "nothing was saved yet"


OPEN = "TensorFlow's workers listen on all interfaces, and whoever reaches them can read and write your files"


def network_for(plan: Plan, cluster: Cluster) -> Network:
    """Return the network in which the workers of this host live: their own, where all are here.

    Raises:
        UserError: they would be reachable from outside, which nobody asked for.
    """
    if plan.launch.listen or not (cluster.spawned or cluster.on_loopback):
        return Network(private=False)
    advice = "where nobody else can reach the ports of this host, add --listen"
    if cluster.on_loopback:
        raise UserError(f"all workers are on this host, but {OPEN}: use --spawn {cluster.size}, or {advice}")
    try:
        return Network(private=True)
    except OSError as error:
        raise UserError(
            f"{OPEN}, and a network of their own can't be made here ({error}): {advice}"
        ) from None


def described(cluster: Cluster, network: Network) -> str:
    """Say who takes part, and who else could."""
    private = bool(network.descriptors)
    warning = "" if private else f". {OPEN}: let only the workers reach their ports (docs/running.md)"
    if cluster.spawned:
        where = "in a network of their own" if private else "on free ports"
        return f"{cluster.size} workers on this host, {where}; worker 0 reports{warning}"
    (own,) = cluster.own
    return f"worker {own} of {cluster.size}: {', '.join(cluster.addresses)}; worker 0 reports{warning}"


def how_to_go_on(plan: Plan, cluster: Cluster) -> str:
    """Say which command continues the run."""
    if newest_checkpoint(folder_of(plan)) is None:
        return "to try again: the same command"
    if cluster.spawned:
        return f"to go on: {resume_command(plan)} --mode distributed --spawn {cluster.size}"
    return "to go on: the same command with --resume on every host"


def _conclude(plan: Plan, progress: Progress) -> None:
    """Evaluate and draw what was trained, as in local mode."""
    policy, _ = load_policy(folder_of(plan))
    yardsticks = None if plan.launch.no_eval else Yardsticks(plan.launch.env, plan.environment)
    try:
        conclude(plan, policy, yardsticks, progress)
    finally:
        if yardsticks is not None:
            yardsticks.close()
