"""Text, TOML and Python values to the type a setting is annotated with, and back.

Apart from ``base`` because it knows nothing of classes of settings: types in, values out. Accepted
annotations: bool, int, float, str, ``Literal``, unions of these (``int | None``, ``int | tuple[int, ...]``),
``tuple[X, ...]``, and a nested dataclass of switches (all fields bool), which is written as a list of the
names that are on.
"""

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any

from schedrl.settings.names import suggestion

LARGEST = 10**300
"""Whole numbers beyond it are no floats either: nothing here counts so far."""
MOST_SHOWN = 10
"""Items of a list that an error shows."""
LONGEST = 80
"""Characters of a text that an error shows."""
TRUE, FALSE, NONE = ("true", "1", "yes", "on"), ("false", "0", "no", "off"), ("none", "null")


class Mismatch(Exception):
    """The value is not of the wanted type; the text says what was wanted."""


def coerce(kind: Any, value: Any) -> Any:
    """Return ``value`` as the type ``kind``; text is parsed, exact conversions are made, others refused.

    Raises:
        Mismatch: the value can't be read as ``kind``.
    """
    origin = typing.get_origin(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(kind), value)
    if origin is typing.Literal:
        return _literal(typing.get_args(kind), value)
    if origin is tuple:
        return _tuple(typing.get_args(kind), value)
    if dataclasses.is_dataclass(kind):
        return _switches(kind, value)
    scalars: dict[Any, Callable[[Any], Any]] = {
        bool: _bool,
        int: _int,
        float: _float,
        str: _str,
        type(None): _none,
    }
    if kind not in scalars:
        raise TypeError(
            f"a setting can't have the type {kind!r}; see schedrl/settings/values.py for those that can"
        )
    return scalars[kind](value)


def describe(kind: Any) -> str:
    """Return the words for ``kind`` in help and errors, for example ``whole number or none``."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe(member) for member in typing.get_args(kind))
    if origin is typing.Literal:
        return "|".join(map(str, typing.get_args(kind)))
    if origin is tuple:
        return f"comma list of {describe(typing.get_args(kind)[0])}s"
    if dataclasses.is_dataclass(kind):
        return f"comma list of {', '.join(f.name for f in dataclasses.fields(kind))}; or all, or none"
    words = {bool: "True|False", int: "whole number", float: "number", str: "text", type(None): "none"}
    words[Any] = "table"
    return words.get(kind, getattr(kind, "__name__", str(kind)))


def plain(value: Any) -> Any:
    """Return ``value`` made of JSON's types only (tuples become lists, nested settings dicts)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def show(value: Any) -> str:
    """Return ``value`` as one would write it on a command line; ``coerce`` reads it back."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = [(f.name, getattr(value, f.name), f.default) for f in dataclasses.fields(value)]
        if all(isinstance(held, bool) for _, held, _ in pairs):
            return ",".join(name for name, held, _ in pairs if held) or "none"
        return " ".join(f"{name}={show(held)}" for name, held, usual in pairs if held != usual) or "defaults"
    if isinstance(value, (list, tuple)):
        return ",".join(map(show, value))
    return "none" if value is None else str(value)


def shown(value: Any) -> str:
    """Return ``value`` as errors show it: as ``show`` does, but short whatever it is.

    A TOML or JSON file may hold numbers of thousands of digits and tables nested a hundred deep.
    """
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        return f"a whole number of about {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, (list, tuple)):
        few = ["a list" if isinstance(item, (list, tuple)) else shown(item) for item in value[:MOST_SHOWN]]
        return ",".join(few) + (f",... ({len(value):,} in all)" if len(value) > MOST_SHOWN else "")
    text = show(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"


def _union(members: tuple[Any, ...], value: Any) -> Any:
    # None first, text last: "none" must not become a str where None is meant.
    for member in sorted(members, key=lambda m: (m is not type(None), m is str)):
        try:
            return coerce(member, value)
        except Mismatch:
            continue
    raise Mismatch(" or ".join(map(describe, members)))


def _literal(choices: tuple[Any, ...], value: Any) -> Any:
    for choice in choices:
        same_type = type(value) is type(choice) or isinstance(value, str)
        if same_type and str(value) == str(choice):
            return choice
    texts = [str(choice) for choice in choices]
    hint = suggestion(str(value), texts) if isinstance(value, str) else ""
    raise Mismatch("one of " + ", ".join(texts) + (f" ({hint})" if hint.startswith("nearest") else ""))


def _tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = [item.strip() for item in value.split(",") if item.strip()]
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise Mismatch(f"comma list of {describe(kinds[0])}s")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(coerce(kinds[0], item) for item in value)
    if len(value) != len(kinds):
        raise Mismatch(f"comma list of {len(kinds)} values")
    return tuple(coerce(kind, item) for kind, item in zip(kinds, value, strict=True))


def _switches(kind: Any, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    names = [field.name for field in dataclasses.fields(kind)]
    if isinstance(value, str):
        text = value.strip().lower()
        value = {"all": names, "none": [], "": []}.get(text, [item.strip() for item in text.split(",")])
    if not isinstance(value, dict):
        if not isinstance(value, (list, tuple)):
            raise Mismatch(describe(kind))
        value = {name if isinstance(name, str) else shown(name): True for name in value}
    for name in value:
        if name not in names:
            what = f"{shown(name)!r} is none of them"
            raise Mismatch(f"comma list of {', '.join(names)}; or all, or none ({what})")
    return kind(**{name: _bool(flag) for name, flag in value.items()})


def _bool(value: Any) -> bool:
    # type(...).__name__ also recognises NumPy's bool without importing NumPy.
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    text = value.strip().lower() if isinstance(value, str) else None
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise Mismatch("True or False")


def _int(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = _float(value, "whole number")  # "1e6" is a fair way to write a million steps
    whole = isinstance(value, numbers.Integral) or (
        isinstance(value, numbers.Real) and float(value).is_integer()
    )
    if not whole or isinstance(value, bool):
        raise Mismatch("whole number")
    if not -LARGEST <= value <= LARGEST:
        raise Mismatch(f"whole number of at most {len(str(LARGEST)) - 1} digits")
    return int(value)


def _float(value: Any, wanted: str = "number") -> float:
    if isinstance(value, bool) or not isinstance(value, (str, numbers.Real)):
        raise Mismatch(wanted)
    try:
        number = float(value)
    except (ValueError, OverflowError):  # OverflowError: a whole number beyond all floats
        raise Mismatch(wanted) from None
    if math.isnan(number):
        raise Mismatch(wanted)
    return number


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch("text")


def _none(value: Any) -> None:
    if value is None or (isinstance(value, str) and value.strip().lower() in NONE):
        return
    raise Mismatch("none")
