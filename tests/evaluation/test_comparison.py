"""Tables, verdicts and files of an evaluation made of simulated outcomes."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from schedrl.evaluation.comparison import Evaluation
from schedrl.evaluation.evaluate import Run
from schedrl.evaluation.jobs_csv import COLUMNS
from schedrl.evaluation.report import FILES, write_report
from schedrl.evaluation.table import plain_table
from schedrl.sim.deeprm.outcome import JobStatus
from tests.evaluation.outcomes import make_outcome, random_outcome


@pytest.fixture
def evaluation():
    runs = (
        Run("ppo", "greedy", 0, "fits_now", random_outcome(1, 80, stretch=0.7)),
        Run("ppo", "sampled", 0, "fits_now", random_outcome(1, 80, stretch=0.71)),
        Run("sjf", "rule", 0, "fits_now", random_outcome(1, 80)),
        Run("defer", "rule", None, "fits_now", random_outcome(1, 80, stretch=0.5)),
    )
    return Evaluation(runs, ("sjf", "defer"))


def test_intervals_compare_equal_idle_limits_only(evaluation):
    better, other = evaluation.compare("ppo (greedy)", "sjf"), evaluation.compare("ppo (greedy)", "defer")
    assert better.verdict == "better"
    assert better.interval.high < 0
    assert better.interval.low <= better.difference <= better.interval.high
    assert better.relative == pytest.approx(better.difference / evaluation.summaries["sjf"].mean)
    assert not other.comparable
    assert other.difference > 0, "shown, but not claimed"
    assert other.verdict == "other idle limit"


def test_a_win_under_the_stricter_limit_is_a_win(evaluation):
    strict, free = evaluation.run("ppo", "greedy"), replace(evaluation.run("sjf"), idle_limit=None)
    won = Evaluation((strict, free), ("sjf",)).compare(strict.label, "sjf")
    assert (won.verdict, won.comparable) == ("better", True)
    lost = Evaluation((strict, free), (strict.label,)).compare("sjf", strict.label)
    assert (lost.verdict, lost.comparable) == ("other idle limit", False)


def test_the_same_outcome_is_a_tie(evaluation):
    run = evaluation.run("sjf")
    same = Evaluation((run, replace(run, name="twin")), ("twin",)).compare("sjf", "twin")
    assert (same.difference, same.prob_better, same.verdict) == (0.0, 0.5, "tie")


def test_a_lower_bound_never_wins_plainly(evaluation):
    """A policy stopped early, with half of its jobs unfinished, has a low mean: the verdict says so."""
    outcome = evaluation.run("sjf").outcome
    early = replace(outcome, end_time=np.full_like(outcome.end_time, 25))
    early = replace(
        early, status=np.where(early.arrival >= 25, JobStatus.PENDING, early.status).astype(np.int8)
    )
    both = Evaluation((Run("x", "greedy", 0, "fits_now", early), evaluation.run("sjf")), ("sjf",))
    assert both.compare("x (greedy)", "sjf").verdict == "better (bound)"


def test_every_run_against_every_baseline(evaluation):
    pairs = {(c.policy, c.baseline) for c in evaluation.comparisons}
    assert ("ppo (sampled)", "defer") in pairs
    assert ("sjf", "defer") in pairs
    assert ("sjf", "sjf") not in pairs
    assert len(pairs) == 3 + 3


def test_printed_table_states_rules_and_verdicts(evaluation):
    out = io.StringIO()
    evaluation.print(out)
    text = out.getvalue()
    for expected in (
        "ppo (greedy)",
        "fits_now",
        "none",
        "not comparable",
        "better",
        "P(better)",
        "unfinished",
    ):
        assert expected in text
    assert "\x1b" not in text, "plain text where there is no terminal"
    assert max(map(len, text.splitlines())) <= 110


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_rich_table_on_a_terminal(evaluation, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    out = Terminal()
    evaluation.print(out)
    assert "ppo (greedy)" in out.getvalue()
    assert "─" in out.getvalue() or "━" in out.getvalue()


def test_csv_and_json(evaluation, tmp_path):
    evaluation.to_csv(tmp_path / "e.csv")
    rows = list(csv.DictReader((tmp_path / "e.csv").open()))
    assert [row["policy"] for row in rows] == ["ppo", "ppo", "sjf", "defer"]
    assert rows[3]["idle_limit"] == "none"
    assert float(rows[0]["mean"]) == pytest.approx(evaluation.summaries["ppo (greedy)"].mean)
    evaluation.to_json(tmp_path / "e.json")
    content = json.loads((tmp_path / "e.json").read_text())
    assert content["comparisons"][0]["verdict"] == "better"
    assert content["comparisons"][1]["interval"] is None


def test_json_is_strict(tmp_path):
    nothing = make_outcome([(9, None, 1, JobStatus.PENDING)], end=3)
    Evaluation((Run("idle", "rule", 0, "fits_now", nothing),), ()).to_json(tmp_path / "e.json")
    assert "NaN" not in (tmp_path / "e.json").read_text()


def test_same_seed_same_intervals(evaluation):
    again = Evaluation(evaluation.runs, evaluation.baselines)
    assert again.comparisons == evaluation.comparisons
    assert replace(evaluation, seed=1).means != evaluation.means


def test_report_writes_pictures_and_jobs(evaluation, tmp_path):
    from matplotlib import image

    paths = write_report(evaluation, tmp_path / "new" / "folder", file=io.StringIO())
    assert [path.name for path in paths] == list(FILES)
    for path in paths[:2]:
        height, width = image.imread(path).shape[:2]
        assert width >= 1200
        assert height >= 400
    rows = list(csv.DictReader(paths[2].open()))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == sum(s.arrived for s in evaluation.summaries.values())
    mine = [float(row["slowdown"]) for row in rows if row["policy"] == "ppo (greedy)"]
    assert np.mean(mine) == pytest.approx(evaluation.summaries["ppo (greedy)"].mean, rel=1e-5)


def test_job_rows_of_case_28(tmp_path):
    jobs = [(0, 3, 3, JobStatus.FINISHED), (5, None, 2, JobStatus.WAITING), (6, None, 7, JobStatus.DROPPED)]
    run = Run("x", "rule", 0, "fits_now", make_outcome(jobs, 20))
    Evaluation((run,), ()).jobs_to_csv(tmp_path / "jobs.csv")
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    assert lines[1:] == [
        "0,0,0,3,1,finished,3,0,x",
        "1,5,-1,-1,7.5,waiting,2,0,x",
        "2,6,-1,-1,2,dropped,7,0,x",
    ]


def test_plain_table_is_aligned():
    assert plain_table("T", ("a", "bb"), [("xyz", "1")]) == "T\na    bb\n---  --\nxyz   1"
