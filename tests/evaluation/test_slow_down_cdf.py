"""The command line: files, tables, exit codes, and what it must not import."""

import csv
import subprocess
import sys

import pytest

import slow_down_cdf
from schedrl.evaluation.report import FILES
from tests.evaluation.test_evaluate import FirstLegal

numpy_policy = pytest.importorskip("schedrl.learning.numpy_policy")
HEAVY = ("tensorflow", "keras", "numba", "pandas", "matplotlib", "scipy")


@pytest.fixture
def model(monkeypatch, tmp_path):
    """A model folder whose policy is the first legal action."""
    run = {
        "algo": "ppo",
        "env": "deeprm",
        "settings": {"environment": {"arrival_rate": 0.5, "idle_limit": 0}},
    }
    monkeypatch.setattr(numpy_policy, "load_policy", lambda folder: (FirstLegal(), run), raising=False)
    folder = tmp_path / "model"
    folder.mkdir()
    return folder


def evaluate(model, *more):
    return slow_down_cdf.main(
        [
            "--model_dir",
            str(model),
            "--num_eval_episodes",
            "20",
            "--baselines",
            "sjf,sjf-hold",
            "--tune",
            "False",
            *more,
        ]
    )


def test_writes_three_files_and_prints_the_tables(model, tmp_path, capsys):
    out = tmp_path / "out" / "deeper"
    assert evaluate(model, "--output_dir", str(out)) == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert not list(model.iterdir())
    printed = capsys.readouterr()
    for expected in ("ppo (greedy)", "ppo (sampled)", "sjf_hold", "P(better)", "slowdown_cdf.png"):
        assert expected in printed.out
    assert "evaluating" in printed.err
    rows = list(csv.DictReader((out / FILES[2]).open()))
    assert {row["policy"] for row in rows} == {"ppo (greedy)", "ppo (sampled)", "sjf", "sjf_hold"}
    assert {int(row["sequence"]) for row in rows} == set(range(20))
    for row in rows:
        assert float(row["slowdown"]) == pytest.approx(
            (int(row["finish_time"]) - int(row["arrival_time"])) / int(row["duration"]), rel=1e-5
        )


def test_same_command_same_files(model, tmp_path):
    for name in "ab":
        assert evaluate(model, "--output_dir", str(tmp_path / name), "--seed", "4") == 0
    assert (tmp_path / "a" / FILES[2]).read_bytes() == (tmp_path / "b" / FILES[2]).read_bytes()


def test_settings_are_laid_over_the_runs(model, capsys):
    assert evaluate(model, "--idle_limit", "none") == 0
    assert "none  fits_now" in capsys.readouterr().out


def test_legacy_floor(model, capsys):
    assert evaluate(model, "--legacy_floor") == 0
    assert "Floored slowdown" in capsys.readouterr().out
    assert all(float(row["slowdown"]).is_integer() for row in csv.DictReader((model / FILES[2]).open()))


def test_steady_state(model, capsys):
    windows = ("--steps", "200", "--first", "20", "--last", "120", "--num_windows", "4")
    assert evaluate(model, "--steady_state", *windows, "--load", "0.4") == 0
    assert "on 4 test sequences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("--num_eval_episodes", "0"), "at least 1"),
        (("--env", "deeprn"), "deeprm"),
        (("--baselines", "sjff"), "sjf"),
        (("--arival_rate", "0.5"), "arrival_rate"),
        (("--arrival_rate", "2"), "arrival_rate"),
        (("--legacy_floor", "perhaps"), "True or False"),
        (("--output_dir", "{file}/out"), "not a folder"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(model, tmp_path, capsys, wrong, says):
    file = tmp_path / "file"
    file.write_text("")
    before = sorted(tmp_path.rglob("*"))
    assert evaluate(model, *(text.format(file=file) for text in wrong)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert says in error
    assert sorted(tmp_path.rglob("*")) == before


def test_model_folder_is_needed(capsys):
    assert slow_down_cdf.main([]) == 2
    assert "--model_dir" in capsys.readouterr().err


def test_broken_model_folders(tmp_path, capsys):
    if not hasattr(numpy_policy, "load_policy"):
        pytest.skip("load_policy isn't there yet")
    half = tmp_path / "half"
    half.mkdir()
    (half / "policy.npz").write_bytes(b"PK\x03\x04 half a file")
    (half / "run.json").write_text("{")
    for folder in (tmp_path / "missing", half):
        assert evaluate(folder) == 2
        assert capsys.readouterr().err.startswith("error: ")
    assert sorted(path.name for path in half.iterdir()) == ["policy.npz", "run.json"]
    assert not (tmp_path / "missing").exists()


def test_help_imports_nothing_heavy(root):
    code = (
        "import sys, slow_down_cdf\n"
        "try: slow_down_cdf.main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]"
    assert "--model_dir" in done.stdout
