"""Tables of plain values: rich on a terminal, aligned text elsewhere, CSV and JSON on disk."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from schedrl.settings import appearing, commanding, line_of, safe_cell


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO | None = None
) -> None:
    """Print rows of text under a title; the first column to the left, the others to the right."""
    file = file or sys.stdout
    title, header = line_of(title), [line_of(name) for name in header]
    rows = [[line_of(cell) for cell in row] for row in rows]
    if file.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(title), title_justify="left", title_style="bold")
        for i, name in enumerate(header):
            table.add_column(Text(name), justify="right" if i else "left", no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row))
        console = Console(file=commanding(file))
        if console.measure(table).minimum <= console.width:
            console.print(table)
            return
    print(plain_table(title, header, rows), file=file)


def plain_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table as aligned lines of text."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def text(line: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(
        [title, text(lines[0]), "  ".join("-" * width for width in widths), *map(text, lines[1:])]
    )


def write_csv(path: str | Path, rows: Sequence[dict]) -> None:
    """Write dictionaries with equal keys as CSV, whole or not at all; no finite number is an empty cell."""
    with appearing(path) as part, open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: safe_cell(_finite(value)) for name, value in row.items()} for row in rows)


def write_json(path: str | Path, content: object) -> None:
    """Write strict JSON, whole or not at all: NaN and infinity become null."""
    with appearing(path) as part:
        part.write_text(json.dumps(_finite(content), indent=1) + "\n", encoding="utf-8")


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
