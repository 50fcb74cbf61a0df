"""Print the manifests of a training job: manifests.yaml filled in from values.toml.

python deploy/train/render.py [name=value ...] | kubectl apply -f -
"""

from __future__ import annotations

import json
import re
import shlex
import string
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LABEL = r"[a-z]([-a-z0-9]{0,48}[a-z0-9])?"
QUANTITY = r"[0-9]{1,15}(\.[0-9]{1,3})?(m|[kMGTPE]i?)?"
RULES: dict[str, tuple[str, str]] = {
    "name": (LABEL, "at most 50 small letters, digits and -, a letter first"),  # of pods, -INDEX behind it
    "namespace": (LABEL, "at most 50 small letters, digits and -, a letter first"),
    "image": (r"[A-Za-z0-9][\w.:/@-]{0,254}", "an image's reference, as registry.example/schedrl-train:1"),
    "cpu": (QUANTITY, "a quantity of Kubernetes, as 2 or 500m"),
    "memory": (QUANTITY, "a quantity of Kubernetes, as 4Gi"),
    "storage": (QUANTITY, "a quantity of Kubernetes, as 10Gi"),
    "storage_class": (r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?", "the name of a storage class, or empty"),
    "folder": (r"/checkpoints(/[\w-][\w.-]*)+", "a folder under /checkpoints, where the volume is"),
}
"""What a text must be, whole; nothing of it has a meaning in YAML."""
BOUNDS = {
    "workers": (1, 1000),
    "port": (1024, 65535),  # below it takes a right that the container doesn't have
    "gpus": (0, 1),  # one worker, one replica
    "grace_seconds": (1, 86_400),
    "backoff_limit": (0, 10_000),
    "start_timeout": (1, 86_400),
}


def values(changes: list[str]) -> dict[str, Any]:
    """Return the values with `name=value` changes.

    Raises:
        SystemExit: an unknown name, or a value that can't be.
    """
    found = read_values()
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or name not in found:
            raise SystemExit(f"error: {change!r:.200}: give name=value, name one of {', '.join(found)}")
        found[name] = text if name not in BOUNDS else whole(name, text)
    for name, value in found.items():
        require(name, value)
    return found


def read_values() -> dict[str, Any]:
    """Return what stands in values.toml; all of it is needed.

    Raises:
        SystemExit: a name is missing or not known, or the file is no TOML.
    """
    try:
        found: dict[str, Any] = tomllib.loads((HERE / "values.toml").read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: values.toml can't be read: {error}") from None
    needed = {*RULES, *BOUNDS, "arguments"}
    if missing := needed - found.keys():
        raise SystemExit(f"error: values.toml lacks {', '.join(sorted(missing))}")
    if unknown := found.keys() - needed:
        raise SystemExit(f"error: values.toml has {', '.join(sorted(unknown))}, which nothing uses")
    return found


def whole(name: str, text: str) -> int:
    """Return a whole number."""
    if not re.fullmatch("-?[0-9]{1,9}", text):
        raise SystemExit(f"error: {name} must be a whole number, got {text!r:.200}")
    return int(text)


def require(name: str, value: Any) -> None:
    """End with an error where a value can't be."""
    if name in BOUNDS:
        low, high = BOUNDS[name]
        if type(value) is not int or not low <= value <= high:
            raise SystemExit(f"error: {name} is {value!r:.200}; it must be a whole number, {low} to {high}")
        return
    if not isinstance(value, str):
        raise SystemExit(f"error: {name} is {value!r:.200}; it must be a text")
    if name in RULES:
        form, meaning = RULES[name]
        if not re.fullmatch(form, value, re.ASCII):
            raise SystemExit(f"error: {name} is {value!r:.200}; it must be {meaning}")


def arguments_of(text: str) -> list[str]:
    """Return the launcher's arguments, parted as a shell does."""
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise SystemExit(f"error: arguments: {error}: {text!r:.200}") from None
    # Kubernetes puts variables in the place of $(NAME); $$ is a plain $.
    return [part.replace("$", "$$") for part in parts]


def manifests(changes: list[str]) -> str:
    """Return the manifests as YAML."""
    found = values(changes)
    storage_class = found["storage_class"]
    more = {
        "min_available": max(0, found["workers"] - 1),
        "arguments_list": json.dumps(arguments_of(found["arguments"])),  # JSON is YAML
        "gpu_request": f", nvidia.com/gpu: {found['gpus']}" if found["gpus"] else "",
        "storage_class_line": f'storageClassName: "{storage_class}"' if storage_class else "",
    }
    return string.Template((HERE / "manifests.yaml").read_text()).substitute(found | more, NAME="$NAME")


if __name__ == "__main__":
    print(manifests(sys.argv[1:]))
