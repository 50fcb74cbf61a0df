"""Pods of a Kubernetes cluster: what `kubectl get pods --all-namespaces -o json` prints.

A pod is a job of one instance. It holds its requests from the moment at which it was given a node (the
condition PodScheduled; else its own start) until the last of its containers has finished. Requests are those
by which Kubernetes places: containers together, or one of the init containers if it alone asks for more;
init containers that run on (restartPolicy Always) and the overhead come on top. The estimate is
`activeDeadlineSeconds`, where stated: a limit, as users' run times are. The user is the namespace.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.quantities import quantity
from schedrl.workload.readers.build import Columns, build
from schedrl.workload.readers.parsing.json_text import documents, json_text
from schedrl.workload.readers.parsing.source import Source
from schedrl.workload.readers.recognise import Head
from schedrl.workload.readers.rejected import Rejected
from schedrl.workload.types import Resource, Workload

TITLE = "pods of Kubernetes (kubectl get pods -o json)"
SOURCE = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1"
OPTIONS = ()
ENDED = ("Succeeded", "Failed")
GIB = 2.0**30


class _Pod(NamedTuple):
    """A job."""

    place: int
    name: str
    user: str
    created: float
    start: float
    finish: float
    estimate: float
    priority: float
    node: str
    owner: str
    selector: str
    requests: Mapping[str, Decimal]


class _Broken(Exception):
    """A pod that can't be used: reason and detail."""


def recognises(head: Head) -> bool:
    """Whether a file is JSON of Kubernetes: a list, or pods one after another."""
    text = head.text.lstrip()
    held = '"items"' in text or re.search(r'"kind"\s*:\s*"Pod"', text)
    return text.startswith(("{", "[")) and '"apiVersion"' in text and '"kind"' in text and bool(held)


def read(source: Source, rejected: Rejected, *, lenient: bool = False) -> Workload:
    """Read the pods that have ended; resources are `cpu` [cores], `memory` [GiB], `gpu` and other devices.

    Args:
        source: the file.
        rejected: collects pods that can't be used.
        lenient: keep the first of pods that contradict each other.

    Raises:
        UserError: no JSON, no list of pods, or no usable pod.
    """
    rejected.place = "entry"
    pods = []
    for place, item in enumerate(_items(source), 1):
        try:
            pods.append(_pod(place, item))
        except _Broken as broken:
            reason, detail = broken.args
            rejected.add(reason, place, [_name(item)], [detail], measured=reason == "never_ran")
    if not pods:
        raise rejected.nothing_left(source.path, "Only pods that have ended are jobs")
    first = min(pod.created for pod in pods)
    asked = _asked(pods)
    return build(
        Columns(
            line=np.array([pod.place for pod in pods]),
            id=np.array([pod.name for pod in pods], object),
            user=np.array([pod.user for pod in pods], object),
            arrival=np.array([pod.created - first for pod in pods]),
            duration=np.array([pod.finish - pod.start for pod in pods]),
            demand=np.column_stack(list(asked.values())),
            estimate=np.array([pod.estimate for pod in pods]),
            priority=np.array([pod.priority for pod in pods]),
            recorded_start=np.array([pod.start - first for pod in pods]),
            recorded_finish=np.array([pod.finish - first for pod in pods]),
            resources=[Resource(name, UNITS.get(name, "units")) for name in asked],
            about={"UnixStartTime": f"{first:.15g}", "TimeZoneString": "UTC"},
            extra={
                "node": np.array([pod.node for pod in pods], object),
                "owner": np.array([pod.owner for pod in pods], object),
                "node_selector": np.array([pod.selector for pod in pods], object),
            },
        ),
        rejected,
        lenient,
    )


UNITS = {"cpu": "cores", "memory": "GiB", "gpu": "gpus"}


def _asked(pods: list[_Pod]) -> dict[str, np.ndarray]:
    """Return resource -> amounts [n], NaN where a pod doesn't state it; `cpu` and `memory` first."""
    names = Counter(name for pod in pods for name in pod.requests)
    ordered = [*("cpu", "memory"), *sorted(set(names) - {"cpu", "memory"})]
    columns = {
        name: np.array([float(pod.requests.get(name, Decimal("NaN"))) for pod in pods]) for name in ordered
    }
    columns["memory"] = columns["memory"] / GIB
    return {name: column for name, column in columns.items() if names[name] or name == "cpu"}


def _items(source: Source) -> list[Any]:
    """Return the pods of a file: of lists (`kubectl get pods`), single ones, or one after another (`jq`)."""
    items: list[Any] = []
    for held in documents(source):
        if isinstance(held, dict):
            held = held.get("items") if held.get("kind") != "Pod" else [held]
        if not isinstance(held, list):
            raise UserError(
                f"{source.path} is JSON without a list of pods; print it: kubectl get pods -o json"
            )
        items += held
    return items


def _name(item: Any) -> str:
    meta = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(meta, dict):
        return ""
    return "/".join(filter(None, (json_text(meta.get("namespace")), json_text(meta.get("name")))))


