"""No dead settings: each is documented, shown by ``parameters.py``, read somewhere, and has an effect."""

import ast
import dataclasses

import pytest
from effects import EFFECTS, WITHOUT_EFFECT, another
from source import product

import parameters
from schedrl.envs.deeprm.settings import Quirks
from schedrl.settings import Settings

CLASSES = parameters.classes()
FIELDS = [(section, name) for section, cls in CLASSES.items() for name in cls.kinds()]


def names_read():
    """Collect every attribute that is read anywhere outside a class's own definition of settings."""
    read = set()
    for source in product():
        skipped = {
            id(inner)
            for outer in ast.walk(source.tree)
            if isinstance(outer, ast.FunctionDef) and outer.name == "__post_init__"
            for inner in ast.walk(outer)
        }
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in skipped:
                read.add(node.attr)
    return read


READ = names_read()


@pytest.mark.parametrize(("section", "name"), FIELDS)
def test_every_setting_is_documented(section, name):
    assert len(CLASSES[section].field_docs()[name]) > 10, (
        "write a docstring under the field: meaning, unit, range"
    )


@pytest.mark.parametrize(("section", "name"), FIELDS)
def test_every_setting_is_read(section, name):
    assert name in READ, f"{section}'s {name} is validated at most; read it or remove it"


def test_parameters_shows_every_class_of_settings():
    def bases(node):
        return {ast.unparse(base).split(".")[-1] for base in node.bases}

    defined = {}
    for source in product():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name] = bases(node)
    ours = {"Settings"}
    while grown := {name for name, parents in defined.items() if parents & ours} - ours:
        ours |= grown
    shown = {base.__name__ for cls in CLASSES.values() for base in cls.__mro__ if issubclass(base, Settings)}
    assert not ours - shown - {"Settings"}, "add the class to the registry or to parameters.OTHERS"


@pytest.mark.parametrize("section", CLASSES)
def test_defaults_and_presets_are_valid(section):
    cls = CLASSES[section]
    assert cls.from_dict(cls().to_dict()) == cls()
    for values in parameters.presets().get(section, {}).values():
        cls.from_dict(values)


@pytest.mark.parametrize(("section", "name"), [field for field in FIELDS if field[0] in EFFECTS])
def test_every_setting_changes_something(section, name):
    cls, result_of = CLASSES[section], EFFECTS[section]
    if (section, name) in WITHOUT_EFFECT:
        pytest.skip(WITHOUT_EFFECT[section, name])
    settings, changed = another(cls, name)
    assert result_of(settings) != result_of(changed), f"{name} had no effect"


@pytest.mark.parametrize("quirk", [field.name for field in dataclasses.fields(Quirks)])
def test_every_quirk_changes_something(quirk):
    crowded = {"allow_reservation": True, "mask": "physics", "idle_limit": None, "max_job_duration": 10}
    settings = CLASSES["deeprm"].from_dict(
        crowded | {"time_horizon": 11, "num_job_slots": 2, "backlog_size": 2}
    )
    assert EFFECTS["deeprm"](settings) != EFFECTS["deeprm"](settings.replace(quirks=quirk))


def test_what_has_no_effect_says_why():
    assert WITHOUT_EFFECT.keys() <= set(FIELDS)
    assert all(WITHOUT_EFFECT.values())
