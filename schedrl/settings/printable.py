r"""The door to the terminal: whatever a file or an argument holds, what is printed is printable.

A header of a trace, an id, a name of a file may hold escape sequences that command a terminal, line ends that
forge a line, or characters that the terminal's encoding lacks. They are shown as `\x1b`, never sent, and
never end a run. Errors are one line of a few hundred characters. `main_guard` puts the door around every
command line, so that no place that prints has to think of it.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

LONGEST_VALUE = 200
"""Characters of a value in a line."""
LONGEST_LINE = 600
"""Characters of an error."""
NOT_PRINTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufff0-\uffff]"
)
"""Control characters but tab and line feed, changes of direction, halves of characters."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""With what a spreadsheet begins a formula."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)")
LINE_ENDS = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]+")
LONG = re.compile(rf"\S{{{LONGEST_VALUE + 1},}}|(?<=')[^']{{{LONGEST_VALUE + 1},}}(?=')")


def printable(text: str) -> str:
    r"""Return text with an escape like `\x1b` for each character that is no text; line ends and tabs stay."""
    return NOT_PRINTED.sub(_escaped, text)


def line_of(value: Any, longest: int = LONGEST_VALUE) -> str:
    """Return what a value says on one line, at most `longest` characters: its middle is left out."""
    text = str(value)
    if len(text) > 4 * longest:  # before anything that takes as long as the text
        text = f"{text[: 2 * longest]}{text[-2 * longest :]}"
    text = printable(LINE_ENDS.sub(" ", text))
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 5]} ... {text[-end:]}"


def error_line(error: object) -> str:
    """Return an error as one line: long values are cut, then the middle is left out if need be."""
    text = " ".join(str(error).split())
    return line_of(LONG.sub(lambda long: line_of(long[0], LONGEST_VALUE), text), LONGEST_LINE)


def counted(count: int, noun: str) -> str:
    """Return `1 job`, `2 jobs`, `1,234 jobs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def safe_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet runs: a ' stands before text that begins like a formula.

    Numbers, also as text, stay as they are. (OWASP, "CSV injection".)
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA) and not NUMBER.fullmatch(text) else text


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class _Commands(str):
    """Text that may command the terminal: of our own display, and of nobody's file."""


class Door:
    """A stream of text that passes on what is printable, as far as the encoding of the stream goes."""

    is_door = True

    def __init__(self, stream: TextIO) -> None:
        self.behind = stream

    def write(self, text: str) -> int:
        """Write what can be printed of a text."""
        shown = text if isinstance(text, _Commands) else printable(text)
        try:
            self.behind.write(shown)
        except UnicodeEncodeError:
            encoding = self.behind.encoding or "ascii"
            self.behind.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


class _Commanding:
    """A stream for a display of our own, whose texts may command the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text as it is."""
        return self._stream.write(_Commands(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def commanding(stream: Any) -> Any:
    """Return the stream for a display of our own, whose texts may command the terminal."""
    return _Commanding(stream)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Put standard output and standard error behind the door."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if stream is None or getattr(stream, "is_door", False) else Door(stream) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
