"""The report as one HTML file that needs nothing beside it: pictures are in it as data."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template

from schedrl.evaluation.comparison_report.contents import WIDTH, Block, Heading, Picture, Text
from schedrl.evaluation.comparison_report.tables import Table
from schedrl.settings import appearing, printable, save_picture

DPI = 130
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a }
body { max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; line-height: 1.2 }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc }
p { max-width: 52rem; overflow-wrap: anywhere }
figure { margin: 1.5rem 0 }
figure img { max-width: 100%; height: auto }
figcaption, .note { font-size: .85rem; color: #444; max-width: 52rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; margin-top: 1rem }
caption { text-align: left; font-weight: bold; font-size: 1rem; padding-bottom: .3rem }
th { background: #d9e4f0; vertical-align: bottom }
th, td { padding: .15rem .6rem; text-align: right }
th:first-child, td:first-child { text-align: left }
tbody tr:nth-child(even) { background: #f3f3f3 }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")


def write_html(path: str | Path, title: str, blocks: Iterable[Block]) -> None:
    """Write the report."""
    body = "\n".join(map(_block, blocks))
    page = PAGE.substitute(title=escape(title), body=body)
    with appearing(path) as part:
        part.write_text(printable(page), encoding="utf-8")


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h2>{escape(block.text)}</h2>"
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    return _picture(block) if isinstance(block, Picture) else _table(block)


def _picture(picture: Picture) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, picture.height))
    caption = picture.draw(figure, (0.0, 0.0, 1.0, 1.0))
    stream = io.BytesIO()
    save_picture(figure, stream, format="png", dpi=DPI)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    title, width = escape(picture.title), round(WIDTH * 110)
    return (
        f'<figure><strong>{title}</strong><br><img alt="{title}" width="{width}" '
        f'src="data:image/png;base64,{data}"><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    note = f'\n<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="wide"><table><caption>{escape(table.title)}</caption>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{note}"
    )
