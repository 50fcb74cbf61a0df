"""Print the manifests of a training job: manifests.yaml filled in from values.toml.

python deploy/train/render.py [name=value ...] | kubectl apply -f -
"""

from __future__ import annotations

import json
import shlex
import string
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def values(changes: list[str]) -> dict[str, Any]:
    """Return the values with `name=value` changes.

    Raises:
        SystemExit: an unknown name, or a number that is none.
    """
    found: dict[str, Any] = tomllib.loads((HERE / "values.toml").read_text())
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or name not in found:
            raise SystemExit(f"error: {change!r}: give name=value, name one of {', '.join(found)}")
        try:
            found[name] = type(found[name])(text)
        except ValueError:
            raise SystemExit(f"error: {name} must be a whole number, got {text!r}") from None
    if found["workers"] < 1 or found["gpus"] not in (0, 1):
        raise SystemExit("error: workers must be at least 1, gpus 0 or 1 (one worker, one replica)")
    return found


def manifests(changes: list[str]) -> str:
    """Return the manifests as YAML."""
    found = values(changes)
    folder = found["folder"]
    if not folder.startswith("/checkpoints/"):
        raise SystemExit(f"error: folder is {folder!r}; it must be under /checkpoints, where the volume is")
    storage_class = found["storage_class"]
    more = {
        "min_available": max(0, found["workers"] - 1),
        "arguments_list": json.dumps(shlex.split(found["arguments"])),
        "gpu_request": f", nvidia.com/gpu: {found['gpus']}" if found["gpus"] else "",
        "storage_class_line": f"storageClassName: {storage_class}" if storage_class else "",
    }
    return string.Template((HERE / "manifests.yaml").read_text()).substitute(found | more, NAME="$NAME")


if __name__ == "__main__":
    print(manifests(sys.argv[1:]))
