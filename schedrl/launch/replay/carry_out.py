"""A replay from its files to its report: every policy in turn, one schedule held at a time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from schedrl.envs.declared import RUN_TIMES, lines
from schedrl.evaluation.cluster import holding, plots, report, sequences
from schedrl.evaluation.cluster.jobs_csv import JobsFile
from schedrl.evaluation.cluster.metrics import in_unit
from schedrl.evaluation.cluster.replay import Entry, Replay, entry
from schedrl.launch.replay import trained
from schedrl.launch.replay.data import Data, load_data
from schedrl.launch.replay.estimating import estimated
from schedrl.launch.replay.request import Request
from schedrl.launch.replay.tuning import tune
from schedrl.launch.speaker import Speaker
from schedrl.settings import UserError, counted
from schedrl.sim.cluster.rule import Hold
from schedrl.sim.cluster.schedule import Schedule

MOST_LINES = 1_000_000
"""Lines of the per-job table that are written unasked."""
LASTS = 5.0
"""Seconds of play after which a line says that a policy is still playing."""


def holds_no_report(folder: Path) -> bool:
    """Tell whether no report of a replay is in a folder."""
    return not (folder / report.HTML).exists()


def run(request: Request) -> int:
    """Carry out the replay; return the exit code."""
    say = Speaker()
    data = load_data(request.settings, request.reading)
    for line in data.facts:
        say(line)
    _make_ready(data, say)
    data, numbers, where = _tuned(request, data, say)
    models = _loaded(request, data, say)
    declares = tuple(each for model in models.values() for each in model.env.declares)
    declares += sequences.known_to_rules(request.rules)
    shown = (
        *lines(each for each in declares if each.what != RUN_TIMES),
        *(fact for model in models.values() for fact in model.facts),
    )
    for line in shown:
        say(line)
    try:
        request.folder.mkdir(parents=True, exist_ok=True)
        entries, small = _play_all(request, data, numbers, models, say)
        notes = [holding.note(n, numbers.get(n), where) for n in request.rules if _holds(request, n)]
        options: dict[str, Any] = {"notes": tuple(notes), "told": data.told, "declares": declares}
        replay = Replay(tuple(entries), request.settings.seed, **options)
        say("comparing and drawing")
        facts = (*data.facts, *shown, f"To make this page again: {request.command}")
        title = f"{Path(request.settings.trace).name} on {counted(len(data.machines), 'machine')}"
        origin = report.Origin(title, facts, data.workload.time_unit)
        paths = report.write(replay, request.folder, origin, small)
    except OSError as error:
        raise UserError(
            f"can't write to {request.folder}: {error.strerror}; choose another --output_dir"
        ) from None
    print()
    report.print_report(replay, data.workload.time_unit)
    jobs = request.folder / report.JOBS
    say("wrote " + ", ".join(map(str, [*paths, *([jobs] if jobs.exists() else [])])))
    return 0


def _make_ready(data: Data, say: Speaker) -> None:
    """Compile the simulator, where that wasn't done before."""
    from schedrl.sim.cluster.run import simulate  # late: it needs Numba

    with say.while_doing(
        "making the simulator ready: the first run compiles it, which takes half a minute or more",
        "still compiling; later runs start at once",
    ):
        simulate(data.workload.take(slice(0, 1)), data.machines)


def _loaded(request: Request, data: Data, say: Speaker) -> dict[str, trained.Model]:
    """Return folder -> trained model."""
    if not request.models:
        return {}
    with say.while_doing(
        "making trained models ready: the first run compiles their environment, half a minute or more",
        "still compiling; later runs start at once",
    ):
        return {folder: trained.load(folder, data) for folder in sorted(request.models)}


def _holds(request: Request, name: str) -> bool:
    return name not in request.models and holding.holds(name)


def _tuned(request: Request, data: Data, say: Speaker) -> tuple[Data, dict[str, Hold], str]:
    """Return what is replayed, the numbers that were tuned, and on what."""
    if not request.settings.tune_hold:
        return data, {}, ""
    rules = [name for name in request.rules if name not in request.models]
    data, numbers, where = tune(data, rules, request.settings.tau, say, window=request.settings.visible_jobs)
    say(data.facts[-1])
    return data, numbers, where


def _play_all(
    request: Request,
    data: Data,
    numbers: Mapping[str, Hold],
    models: Mapping[str, trained.Model],
    say: Speaker,
) -> tuple[list[Entry], Schedule | None]:
    """Play every policy; also return the schedule of the best one, where a Gantt chart can show it."""
    settings = request.settings
    entries: list[Entry] = []
    best, small = float("inf"), None
    with _jobs_file(request, data, say) as add:
        play = _player(request, data, numbers, models)
        for number, name in enumerate(request.rules, 1):
            label = holding.label(name, numbers.get(name)) if _holds(request, name) else name
            turn = f"{number}/{len(request.rules)} {label}"
            with say.if_it_lasts(
                f"{turn}: still playing {counted(len(data.workload), 'job')}; Ctrl-C ends it", LASTS
            ):
                schedule, seconds, more = play(name)
            more |= {"tau": settings.tau, "wait_limit": settings.wait_limit}
            more["until"] = float(entries[0].heat.edges[-1]) if entries else None
            found = entry(label, schedule, seconds, learned=name in request.models, **more)
            entries.append(found)
            add(label, schedule)
            mean = found.measures["bounded_slowdown"]["mean_with_bounds"]
            shown = "of no job" if mean is None else f"{mean:.4g}"
            say(f"{turn}: mean bounded slowdown {shown}, {seconds:.2f} s")
            if mean is not None and mean < best and plots.fits_gantt(schedule):
                best, small = mean, schedule
    return entries, small


def _player(
    request: Request, data: Data, numbers: Mapping[str, Hold], models: Mapping[str, trained.Model]
) -> Callable[[str], tuple[Schedule, float, dict[str, Any]]]:
    """Return what plays a policy by name."""
    from schedrl.sim.cluster.run import simulate  # late: it needs Numba

    def play(name: str) -> tuple[Schedule, float, dict[str, Any]]:
        if name in models:
            found = trained.play(models[name], data)
            more = {"decision_latency": found.latency, "invalid_actions": found.invalid_actions}
            return found.schedule, found.seconds, more
        options: dict[str, Any] = {"hold": numbers[name]} if name in numbers else {}
        options["window"] = request.settings.visible_jobs
        workload = estimated(data.workload, data.machines, name, **options) if data.own_medians else None
        started = time.perf_counter()
        schedule = simulate(data.workload if workload is None else workload, data.machines, name, **options)
        return schedule, time.perf_counter() - started, {}

    return play


@contextlib.contextmanager
def _jobs_file(request: Request, data: Data, say: Speaker) -> Iterator[Callable[[str, Schedule], None]]:
    """Give what writes a schedule's jobs, or does nothing where the table would be too long."""
    lines = len(data.workload) * len(request.rules)
    path = request.folder / report.JOBS
    asked = request.settings.jobs_csv
    if asked is False or (asked is None and lines > MOST_LINES):
        if asked is None:
            say(f"no per-job table: it would have {lines:,} lines; --jobs_csv True writes it all the same")
        path.unlink(missing_ok=True)  # of a run before
        yield lambda name, schedule: None
        return
    tau = in_unit(request.settings.tau, data.workload.time_unit)
    with JobsFile(path, tau, request.settings.safe_csv) as file:
        yield file.add
