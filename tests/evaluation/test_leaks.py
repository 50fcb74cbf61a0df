"""What is seen up to a moment doesn't depend on what comes after it; planted leaks are found."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import environment
from benchmarks import leaks as benchmark
from benchmarks.__main__ import main
from benchmarks.planted_leaks import PLANTED
from schedrl.envs.declared import CLOCK, LOAD, NUMBER_OF_JOBS, RUN_TIMES, lines
from schedrl.envs.deeprm.settings import CLOCK_COLUMNS, DeepRMSettings
from schedrl.envs.simple_cluster.settings import JOBS_TO_COME, SLOWDOWN_TERM, SimpleClusterSettings
from schedrl.evaluation.checks import samples
from schedrl.evaluation.checks.leaks import check, compared
from schedrl.evaluation.checks.worlds import RELATIONS, World
from schedrl.sim.cluster_decisions.observe import BACKLOG_FEATURES
from schedrl.sim.cluster_decisions.spec import TERM_NAMES
from schedrl.sim.deeprm.observe import BACKLOG_FEATURES as DEEPRM_BACKLOG

FEW, MANY, SOON = 2, 100, 20
"""Worlds in the usual run, in the slow one (as in the benchmark), and within which a plant is found."""


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", samples.KINDS, ids=lambda kind: kind.name)
def test_nothing_undeclared_depends_on_the_future(kind, relation):
    row = check(relation, kind.draw, FEW, seed=1)
    assert row.verdict == "ok", f"{row.places} show what has not happened yet"


@pytest.mark.slow
@pytest.mark.parametrize("kind", samples.KINDS, ids=lambda kind: kind.name)
def test_nothing_undeclared_depends_on_the_future_in_a_hundred_worlds(kind):
    rows = [check(relation, kind.draw, MANY) for relation in RELATIONS]
    assert {row.verdict for row in rows} == {"ok"}, rows
    assert {row.worlds for row in rows} == {MANY}


@pytest.mark.parametrize("leak", PLANTED)
def test_a_planted_leak_is_found_in_twenty_worlds(leak):
    order = ("none", "run_times", "fewer", "stretched", "later")
    assert any(check(relation, PLANTED[leak], SOON).leaking for relation in order), f"nothing finds {leak}"


def test_a_relation_that_changes_nothing_is_no_pass():
    """All jobs have come at the moment: there is no future to change."""

    def over(rng):
        make, world = samples.cluster_world(rng, "slots")
        return make, World(world.jobs, float(world.jobs.arrival[-1]))

    row = check("stretched", over, 2)
    assert (row.verdict, row.worlds) == ("no effect", 0)


def test_declared_knowledge_is_declared_for_what_it_is():
    """Run times are known in DeepRM: that excuses no look at arrivals."""
    rng = np.random.default_rng(0)
    make, world = PLANTED["time to the next arrival"](rng)
    found = compared(make, world, RELATIONS["stretched"].change(world, rng), RELATIONS["stretched"].known, 0)
    assert {place.leaf for place in found.undeclared} == {"backlog"}


def test_what_is_declared_names_the_columns_it_means():
    assert BACKLOG_FEATURES[JOBS_TO_COME] == "jobs to come"
    assert TERM_NAMES[SLOWDOWN_TERM] == "slowdown"
    assert tuple(DEEPRM_BACKLOG.index(name) for name in ("clock", "arrivals_over")) == CLOCK_COLUMNS


def kinds(settings):
    return {known.what for known in settings.declares()}


def test_what_never_ends_shows_nothing_of_how_much_is_left():
    assert NUMBER_OF_JOBS in kinds(SimpleClusterSettings())
    assert NUMBER_OF_JOBS not in kinds(SimpleClusterSettings(termination="continuing", wait_when_idle=True))
    assert CLOCK in kinds(DeepRMSettings())
    assert CLOCK not in kinds(DeepRMSettings(termination="continuing"))
    assert CLOCK not in kinds(DeepRMSettings(observe_clock=False))
    assert CLOCK not in kinds(DeepRMSettings(representation="compact"))


def test_true_run_times_are_declared_where_nothing_else_is_known():
    jobs = samples.cluster_jobs(np.random.default_rng(0))
    nothing, exact = replace(jobs, estimate=None), replace(jobs, estimate=jobs.duration)
    some = replace(jobs, estimate=np.where(np.arange(len(jobs)) == 3, np.nan, jobs.estimate))
    for workload, told in ((jobs, False), (nothing, True), (exact, True), (some, True)):
        env = environment.make("simple_cluster", workload=workload)
        assert any(known.what == RUN_TIMES and known.leaf == "*" for known in env.declares) is told
        assert LOAD not in {known.what for known in env.declares}


def test_the_lines_say_it_once():
    known = [*SimpleClusterSettings().declares(), *SimpleClusterSettings().declares()]
    assert list(lines(known)) == [
        "known of the future by design: how many of its jobs are still to come (backlog, column 5)"
    ]
    assert list(lines(())) == []


def test_the_benchmark_prints_both_tables_and_fails_where_a_leak_is_missed(capsys, monkeypatch):
    monkeypatch.setattr(benchmark, "KINDS", samples.KINDS[:1])
    monkeypatch.setattr(benchmark, "PLANTED", dict(list(PLANTED.items())[1:]))
    words = ["leaks", "--worlds", "1", "--planted_worlds", "2"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "5 of 5 rows pass" in shown
    assert "4 of 4 planted leaks found" in shown
    harmless = partial(samples.cluster_world, representation="slots")
    monkeypatch.setattr(benchmark, "PLANTED", {"no leak at all": harmless})
    assert main(words) == 1
    assert "nothing: MISSED" in capsys.readouterr().out
    worst = samples.KINDS[0]._replace(draw=PLANTED["rows for all jobs to come"])
    monkeypatch.setattr(benchmark, "KINDS", (worst,))
    monkeypatch.setattr(benchmark, "PLANTED", {})
    assert main(words) == 1
    assert "LEAK" in capsys.readouterr().out
