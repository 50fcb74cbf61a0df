"""Command lines generated from settings: parser, presets, ``--config file.toml``.

A command line is written so::

    @main_guard
    def main(argv: list[str] | None = None) -> int:
        parser = Parser(description="Train one algorithm.")
        add_arguments(parser, DeepRMSettings, PPOSettings)
        resolved = resolve([DeepRMSettings, PPOSettings], parser.parse_args(argv))
        env, ppo = resolved[DeepRMSettings], resolved[PPOSettings]

Order, weakest first: defaults, ``--preset``, ``--config``, the command line. A name that two classes share
is one flag and sets both. A TOML file holds settings at its top level, or in tables named as ``section`` says
(``[ppo]``); ``add_own_arguments`` gives a command line the same (``--ppo.gamma 0.99``).
"""

import argparse
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from schedrl.settings.base import Settings, UserError, one_of
from schedrl.settings.names import GONE, LEGACY_EXPERIMENTS, aliases_of, canonical, suggestion
from schedrl.settings.values import describe, show, shown

S = TypeVar("S", bound=Settings)
Presets = Mapping[str, Mapping[str, Any]]
NEGATIVE = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)
"""The beginning of a value (a number, or a list of them) that looks like an option."""
LARGEST_CONFIG = 1 << 20
"""Bytes of a --config file: more is another file, named by mistake."""


