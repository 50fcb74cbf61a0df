"""The files of deploy/train as a test sees them: loaded, filled in, and what a pod of the job is given."""

import importlib.util

import yaml


def module(root, name):
    """Return a script of deploy/train as a module."""
    spec = importlib.util.spec_from_file_location(name, root / "deploy" / "train" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def documents(render, *values):
    """Return the manifests by kind."""
    return {part["kind"]: part for part in yaml.safe_load_all(render.manifests(list(values)))}


def environment(render, index, *values, **changes):
    """Return the variables that Kubernetes gives the container of one pod, and its arguments."""
    job = documents(render, *values)["Job"]
    (trainer,) = job["spec"]["template"]["spec"]["containers"]
    named = {entry["name"]: entry["value"] for entry in trainer["env"]}
    return named | {"JOB_COMPLETION_INDEX": str(index)} | changes, trainer["args"]
