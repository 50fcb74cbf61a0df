"""The report on many algorithms, made of simulated outcomes: its numbers, its pages, its sentences."""

import csv
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from schedrl.evaluation.comparison import Evaluation, number
from schedrl.evaluation.comparison_report import Failure, Origin, Result, Trained, seeds, write
from schedrl.evaluation.comparison_report.conclusion import conclude
from schedrl.evaluation.comparison_report.contents import Picture, contents
from schedrl.evaluation.comparison_report.curves import Curve
from schedrl.evaluation.comparison_report.pdf import PAGE, fitted, lay_out
from schedrl.evaluation.comparison_report.rows import COLUMNS, all_rows, chosen
from schedrl.evaluation.comparison_report.tables import Table, result_table
from schedrl.evaluation.evaluate import Run
from schedrl.evaluation.statistics import resample
from schedrl.sim.deeprm.outcome import JobStatus
from tests.evaluation.outcomes import random_outcome

SEQUENCES = 60


def make_curve(end=3.0, points=40):
    decisions = np.linspace(10_000, 400_000, points)
    slowdown = np.linspace(12.0, end, points)
    return Curve(decisions, decisions / 5_000, slowdown, -30 * slowdown, 500)


def make_result(stretches, idle=20, rules=None, **changes):
    """Build a result of algorithm -> stretch of the waits of each seed; all on the same jobs."""
    rules = {"sjf": (1.0, idle), "defer": (0.3, None)} if rules is None else rules
    runs, trained = [], []
    for algorithm, waits in stretches.items():
        for seed, stretch in enumerate(waits):
            name = f"{algorithm} seed {seed}"
            for mode in ("greedy", "sampled"):
                runs.append(Run(name, mode, idle, "fits_now", random_outcome(1, SEQUENCES, stretch=stretch)))
            trained.append(
                Trained(algorithm, seed, make_curve(), 400_000, 80.0 + seed, f"id{seed}", "abc", seed == 1)
            )
    for name, (stretch, limit) in rules.items():
        runs.append(Run(name, "rule", limit, "fits_now", random_outcome(1, SEQUENCES, stretch=stretch)))
    settings = {name: {"learning_rate": 1e-3, "hidden": [32, 32]} for name in stretches}
    origin = Origin("python compare_algorithms.py --x '$1 $2'", "deeprm", {"arrival_rate": 0.7}, "a machine",
                    {"arrival_rate": 0.5}, settings, 400_000, {"Git commit": "abc"})  # fmt: skip
    evaluation = Evaluation(tuple(runs), tuple(rules))
    levels = {"sjf": (5.0, -150.0), "defer": (2.6, -80.0)}
    return Result(evaluation, tuple(trained), levels, origin, **changes)


@pytest.fixture(scope="module")
def result():
    return make_result({"ppo": (0.5, 0.55), "a2c": (0.7, 1.3), "pg": (1.5, 1.6)})