class Parser(argparse.ArgumentParser):
    """An ``ArgumentParser`` that raises ``UserError`` naming the nearest flags, and knows other spellings."""

    def __init__(self, **kwargs: Any) -> None:
        """Take ``ArgumentParser``'s arguments; abbreviations are off: they break when a flag is added."""
        super().__init__(**{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage: ``main_guard`` prints one line."""
        raise UserError(message)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all of ``args``.

        Raises:
            UserError: an unknown or malformed argument; unknown flags name the nearest ones.
        """
        parsed, extra = self.parse_known_args(args, namespace)
        if extra:
            raise UserError(self._unknown(extra[0].split("=")[0]))
        return parsed

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what is known of ``args``, in any of the spellings of ``schedrl.settings.names``."""
        return super().parse_known_args(self._spelled(sys.argv[1:] if args is None else args), namespace)

    def flags(self) -> set[str]:
        """Return every option string this parser knows."""
        return {option for action in self._actions for option in action.option_strings}

    def _spelled(self, args: Iterable[str]) -> list[str]:
        """Replace dashes and aliases by our names; ``--exp_type pg_re`` by its meaning."""
        known = {flag.removeprefix("--") for flag in self.flags() if flag.startswith("--")}
        spelled: list[str] = []
        for argument in args:
            name, equals, value = argument.removeprefix("--").partition("=")
            table, dot, own = name.partition(".")
            if spelled and spelled[-1] == "--exp_type" and "algo" in known and argument in LEGACY_EXPERIMENTS:
                spelled[-1:] = LEGACY_EXPERIMENTS[argument]
            elif argument.startswith("--") and dot:
                start = table.lower() + dot
                names = (flag.removeprefix(start) for flag in known if flag.startswith(start))
                spelled.append(f"--{start}{canonical(own, names)}{equals}{value}")
            elif argument.startswith("--") and name not in known:
                spelled.append(f"--{canonical(name, known)}{equals}{value}")
            elif NEGATIVE.match(argument) and spelled and spelled[-1].removeprefix("--") in known:
                spelled[-1] += f"={argument}"  # argparse takes -1e-3 for an option
            else:
                spelled.append(argument)
        return spelled

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument {argument!r}; options start with --, and --help lists them"
        name = argument.lstrip("-").replace("-", "_")
        if name in GONE:
            return f"{argument} has no counterpart here; {GONE[name]}"
        return f"unknown option {argument}; {suggestion('--' + name, self.flags() - {'-h'})}"


@dataclass(frozen=True)
class Resolved(Mapping[type[Settings], Settings]):
    """The settings of one command line, by class, and where each value that was given came from."""

    settings: Mapping[type[Settings], Settings]
    given: Mapping[type[Settings], Mapping[str, str]] = field(default_factory=dict)
    """Class -> name -> ``preset NAME``, the TOML file's name, or ``command line``; absent = default."""
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Name of a setting that is a table (see ``Guest``) -> what was given of it."""

    def __getitem__(self, cls: type[S]) -> S:
        """Return the settings of ``cls``."""
        return cast(S, self.settings[cls])

    def __iter__(self) -> Iterator[type[Settings]]:
        """Iterate over the classes."""
        return iter(self.settings)

    def __len__(self) -> int:
        """Count the classes."""
        return len(self.settings)

    def changes(self, cls: type[Settings]) -> dict[str, Any]:
        """Return only the given values of ``cls``, to lay over stored ones: ``stored.replace(**changes)``."""
        return {name: self.tables.get(name, getattr(self.settings[cls], name)) for name in self.given[cls]}


class Guest(NamedTuple):
    """A class whose settings are the value of one setting of another class, with flags of their own."""

    cls: type[Settings]
    host: type[Settings]
    name: str
    """The setting of ``host`` that holds them, of type Any."""
    flags: frozenset[str]
    """Names that are ``cls``'s on the command line; the others only as ``--section.name``."""
    choice: tuple[str, str]
    """The setting of ``host`` that brings ``cls``, and its value: ``("workload", "bursty")``."""
    base: Mapping[str, Any] = {}
    """Values below all that are given."""


def whole_number(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """Return the ``type`` of a flag outside of settings: a whole number from ``low`` to ``high``."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, got {value}")
        if value > high:
            raise argparse.ArgumentTypeError(f"must be at most {high:,}, got {text}")
        return value

    return read


def section(cls: type[Settings]) -> str:
    """Return the name of a class's table in TOML and its group in ``--help``: ``PPOSettings`` -> ``ppo``."""
    return cls.__name__.removesuffix("Settings").lower()


def presets_of(*classes: type[Settings]) -> dict[str, dict[str, Any]]:
    """Return the presets beside ``classes`` (``PRESETS`` of their modules); those of one name are joined."""
    joined: dict[str, dict[str, Any]] = {}
    for module in dict.fromkeys(cls.__module__ for cls in classes):
        for name, values in getattr(sys.modules[module], "PRESETS", {}).items():
            joined[name] = joined.get(name, {}) | dict(values)
    return joined


def preset_values(names: str | None, presets: Presets) -> dict[str, Any]:
    """Return the overrides of a preset, or of several (``a,b``; a later one wins); none for None.

    Raises:
        UserError: there is no such preset; the nearest are listed.
    """
    values: dict[str, Any] = {}
    for name in names.split(",") if names is not None else ():
        for key, value in presets[one_of("preset", name.strip(), presets)].items():
            # The table of a class ({"ppo": {...}}) is laid over what an earlier preset set there.
            values[key] = {**values.get(key, {}), **value} if isinstance(value, Mapping) else value
    return values


def add_arguments(
    parser: Parser, *classes: type[Settings], presets: Presets | None = None, without: Iterable[str] = ()
) -> None:
    """Add ``--preset``, ``--config`` and a flag for every field of ``classes`` that ``parser`` doesn't have.

    ``without`` names fields that get none; those of type Any have none. ``presets`` are by default those that
    ``presets_of(*classes)`` finds. Only flags that the user typed are in the parsed namespace, as text under
    the setting's name: ``resolve`` gives them their types.
    """
    presets = presets_of(*classes) if presets is None else presets
    taken, without = parser.flags(), set(without)
    if presets and "--preset" not in taken:
        parser.add_argument("--preset", metavar="NAME", help=f"one or more of: {', '.join(sorted(presets))}")
    if "--config" not in taken:
        parser.add_argument("--config", metavar="FILE", help="a TOML file of settings")
    for cls in classes:
        group = parser.add_argument_group(f"{section(cls)} settings")
        docs, defaults = cls.field_docs(), cls.defaults()
        for name, kind in cls.kinds().items():
            if f"--{name}" in taken or name in without or kind is Any:
                continue
            taken.add(f"--{name}")
            also = f"; also {', '.join(aliases_of(name))}" if aliases_of(name) else ""
            text = f"{docs[name]} [{describe(kind)}; default {show(defaults[name])}{also}]".replace("%", "%%")
            bare: dict[str, Any] = {"nargs": "?", "const": "True"} if kind is bool else {}
            group.add_argument(f"--{name}", default=argparse.SUPPRESS, metavar="X", help=text, **bare)


def add_own_arguments(parser: Parser, cls: type[Settings], without: Iterable[str] = ()) -> None:
    """Add ``--ppo.gamma`` for every field of one class but ``without``: it sets that class alone.

    ``--help`` doesn't list them: they repeat the flags that ``add_arguments`` gives to all classes.
    """
    for name, kind in cls.kinds().items():
        if name not in without:
            bare: dict[str, Any] = {"nargs": "?", "const": "True"} if kind is bool else {}
            options = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS, **bare}
            parser.add_argument(f"--{section(cls)}.{name}", **options)


def resolve(
    classes: Sequence[type[Settings]],
    args: argparse.Namespace,
    presets: Presets | None = None,
    ignored: Iterable[str] = (),
    guest: Guest | None = None,
) -> Resolved:
    """Lay presets, the TOML file and the command line over the defaults of ``classes``, and validate.

    ``ignored`` names tables that the TOML file may have and that are for something else; ``guest`` is a class
    beside ``classes`` (one of which is its host).

    Raises:
        UserError: unknown preset or name, unreadable file, or a value refused.
    """
    presets = presets_of(*classes) if presets is None else presets
    layers: list[tuple[str, dict[str, Any]]] = []
    if getattr(args, "preset", None) is not None:
        layers.append((f"preset {args.preset}", preset_values(args.preset, presets)))
    if getattr(args, "config", None) is not None:
        stored = {k: v for k, v in read_toml(args.config).items() if k not in set(ignored)}
        layers.append((Path(args.config).name, stored))
    everyone = [*classes, *([guest.cls] if guest else [])]
    layers.append(("command line", _typed(everyone, args)))
    values: dict[type[Settings], dict[str, Any]] = {cls: {} for cls in everyone}
    given: dict[type[Settings], dict[str, str]] = {cls: {} for cls in everyone}
    for source, layer in layers:
        for cls, name, value in _places(everyone, layer, source, guest):
            values[cls][name], given[cls][name] = value, source
    tables = _seated(guest, values, given) if guest else {}
    return Resolved({cls: cls.from_dict(values[cls]) for cls in classes}, given, tables)


def _seated(
    guest: Guest, values: dict[type[Settings], dict[str, Any]], given: dict[type[Settings], dict[str, str]]
) -> dict[str, dict[str, Any]]:
    """Put what was given of the guest into its host's values; return it by the setting's name."""
    own, host = values[guest.cls], values[guest.host]
    host.setdefault(*guest.choice)
    table = host.get(guest.name, {})
    if not isinstance(table, Mapping):
        raise UserError(f"{guest.name} is {shown(table)}; give a table of names and values")
    asked = {**table, **own}
    host[guest.name] = {**guest.base, **asked}
    if own:
        source = next(reversed(given[guest.cls].values()))
        given[guest.host].setdefault(guest.choice[0], source)
        given[guest.host][guest.name] = source
    return {guest.name: asked} if asked else {}


def _typed(classes: Sequence[type[Settings]], args: argparse.Namespace) -> dict[str, Any]:
    """Return what was typed, as a TOML file would hold it: ``--ppo.gamma`` stands in the table ``ppo``."""
    names = sorted({name for cls in classes for name in cls.kinds() if hasattr(args, name)})
    typed = {name: getattr(args, name) for name in names}
    for cls in classes:
        start = f"{section(cls)}."
        own = {name: getattr(args, start + name) for name in cls.kinds() if hasattr(args, start + name)}
        typed |= {section(cls): own} if own else {}
    return typed


def _places(
    classes: Sequence[type[Settings]], layer: Mapping[str, Any], source: str, guest: Guest | None = None
) -> Iterator[tuple[type[Settings], str, Any]]:
    """Yield (class, name, value) for all that ``layer`` sets; a class's own table after the top level."""
    hosts = [cls for cls in classes if guest is None or cls is not guest.cls]
    sections = {section(cls): cls for cls in classes}
    every = {name for cls in hosts for name in cls.kinds()} | (guest.flags if guest else frozenset())
    tables = []
    for name, value in layer.items():
        own = canonical(name, every)
        if guest and own in guest.flags and not source.startswith("preset "):
            yield guest.cls, own, value
        elif own in every:
            yield from ((cls, own, value) for cls in hosts if own in cls.kinds())
        elif isinstance(value, Mapping) and name in sections:
            tables.append((sections[name], value))
        else:
            raise UserError(
                f"{source}: unknown setting {shown(name)!r}; {suggestion(name, every | set(sections))}"
            )
    for cls, table in tables:
        for name, value in table.items():
            own = canonical(name, cls.kinds())
            one_of(f"setting in [{section(cls)}] of {source}", own, cls.kinds())
            yield cls, own, value


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the table in the TOML file ``path``.

    Raises:
        UserError: it can't be read, is no such file or isn't TOML.
    """
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise UserError(f"--config {path} is a folder; name a TOML file")
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device may never end
            raise UserError(f"--config {path} is no regular file; write the settings to a file and name that")
        if found.st_size > LARGEST_CONFIG:
            raise UserError(
                f"--config {path} has {found.st_size:,} bytes, at most {LARGEST_CONFIG:,} are read; name a "
                "TOML file of settings"
            )
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"can't read --config {path}: {error.strerror}") from None
    except UserError:
        raise
    except RecursionError:
        raise UserError(
            f"--config {path} is nested too deep; settings are names and values, at most two tables deep"
        ) from None
    except ValueError as error:  # not TOML, not UTF-8, or a whole number of thousands of digits
        raise UserError(f"--config {path} is not valid TOML: {error}") from None


def peek(argv: Iterable[str] | None, **defaults: str) -> argparse.Namespace:
    """Return what ``argv`` (or its ``--config`` file) says of a few names, before the parser can be built.

    ``peek(argv, algo="ppo", env="deeprm")`` tells which classes of settings the parser needs.
    """
    first = Parser(add_help=False)
    for name in ("config", *defaults):
        first.add_argument(f"--{name}")
    found, _ = first.parse_known_args(argv)
    stored = read_toml(found.config) if found.config is not None else {}
    places = [stored, *(table for table in stored.values() if isinstance(table, Mapping))]
    for name, default in defaults.items():
        if getattr(found, name) is None:
            value = next((place[name] for place in places if name in place), default)
            setattr(found, name, value if isinstance(value, str) else shown(value))
    return found
