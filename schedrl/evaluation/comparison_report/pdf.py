"""The report as PDF: A4 portrait pages by matplotlib; text wraps and tables fit because they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedrl.evaluation.comparison_report.contents import WIDTH, Block, Heading, Picture, Text
from schedrl.evaluation.comparison_report.lettering import text_width
from schedrl.evaluation.comparison_report.tables import Table
from schedrl.settings import appearing, printable, save_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = (8.27, 11.69)  # inches: A4
LEFT, TOP, BOTTOM = (PAGE[0] - WIDTH) / 2, 0.55, 0.6  # inches
LEADING = 1.38
TEXT, NOTE, SECTION, TITLE = 9.0, 7.0, 12.5, 15.0  # points
TABLE_SIZES = (7.5, 7.0, 6.5, 6.0)
"""Fonts a table tries until it fits, in points; then its widest column is wrapped."""
GAP = 0.13  # inches between two columns


def write_pdf(path: str | Path, title: str, blocks: Iterable[Block]) -> int:
    """Write the report, whole or not at all, and return the number of its pages."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import PdfPages

    figures = lay_out(title, blocks)
    # TrueType fonts: the text can be searched and copied.
    about = {"Title": printable(title)}
    with appearing(path) as part, rc_context({"pdf.fonttype": 42}), PdfPages(part, metadata=about) as pdf:
        for figure in figures:
            save_picture(figure, pdf, format="pdf")
    return len(figures)


def lay_out(title: str, blocks: Iterable[Block]) -> list[Figure]:
    """Return the pages as figures."""
    pages = _Pages(title)
    for block in blocks:
        if isinstance(block, Heading):
            pages.heading(block)
        elif isinstance(block, Text):
            pages.paragraph(block.text)
        elif isinstance(block, Picture):
            pages.picture(block)
        else:
            pages.table(block)
    return pages.finished()


