"""The report on a replay: tables, sentences, pictures; on the terminal, as HTML, CSV and JSON."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from schedrl.evaluation import table
from schedrl.evaluation.cluster import plots
from schedrl.evaluation.cluster.replay import Replay
from schedrl.evaluation.comparison import number
from schedrl.evaluation.comparison_report.contents import WIDTH, Block, Heading, Picture, Text
from schedrl.evaluation.comparison_report.html import write_html
from schedrl.evaluation.comparison_report.tables import Table
from schedrl.evaluation.statistics import Interval
from schedrl.settings import save_picture
from schedrl.sim.cluster.schedule import Schedule

HTML, CSV, JSON = "replay_report.html", "replay_report.csv", "replay_report.json"
HEAT, CDF, GANTT, JOBS = "heat_map.png", "slowdown_cdf.png", "gantt.png", "job_completion_time.csv"
UTILISATION, EVALUATION = "resource_utilization.png", "evaluation.json"
PNG_WIDTH = 13.0


class Origin(NamedTuple):
    """What was replayed on what."""

    title: str
    facts: Sequence[
        str
    ]  # sentences: the jobs, the cluster, the load, jobs that can't run, how to do it again
    unit: str


def tables_of(replay: Replay, unit: str) -> Iterator[Table]:
    """Yield the tables, best mean first."""
    yield _main_table(replay, unit)
    yield _second_table(replay, unit)
    if replay.sure and len(replay.entries) > 1:
        yield _differences(replay)


def _main_table(replay: Replay, unit: str) -> Table:
    resources = list(replay.entries[0].measures["utilisation"])
    header: tuple[str, ...] = (
        "policy",
        "mean",
        "95 % interval",
        "P95",
        "P99",
        f"wait [{unit}]",
        "wait P99",
        "wait max",
    )
    header += (
        *(f"{name} used" for name in resources),
        "fragm.",
        f"makespan [{unit}]",
        "rejected",
        "accepted",
    )
    rows = []
    for i in replay.ranked():
        found, mean = replay.entries[i], replay.resampled.mean(i)
        m = found.measures
        slow, wait = m["bounded_slowdown"], m["wait"]
        rows.append(
            (
                found.label,
                number(mean.value),
                _span(mean) if replay.sure else "-",
                _figure(slow["p95"]),
                _figure(slow["p99"]),
                _figure(wait["mean"]),
                _figure(wait["p99"]),
                _figure(m["starvation"]["max_wait"]),
                *(_share(m["while_arriving"]["utilisation"][name]) for name in resources),
                _share(m["fragmentation"]["while_arriving"]),
                _figure(m["makespan"]),
                f"{m['rejected']:,}",
                _share(m["acceptance_rate"]),
            )
        )
    note = (
        f"Bounded slowdown = max(1, (finish - arrival) / max(duration, tau)), tau {_tau(replay, unit)}; its "
        f"mean has every admitted job. Interval: bootstrap over {replay.units}. wait max: of "
        "jobs that still wait too. used: share in use, mean from the "
        "first to the last arrival. fragm.: free devices that a typical job can't use (FGD), share of all, "
        "mean of the same time."
    )
    return Table("Bounded slowdown", header, tuple(rows), note)


def _second_table(replay: Replay, unit: str) -> Table:
    limit = replay.entries[0].measures["starvation"]["limit"]
    header: tuple[str, ...] = (
        "policy",
        "jobs",
        "finished",
        "unfinished",
        f"waited > {limit:g} {unit}",
        "queue",
        "queue P95",
    )
    header += ("busiest used P95", "late", "Jain", "invalid", "µs/decision", "run [s]")
    rows = []
    for i in replay.ranked():
        m = replay.entries[i].measures
        used = [value["p95"] for value in m["utilisation"].values() if value["p95"] is not None]
        latency = m["decision_latency"]
        rows.append(
            (
                replay.entries[i].label,
                f"{m['nb_jobs']:,}",
                f"{m['finished']:,}",
                f"{m['unfinished'] + m['failed']:,}",
                f"{m['starvation']['beyond_limit']:,}",
                _figure(m["while_arriving"]["queue"]),
                _figure(m["queue"]["p95"]),
                _share(max(used, default=None)),
                _share(m["sla"]["violation_rate_counting_unfinished"]),
                _figure(m["fairness"]["jain_over_user_mean_bsld"]),
                f"{m['invalid_actions']:,}",
                _figure(None if latency is None else 1e6 * latency),
                number(replay.entries[i].seconds),
            )
        )
    note = (
        "queue: waiting jobs, mean from the first to the last arrival; its P95 is over the whole "
        "run. busiest used P95: share of the resource used most that was not "
        "exceeded for 95 % of the time. late: finished after their deadline, or not finished by it. Jain: "
        "fairness over the users' mean bounded slowdown, 1 = equal. -: not defined for this trace."
    )
    return Table("Behind the means", header, tuple(rows), note)


def _differences(replay: Replay) -> Table:
    header = ("policy", "against", "difference", "95 % interval", "relative", "verdict")
    rows = [
        (
            d.policy,
            d.baseline,
            f"{d.difference.value:+.3f}",
            f"{d.difference.low:+.3f} .. {d.difference.high:+.3f}",
            f"{d.relative.value:+.1%}",
            d.verdict,
        )
        for d in sorted(replay.differences(), key=lambda d: d.difference.value)
    ]
    one = (
        ""
        if replay.sequences
        else (" It says how much the result hangs on parts of this trace, not what another trace would show.")
    )
    note = (
        "Mean bounded slowdown minus that of the first policy, below 0 = better; paired: the same of "
        f"{replay.units} are drawn for both.{one}"
    )
    return Table("Against the first policy", header, tuple(rows), note)


def print_report(replay: Replay, unit: str, file: TextIO | None = None) -> None:
    """Print tables and warnings, behind what must be known first."""
    for line in replay.first_lines:
        print(f"note: {line}", file=file)
    for found in tables_of(replay, unit):
        table.print_table(found.title, found.header, found.rows, file=file)
        print(file=file)
    for line in replay.notes:
        print(f"note: {line}", file=file)
    for line in replay.warnings():
        print(f"warning: {line}", file=file)


def write(
    replay: Replay, folder: Path, origin: Origin, small: Schedule | None = None, stem: str = "replay_report"
) -> list[Path]:
    """Write the report and its pictures into an existing folder and return their paths.

    Args:
        replay: what was found.
        folder: where the files go.
        origin: what was played.
        small: a schedule for the Gantt chart, if one can be read.
        stem: of the names of the report's files.
    """
    pictures = pictures_of(replay, origin.unit, small)
    paths = [plots.save(folder / p.name, PNG_WIDTH, p.height(PNG_WIDTH), p.draw) for p in pictures]
    write_html(folder / f"{stem}.html", origin.title, blocks_of(replay, origin, small))
    rows = replay.rows()
    names = dict.fromkeys(name for row in rows for name in row)
    table.write_csv(folder / f"{stem}.csv", [{name: row.get(name) for name in names} for row in rows])
    content = {**_first(replay), "facts": list(origin.facts)}
    content |= {"notes": replay.notes, "warnings": list(replay.warnings())}
    table.write_json(
        folder / f"{stem}.json",
        content | {"policies": {e.label: e.measures for e in replay.entries}, "rows": rows},
    )
    return [*(folder / f"{stem}.{kind}" for kind in ("html", "csv", "json")), *paths]


def blocks_of(replay: Replay, origin: Origin, small: Schedule | None = None) -> list[Block]:
    """Return what stands in the report, in order."""
    first = [Text(line) for line in replay.first_lines if line not in origin.facts]
    blocks: list[Block] = [*first, *map(Text, origin.facts), Heading("Results")]
    blocks += tables_of(replay, origin.unit)
    blocks += [Text(f"Note: {line}") for line in replay.notes]
    blocks += [Text(f"Warning: {line}") for line in replay.warnings()]
    blocks.append(Heading("Pictures", new_page=True))
    pictures = pictures_of(replay, origin.unit, small)
    return [*blocks, *(Picture(p.title, _boxed(p.draw, p.height(WIDTH)), p.height(WIDTH)) for p in pictures)]


def write_evaluation(replay: Replay, folder: Path, unit: str, small: Schedule | None = None) -> list[Path]:
    """Write the pictures as every evaluation of one model has them, and every figure; return their paths."""
    names = {HEAT: UTILISATION}
    paths = [
        plots.save(folder / names.get(p.name, p.name), PNG_WIDTH, p.height(PNG_WIDTH), p.draw)
        for p in pictures_of(replay, unit, small)
    ]
    content = {**_first(replay), "notes": replay.notes, "warnings": list(replay.warnings())}
    content["rows"] = replay.rows()
    table.write_json(folder / EVALUATION, content)
    return [*paths, folder / EVALUATION]


def _first(replay: Replay) -> dict[str, Any]:
    """Return what a file begins with."""
    declares = {"declares": [known._asdict() for known in replay.declares]}
    if replay.told is None:
        return declares
    said = {"jobs": replay.told.jobs, "said": replay.first_lines}
    return {"estimates": {**replay.told.figures(), **said}, **declares}


class Drawing(NamedTuple):
    """A picture of the report."""

    title: str
    name: str  # of its file
    height: Any  # width -> height, inches
    draw: Any  # draws into a figure and returns the caption


def pictures_of(replay: Replay, unit: str, small: Schedule | None = None) -> list[Drawing]:
    """Return the pictures."""
    entries, tau = replay.entries, _tau(replay, unit)
    first = " The first of the job sequences." if replay.sequences else ""
    found = [
        Drawing(
            "Machines over time",
            HEAT,
            lambda width: plots.heat_map_height(entries, width),
            lambda figure: plots.draw_heat_map(figure, entries, unit) + first,
        ),
        Drawing(
            "Slowdowns",
            CDF,
            lambda _: plots.cdf_height(entries),
            lambda figure: plots.draw_cdf(figure, entries, tau),
        ),
    ]
    if small is not None:
        height = 1.6 + 0.45 * len(small.machines)
        found.append(
            Drawing("Jobs on machines", GANTT, lambda _: height, lambda f: plots.draw_gantt(f, small) + first)
        )
    return found


def _boxed(draw: Any, height: float) -> Any:
    """Make a drawing of a whole figure one for a box of a page, where it becomes an image."""

    def inside(figure: Any, box: tuple[float, float, float, float]) -> str:
        if box == (0.0, 0.0, 1.0, 1.0):
            figure.set_layout_engine("constrained")
            return draw(figure)
        from matplotlib.figure import Figure
        from matplotlib.image import imread

        own = Figure(figsize=(WIDTH, height), layout="constrained")
        caption, stream = draw(own), io.BytesIO()
        save_picture(own, stream, format="png", dpi=220)
        stream.seek(0)
        axis = figure.add_axes((box[0], box[1], box[2] - box[0], box[3] - box[1]))
        axis.set_axis_off()
        axis.imshow(imread(stream), aspect="auto")
        return caption

    return inside


def _tau(replay: Replay, unit: str) -> str:
    return f"{replay.entries[0].measures['bounded_slowdown']['tau']:g} {unit}"


def _span(interval: Interval) -> str:
    return f"{number(interval.low)} .. {number(interval.high)}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else number(float(value))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
