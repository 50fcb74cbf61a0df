"""Values of the wrong kind, in configuration files and on command lines: one short line, at once.

The fuzz writes valid TOML (and some that isn't) of wrong types, sizes and depths, from a seed.
"""

import os
import random
import subprocess
import sys

import pytest

import parameters
from schedrl.launch.comparing.plan import read_plan as read_comparison
from schedrl.launch.plan import read_plan
from schedrl.settings import UserError
from schedrl.workload.writers import write_trace

SECTIONS = ("deeprm", "simple_cluster", "ppo", "ddpg", "launch", "compare", "poisson", "bursty", "real_trace")
SCALARS = (
    "1", "-3", "0", "true", '"x"', '""', '"none"', "inf", "-inf", "nan", "1e400", "-1e-3", "9" * 400,
    "-" + "9" * 303, "9" * 5000, "0x" + "f" * 6000, "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00",
    '"\\u0000x"', '"~nobody/x"', '"\\u001b[31m"', '"/proc/self/mem"', '"/dev/zero"', f'"{"y" * 100_000}"',
)  # fmt: skip
COMMANDS = (
    [], ["--env", "simple_cluster"], ["--algo", "ddpg"], ["--workload", "bursty"],
    ["--env", "simple_cluster", "--workload", "real_trace", "--trace", "x.csv"],
)  # fmt: skip
DIGITS = "9" * 400


class Writer:
    """Writes TOML that means nothing."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        found = parameters.classes()
        self.names = sorted({name for section in SECTIONS for name in found[section].kinds()})

    def value(self, depth=0):
        kind = self.rng.randrange(10)
        if kind > 1 or depth > 2:
            return self.rng.choice(SCALARS)
        items = [self.value(depth + 1) for _ in range(self.rng.randrange(3))]
        pairs = dict(zip(self.rng.sample(self.names, len(items)), items, strict=True))
        return f"[{', '.join(items)}]" if kind else f"{{{', '.join(f'{k} = {v}' for k, v in pairs.items())}}}"

    def text(self):
        name, deep = self.rng.choice(self.names), self.rng.choice([50, 400, 5000])
        odd = (
            "a = " + "[" * deep + "]" * deep, name + ".a" * deep + " = 1", "x" * 100_000 + " = 1",
            name + " = " + "[" * 50, f"{name} = {'[' * 60}1{']' * 60}", "[[a.b]]\nx = 1",
        )  # fmt: skip
        if self.rng.random() < 0.1:
            return self.rng.choice(odd)
        lines = [f"{n} = {self.value()}" for n in self.rng.sample(self.names, self.rng.randrange(1, 3))]
        if self.rng.random() < 0.4:
            table = self.rng.choice([*SECTIONS, "workload_settings"])
            lines += [f"[{table}]", f"{self.rng.choice(self.names)} = {self.value()}"]
        return "\n".join(lines)


@pytest.mark.parametrize(("seed", "count"), [(25, 100), pytest.param(26, 2000, marks=pytest.mark.slow)])
def test_any_configuration_is_taken_or_refused_in_a_short_line(tmp_path, seed, count):
    writer, path, refusals = Writer(seed), tmp_path / "c.toml", []
    for number in range(count):
        path.write_text(writer.text())
        command = [*COMMANDS[number % len(COMMANDS)], "--config", str(path)]
        read = read_comparison if number % 3 == 0 and "--algo" not in command else read_plan
        try:
            read(command)
        except UserError as error:
            refusals.append(" ".join(str(error).split()))
    assert len(refusals) > count // 2
    assert max(map(len, refusals)) < 1500


def test_a_long_list_of_lists_is_not_repeated_in_full(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(f"hidden = [{', '.join(['[[1]]'] * 5000)}]")
    with pytest.raises(UserError, match="hidden is 'a list,a list.*5,000 in all") as refused:
        read_plan(["--config", str(path)])
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (["--env", "simple_cluster", "--pretrain", "sjf"], ["pretrain is sjf", "pretrain none"]),
        (["--total_steps", DIGITS], ["total_steps", "400 characters", "whole number"]),
        (["--gamma", DIGITS], ["gamma is inf"]),
        (["--num_envs", "1000000000"], ["num_envs is 1000000000", "at most"]),
        (["--delay_penalty", "1e-3"], ["delay_penalty is 0.001", "at most 0"]),
        (["--gamma", "-1e-3"], ["gamma is -0.001", "at least 0"]),
        (["--gamma=-1e-3"], ["gamma is -0.001", "at least 0"]),
        (["--gamma", "-inf"], ["gamma is -inf", "finite"]),
    ],
)
def test_values_out_of_range_on_the_command_line(line, parts):
    with pytest.raises(UserError) as refused:
        read_plan(line)
    assert all(part in str(refused.value) for part in parts), refused.value


def test_a_negative_number_with_an_exponent_is_a_value():
    assert read_plan(["--delay_penalty", "-1e-3"]).environment.delay_penalty == -0.001
    assert read_plan(["--delay_penalty", "-.5"]).environment.delay_penalty == -0.5


@pytest.mark.parametrize("table", ["3", '"x"', "[1, 2]", "true", "1979-05-27"])
@pytest.mark.parametrize("workload", [[], ["--workload", "bursty"]])
def test_the_settings_of_a_workload_are_a_table(tmp_path, table, workload):
    path = tmp_path / "c.toml"
    path.write_text(f"workload_settings = {table}")
    with pytest.raises(UserError, match="workload_settings is"):
        read_plan(["--env", "simple_cluster", *workload, "--config", str(path)])


def test_a_configuration_that_never_ends_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(10**10)
    for path, words in (
        (tmp_path / "pipe", "no regular file"),
        ("/dev/zero", "no regular file"),
        (tmp_path / "sparse", "bytes, at most"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(UserError, match=words):
            read_plan(["--config", str(path)])


def test_folders_with_impossible_names_are_refused():
    for name in ("x" * 5000, "a\0b", "~nobody-of-this-name/x"):
        with pytest.raises(UserError, match="model_dir"):
            read_plan(["--model_dir", name])


def test_a_trace_for_a_read_only_file_system(tmp_path, root):
    """Where this user may mount one; else a folder that nothing can be written in."""
    generate = '"$1" job_distribution.py generate --num_jobs 3 --out "$0"/x.csv'
    script = 'mount -t tmpfs -o ro none "$0" && exec ' + generate
    command = ["unshare", "-rm", "sh", "-c", script, str(tmp_path), sys.executable]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
        mounted = "Read-only" in done.stderr
    except FileNotFoundError:
        mounted = False
    if mounted:
        assert done.returncode == 2
        assert done.stderr.startswith("error: can't write")
        assert len(done.stderr.splitlines()) == 1
        return
    import job_distribution

    with pytest.raises(UserError, match="can't write"):
        write_trace(job_distribution.workload("poisson", 3), "/proc/x.csv")