@pytest.fixture(scope="module")
def files(result, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write(result, folder)
    return folder


class Cells(HTMLParser):
    """Collects the tables of a page: caption -> rows of cells."""

    def __init__(self):
        super().__init__()
        self.tables, self._caption, self._open, self.pictures = {}, "", None, []

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.tables.setdefault(self._caption, []).append([])
        if tag in ("td", "th", "caption"):
            self._open, self._text = tag, ""
        if tag == "img":
            self.pictures.append(dict(attrs)["src"])

    def handle_data(self, data):
        if self._open:
            self._text += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self._caption = self._text
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append(self._text)
        self._open = None if tag == self._open else self._open


def read_html(folder):
    cells = Cells()
    cells.feed((folder / "comparison_report.html").read_text(encoding="utf-8"))
    return cells


def read_csv(folder):
    with open(folder / "comparison_report.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def texts(figure):
    """Return every line of text on a page outside of its pictures."""
    return [text.get_text() for text in figure.texts]


# ---- The files ---------------------------------------------------------------------------------------------


def test_the_pdf_has_its_pages_and_figures(result, files):
    content = (files / "comparison_report.pdf").read_bytes()
    pages = lay_out("title", contents(result, all_rows(result)))
    assert len(re.findall(rb"/Type /Page\b", content)) == len(pages) > 3
    assert (
        sum(len(page.axes) for page in pages) == 4 + 2 + 2 + 1
    )  # curves, CDFs, heat maps and their colour bar
    assert any("page 2 of" in text for text in texts(pages[1]))


def test_the_html_needs_nothing_beside_it(files):
    page = read_html(files)
    assert len(page.pictures) == 3
    assert all(source.startswith("data:image/png;base64,") for source in page.pictures)
    text = (files / "comparison_report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["']?(http|/)""", text)
    assert "&#x27;$1 $2&#x27;" in text, "what the user typed is escaped, not interpreted"


def test_pdf_and_html_show_the_same_cells(result, files):
    html = read_html(files).tables
    shown = Counter()
    for page in lay_out("title", contents(result, all_rows(result))):
        shown.update(texts(page))
    cells = Counter(cell for rows in html.values() for row in rows[1:] for cell in row if cell)
    missing = {cell: count for cell, count in cells.items() if shown[cell] < count}
    assert not missing


def test_the_numbers_of_the_tables_are_those_of_the_csv(files):
    html, rows = read_html(files).tables, read_csv(files)
    assert tuple(rows[0]) == COLUMNS
    measured = [row for row in rows if row["kind"] in ("algorithm", "heuristic")]
    labels = {
        f"{r['policy']} ({r['mode']})" if r["kind"] == "algorithm" else r["policy"]: r for r in measured
    }
    table = html["Slowdown on test sequences"]
    assert len(table) - 1 == len(labels) == 8
    for label, _, _, mean, interval, _, p50, _, p99, completion, unfinished, _ in table[1:]:
        row = labels[label]
        assert mean == number(float(row["mean"]))
        assert interval == f"{number(float(row['mean_low']))} .. {number(float(row['mean_high']))}"
        assert (p50, p99) == (number(float(row["p50"])), number(float(row["p99"])))
        assert (completion, unfinished) == (number(float(row["completion_time"])), row["unfinished"])
    pairs = [r for r in rows if r["kind"] == "seed against heuristic" and r["mode"] == "greedy"]
    table = html["Each seed against the heuristics, over test sequences"]
    assert len(table) - 1 == len(pairs) == 12
    for (policy, seed, against, difference, interval, *_), row in zip(table[1:], pairs, strict=True):
        assert (policy, seed, against) == (row["policy"], row["seed"], row["against"])
        assert difference == f"{float(row['difference']):+.3f}"
        assert (interval == "no claim") == (row["difference_low"] == "")


@pytest.fixture
def quick_pdf(monkeypatch):
    """No pages: drawing them takes seconds."""
    target = "schedrl.evaluation.comparison_report.files.write_pdf"
    monkeypatch.setattr(target, lambda path, *_: path.write_bytes(b"%PDF"))


@pytest.mark.usefixtures("quick_pdf")
def test_the_same_result_gives_the_same_files(result, files, tmp_path):
    write(result, tmp_path)
    for name in ("comparison_report.html", "comparison_report.csv"):
        assert (tmp_path / name).read_bytes() == (files / name).read_bytes()


@pytest.mark.usefixtures("quick_pdf")
def test_nothing_is_left_of_a_report_that_could_not_be_written(result, tmp_path, monkeypatch):
    monkeypatch.setattr("schedrl.evaluation.comparison_report.files.write_html", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(result, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["comparison_report.pdf"]


@pytest.mark.parametrize("algorithms", [1, 5])
def test_nothing_leaves_its_page(algorithms):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    names = ("ppo", "a2c", "ddpg", "pg", "an_algorithm_with_a_long_name")[:algorithms]
    rules = {name: (1 + 0.1 * i, 20) for i, name in enumerate(("sjf", "packer", "tetris", "sjf_hold", "tsl"))}
    result = make_result(dict.fromkeys(names, (0.5, 0.6, 123.4)), rules=rules)
    for page in lay_out("title", contents(result, all_rows(result))):
        page.set_dpi(300)  # at a screen's resolution letters are rounded to whole pixels, on paper not
        renderer = FigureCanvasAgg(page).get_renderer()
        for text in page.texts:
            box = text.get_window_extent(renderer)
            assert 0.3 * page.dpi < box.x0, text.get_text()
            assert box.x1 < (PAGE[0] - 0.3) * page.dpi, text.get_text()
            assert 0.2 * page.dpi < box.y0, text.get_text()
        page.draw(renderer)
        for axes in page.axes:
            assert page.bbox.contains(*axes.get_tightbbox(renderer).p0)
            assert page.bbox.contains(*axes.get_tightbbox(renderer).p1)


def test_a_table_that_is_too_wide_is_wrapped():
    wide = Table("t", ("name", "value"), (("a", "word " * 60), ("b", "x" * 300)))
    size, widths, rows = fitted(wide)
    assert (size, sum(widths) < 7.3) == (6.0, True)
    assert " ".join(rows[1][1]) == ("word " * 60)
    assert "".join(rows[2][1]) == "x" * 300


# ---- Seeds -------------------------------------------------------------------------------------------------


def test_one_seed_over_seeds_is_that_seed(result):
    single = make_result({"ppo": (0.5,)})
    (row,) = chosen(all_rows(single), kind="algorithm", mode="greedy")
    (own,) = chosen(all_rows(single), kind="seed", mode="greedy")
    for name in ("mean", "mean_low", "mean_high", "p99", "unfinished"):
        assert row[name] == own[name]


def test_the_interval_over_seeds_covers_both_kinds_of_chance(result):
    rows = all_rows(result)
    spread, tight = (chosen(rows, kind="algorithm", mode="greedy", policy=name)[0] for name in ("a2c", "ppo"))
    for row in (spread, tight):
        own = chosen(rows, kind="seed", mode="greedy", policy=row["policy"])
        assert row["mean"] == pytest.approx(np.mean([one["mean"] for one in own]))
        assert row["mean_low"] <= min(one["mean"] for one in own)
        assert row["mean_high"] >= max(one["mean"] for one in own)
    width = spread["mean_high"] - spread["mean_low"]
    assert width > 3 * (tight["mean_high"] - tight["mean_low"]), "seeds that differ widen the interval"


def test_the_interval_over_seeds_covers_the_true_mean():
    """Seeds and sequences both drawn anew: 5 seeds of mean 3 +- 0.3, sequences shared. Aim 95 %."""
    rng, hits, trials = np.random.default_rng(0), 0, 150
    for trial in range(trials):
        common = rng.normal(0, 0.5, SEQUENCES)
        means = 3 + rng.normal(0, 0.3, 5)
        sums = means[:, None] + common + rng.normal(0, 0.3, (5, SEQUENCES))
        outcome = resample(sums, np.ones_like(sums), seed=trial, num_resamples=400)
        fake = type("Fake", (), {"resampled": outcome, "seed": trial, "runs": [
            type("R", (), {"name": str(i), "mode": "greedy"}) for i in range(5)]})  # fmt: skip
        (group,) = seeds.over_seeds(fake, {"a": tuple("01234")})
        hits += group.mean.low <= 3 <= group.mean.high
    assert 0.85 < hits / trials <= 0.99


def test_verdicts_of_seeds_and_over_seeds(result):
    rows = all_rows(result)
    pairs = {
        (r["policy"], r["against"]): r
        for r in chosen(rows, kind="algorithm against heuristic", mode="greedy")
    }
    assert (pairs["ppo", "sjf"]["verdict"], pairs["ppo", "sjf"]["seeds_better"]) == ("better", 2)
    assert (pairs["a2c", "sjf"]["seeds_better"], pairs["a2c", "sjf"]["seeds_worse"]) == (1, 1)
    assert (pairs["a2c", "sjf"]["verdict"], pairs["pg", "sjf"]["verdict"]) == ("tie", "worse")
    assert pairs["ppo", "defer"]["verdict"] == "other idle limit"
    assert pairs["ppo", "defer"]["difference_low"] is None
    each = chosen(rows, kind="algorithm against algorithm", mode="greedy")
    assert [(row["policy"], row["against"]) for row in each] == [("ppo", "a2c"), ("ppo", "pg"), ("a2c", "pg")]
    assert each[1]["verdict"] == "better"


def test_training_and_the_level_of_sjf(result):
    rows = all_rows(result)
    (row,) = chosen(rows, kind="seed", mode="greedy", policy="ppo", seed=0)
    passed = make_curve().passes(5.0)
    assert (row["decisions_to_beat_sjf"], row["seconds_to_beat_sjf"]) == passed
    assert (row["decisions_per_second"], row["reused"]) == (5_000, False)
    late = replace(result.trained[0], curve=make_curve(end=9.0))
    some = replace(result, trained=(late, *result.trained[1:]))
    (over,) = chosen(all_rows(some), kind="algorithm", mode="greedy", policy="ppo")
    assert (over["seeds_that_beat_sjf"], over["decisions_to_beat_sjf"]) == (1, None), "no mean over survivors"


# ---- The conclusion ----------------------------------------------------------------------------------------


def concluded(result):
    return " ".join(conclude(result, all_rows(result)))


def test_the_conclusion_says_who_is_best_and_who_beats_whom(result):
    text = concluded(result)
    assert "The best algorithm is ppo with a mean slowdown of" in text
    assert re.search(
        r"ppo beats sjf by [\d.]+% \[[\d.]+% \.\. [\d.]+%\] \(each of 2 seeds by itself too\)", text
    )
    assert "a2c can't be told from sjf" in text
    assert "pg loses to sjf by" in text
    assert (
        "Not claimable, as idle limits differ (20 for the algorithms, none for defer): every algorithm"
        in text
    )
    assert "all means are exact" in text
    assert "Intervals over 2 seeds are rough" in text


def test_a_win_with_some_seeds_only_is_not_a_win():
    text = concluded(make_result({"ppo": (0.1, 0.1, 0.1, 0.1, 1.02)}))
    assert "ppo is better on average, but not with every seed, than sjf" in text
    assert "4 of 5 seeds" in text
    assert "beats" not in text


def test_undone_jobs_take_the_win_away(result):
    first = result.evaluation.runs[0]
    status = first.outcome.status.copy()
    status[:, 3] = np.where(status[:, 3] == JobStatus.FINISHED, JobStatus.WAITING, status[:, 3])
    undone = replace(first, outcome=replace(first.outcome, status=status))
    evaluation = Evaluation((undone, *result.evaluation.runs[1:]), result.evaluation.baselines)
    text = concluded(replace(result, evaluation=evaluation))
    assert "Lower bounds only" in text
    assert f"ppo greedy {SEQUENCES:,} of" in text
    assert "ppo beats" not in text


def test_caveats():
    failed = (Failure("a3c", 1, "signal 9"), Failure("a3c", 2, "signal 9"), Failure("pg", 1, "NaN"))
    text = concluded(make_result({"ppo": (0.5,)}, failures=failed))
    assert "Failed and left out: a3c seeds 1, 2 (signal 9); pg seed 1 (NaN)." in text
    assert "With one seed nothing is known" in text
    other = make_result({"ppo": (0.5, 0.5)})
    other = replace(other, trained=(other.trained[0], replace(other.trained[1], commit="def+")))
    assert "different versions of the program: abc, def+ (+ = with changes" in concluded(other)
    runs = [replace(run, outcome=random_outcome(1, SEQUENCES, stretch=3.0)) if run.mode == "sampled" else run
            for run in other.evaluation.runs]  # fmt: skip
    differing = replace(other, evaluation=replace(other.evaluation, runs=tuple(runs)))
    assert "Greedy and sampled play differ much: ppo" in concluded(differing)


def test_too_few_sequences_give_no_verdict():
    few = make_result({"ppo": (0.5, 0.6), "pg": (1.0, 1.1)})
    runs = tuple(replace(run, outcome=random_outcome(2, 5)) for run in few.evaluation.runs)
    text = concluded(replace(few, evaluation=replace(few.evaluation, runs=runs)))
    assert "played too few sequences for a verdict on sjf" in text
    assert "too few sequences to tell them apart" in text
    assert "5 of 5 sequences have jobs, fewer than 10" in text
    assert not any(word in text for word in ("best", "beats", "exact", "lowest", "nan"))


@pytest.mark.usefixtures("quick_pdf")
def test_an_algorithm_without_heuristics(tmp_path):
    alone = replace(make_result({"ppo": (0.5, 0.6)}, rules={}), levels={})
    write(alone, tmp_path)
    assert [row["kind"] for row in read_csv(tmp_path)] == ["algorithm"] * 2 + ["seed"] * 4
    assert result_table(alone, all_rows(alone)).rows[0][0].startswith("ppo")
    assert any(isinstance(block, Picture) for block in contents(alone, all_rows(alone)))
