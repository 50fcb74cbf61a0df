"""The direction of imports (docs/design.md, "The tree"), and TensorFlow only where networks are."""

import pytest
from source import COMMAND_LINES, FRONT_DOORS, algorithms, product

LEAVES = {"settings", "policy", "registry"}
LAYERS = {
    "workload": set(),
    "sim": {"workload"},
    "envs": {"workload", "sim"},
    "heuristics": {"workload", "sim", "envs"},
    "evaluation": {"workload", "sim", "envs", "heuristics"},
    "learning": {"workload", "sim", "envs", "heuristics", "evaluation"},
    "launch": {"workload", "sim", "envs", "heuristics", "evaluation", "learning"},
    "serving": {"workload", "sim", "envs", "heuristics", "evaluation", "learning"},
}
"""Layer of schedrl -> the layers it may import besides itself and the leaves."""

HEAVY = ("tensorflow", "keras")
TENSORFLOW_LAYERS = {"learning", "launch", "serving"}
FRAMEWORKS = ("torch", "stable_baselines3", "sb3_contrib")


def imported(source, *, eager_only=False):
    return [(name, line) for name, line, eager in source.imports() if eager or not eager_only]


def layer(module):
    parts = module.split(".")
    return parts[1] if parts[0] == "schedrl" and len(parts) > 1 else None


@pytest.mark.parametrize("source", product(), ids=lambda s: s.path)
def test_imports_follow_the_direction_of_the_design(source):
    wrong = [
        f"{source.path}:{line} imports {name}" for name, line in imported(source) if not allowed(source, name)
    ]
    assert not wrong, "\n".join(wrong)


def allowed(source, name):
    """Tell whether ``source`` may import the module ``name``."""
    top = name.split(".")[0]
    own = source.module.split(".")[0]
    ours = {"schedrl", *FRONT_DOORS, *COMMAND_LINES, *algorithms()}
    if top not in ours or own in COMMAND_LINES:
        return True
    if own == "schedrl":
        return top == "schedrl" and layer_allowed(layer(source.module), layer(name))
    if own in FRONT_DOORS:
        return top == "schedrl"
    return top in {"schedrl", "environment", "job_distribution", own}


def layer_allowed(importer, target):
    if target not in LAYERS:
        return True  # a leaf, or the package itself
    if importer in LEAVES or importer is None:
        return False
    return target == importer or target in LAYERS[importer]


def test_every_part_of_schedrl_has_its_place():
    parts = {layer(source.module) for source in product()} - {None, "__init__"}
    assert parts <= LAYERS.keys() | LEAVES, "add the new part to LAYERS here and to docs/design.md"


@pytest.mark.parametrize("source", product(), ids=lambda s: s.path)
def test_tensorflow_is_imported_only_where_networks_are(source):
    at_home = layer(source.module) in TENSORFLOW_LAYERS or source.module.split(".")[0] in algorithms()
    uses = [
        f"{source.path}:{line} imports {name}"
        for name, line in imported(source)
        if name.split(".")[0] in HEAVY
    ]
    assert at_home or not uses, "\n".join(uses)


@pytest.mark.parametrize("source", product(), ids=lambda s: s.path)
def test_the_product_needs_no_peer_library(source):
    uses = [
        f"{source.path}:{line} imports {name}"
        for name, line in imported(source)
        if name.split(".")[0] in FRAMEWORKS
    ]
    assert not uses, "\n".join(uses)


def test_the_rules_themselves_can_fail():
    assert not layer_allowed("sim", "envs")
    assert not layer_allowed("settings", "sim")
    assert not layer_allowed("evaluation", "learning")
    assert layer_allowed("envs", "sim")
    assert layer_allowed("sim", "settings")
