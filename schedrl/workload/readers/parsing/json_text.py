"""JSON as files hold it: a list read entry by entry, whatever its length; values that should be numbers."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schedrl.settings import UserError
from schedrl.workload.readers.parsing.source import BLOCK, Source
from schedrl.workload.readers.parsing.table import number

LONGEST = 4 * BLOCK
"""Characters that one entry may take; what doesn't end within them is damaged."""
LARGEST = 1 << 30
"""Characters of a file that is read in one piece."""
PLAIN = {int, float, type(None)}
"""Types that NumPy takes for numbers as `json_number` does."""
BETWEEN = re.compile(r"[\s,]*")


def text_blocks(source: Source) -> Iterator[str]:
    """Return the text of a file in blocks, cut anywhere; UTF-8, as JSON is, unless the user names another.

    Raises:
        UserError: it is in another encoding.
    """
    encoding = source.encoding or "utf-8-sig"
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in source.raw():
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise UserError(f"{source.path} is not in {encoding} ({error.reason}); give its encoding") from None


def documents(source: Source) -> list[Any]:
    """Return what a file of moderate size holds: one piece of JSON, or several one after another.

    Raises:
        UserError: it is no JSON, or too much of it.
    """
    decode, text, at = json.JSONDecoder().raw_decode, _text(source), 0
    found: list[Any] = []
    try:
        while (at := BETWEEN.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            value, at = decode(text, at)
            found.append(value)
    except (ValueError, RecursionError) as error:
        raise _no_json(source, error) from None
    return found


def whole(source: Source) -> Any:
    """Return the one piece of JSON that a file of moderate size holds.

    Raises:
        UserError: it is no JSON, or too much of it.
    """
    try:
        return json.loads(_text(source))
    except (ValueError, RecursionError) as error:
        raise _no_json(source, error) from None


def _no_json(source: Source, error: Exception) -> UserError:
    return UserError(f"{source.path} is no JSON ({error}); no jobs were read. Fetch it again")


def _text(source: Source) -> str:
    held: list[str] = []
    for block in text_blocks(source):
        held.append(block)
        if not "".join(held[:2]).lstrip().startswith(("{", "[")):
            raise UserError(f"{source.path} is no JSON; no jobs were read. Name the file's format")
        if sum(map(len, held)) > LARGEST:
            raise UserError(
                f"{source.path} holds more than {LARGEST >> 20:,} MB of JSON in one piece; part its "
                "jobs over several files"
            )
    return "".join(held)


def entries(source: Source) -> Iterator[Any]:
    """Return the entries of the list that a file holds, one after the other.

    Raises:
        UserError: it is no list, or damaged; says in which entry, counted from 1.
    """
    decode = json.JSONDecoder().raw_decode
    blocks = text_blocks(source)
    held = ""
    while not held.strip() and (block := next(blocks, None)) is not None:
        held = block
    at, count = BETWEEN.match(held).end() + 1, 0  # type: ignore[union-attr]
    if held[at - 1 : at] != "[":
        raise UserError(f"{source.path} is no JSON list; no jobs were read. Name the file's format")
    while True:
        at = BETWEEN.match(held, at).end()  # type: ignore[union-attr]
        if held.startswith("]", at):
            return
        try:
            entry, at = decode(held, at)
        except (ValueError, RecursionError) as error:
            more = next(blocks, None)
            if more is None or len(held) - at > LONGEST or isinstance(error, RecursionError):
                raise UserError(
                    f"{source.path}: entry {count + 1} of its list is damaged or cut off ({error}); "
                    "fetch the file again"
                ) from None
            held, at = held[at:] + more, 0
            continue
        count += 1
        yield entry


def json_number(value: Any) -> float | None:
    """Return the number that a value states, NaN if it states none, None if it is something else."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def json_numbers(values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers [n] that values state, NaN for none, and which are something else [n]."""
    if set(map(type, values)) <= PLAIN:
        try:
            return np.array(values, np.float64), np.zeros(len(values), bool)
        except OverflowError:
            pass
    stated = list(map(json_number, values))
    wrong = np.array([value is None for value in stated], bool)
    return np.array(stated, np.float64), wrong


def json_text(value: Any) -> str:
    """Return text as it is, a whole number as its digits, and "" for all else."""
    return value if isinstance(value, str) else str(value) if type(value) is int else ""
