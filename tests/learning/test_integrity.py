"""A run's folder is as it was written, or one line says that it isn't: mutants of every file."""

import contextlib
import io
import json
import os
import random
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from run_folders import SPEC, copied, evaluated, learn, mutate, resumed, start

import slow_down_cdf
from schedrl.launch.plan import read_plan
from schedrl.learning.checkpoint import HEADER, load_arrays, save_arrays
from schedrl.learning.numpy_policy import NumpyPolicy
from schedrl.learning.rollout import NumericsError
from schedrl.learning.run_description import code_hash, describe_run, run_id_of, told_of_code
from schedrl.learning.run_folder import check_resumable
from schedrl.settings import UserError

OLD = Path(__file__).parent / "data" / "run_of_8b15d8f"
"""The folder of a run of an earlier version: no hash of the code, none of what checkpoints go with."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    run, model = start(folder)
    learn(run, model)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return copied(finished, tmp_path / "run")


def change(path, **values):
    """Change a JSON file as a hand would."""
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def refusal(function, folder):
    with pytest.raises(UserError) as refused:
        function(folder)
    return " ".join(str(refused.value).split())


# -- every file ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "count"), [(25, 60), pytest.param(26, 1200, marks=pytest.mark.slow)])
def test_every_mutant_is_refused_in_a_line_or_changes_nothing(finished, tmp_path, seed, count):
    rng, refused, same = random.Random(seed), 0, 0
    files = sorted(path.relative_to(finished) for path in finished.rglob("*") if path.is_file())
    newest = max(name for name in files if name.parent.name == "checkpoints")
    assert len(files) == 8
    with contextlib.redirect_stdout(io.StringIO()):
        expected = {read: read(copied(finished, tmp_path / "run")) for read in (resumed, evaluated)}
        for _ in range(count):
            mutant, name = copied(finished, tmp_path / "run"), rng.choice(files)
            how = mutate(mutant, mutant / name, rng)
            before = contents(mutant)
            for read, right in expected.items():
                try:
                    found = read(mutant)
                except UserError as error:
                    refused += 1
                    line = " ".join(str(error).split())
                    assert len(line) < 1000, (name, how)  # noqa: PT017 (it may be refused, and then so)
                else:
                    same += found == right
                    # A newest checkpoint that is gone is how one goes on from the older one.
                    free = how == "old_header_mutant" or (how == "missing" and name == newest)
                    assert found == right or free, (name, how)
            assert contents(mutant) == before  # nothing is written before all is read
    assert refused > count // 2
    assert same > count // 4


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- run.json ------------------------------------------------------------------------------------------------


def test_a_changed_digit_in_run_json_is_refused_and_the_remedy_works(folder):
    path = folder / "run.json"
    description = json.loads(path.read_text())
    description["settings"]["environment"]["sequence_length"] = 6
    path.write_text(json.dumps(description))
    for read in (resumed, evaluated):
        line = refusal(read, folder)
        assert "run.json was changed after it was written" in line
        assert run_id_of(description) in line
    change(path, run_id=run_id_of(description))  # as the line says
    assert "made by another run" in refusal(resumed, folder)
    assert "policy.npz was trained by another run" in refusal(evaluated, folder)
    plan = read_plan(["--model_dir", str(folder), "--resume", "--accept_changes"])
    assert plan.environment.sequence_length == 6


def test_accepted_changes_are_the_runs_from_then_on(folder):
    path = folder / "run.json"
    description = json.loads(path.read_text())
    description["settings"]["algorithm"] |= {"learning_rate": 0.5, "total_steps": 160}
    path.write_text(json.dumps(description))
    plan = read_plan(["--model_dir", str(folder), "--resume", "--accept_changes"])
    from schedrl.learning.budget import Budget
    from schedrl.learning.run_folder import Run

    options = {"settings": plan.described, "resume": True, "accept_changes": True}
    run = Run(Budget(160), 0, folder, **options)
    assert json.loads(path.read_text())["run_id"] == description["run_id"]  # not yet: nothing was read
    model = start_model(run)
    learn(run, model)
    assert read_plan(["--model_dir", str(folder), "--resume"]).algorithm.learning_rate == 0.5
    assert json.loads(path.read_text())["before"][0] == description["run_id"]


def start_model(run):
    from run_folders import Model, leaves_of

    from schedrl.envs.deeprm.settings import DeepRMSettings

    model = Model(leaves_of(DeepRMSettings(sequence_length=5)))
    run.restore(model=model)
    return model


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", '"x"', "[" * 100_000, "{", "9" * 5000])
def test_run_json_that_is_no_table_is_refused(folder, content):
    (folder / "run.json").write_text(content)
    for read in (resumed, evaluated):
        assert "run.json" in refusal(read, folder)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
@pytest.mark.parametrize("name", ["run.json", "metrics.csv", "reward_history.npy"])
def test_what_is_no_file_to_read_is_refused_at_once(folder, name, kind):
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(10_000_000_000)
    text = refusal(check_resumable, folder)
    assert "is a pipe" in text or "is a device" in text or "than" in text or "no plain file" in text
    assert path.name in text


def test_a_resumed_run_knows_its_former_ids_and_an_equal_one_keeps_its_own(folder):
    before = json.loads((folder / "run.json").read_text())
    start(folder, resume=True)
    assert json.loads((folder / "run.json").read_text()) == before
    described = describe_run({"settings": {}}, 1, before)
    assert described["before"] == [before["run_id"]]
    assert describe_run({"settings": {}}, 1, described) == described


# -- the code ------------------------------------------------------------------------------------------------


def test_one_line_of_code_gives_another_run_id(tmp_path, root):
    for name in ("schedrl", "ppo"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "launcher.py", tmp_path)
    found = [code_hash(tmp_path)]
    for path in ("schedrl/learning/losses.py", "ppo/train.py", "launcher.py"):  # tracked, were it a clone
        with open(tmp_path / path, "a") as file:
            file.write("# one line\n")
        found.append(code_hash(tmp_path))
    (tmp_path / "ppo" / "more.py").write_text("")  # and not
    found.append(code_hash(tmp_path))
    (tmp_path / "models").mkdir()  # what a run writes is no code
    (tmp_path / "models" / "run.json").write_text("{}")
    (tmp_path / "ppo" / "__pycache__").mkdir()
    (tmp_path / "ppo" / "__pycache__" / "train.pyc").write_text("")
    assert len(set(found)) == len(found)
    assert code_hash(tmp_path) == found[-1]


def test_the_hash_of_the_code_is_part_of_the_run_id(monkeypatch):
    first = describe_run({}, 0)
    monkeypatch.setattr("schedrl.learning.run_description.code_hash", lambda: "another")
    second = describe_run({}, 0)
    assert first["git"] == second["git"]
    assert first["run_id"] != second["run_id"]
    assert "has changed since" in told_of_code(first)[0]
    assert told_of_code(second) == []


# -- logs ----------------------------------------------------------------------------------------------------


def test_logs_that_are_not_the_checkpoints_are_refused_with_what_to_do(folder):
    path = folder / "metrics.csv"
    rows = path.read_text().splitlines()
    path.write_text("\n".join([*rows[:-1], rows[-1].replace("80", "81", 1)]) + "\n")
    line = refusal(resumed, folder)
    assert "metrics.csv is not as it was when the newest checkpoint was made, after 80 decisions" in line
    assert "to go on from the older one after 60 decisions" in line
    assert "--accept_changes" in line
    (folder / "checkpoints" / "step_000000000080.npz").unlink()  # as the line says
    run, _ = start(folder, resume=True)
    assert run.budget.decisions == 60
    assert path.read_text().splitlines() == rows[:-2]


def test_accepted_logs_are_set_aside_and_begun_anew(folder):
    (folder / "metrics.csv").write_text("garbage")
    (folder / "reward_history.npy").write_bytes(b"garbage")
    said = []
    run, model = start(folder, resume=True, total_steps=100, accept_changes=True, say=said.append)
    learn(run, model)
    assert len(said) == 2
    assert (folder / "metrics.csv.changed").read_text() == "garbage"
    assert len((folder / "metrics.csv").read_text().splitlines()) == 3
    assert len(np.load(folder / "reward_history.npy")) == 2
    assert len(np.load(folder / "slowdown_history.npy")) == 10
    resumed(folder)


def test_what_was_logged_after_the_checkpoint_is_taken_back_everywhere(tmp_path):
    run, model = start(tmp_path / "once")
    learn(run, model)
    run, model = start(tmp_path / "killed")
    learn(run, model, updates=5, die=True)  # at 50 decisions, the checkpoint is at 40
    run, model = start(tmp_path / "killed", resume=True)
    assert run.budget.decisions == 40
    learn(run, model)
    for folder in (tmp_path / "once", tmp_path / "killed"):
        points = events(folder / "tensorboard")
        assert len(points) == len(set(points)) == 8
        assert points == sorted(points)
    columns = [
        [row.split(",")[0] for row in (tmp_path / name / "metrics.csv").read_text().splitlines()]
        for name in ("once", "killed")
    ]
    assert columns[0] == columns[1]


def events(folder):
    """Return the steps of all points of one curve, in the order of the files."""
    from tensorboard.compat.proto.event_pb2 import Event  # its own reader would load TensorFlow

    found = []
    for path in sorted(folder.iterdir()):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            found.append(Event.FromString(content[place + 12 : place + 12 + length]))
            place += 16 + length
    return [event.step for event in found for value in event.summary.value if value.tag == "policy_loss"]


def test_a_broken_event_file_ends_where_it_is_broken(folder):
    (path,) = (folder / "tensorboard").iterdir()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    start(folder, resume=True)
    assert 1 <= len(events(folder / "tensorboard")) < 8


# -- numbers that are none -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["weights", "mean/backlog"])
def test_a_policy_of_no_numbers_is_not_played(folder, number, name):
    arrays, header = load_arrays(folder / "policy.npz", kind="policy")
    arrays[name].flat[1] = number
    save_arrays(folder / "policy.npz", arrays, header)
    assert f"{name} of it are no finite numbers" in refusal(evaluated, folder)


def test_a_model_of_no_numbers_is_not_saved_and_the_run_fails(folder):
    run, model = start(folder, resume=True, total_steps=100)
    policy = (folder / "policy.npz").read_bytes()
    model.weights[0] = np.nan
    with pytest.raises(NumericsError, match="weights of the model are no finite numbers"):
        learn(run, model)
    assert (folder / "policy.npz").read_bytes() == policy
    resumed(folder)


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("spec", [], "spec is a list, not a table"),
        ("spec", {"network": "mlp"}, "hidden of spec is missing"),
        ("spec", SPEC | {"num_actions": True}, "num_actions of spec is true or false, not a whole number"),
        ("spec", SPEC | {"normalised": [1]}, "item 0 of normalised of spec is a whole number, not text"),
        ("spec", SPEC | {"num_actions": 10**300}, "made for parameters"),
        ("decisions", "x", "decisions is text"),
        ("play", "backwards", "way to play"),
    ],
)
def test_a_header_of_another_shape_is_refused(folder, where, value, words):
    arrays, header = load_arrays(folder / "policy.npz", kind="policy")
    save_arrays(folder / "policy.npz", arrays, header | {where: value})
    with pytest.raises(UserError, match=words):
        NumpyPolicy.load(folder / "policy.npz")


def test_a_header_that_is_no_table_is_refused(tmp_path):
    for content in (b"[]", b"3", b"null", b"[" * 100_000, b"\xff"):
        np.savez(tmp_path / "policy.npz", **{HEADER: np.frombuffer(content, np.uint8)})
        with pytest.raises(UserError, match="damaged or was not written"):
            load_arrays(tmp_path / "policy.npz")


# -- an earlier version --------------------------------------------------------------------------------------


def test_a_run_of_an_earlier_version_is_read_and_its_missing_hash_said(tmp_path, capsys):
    folder = copied(OLD, tmp_path / "run")
    plan = read_plan(["--model_dir", str(folder), "--resume"])
    assert any("no hash of the code" in note for note in plan.notes)
    resumed(folder)
    evaluated(folder)
    assert "no hash of the code" in capsys.readouterr().out
    rows = (folder / "metrics.csv").read_text().splitlines()
    for wrong in (rows[:-1], [*rows[:3], "x", *rows[4:]], rows[1:], [*rows[:3], rows[5], rows[4], *rows[6:]]):
        (folder / "metrics.csv").write_text("\n".join(wrong) + "\n")
        assert "metrics.csv" in refusal(resumed, folder)


@pytest.mark.slow
def test_a_run_of_an_earlier_version_trains_on_and_is_evaluated(tmp_path):
    import launcher

    folder = copied(OLD, tmp_path / "run")
    resume = ["--model_dir", str(folder), "--resume", "--total_steps", "1280", "--no_eval"]
    assert launcher.main(resume) == 0
    assert json.loads((folder / "run.json").read_text())["before"]
    evaluate = [
        "--model_dir",
        str(folder),
        "--num_eval_episodes",
        "5",
        "--baselines",
        "sjf",
        "--tune",
        "False",
    ]
    assert slow_down_cdf.main([*evaluate, "--output_dir", str(tmp_path / "report")]) == 0
