"""``Settings``: a frozen dataclass whose fields are typed, documented and validated; and ``UserError``.

A class of settings reads as its own manual, after CleanRL and PyJobShop::

    @dataclass(frozen=True)
    class PPOSettings(Settings):
        clip_epsilon: float = 0.2
        \"\"\"Largest change of a probability ratio in one update (PPO paper, eq. 7); above 0.\"\"\"

        def __post_init__(self) -> None:
            super().__post_init__()
            self.in_range("clip_epsilon", 0, 1, open_low=True)
"""

import ast
import dataclasses
import functools
import inspect
import math
import sys
import textwrap
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from schedrl.settings import values as _values
from schedrl.settings.names import canonical, suggestion


class UserError(ValueError):
    """A mistake of the user's: the text names the value, the limit and the remedy, in one line.

    Every command line prints it as ``error: ...`` and exits with 2 (``main_guard``).
    """


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is among ``choices``.

    Raises:
        UserError: it is not; the message lists the nearest choices. ``name`` says what was looked up.
    """
    choices = list(choices)
    if value not in choices:
        raise UserError(
            f"unknown {name} {_values.shown(value)!r}; {suggestion(_values.shown(value), choices)}"
        )
    return value


@dataclass(frozen=True)
class Settings:
    """Base of every class of settings; its fields hold values of their annotated types once constructed.

    A subclass that validates defines ``__post_init__`` and calls ``super().__post_init__()`` first.
    """

    def __post_init__(self) -> None:
        """Bring every field to its annotated type (a list to a tuple, 1 to 1.0) or refuse it."""
        for name, kind in self.kinds().items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, _values.coerce(kind, value))
            except _values.Mismatch as wanted:
                raise UserError(f"{name} is {_values.shown(value)!r}; wanted: {wanted}") from None

    @classmethod
    def kinds(cls) -> dict[str, Any]:
        """Return field name -> annotated type, in the order of definition."""
        return _kinds(cls)  # type: ignore[arg-type]  # a class is hashable

    @classmethod
    def field_docs(cls) -> dict[str, str]:
        """Return field name -> the docstring under it, on one line; inherited fields keep theirs."""
        return _field_docs(cls)  # type: ignore[arg-type]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return field name -> default."""
        made = {f.name: f.default_factory() for f in dataclasses.fields(cls) if callable(f.default_factory)}
        return {f.name: made.get(f.name, f.default) for f in dataclasses.fields(cls)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from names and values (a JSON or TOML table, or keyword arguments); aliases are understood.

        Raises:
            UserError: unknown name (the nearest are listed), a name given twice, or a value refused.
        """
        known = cls.kinds()
        given: dict[str, Any] = {}
        for name, value in values.items():
            own = canonical(name, known)
            if own not in known:
                raise UserError(f"unknown setting {_values.shown(name)!r}; {suggestion(name, known)}")
            if own in given:
                raise UserError(f"{own} is given twice (once as {name!r}); keep one")
            given[own] = value
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Return names and values in JSON's types; ``from_dict`` reads them back."""
        return {name: _values.plain(getattr(self, name)) for name in self.kinds()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with ``changes``, validated again; unknown names as in ``from_dict``."""
        known = self.kinds()
        same = {name: getattr(self, name) for name in known}
        return type(self).from_dict(same | {canonical(name, known): value for name, value in changes.items()})

    @staticmethod
    def check(condition: object, message: str) -> None:
        """Raise ``UserError(message)`` unless ``condition``; say value, limit and remedy."""
        if not condition:
            raise UserError(message)

    @staticmethod
    def one_of(name: str, value: str, choices: Iterable[str]) -> None:
        """Refuse ``value`` unless it is among ``choices``; for choices that a ``Literal`` can't state."""
        one_of(name, value, choices)

    def in_range(
        self,
        name: str,
        low: float | None = None,
        high: float | None = None,
        *,
        open_low: bool = False,
        open_high: bool = False,
    ) -> None:
        """Refuse the field ``name`` unless it (or each item of a tuple) lies between ``low`` and ``high``.

        ``open_low`` and ``open_high`` exclude the limit itself; a value of None (the feature is off) passes,
        infinity and NaN never do.
        """
        value = getattr(self, name)
        for item in value if isinstance(value, tuple) else (value,):
            if item is None:
                continue
            above = low is None or (item > low if open_low else item >= low)
            below = high is None or (item < high if open_high else item <= high)
            finite = math.isfinite(item)
            if not (above and below and finite):
                limits = [] if finite else ["finite"]
                limits += [f"{'above' if open_low else 'at least'} {low}"] if low is not None else []
                limits += [f"{'below' if open_high else 'at most'} {high}"] if high is not None else []
                raise UserError(f"{name} is {_values.shown(value)}; it must be {' and '.join(limits)}")


@functools.cache
def _kinds(cls: type[Settings]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


@functools.cache
def _field_docs(cls: type[Settings]) -> dict[str, str]:
    """Read the docstring literals under fields from the source: Python itself doesn't keep them."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, Settings) or base is Settings or base.__module__ not in sys.modules:
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        for field, after in zip(definition.body, definition.body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                docs[field.target.id] = " ".join(str(after.value.value).split())
    return {name: docs.get(name, "") for name in cls.kinds()}
