"""Case 44: where true run times stand for estimates, it is said at once and in every report."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import compare_algorithms
import environment
import job_distribution
from schedrl.envs.simple_cluster.settings import SimpleClusterSettings
from schedrl.evaluation.cluster import plots, report
from schedrl.evaluation.comparison_report.contents import Text
from schedrl.launch.replay.settings import ReplaySettings
from schedrl.settings import UserError

SJF = "sjf+first_fit+easy"
CASE = Path(__file__).parent / "traces"
"""400 jobs: without estimates, with users' limits, and every other job with one."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("plain", "half", "limits"):
        shutil.copy(CASE / f"estimates_{name}.csv", tmp_path / f"{name}.csv")
    monkeypatch.setattr(plots, "save", lambda path, *_: (path.write_bytes(b""), path)[1])
    return tmp_path


def replay(name, *words):
    flags = ["--trace", f"{name}.csv", "--capacity", "cpu=24", "--policies", SJF, "--output_dir", "out"]
    return compare_algorithms.main([*flags, *words])


def figures(folder):
    table = pd.read_csv(folder / "out" / report.CSV)
    return table, json.loads((folder / "out" / report.JSON).read_text())


@pytest.mark.parametrize(("name", "lacking"), [("plain", 400), ("half", 200), ("limits", 0)])
def test_every_report_says_how_many_jobs_have_no_estimate(here, monkeypatch, capsys, name, lacking):
    pages = []
    monkeypatch.setattr(report, "write_html", lambda path, title, blocks: pages.append(blocks))
    assert replay(name) == 0
    out = capsys.readouterr().out
    table, content = figures(here)
    assert table["jobs_without_estimate"].tolist() == [lacking]
    assert content["estimates"]["jobs_without_estimate"] == lacking
    said = f"{lacking} of 400 jobs have no estimate: their true run time is used"
    shown = [block.text for block in pages[0][:3] if isinstance(block, Text)]
    if not lacking:
        assert "no estimate" not in out
        assert not content["estimates"]["said"]
        return
    # At once, in the first lines of the terminal, and in front of the tables.
    assert said in out.splitlines()[1]
    assert out.index("note: " + said) < out.index("Bounded slowdown")
    assert any(said in text and "upper bound" in text for text in shown)
    assert list(content)[0] == "estimates"
    assert said in content["estimates"]["said"][0]
    assert ("favoured" in out) == (lacking == 200)


def test_without_that_knowledge_the_same_jobs_look_as_they_would(here, monkeypatch, capsys):
    monkeypatch.setattr(report, "write_html", lambda path, *_: path.write_text("page"))
    means = {}
    for model in (None, "true", "limit:3600", "noise:1", "class-median"):
        assert replay("plain", *(["--estimates", model] if model else [])) == 0
        table, content = figures(here)
        means[model] = table["mean"][0]
        assert table["estimates"][0] == (f"model {model}" if model else "true run times")
        assert (model or "true run time") in content["estimates"]["said"][0]
    assert means[None] == means["true"] == pytest.approx(3.847, abs=1e-3)
    assert means["noise:1"] > 1.5 * means["true"]
    assert min(means["limit:3600"], means["class-median"]) > 10 * means["true"]
    capsys.readouterr()
    assert replay("limits", "--estimates", "true") == 0
    assert figures(here)[0]["mean"][0] == means["true"]
    assert "it replaces the estimates that 400 jobs had" in capsys.readouterr().out


def test_inspect_says_it_to_people_and_to_programs(here, capsys):
    assert job_distribution.main(["inspect", "half.csv"]) == 0
    assert "200 of 400 jobs have no estimate" in capsys.readouterr().out.splitlines()[1]
    assert job_distribution.main(["inspect", "plain.csv", "--json"]) == 0
    assert "400 of 400 jobs have no estimate" in json.loads(capsys.readouterr().out)["notes"][0]
    assert job_distribution.main(["inspect", "limits.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_training_says_it_and_plays_without_it(here):
    wanted = {"trace_file": "plain.csv", "num_jobs": 20, "server": (24.0, 1.0, 1.0), "num_servers": 1}
    lines = SimpleClusterSettings().replace(**wanted).described()
    assert lines[0].startswith("400 of 400 jobs have no estimate: their true run time is used")
    deeprm = environment.make("deeprm", trace="half.csv", workload_settings={"capacity": "cpu=24"}).settings
    assert any(
        "200 of 400 jobs have no estimate" in line and "upper bound" in line for line in deeprm.described()
    )
    limit = SimpleClusterSettings().replace(**wanted, estimates="limit:900")
    assert limit.described()[0].startswith("--estimates limit:900")
    env = environment.make("simple_cluster", settings=limit, representation="state")
    obs, _ = env.reset(seed=0)
    assert obs["jobs"][0, 0] == 900
    with pytest.raises(UserError, match="estimates has no effect here"):
        deeprm.replace(estimates="true")


def test_a_model_that_is_none_is_refused_before_anything_is_read(here, capsys):
    assert replay("plain", "--estimates", "guess") == 2
    assert capsys.readouterr().err.startswith("error: estimates is 'guess'; write class-median")
    assert not (here / "out").exists()
    with pytest.raises(UserError, match="limit takes SECONDS"):
        ReplaySettings(estimates="limit:0")