def _pod(place: int, item: Any) -> _Pod:
    """Read a pod, or say why it is no job."""
    if not isinstance(item, dict) or item.get("kind", "Pod") != "Pod":
        raise _Broken("no_object", f"of kind {item.get('kind')!r:.60}" if isinstance(item, dict) else "")
    meta, spec, status = (_table(item, name) for name in ("metadata", "spec", "status"))
    phase = json_text(status.get("phase"))
    containers = _tables(status, "containerStatuses")
    start = _start(status, containers)
    if phase not in ENDED:
        reason = "never_ran" if phase == "Pending" and not spec.get("nodeName") else "unfinished"
        raise _Broken(reason, phase or "no phase")
    ends = [_moment(_ended(container).get("finishedAt")) for container in containers]
    if math.isnan(start) or not ends:
        raise _Broken("never_ran" if not ends and phase == "Failed" else "runtime_unknown", _why(status))
    if any(map(math.isnan, ends)):
        raise _Broken("runtime_unknown", "a container has no end")
    created = _moment(meta.get("creationTimestamp"))
    if math.isnan(created):
        raise _Broken("arrival_unknown", "no creationTimestamp")
    return _Pod(
        place,
        name=_name(item),
        user=json_text(meta.get("namespace")),
        created=created,
        start=start,
        finish=max(ends),
        estimate=_whole(spec.get("activeDeadlineSeconds"), math.nan),
        priority=_whole(spec.get("priority"), 0.0),
        node=json_text(spec.get("nodeName")),
        owner=next((json_text(owner.get("kind")) for owner in _tables(meta, "ownerReferences")), ""),
        selector=_selector(spec),
        requests=requests_of(spec),
    )


def _selector(spec: Mapping[str, Any]) -> str:
    """Return which nodes a pod requires, as its `nodeSelector` and node affinity say; empty: any."""
    stated = [_table(spec, "nodeSelector")]
    affinity = _table(_table(spec, "affinity"), "nodeAffinity")
    stated.append(_table(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
    return " ".join(json.dumps(part, sort_keys=True) for part in stated if part)


def requests_of(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what a pod's containers hold on a node, resource -> amount in cores, bytes and devices."""
    total: dict[str, Decimal] = _sum(_requests(c) for c in _tables(spec, "containers"))
    running: dict[str, Decimal] = {}  # init containers that run on, as far as they were started
    most: dict[str, Decimal] = {}
    for container in _tables(spec, "initContainers"):
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum((running, own))
            own = {}
        at_once = _sum((running, own))
        most = {
            name: max(most.get(name, Decimal(0)), at_once.get(name, Decimal(0))) for name in most | at_once
        }
    total = _sum((total, running))
    total |= {name: max(amount, total.get(name, Decimal(0))) for name, amount in most.items()}
    total |= _requests(spec)  # of the pod as a whole, where it states some (since Kubernetes 1.32)
    return _sum((total, _amounts(spec.get("overhead"), "overhead")))


def _requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    resources = _table(container, "resources")
    limits, requests = (_amounts(resources.get(name), name) for name in ("limits", "requests"))
    return limits | requests  # Kubernetes takes a limit for the request that isn't stated


def _amounts(held: Any, name: str) -> dict[str, Decimal]:
    if held is None:
        return {}
    if not isinstance(held, dict):
        raise _Broken("no_object", f"{name} is {held!r:.60}")
    found: dict[str, Decimal] = {}
    for key, value in held.items():
        if key in ("ephemeral-storage", "storage") or key.startswith(("hugepages-", "attachable-volumes-")):
            continue
        try:
            amount = quantity(value)
        except ValueError as error:
            raise _Broken("not_numeric", f"{key}: {error}") from None
        plain = "gpu" if key.endswith((".com/gpu", ".com/gpu.shared")) else key
        found[plain] = found.get(plain, Decimal(0)) + amount
    return found


def _sum(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _start(status: Mapping[str, Any], containers: list[Mapping[str, Any]]) -> float:
    """Return when it was given a node [s since 1970], NaN if that isn't told."""
    placed = [c for c in _tables(status, "conditions") if c.get("type") == "PodScheduled"]
    stated = [_moment(c.get("lastTransitionTime")) for c in placed if c.get("status") == "True"]
    stated += [_moment(status.get("startTime"))]
    stated += sorted(_moment(_ended(container).get("startedAt")) for container in containers)
    return next((moment for moment in stated if not math.isnan(moment)), math.nan)


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return _table(_table(container, "state"), "terminated")


def _why(status: Mapping[str, Any]) -> str:
    return json_text(status.get("reason")) or "no container of it ran"


def _table(held: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = held.get(name)
    if found is not None and not isinstance(found, dict):
        raise _Broken("no_object", f"{name} is {found!r:.60}")
    return found or {}


def _tables(held: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = held.get(name)
    if found is not None and not (isinstance(found, list) and all(isinstance(each, dict) for each in found)):
        raise _Broken("no_object", f"{name} is {found!r:.60}")
    return found or []


def _whole(value: Any, otherwise: float) -> float:
    return float(value) if type(value) is int and abs(value) < 2**53 else otherwise


def _moment(value: Any) -> float:
    """Return seconds since 1970 of RFC 3339, NaN if there is none."""
    if value is None or value == "":
        return math.nan
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError(value)
        return moment.timestamp()
    except (TypeError, ValueError, OverflowError):
        raise _Broken("not_numeric", f"{value!r:.60} is no time") from None
