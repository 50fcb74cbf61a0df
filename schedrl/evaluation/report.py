"""The files of a report, the same after every command: two pictures and the table of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from schedrl.evaluation.comparison import Evaluation

CDF, UTILISATION, JOBS = "slowdown_cdf.png", "resource_utilization.png", "job_completion_time.csv"
FILES = (CDF, UTILISATION, JOBS)


def write_report(
    evaluation: Evaluation, folder: str | Path, resources: Sequence[str] = (), file: TextIO | None = None
) -> list[Path]:
    """Print the tables to `file`, write `FILES` to `folder` (made if need be) and return their paths.

    Args:
        evaluation: what to report.
        folder: where the files go.
        resources: names of the resources, for the heat map.
        file: where the tables go; None = standard output.
    """
    from schedrl.evaluation import plots

    evaluation.print(file)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    plots.plot_slowdown_cdf(evaluation, folder / CDF)
    plots.plot_utilisation(evaluation, folder / UTILISATION, names=resources)
    evaluation.jobs_to_csv(folder / JOBS)
    return [folder / name for name in FILES]
