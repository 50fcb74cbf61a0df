"""Who takes part in a distributed run: read from TF_CONFIG, the settings or `--spawn`, and checked.

TensorFlow itself waits without end for a worker that was named wrongly, so every mistake that can be seen
here is refused here, before it is imported.

Format of TF_CONFIG: https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple

from schedrl.launch.settings import LaunchSettings
from schedrl.settings import UserError

TASKS = ("chief", "worker")
NO_TASK = {
    "ps": "parameter servers are for asynchronous training",
    "evaluator": "the evaluation follows the training by itself",
}
"""Task types of TensorFlow that have no place here, and why."""


class Cluster(NamedTuple):
    """All workers, worker 0 (the chief) first, and which of them are started here."""

    addresses: tuple[str, ...]
    """host:port of each; empty texts where a free port of this host is taken (`--spawn`)."""
    own: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self.addresses)

    @property
    def spawned(self) -> bool:
        """Whether all are started on this host, on free ports."""
        return not all(self.addresses)

    @property
    def on_loopback(self) -> bool:
        """Whether all addresses that are named mean this host."""
        return not self.spawned and all(is_loopback(address) for address in self.addresses)


def is_loopback(address: str) -> bool:
    """Tell whether host:port names the loopback; a name that a DNS must answer for does not."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def cluster_of(launch: LaunchSettings, environ: Mapping[str, str]) -> Cluster:
    """Return the cluster that settings and environment variables name.

    Raises:
        UserError: they name none, name two, or one that can't be.
    """
    text = environ.get("TF_CONFIG", "")
    if launch.spawn:
        if launch.cluster_spec or text:
            other = "--cluster_spec" if launch.cluster_spec else "TF_CONFIG"
            raise UserError(
                f"--spawn {launch.spawn} starts workers on this host, but {other} names a cluster; give one"
            )
        return Cluster(("",) * launch.spawn, tuple(range(launch.spawn)))
    named = _of_settings(launch)
    found = _of_tf_config(text) if text else None
    if named and found and named != found:
        ours, theirs = (f"worker {c.own[0]} of {', '.join(c.addresses)}" for c in (named, found))
        raise UserError(f"--cluster_spec says {ours}, TF_CONFIG says {theirs}; leave one out")
    cluster = named or found
    if cluster is None:
        raise UserError(
            "--mode distributed needs to know its workers: give --cluster_spec host:port,host:port and "
            "--task_index, or set TF_CONFIG, or try it on this host with --spawn 2"
        )
    return cluster


def _of_settings(launch: LaunchSettings) -> Cluster | None:
    spec, index = launch.cluster_spec, launch.task_index
    if not spec:
        if index is not None:
            raise UserError(f"--task_index is {index}, but --cluster_spec is missing; give both")
        return None
    if index is None:
        raise UserError(f"--cluster_spec names {len(spec)} workers; say which one this is: --task_index 0")
    return _checked(spec, index, "--cluster_spec")


def _of_tf_config(text: str) -> Cluster:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise UserError(f"TF_CONFIG is not JSON ({error}): {_short(text)}") from None
    cluster, task = (_table(config, name, text) for name in ("cluster", "task"))
    for kind in cluster:
        if kind not in TASKS:
            why = NO_TASK.get(kind, "it is not known")
            raise UserError(f"TF_CONFIG's cluster has {kind!r}: {why}; name {' and '.join(TASKS)} only")
        if not isinstance(cluster[kind], list):
            raise UserError(f"TF_CONFIG's {kind} is {cluster[kind]!r}; it must be a list of host:port")
    kind, index = str(task.get("type")), task.get("index", "missing")
    if kind not in TASKS or kind not in cluster:
        raise UserError(
            f"TF_CONFIG's task is of type {kind!r}, its cluster has {', '.join(cluster) or 'nobody'}; name "
            "one of these"
        )
    if len(cluster.get("chief", ())) > 1:
        raise UserError(f"TF_CONFIG has {len(cluster['chief'])} chiefs; name one")
    _check_index(index, len(cluster[kind]), f"TF_CONFIG's task index of type {kind}")
    before = len(cluster.get("chief", ())) if kind == "worker" else 0
    return _checked([*cluster.get("chief", ()), *cluster.get("worker", ())], before + index, "TF_CONFIG")


def _table(config: Any, name: str, text: str) -> dict[str, Any]:
    if not isinstance(config, dict) or not isinstance(config.get(name), dict):
        raise UserError(
            f"TF_CONFIG has no {name!r}: {_short(text)}; it must be like "
            '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
        )
    return config[name]


def _checked(addresses: Any, index: Any, source: str) -> Cluster:
    for number, address in enumerate(addresses):
        host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
        whole = port.isascii() and port.isdigit() and 1 <= int(port) <= 65535
        if not (host and colon and whole) or any(c.isspace() or c == "/" for c in address):
            raise UserError(
                f"{source}: worker {number} is {address!r}; it must be host:port with a port from 1 to 65535"
            )
        if address in addresses[:number]:
            raise UserError(
                f"{source}: workers {addresses.index(address)} and {number} are both {address}; give each a "
                "port of its own"
            )
    _check_index(index, len(addresses), "--task_index" if source == "--cluster_spec" else source)
    return Cluster(tuple(addresses), (index,))


def _check_index(index: Any, size: int, what: str) -> None:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < size:
        workers = f"{size} worker{'' if size == 1 else 's'}"
        raise UserError(
            f"{what} is {index!r}, but there {'is' if size == 1 else 'are'} {workers}: 0..{size - 1}"
        )


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
