"""`job_distribution.py`: inspect, generate, convert, as a user types them."""

import json
import subprocess
import sys

import numpy as np
import pytest

import job_distribution
from job_distribution import read_trace

SWF = """; MaxProcs: 8
; UnixStartTime: 3600
1 0 -1 60 2 -1 -1 2 100 -1 1 7 1 -1 1 -1 -1 -1
2 5 -1 -1 1 -1 -1 1 60 -1 5 7 1 -1 1 -1 -1 -1
3 9 -1 -7 1 -1 -1 1 60 -1 1 8 1 -1 1 -1 -1 -1
4 30 -1 30 4 -1 -1 4 60 -1 1 8 1 -1 1 -1 -1 -1
5 60 -1 0 8 -1 -1 8 60 -1 1 8 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    return str(path)


def run(*arguments):
    return job_distribution.main([str(argument) for argument in arguments])


def test_inspect_says_what_is_there_and_what_was_rejected(log, capsys):
    assert run("inspect", log) == 0
    shown = capsys.readouterr().out
    assert "3 jobs over 60 seconds" in shown
    assert "2 users, 3 with an estimate" in shown
    assert "load 33.3% of 8 processors" in shown  # 240 processor seconds in 90 s
    assert "2 rows rejected: 1 runtime_unknown, 1 negative_runtime" in shown
    assert "line 5: negative_runtime (job 3, -7)" in shown


def test_inspect_for_machines(log, capsys):
    assert run("inspect", log, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["jobs"] == 3
    assert figures["rejected"] == {"runtime_unknown": 1, "negative_runtime": 1}
    assert [row["line"] for row in figures["rejected_rows"]] == [4, 5]
    assert figures["load"]["cpu"] == pytest.approx(240 / 90 / 8)
    assert figures["statistics"]["duration"]["max"] == 60
    assert figures["statistics"]["inter_arrival"]["count"] == 2


def test_one_job_has_no_load_and_says_null(tmp_path, capsys):
    path = tmp_path / "one.csv"
    path.write_text("id,arrival,duration,cpu\nx,5,0,1\n")
    assert run("inspect", path, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["load"] == {"cpu": None}
    assert figures["statistics"]["inter_arrival"]["mean"] is None
    assert run("inspect", path) == 0
    assert "capacity not known; not defined" in capsys.readouterr().out


def test_the_picture_is_drawn(log, tmp_path):
    assert run("inspect", log, "--plot", tmp_path / "out.png") == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", job_distribution.GENERATORS)
def test_every_generator_writes_and_is_read_back(name, tmp_path, capsys):
    if name == "real_trace":
        pytest.skip("needs a file; see test_real_trace")
    out = tmp_path / "jobs.csv.gz"
    flags = ["--distribution", name, "--num_jobs", 300, "--seed", 3]
    assert run("generate", *flags, "--load", 0.5, "--out", out) == 0
    jobs, rejected = read_trace(out)
    assert len(jobs) == 300
    assert not len(rejected)
    assert jobs.same_as(job_distribution.workload(name, 0.5, 300, seed=3))
    assert run("generate", *flags) == 0
    assert "300 jobs over" in capsys.readouterr().out


def test_convert_goes_through_window_part_sample_and_load(log, tmp_path):
    out = tmp_path / "b.csv"
    assert run("convert", log, out, "--load", "0.9") == 0
    jobs, _ = read_trace(out)
    assert jobs.load().max() == pytest.approx(0.9)
    assert jobs.id.tolist() == ["1", "4", "5"]
    assert run("convert", log, out, "--window", "10,100") == 0
    assert read_trace(out)[0].arrival.tolist() == [0 + 20, 50]
    assert run("convert", log, out, "--split", "0.5", "--part", "train") == 0
    assert run("convert", log, out, "--sample", "1") == 0
    assert run("convert", log, out, "--capacity", "cpu=4", "--fit", "reject") == 0
    assert read_trace(out)[0].id.tolist() == ["1", "4"]
    assert run("convert", log, out, "--capacity", "cpu=4", "--fit", "clip") == 0
    assert read_trace(out)[0].demand[:, 0].tolist() == [2, 4, 4]
    assert run("convert", log, tmp_path / "c.swf.gz") == 0
    assert read_trace(tmp_path / "c.swf.gz")[0].same_as(read_trace(log)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspekt", "FILE"], "inspect"),
        (["inspect", "nowhere.swf"], "can't read nowhere.swf"),
        (["inspect", "."], "is a folder"),
        (["inspect", "LOG", "--format", "swv"], "swf"),
        (["inspect", "LOG", "--strict"], "line 4: runtime_unknown"),
        (["inspect", "LOG", "--capacity", "gpu=3"], "gpu"),
        (["inspect", "LOG", "--option", "gangs"], "NAME=VALUE"),
        (["inspect", "LOG", "--option", "gang=1"], "gang"),
        (["convert", "LOG", "b.xlsx"], "name it .csv or .swf"),
        (["convert", "LOG", "/nowhere/b.csv"], "can't write"),
        (["convert", "LOG", "b.csv", "--split", "0.5"], "--part"),
        (["convert", "LOG", "b.csv", "--window", "5"], "FROM,TO"),
        (["convert", "LOG", "b.csv", "--window", ""], "FROM,TO"),
        (["convert", "LOG", "b.csv", "--load", "0"], "load is 0"),
        (["convert", "LOG", "b.csv", "--load", "1e300"], "it must be from 1e-06 to 1000"),
        (["convert", "LOG", "b.csv", "--load", "1e-300"], "it must be from 1e-06 to 1000"),
        (["inspect", "LOG", "--plot", "."], "it is a folder"),
        (["generate", "--distribution", "burtsy"], "bursty"),
        (["generate", "--distribution", "bursty", "--bust_interval", "3"], "burst_interval"),
        (["generate", "--num_jobs", "0"], "num_jobs"),
        (["generate", "--num_jobs", "999999999999"], "must be at most 100,000,000"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:3]),
)
def test_mistakes_are_one_line(arguments, message, log, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*[log if argument == "LOG" else argument for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("b.*"))
    assert not list(tmp_path.glob(".*.part"))


def test_no_tensorflow_and_no_numba_is_loaded(root, log):
    code = (
        "import sys, job_distribution as j;"
        f"j.main(['inspect', {log!r}]); j.main(['generate', '--distribution', 'bursty', '--num_jobs', '10']);"
        "sys.exit(any(name in sys.modules for name in ('tensorflow', 'numba')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False).returncode
        == 0
    )


def test_load_of_a_generated_file_is_what_was_asked(tmp_path):
    out = tmp_path / "jobs.csv"
    flags = ["--distribution", "poisson", "--load", 0.9, "--exact_load", "True", "--num_jobs", 500]
    assert run("generate", *flags, "--out", out) == 0
    jobs, _ = read_trace(out)
    assert np.nanmax(jobs.load()) == pytest.approx(0.9, rel=1e-9)


@pytest.mark.parametrize("flags", [[], ["--window", "0,10"]])
def test_a_record_is_not_written_over_by_its_own_conversion(log, capsys, flags):
    assert run("convert", log, log, *flags) == 2
    assert "is the file that is read" in capsys.readouterr().err
    with open(log) as file:
        assert file.read() == SWF


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ("mem=5", "unknown resource 'mem'"),
        ("cpu", "--capacity has 'cpu'; write cpu=AMOUNT"),
        ("cpu=many", "--capacity has 'cpu=many'"),
        ("cpu=nan", "--capacity has 'cpu=nan'"),
        ("cpu=0", "--capacity has 'cpu=0'"),
        ("cpu=inf", "a finite number above 0"),
    ],
)
def test_a_wrong_capacity_is_named(log, capsys, capacity, message):
    assert run("inspect", log, "--capacity", capacity) == 2
    assert message in capsys.readouterr().err


def test_what_is_unknown_is_not_shown_as_a_number(log, capsys):
    assert run("inspect", log, "--json") == 0
    row = json.loads(capsys.readouterr().out)["rejected_rows"][0]
    assert (row["reason"], row["detail"]) == ("runtime_unknown", "")