class _Pages:
    """Fills pages from top to bottom; `_y` is how far the present one is filled, in inches from its top."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._pages: list[Figure] = []
        self._begin()
        self._lines(_wrapped(title, WIDTH, TITLE, "bold"), TITLE, weight="bold")
        self._y += 0.06

    def heading(self, heading: Heading) -> None:
        if heading.new_page or self._room() < 1.2:
            self._begin()
        self._y += 0.04
        self._lines([heading.text], SECTION, weight="bold")
        self._y += 0.05

    def paragraph(self, text: str) -> None:
        self._lines(_wrapped(text, WIDTH, TEXT), TEXT)
        self._y += 0.07

    def picture(self, picture: Picture) -> None:
        if self._room() < picture.height + 0.9:
            self._begin()
        self._y += 0.05
        self._lines([picture.title], TEXT + 1, weight="bold")
        box = (LEFT, PAGE[1] - self._y - picture.height, LEFT + WIDTH, PAGE[1] - self._y)
        shares = tuple(edge / PAGE[i % 2] for i, edge in enumerate(box))
        caption = picture.draw(self._pages[-1], shares)  # type: ignore[arg-type]
        self._y += picture.height + 0.06
        self._note(caption)

    def table(self, table: Table) -> None:
        size, widths, rows = fitted(table)
        heights = [_height(size) * max(map(len, row)) for row in rows]
        if self._room() < 0.5 + sum(heights[:4]):
            self._begin()
        self._y += 0.05
        self._lines(_wrapped(table.title, WIDTH, TEXT + 1, "bold"), TEXT + 1, weight="bold")
        self._row(rows[0], widths, size, header=True)
        for number, (row, height) in enumerate(zip(rows[1:], heights[1:], strict=True)):
            if self._room() < height:
                self._begin()
                self._row(rows[0], widths, size, header=True)
            self._row(row, widths, size, shaded=number % 2 == 1)
        self._y += 0.05
        self._note(table.note)

    def finished(self) -> list[Figure]:
        """Number the pages and return them."""
        for number, page in enumerate(self._pages, 1):
            text = f"{self._title}, page {number} of {len(self._pages)}"
            page.text(0.5, 0.3 / PAGE[1], text, fontsize=NOTE, color="#666666", ha="center", parse_math=False)
        return self._pages

    def _begin(self) -> None:
        from matplotlib.figure import Figure

        self._pages.append(Figure(figsize=PAGE))
        self._y = TOP

    def _room(self) -> float:
        return PAGE[1] - BOTTOM - self._y

    def _note(self, text: str) -> None:
        if text:
            self._lines(_wrapped(text, WIDTH, NOTE), NOTE, color="#444444")
        self._y += 0.1

    def _lines(self, lines: Sequence[str], size: float, **style: Any) -> None:
        for line in lines:
            if self._room() < _height(size):
                self._begin()
            self._put(LEFT, line, size, **style)
            self._y += _height(size)

    def _put(self, x: float, text: str, size: float, **style: Any) -> None:
        # A `$` in a command line is no mathematics.
        style = {"va": "top", "parse_math": False, **style}
        y = (PAGE[1] - self._y) / PAGE[1]
        self._pages[-1].text(x / PAGE[0], y, text, fontsize=size, **style)

    def _row(
        self,
        cells: Sequence[Sequence[str]],
        widths: Sequence[float],
        size: float,
        header: bool = False,
        shaded: bool = False,
    ) -> None:
        height = _height(size) * max(map(len, cells))
        if header or shaded:
            self._band(sum(widths) + GAP * (len(widths) - 1), height, "#d9e4f0" if header else "#f3f3f3")
        top, x = self._y, LEFT
        for column, (lines, width) in enumerate(zip(cells, widths, strict=True)):
            for number, line in enumerate(lines):
                self._y = top + number * _height(size) + 0.15 * size / 72
                edge, align = (x, "left") if column == 0 else (x + width, "right")
                self._put(edge, line, size, ha=align, weight="bold" if header else "normal")
            x += width + GAP
        self._y = top + height

    def _band(self, width: float, height: float, colour: str) -> None:
        from matplotlib.patches import Rectangle

        corner = ((LEFT - 0.03) / PAGE[0], (PAGE[1] - self._y - height) / PAGE[1])
        size = ((width + 0.06) / PAGE[0], height / PAGE[1])
        page = self._pages[-1]
        page.add_artist(Rectangle(corner, *size, color=colour, linewidth=0, transform=page.transFigure))


Cells = tuple[tuple[str, ...], ...]
"""The lines of each cell of a row."""


def fitted(table: Table) -> tuple[float, list[float], list[Cells]]:
    """Return the font, the widths of the columns [inches] and all rows, the header first, cut into lines.

    The largest of `TABLE_SIZES` in which the table fits `WIDTH`; if none does, cells of its widest column
    are wrapped in the smallest.
    """
    every = [table.header, *table.rows]
    room = WIDTH - GAP * (len(table.header) - 1)
    for size in TABLE_SIZES:
        # Headers are broken at their spaces: they are mostly longer than what stands below them.
        header = (
            [
                _broken(name, rows, size)
                for name, rows in zip(table.header, zip(*every[1:], strict=True), strict=True)
            ]
            if table.rows
            else [[n] for n in table.header]
        )
        widths = [
            max(
                *(text_width(line, size, "bold") for line in header[column]),
                *(text_width(row[column], size) for row in table.rows),
                0.0,
            )
            for column in range(len(table.header))
        ]
        if sum(widths) <= room:
            break
    else:
        widest = max(range(len(widths)), key=widths.__getitem__)
        widths[widest] = max(room - (sum(widths) - widths[widest]), 0.8)
    rows = [
        tuple(
            tuple(_wrapped(cell, width + 1e-6, size)) if text_width(cell, size) > width else (cell,)
            for cell, width in zip(row, widths, strict=True)
        )
        for row in table.rows
    ]
    return size, widths, [tuple(map(tuple, header)), *rows]


def _broken(name: str, below: Sequence[str], size: float) -> list[str]:
    """Break a header at its spaces so that it is no wider than needs be."""
    words = [text_width(word, size, "bold") for word in name.split(" ")]
    room = max(*words, *(text_width(cell, size) for cell in below), 0.0)
    return _wrapped(name, room + 1e-6, size, "bold")


def _wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Cut text into lines of at most `width` inches; a word that is longer is cut where the line ends."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if text_width(longer, size, weight) <= width:
            line = longer
            continue
        lines += [line] if line else []
        while text_width(word, size, weight) > width and len(word) > 1:
            fits = next(
                n
                for n in range(len(word) - 1, 0, -1)
                if n == 1 or text_width(word[:n], size, weight) <= width
            )
            lines.append(word[:fits])
            word = word[fits:]
        line = word
    return [*lines, line]


def _height(size: float) -> float:
    return size * LEADING / 72
