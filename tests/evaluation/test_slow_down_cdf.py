"""The command line: files, tables, exit codes, and what it must not import."""

import csv
import subprocess
import sys

import pytest

import slow_down_cdf
from schedrl.evaluation.report import FILES
from schedrl.learning import numpy_policy
from tests.evaluation.test_evaluate import FirstLegal

HEAVY = ("tensorflow", "keras", "numba", "pandas", "matplotlib", "scipy")


WINDOWS = ("--steps", "200", "--first", "20", "--last", "120", "--num_windows", "4")


class Model(FirstLegal):
    """Reads a queue of ten slots and may act on each."""

    acts_on = {"queue": ((10, 8), "float32")}  # noqa: RUF012
    scales = None

    def shapes_on(self, shapes):
        return {"queue": (10, 8), "action_mask": (11,)}


@pytest.fixture
def run():
    """What the model folder says of its run."""
    return {
        "algo": "ppo",
        "env": "deeprm",
        "settings": {"environment": {"arrival_rate": 0.5, "idle_limit": 0}},
    }


@pytest.fixture
def model(monkeypatch, tmp_path, run):
    """A model folder whose policy is the first legal action."""
    monkeypatch.setattr(numpy_policy, "load_policy", lambda folder: (Model(), run))
    folder = tmp_path / "model"
    folder.mkdir()
    return folder


def evaluate(model, *more, episodes=("--num_eval_episodes", "20")):
    few = ("--baselines", "sjf,sjf-hold", "--tune", "False")
    return slow_down_cdf.main(["--model_dir", str(model), *episodes, *few, *more])


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


def test_a_report_of_the_run_stays(model, capsys):
    for name in FILES:
        (model / name).write_text("of the training run")
    for fresh in ("eval", "eval_2"):
        assert evaluate(model) == 0
        assert str(model / fresh / FILES[0]) in capsys.readouterr().out
        assert sorted(path.name for path in (model / fresh).iterdir()) == sorted(FILES)
    assert all((model / name).read_text() == "of the training run" for name in FILES)


@pytest.mark.parametrize("flags", [("--steady_state",), ("--termination", "continuing"), ()])
def test_steady_state(model, run, capsys, flags):
    if not flags:
        run["settings"]["environment"]["termination"] = "continuing"
    assert evaluate(model, *flags, *WINDOWS, "--load", "0.4", episodes=()) == 0
    assert "on 4 test sequences" in capsys.readouterr().out


def test_a_foreign_setting_of_the_run_names_the_file(model, run, capsys):
    run["settings"]["environment"]["colour"] = "red"
    assert evaluate(model) == 2
    error = capsys.readouterr().err
    assert str(model / "run.json") in error
    assert "'colour'" in error


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("--num_eval_episodes", "0"), "at least 1"),
        (("--env", "deeprn"), "deeprm"),
        (("--baselines", "sjff"), "sjf"),
        (("--arival_rate", "0.5"), "arrival_rate"),
        (("--arrival_rate", "2"), "arrival_rate"),
        (("--legacy_floor", "perhaps"), "True or False"),
        (("--num_eval_episodes", "abc"), "whole number, got 'abc'"),
        (("--seed", "-1"), "at least 0"),
        (
            ("--num_job_slots", "5"),
            "queue [10, 8], asked for [5, 8]; leave out what changes it (given: --num_job_slots)",
        ),
        (("--representation", "compact"), "the model decides"),
        (("--num_windows", "4"), "add --steady_state"),
        (("--steady_state",), "use --num_windows"),
        (("--termination", "continuing"), "use --num_windows"),
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


@pytest.mark.parametrize(
    ("wrong", "says"),
    [(("--baselines", "sjf,defer"), "defer"), (("--sequence_length", "9"), "use --steps")],
)
def test_flags_without_effect_in_steady_state(model, capsys, wrong, says):
    assert evaluate(model, "--steady_state", *wrong, episodes=()) == 2
    assert says in capsys.readouterr().err
    assert not list(model.iterdir())


def test_model_folder_is_needed(capsys):
    assert slow_down_cdf.main([]) == 2
    assert "--model_dir" in capsys.readouterr().err


def test_broken_model_folders(tmp_path, capsys):
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
