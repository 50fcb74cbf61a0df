"""The three files of the report, from the same rows."""

from __future__ import annotations

from pathlib import Path

from schedrl.evaluation import table
from schedrl.evaluation.comparison_report.contents import contents, title
from schedrl.evaluation.comparison_report.html import write_html
from schedrl.evaluation.comparison_report.pdf import write_pdf
from schedrl.evaluation.comparison_report.result import Result
from schedrl.evaluation.comparison_report.rows import all_rows, as_csv

NAME = "comparison_report"
FILES = tuple(f"{NAME}.{ending}" for ending in ("pdf", "html", "csv"))


def write(result: Result, folder: str | Path) -> tuple[list[Path], list[str]]:
    """Write `FILES` to `folder` and return their paths, and the paragraphs of the conclusion.

    Each file appears whole or not at all.
    """
    from schedrl.evaluation.comparison_report.conclusion import conclude

    rows = all_rows(result)
    blocks, heading = contents(result, rows), title(result)
    paths = [Path(folder) / name for name in FILES]
    write_pdf(paths[0], heading, blocks)
    write_html(paths[1], heading, blocks)
    table.write_csv(paths[2], [dict(row) for row in as_csv(rows)])
    return paths, conclude(result, rows)
