"""Before TensorFlow starts: wait until the supervisors of all workers are there, and say who is missing.

Each supervisor writes its entry into the run's folder and listens where its worker will be. So "not started",
"not reachable" and "the folder is not the same on all hosts" can be told apart while nothing hangs yet.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from schedrl.launch.distributed.cluster import Cluster, is_loopback
from schedrl.launch.distributed.generations import End, Generation
from schedrl.launch.plan import Plan
from schedrl.settings import UserError

LOOK = 0.2  # seconds
TOKEN = re.compile("[0-9a-f]{16}")
SETTLE = 30.0
"""Seconds after which the entry of a host that answers must be there, at most half the start time-out: NFS
shows new files late, and an entry may be what an earlier start has left."""


class NotMet(Exception):
    """Not all workers came; the message says who is missing and why."""


def meet(
    generation: Generation, cluster: Cluster, plan: Plan, stopped: Callable[[], bool]
) -> list[dict[str, Any]] | End | None:
    """Enter, and wait for the others.

    Returns:
        The entries of all workers; or how the generation ended before that; None if `stopped()`.

    Raises:
        NotMet: not all came within the start time-out.
        UserError: another program listens at this worker's address, or the settings differ.
    """
    settings = digest_of(plan, cluster)
    if cluster.spawned:
        for index, port in zip(cluster.own, free_ports(cluster.size), strict=True):
            generation.enter(index, f"127.0.0.1:{port}", settings)
        return [generation.entry(index) or {} for index in cluster.own]
    (own,) = cluster.own
    with answering(cluster.addresses[own]) as token:
        generation.enter(own, cluster.addresses[own], settings)
        return _wait(generation, cluster, settings, token, (plan.launch.start_timeout, stopped))


def require_own_address(cluster: Cluster) -> None:
    """Raise `UserError` where another program listens; it may be this worker, started twice."""
    if not cluster.spawned:
        with answering(cluster.addresses[cluster.own[0]]):
            pass


def _wait(
    generation: Generation,
    cluster: Cluster,
    settings: str,
    token: str,
    limits: tuple[float, Callable[[], bool]],
) -> list[dict[str, Any]] | End | None:
    timeout, stopped = limits
    began, answered = time.monotonic(), float("inf")
    while not stopped():
        if (end := generation.ended()) is not None:
            return end
        entries = [generation.entry(index) for index in range(cluster.size)]
        there = [entry for entry in entries if entry is not None and entry["settings"] == settings]
        if len(there) == cluster.size:
            return there
        waited = time.monotonic() - began
        unfit = [i for i, entry in enumerate(entries) if entry is None or entry["settings"] != settings]
        alive = [i for i in unfit if ask(cluster.addresses[i]) not in ("", token)]
        answered = min(answered, waited) if alive else float("inf")
        if waited - answered >= min(SETTLE, timeout / 2):
            raise _unfit(alive[0], entries[alive[0]], cluster, generation)
        if waited >= timeout:
            who = " and ".join(_who(i, cluster) for i in unfit)
            raise NotMet(
                f"{who} did not come within {timeout:g} s: not started, not reachable, or with another "
                "--model_dir"
            )
        time.sleep(LOOK)
    return None


def _unfit(index: int, entry: Any, cluster: Cluster, generation: Generation) -> UserError:
    """Return what is wrong with a host that answers but has not entered as it should."""
    who = _who(index, cluster)
    if entry is None:
        return UserError(
            f"{who} is there, but its entry is not in {generation.folder}: --model_dir must be one folder "
            "that all hosts share"
        )
    return UserError(f"{who} was started with other settings; start all with the same ones")


def _who(index: int, cluster: Cluster) -> str:
    return f"worker {index} at {cluster.addresses[index]}"


def digest_of(plan: Plan, cluster: Cluster) -> str:
    """Return a short text that is equal where all that workers must agree on is."""
    agreed = [plan.launch.seed, plan.launch.checkpoint_every]  # saving is done by all at once
    what = [plan.described, agreed, cluster.addresses if not cluster.spawned else cluster.size]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:16]


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that nobody uses at the moment."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


@contextlib.contextmanager
def answering(address: str) -> Iterator[str]:
    """Listen at an address's port, give each who connects the token that is yielded, until the end.

    On the loopback alone where the address is that. Else on all interfaces: a pod behind a translated
    address, or a host whose file of names says 127.0.1.1, has no interface with the address that others use.
    """
    token, (host, _, port) = secrets.token_hex(8), address.rpartition(":")
    own, version6 = host.strip("[]") if is_loopback(address) else "", socket.has_ipv6 and "[" in host
    family = socket.AF_INET6 if version6 else socket.AF_INET
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(socket.create_server((own, int(port)), family=family))
        except OSError as error:
            raise UserError(
                f"can't listen at {address} ({error.strerror}): another program is there; end it or choose "
                "another port"
            ) from None
        over = threading.Event()
        server.settimeout(LOOK)

        def answer() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(token.encode())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield token
        finally:
            over.set()
            thread.join()


def ask(address: str, timeout: float = 1.0) -> str:
    """Return the token of the supervisor that listens at an address; empty where none answers."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout) as connection:
            connection.settimeout(timeout)
            found = connection.recv(64).decode("ascii", "replace")
    except OSError:
        return ""
    return found if TOKEN.fullmatch(found) else ""  # an old worker's TensorFlow greets otherwise


def unreachable(addresses: list[str], seconds: float = 1.0) -> list[str]:
    """Return the addresses at which nobody accepts a connection."""
    silent = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), seconds).close()
        except OSError:
            silent.append(address)
    return silent


def folder_of(plan: Plan) -> Path:
    """Return the run's folder, which a distributed run always has."""
    assert plan.folder is not None
    return plan.folder
