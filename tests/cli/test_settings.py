"""The machinery of settings: values, layers, names, errors, exit codes."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedrl import registry
from schedrl.settings import (
    Parser,
    Settings,
    UserError,
    add_arguments,
    check_folder_writable,
    main_guard,
    nearest,
    peek,
    preset_values,
    resolve,
)


@dataclass(frozen=True)
class Switches:
    lingering: bool = False
    silent_drop: bool = False


@dataclass(frozen=True)
class JobSettings(Settings):
    arrival_rate: float = 0.7
    """Chance of an arrival."""
    capacity: int | tuple[int, ...] = 10
    """Units per resource,
    on two lines."""
    seed: int = 0
    """Seed."""

    def __post_init__(self):
        super().__post_init__()
        self.in_range("arrival_rate", 0, 1)
        self.in_range("capacity", 1)


@dataclass(frozen=True)
class ClusterSettings(JobSettings):
    idle_limit: int | None = 0
    """Idle steps allowed."""
    mask: Literal["fits_now", "physics"] = "fits_now"
    """Mask."""
    quirks: Switches = Switches()
    """Quirks."""
    num_job_slots: int = 10
    """Slots."""


@dataclass(frozen=True)
class LearnerSettings(Settings):
    clip_epsilon: float = 0.2
    """Largest change, 10 % say."""
    entropy_coef: float = 0.01
    """Entropy."""
    hidden: tuple[int, ...] = (64, 64)
    """Units."""
    use_tf_function: bool = True
    """Compile."""
    name: str | None = None
    """Name."""
    seed: int = 1
    """Seed."""


PRESETS = {"original": {"quirks": "all", "num_job_slots": 5, "entropy_coef": 0.0}}
BOTH = [ClusterSettings, LearnerSettings]


def settle(line, classes=BOTH):
    parser = Parser(prog="test")
    add_arguments(parser, *classes)
    return resolve(classes, parser.parse_args(line.split()))


def test_defaults_stay_where_nothing_is_given():
    resolved = settle("")
    assert resolved[ClusterSettings] == ClusterSettings()
    assert resolved[LearnerSettings] == LearnerSettings()
    assert resolved.changes(LearnerSettings) == {}


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("--capacity 20", "capacity", 20),
        ("--capacity 20,30", "capacity", (20, 30)),
        ("--idle_limit none", "idle_limit", None),
        ("--idle-limit 3", "idle_limit", 3),
        ("--idle_limit=3", "idle_limit", 3),
        ("--mask physics", "mask", "physics"),
        ("--quirks lingering", "quirks", Switches(lingering=True)),
        ("--quirks all", "quirks", Switches(True, True)),
        ("--quirks none", "quirks", Switches()),
        ("--num_nw 5", "num_job_slots", 5),
        ("--num-nw=5", "num_job_slots", 5),
        ("--new_job_rate 1", "arrival_rate", 1.0),
        ("--seed 1e3", "seed", 1000),
    ],
)
def test_flags_in_all_spellings(line, name, value):
    found = getattr(settle(line)[ClusterSettings], name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("--use_tf_function False", "use_tf_function", False),
        ("--use-tf-function 0", "use_tf_function", False),
        ("--use_tf_function true", "use_tf_function", True),
        ("--use_tf_function", "use_tf_function", True),
        ("--ent_coef .5", "entropy_coef", 0.5),
        ("--clip-range 0.1", "clip_epsilon", 0.1),
        ("--hidden 32", "hidden", (32,)),
        ("--name none", "name", None),
        ("--name ppo", "name", "ppo"),
    ],
)
def test_flags_of_a_second_class(line, name, value):
    assert getattr(settle(line)[LearnerSettings], name) == value


def test_a_shared_name_sets_both_classes():
    resolved = settle("--seed 7")
    assert (resolved[ClusterSettings].seed, resolved[LearnerSettings].seed) == (7, 7)


def test_layers_are_laid_in_order(tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text(
        "num_nw = 6\nent_coef = 0.3\nseed = 5\n"
        "[learner]\nseed = 9\nhidden = [8]\n"
        "[quirks]\nsilent_drop = true\n"
    )
    resolved = settle(f"--preset original --config {toml} --entropy_coef 0.4")
    cluster, learner = resolved[ClusterSettings], resolved[LearnerSettings]
    assert (cluster.num_job_slots, cluster.quirks, cluster.seed) == (6, Switches(silent_drop=True), 5)
    assert (learner.entropy_coef, learner.hidden, learner.seed) == (0.4, (8,), 9)
    assert resolved.given[LearnerSettings]["entropy_coef"] == "command line"
    assert resolved.given[ClusterSettings]["num_job_slots"] == "run.toml"
    assert resolved.changes(LearnerSettings) == {"entropy_coef": 0.4, "hidden": (8,), "seed": 9}


def test_a_preset_yields_to_the_command_line():
    cluster = settle("--num_job_slots 10 --preset original")[ClusterSettings]
    assert (cluster.num_job_slots, cluster.quirks) == (10, Switches(True, True))


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("--clip_epsilom 0.1", ["--clip_epsilom", "nearest: --clip_epsilon"]),
        ("--arrival_rate 1.5", ["arrival_rate is 1.5", "at most 1"]),
        ("--arrival_rate nan", ["arrival_rate is 'nan'", "number"]),
        ("--arrival_rate inf", ["arrival_rate is inf", "finite", "at most 1"]),
        ("--arrival_rate x", ["arrival_rate is 'x'", "number"]),
        ("--seed 1.5", ["seed is '1.5'", "whole number"]),
        ("--capacity 10,0", ["capacity is 10,0", "at least 1"]),
        ("--mask fits", ["mask is 'fits'", "fits_now, physics"]),
        ("--quirks lingring", ["'lingring'", "lingering, silent_drop"]),
        ("--preset orginal", ["'orginal'", "nearest: original"]),
        ("--config nowhere.toml", ["nowhere.toml", "No such file"]),
        ("--seed", ["--seed", "expected one argument"]),
        ("--unseen", ["--unseen", "leave it out"]),
        ("stray", ["'stray'", "--help"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(line, parts, capsys):
    assert main_guard(lambda argv: settle(" ".join(argv)) and 0)(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert all(part in err for part in parts), err


@pytest.mark.parametrize(
    "text", ["seed = ", "sed = 1", "[lerner]\nseed = 1", "[learner]\nsed = 1", "seed = true"]
)
def test_a_wrong_toml_file_is_refused(tmp_path, text):
    toml = tmp_path / "run.toml"
    toml.write_text(text)
    with pytest.raises(UserError, match=r"run\.toml|seed"):
        settle(f"--config {toml}")


def test_help_shows_documentation_defaults_and_aliases(capsys):
    with pytest.raises(SystemExit) as stop:
        settle("--help")
    text = " ".join(capsys.readouterr().out.split())
    assert stop.value.code == 0
    assert "Units per resource, on two lines." in text
    assert "Largest change, 10 % say. [number; default 0.2; also clip_range" in text


def test_inherited_fields_keep_their_documentation():
    docs = ClusterSettings.field_docs()
    assert docs["arrival_rate"] == "Chance of an arrival."
    assert docs["quirks"] == "Quirks."


def test_construction_converts_exactly_or_refuses():
    assert ClusterSettings(capacity=[1, 2]).capacity == (1, 2)
    assert isinstance(ClusterSettings(arrival_rate=1).arrival_rate, float)
    with pytest.raises(UserError, match="wanted: whole number"):
        ClusterSettings(seed=1.5)
    with pytest.raises(UserError, match="wanted: True or False"):
        LearnerSettings(use_tf_function=2)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_checked_range_is_finite(value):
    @dataclass(frozen=True)
    class Rate(Settings):
        rate: float = 1.0

        def __post_init__(self):
            super().__post_init__()
            self.in_range("rate", 0, open_low=True)

    with pytest.raises(UserError, match="rate is .*(finite and above 0|number)"):
        Rate(rate=value)


def test_from_dict_understands_aliases_and_names_the_nearest():
    assert ClusterSettings.from_dict({"num_nw": 5}).num_job_slots == 5
    with pytest.raises(UserError, match="nearest: capacity"):
        ClusterSettings.from_dict({"capactiy": 5})
    with pytest.raises(UserError, match="given twice"):
        ClusterSettings.from_dict({"num_nw": 5, "num_job_slots": 6})


def test_replace_validates_again():
    assert ClusterSettings().replace(num_nw=4).num_job_slots == 4
    with pytest.raises(UserError, match="arrival_rate is 2"):
        ClusterSettings().replace(arrival_rate=2)


@given(
    st.floats(0, 1),
    st.one_of(st.integers(1, 99), st.lists(st.integers(1, 99), min_size=1, max_size=3).map(tuple)),
    st.one_of(st.none(), st.integers()),
    st.booleans(),
)
def test_settings_survive_json_and_the_command_line(rate, capacity, idle_limit, lingering):
    settings = ClusterSettings(rate, capacity, 3, idle_limit, "physics", Switches(lingering))
    stored = json.loads(json.dumps(settings.to_dict()))
    assert ClusterSettings.from_dict(stored) == settings


def test_peek_reads_names_before_the_parser_exists(tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text('algo = "a2c"\nother = 1\n')
    assert peek(["--env-name", "x", "--seed", "3"], algo="ppo", env="deeprm").env == "x"
    assert peek(["--config", str(toml)], algo="ppo").algo == "a2c"
    assert peek(["--config", str(toml), "--algo=pg"], algo="ppo").algo == "pg"
    assert peek(["--exp_type", "pg_re"], algo="ppo").algo == "pg"
    assert peek(["--exp_type", "pg_su"], algo="ppo", pretrain="").pretrain == "sjf"


def test_exit_codes(capsys):
    def stop():
        raise KeyboardInterrupt

    assert main_guard(lambda argv: None)([]) == 0
    assert main_guard(lambda argv: 42)([]) == 42
    assert main_guard(lambda argv: stop())([]) == 130
    assert main_guard(lambda argv: bytearray(1 << 62))([]) == 2
    with pytest.raises(ZeroDivisionError):
        main_guard(lambda argv: 1 // 0)([])


def test_a_reader_that_leaves_early_is_no_error(root):
    command = f"{sys.executable} parameters.py --glossary | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_folder_is_checked_without_touching_the_disk(tmp_path):
    (tmp_path / "file").write_text("")
    assert check_folder_writable(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(UserError, match="is a file"):
        check_folder_writable(tmp_path / "file" / "new")
    if Path("/proc").is_dir():  # a file system that even root can't write
        with pytest.raises(UserError, match="can't write in"):
            check_folder_writable("/proc/new")


def test_presets_by_name():
    assert preset_values(None, PRESETS) == {}
    assert preset_values("original", PRESETS) == PRESETS["original"]
    assert preset_values("a, b", {"a": {"x": 1, "y": 1}, "b": {"x": 2}}) == {"x": 2, "y": 1}


def test_nearest_ignores_case():
    assert nearest("ppp", ["PPO", "A2C"]) == ["PPO"]


def test_registry_finds_algorithms_by_folder(tmp_path):
    for name in ("zeta", "alpha", "half"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.py").write_text("")
    for name in ("zeta", "alpha"):
        (tmp_path / name / "train.py").write_text("")
    assert registry.algorithms(tmp_path) == {"alpha": "alpha.train:train", "zeta": "zeta.train:train"}


def test_registry_understands_spellings_and_names_the_nearest():
    assert registry.find("environment", "schedrl/DeepRM-v0") == "deeprm"
    assert registry.find("heuristic", "SJF-hold") == "sjf_hold"
    with pytest.raises(UserError, match="unknown environment 'deprm'; nearest: deeprm"):
        registry.get("environment", "deprm")
    with pytest.raises(UserError, match="unknown kind"):
        registry.names("planet")
