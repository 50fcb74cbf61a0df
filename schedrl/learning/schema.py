"""What JSON must look like: a check against a small declaration, before anybody reads from it.

Files of a run folder may have been changed by hands and disks. A reader that has checked them need not fear
that a table is a list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Shape = Any
"""A type or a tuple of types; a list of one shape (of every item); a mapping of names to shapes, in which a
name with a question mark may be missing and `*` stands for all other names. Names not listed are allowed."""
WORDS = {
    dict: "a table", list: "a list", str: "text", int: "a whole number", float: "a number",
    bool: "true or false", type(None): "null",
}  # fmt: skip


def fault(value: Any, shape: Shape, name: str = "") -> str | None:
    """Return in a few words where `value` isn't of the shape, None where it is."""
    if isinstance(shape, Mapping):
        return _fault_of_table(value, shape, name)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{name} is {_kind(value)}, not a list"
        found = (fault(item, shape[0], f"item {i} of {name}") for i, item in enumerate(value))
        return next(filter(None, found), None)
    kinds = shape if isinstance(shape, tuple) else (shape,)
    if not any(_is(value, kind) for kind in kinds):
        return f"{name} is {_kind(value)}, not {' or '.join(WORDS[kind] for kind in kinds)}"
    return None


def _fault_of_table(value: Any, shape: Mapping[str, Shape], name: str) -> str | None:
    if not isinstance(value, Mapping):
        return f"{name or 'its content'} is {_kind(value)}, not a table"
    within = f" of {name}" if name else ""
    for key, inner in shape.items():
        if key == "*":
            others = (fault(value[k], inner, f"{k[:80]}{within}") for k in value if k not in shape)
            if (found := next(filter(None, others), None)) is not None:
                return found
            continue
        own = key.removesuffix("?")
        if own not in value:
            if own == key:
                return f"{own}{within} is missing"
            continue
        if (found := fault(value[own], inner, own + within)) is not None:
            return found
    return None


def _is(value: Any, kind: type) -> bool:
    """Tell whether a value is of a kind: true is no number, and numbers are finite."""
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float) and abs(value) < math.inf
    return isinstance(value, kind)


def _kind(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "no finite number"
    return WORDS.get(type(value), type(value).__name__)
