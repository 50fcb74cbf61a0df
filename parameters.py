"""Front door to the settings: what can be set, to what, what it means, and what other projects call it.

==============  ===================================================================================
Name            What it gives
==============  ===================================================================================
``classes``     every class of settings, by section: environments, algorithms, generators, evaluation
``find``        one setting by any of its names: ``find("num_nw")`` -> deeprm's ``num_job_slots``
``presets``     named sets of values, by section: ``--preset NAME`` on a command line
``GLOSSARY``    the original DeepRM's names, and earlier ports', -> ours
``ALIASES``     other spellings that command lines, TOML files and ``make`` accept -> ours
==============  ===================================================================================

``python parameters.py`` prints every setting with its default and meaning; ``python parameters.py ppo gamma``
only a section or a setting; ``--presets`` and ``--glossary`` print those. The settings live beside what they
set, each in a frozen dataclass with a docstring under each field (``schedrl/settings``); here they are only
gathered, lazily.
"""

import importlib
import inspect
import sys
import textwrap

from schedrl import registry
from schedrl.settings import ALIASES, LEGACY, Parser, Settings, UserError, main_guard, nearest, presets_of
from schedrl.settings.names import canonical
from schedrl.settings.values import describe, show
from schedrl.workload.generators import GENERATORS

__all__ = ["ALIASES", "GLOSSARY", "classes", "find", "presets"]

OTHERS = {
    "launch": "schedrl.launch.settings:LaunchSettings",
    "compare": "schedrl.launch.comparing.settings:CompareSettings",
    "replay": "schedrl.launch.replay.settings:ReplaySettings",
    "windows": "schedrl.evaluation.steady_state:Windows",
}
"""Section -> class of the settings that belong to no environment or algorithm."""

GLOSSARY = LEGACY | {
    "pa": "params",
    "job_wait": "job slots",
    "job_slot": "job slots",
    "job_backlog": "backlog",
    "avbl_slot": "free",
    "discount": "gamma",
    "void action": "no-op",
    "MoveOn": "no-op (time moves on)",
    "policy_gradient": "pg",
    "RL_brain": "model.py",
    "actor_critic_brain": "model.py",
    "run_script": "launcher.py",
    "pg_re": "--algo pg",
    "pg_su": "--algo pg --pretrain sjf",
}
"""Names in the original DeepRM and its earlier ports -> ours; flags among them are accepted as aliases."""


def classes() -> dict[str, type[Settings]]:
    """Return section -> class of settings: environments, algorithms, generators, the others; imports them."""
    found: dict[str, type[Settings]] = {}
    for kind in ("environment_settings", "algorithm_settings"):
        found |= {name: registry.get(kind, name) for name in registry.names(kind)}
    generators = {name: path for name, path in GENERATORS.items() if name not in found}
    for name, path in (OTHERS | generators).items():
        module, _, attribute = path.partition(":")
        found[name] = getattr(importlib.import_module(module), attribute)
    return found


def presets() -> dict[str, dict[str, dict[str, object]]]:
    """Return section -> preset -> the values that it sets; sections without presets are left out."""
    return {section: table for section, cls in classes().items() if (table := presets_of(cls))}


def find(name: str) -> dict[str, str]:
    """Return section -> our name for the setting called ``name``, in every section that has it.

    Raises:
        UserError: no section has it; the nearest names are listed.
    """
    every = classes()
    hits = {
        section: own for section, cls in every.items() if (own := canonical(name, cls.kinds())) in cls.kinds()
    }
    if not hits:
        known = set(every) | set(GLOSSARY) | {setting for cls in every.values() for setting in cls.kinds()}
        raise UserError(f"unknown setting {name!r}; nearest: {', '.join(nearest(name, known)) or 'none'}")
    return hits


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, 110, initial_indent=indent, subsequent_indent=indent)


def _print_settings(section: str, cls: type[Settings], only: set[str]) -> None:
    print(f"\n[{section}]  {cls.__module__}.{cls.__name__}: {(inspect.getdoc(cls) or '').splitlines()[0]}")
    docs, defaults = cls.field_docs(), cls.defaults()
    for name, kind in cls.kinds().items():
        if not only or name in only:
            print(f"  {name} = {show(defaults[name])}    ({describe(kind)})")
            print(_wrapped(docs[name], "      "))


def _print_table(title: str, rows: dict[str, str]) -> None:
    print(f"\n{title}")
    width = max(map(len, rows))
    for name, meaning in rows.items():
        print(f"  {name:{width}}  {meaning}")


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Print settings, presets or the glossary."""
    parser = Parser(description="Print every setting with its default and meaning.")
    parser.add_argument(
        "names", nargs="*", help="sections or settings to print, under any of their names; default all"
    )
    parser.add_argument("--presets", action="store_true", help="print the presets instead")
    parser.add_argument(
        "--glossary", action="store_true", help="print the names of the original DeepRM instead"
    )
    args = parser.parse_args(argv)
    if args.glossary:
        _print_table("Names of the original DeepRM and of earlier ports -> ours", GLOSSARY)
    elif args.presets:
        for section, table in presets().items():
            shown = {
                name: ", ".join(f"{k}={show(v)}" for k, v in values.items()) for name, values in table.items()
            }
            _print_table(f"[{section}] --preset", shown)
    else:
        every = classes()
        wanted: dict[str, set[str]] = {} if args.names else {section: set() for section in every}
        for name in args.names:
            for section, own in {name: ""}.items() if name in every else find(name).items():
                wanted.setdefault(section, set()).update({own} - {""})
        for section, only in wanted.items():
            _print_settings(section, every[section], only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
